//! UNet with an encoder of residual blocks, as ResNet-34 has them: what is seen at five sizes on the way down is put beside
//! what is drawn at the same size on the way up. Full, it has the published 24.4 million parameters.

use crate::options::Scale;
use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::interpolate::{Interpolate2d, Interpolate2dConfig, InterpolateMode};
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Initializer, PaddingConfig2d};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};

/// How large the network is.
#[derive(Debug, Clone)]
pub struct UnetConfig {
    /// Channels of the first stage: 64 as published.
    pub width: usize,
    /// Residual blocks of each stage: 3, 4, 6, 3 as published.
    pub blocks: [usize; 4],
    /// Pixels along a side: 256 as published.
    pub side: usize,
}

/// A convolution, normalised.
#[derive(Module, Debug)]
struct Normalised {
    convolution: Conv2d,
    normalisation: BatchNorm,
}

#[derive(Module, Debug)]
struct Block {
    first: Normalised,
    second: Normalised,
    /// Where size or channels change.
    shortcut: Option<Normalised>,
}

#[derive(Module, Debug)]
struct Upwards {
    larger: Interpolate2d,
    first: Normalised,
    second: Normalised,
}

/// The network.
#[derive(Module, Debug)]
pub struct Unet {
    stem: Normalised,
    pool: MaxPool2d,
    stages: Vec<Vec<Block>>,
    upwards: Vec<Upwards>,
    head: Conv2d,
}

impl UnetConfig {
    /// The size that a scale means.
    pub fn at(scale: Scale) -> Self {
        match scale {
            Scale::Small => Self { width: 16, blocks: [1, 1, 1, 1], side: 64 },
            Scale::Full => Self { width: 64, blocks: [3, 4, 6, 3], side: 256 },
        }
    }

    /// The network with initial weights.
    pub fn init(&self, device: &Device) -> Unet {
        let width = self.width;
        let mut channels = width;
        let mut stages = Vec::new();
        for (stage, count) in self.blocks.iter().enumerate() {
            let next = width << stage;
            let mut blocks = Vec::new();
            for number in 0..*count {
                let stride = if stage > 0 && number == 0 { 2 } else { 1 };
                let changes = stride != 1 || channels != next;
                blocks.push(Block {
                    first: Normalised::new(channels, next, 3, stride, device),
                    second: Normalised::new(next, next, 3, 1, device),
                    shortcut: changes.then(|| Normalised::new(channels, next, 1, stride, device)),
                });
                channels = next;
            }
            stages.push(blocks);
        }
        // On the way up: channels that come from below, those beside, and what is drawn.
        let upwards =
            [(8, 4, 4), (4, 2, 2), (2, 1, 1)].map(|(below, beside, drawn)| ((below + beside) * width, drawn * width));
        let upwards = upwards.into_iter().chain([(2 * width, width / 2), (width / 2, width / 4)]);
        let upwards = upwards.map(|(from, to)| Upwards {
            larger: Interpolate2dConfig::new()
                .with_scale_factor(Some([2.0, 2.0]))
                .with_mode(InterpolateMode::Nearest)
                .init(),
            first: Normalised::new(from, to, 3, 1, device),
            second: Normalised::new(to, to, 3, 1, device),
        });
        Unet {
            stem: Normalised::new(3, width, 7, 2, device),
            pool: MaxPool2dConfig::new([3, 3])
                .with_strides([2, 2])
                .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
                .init(),
            stages,
            upwards: upwards.collect(),
            head: Conv2dConfig::new([width / 4, 1], [3, 3]).with_padding(PaddingConfig2d::Same).init(device),
        }
    }
}

impl Normalised {
    fn new(from: usize, to: usize, kernel: usize, stride: usize, device: &Device) -> Self {
        let half = kernel / 2;
        let convolution = Conv2dConfig::new([from, to], [kernel, kernel])
            .with_stride([stride, stride])
            .with_padding(PaddingConfig2d::Explicit(half, half, half, half))
            .with_bias(false)
            .with_initializer(Initializer::KaimingNormal { gain: std::f64::consts::SQRT_2, fan_out_only: false })
            .init(device);
        Self { convolution, normalisation: BatchNormConfig::new(to).init(device) }
    }

    fn forward(&self, values: Tensor<4>) -> Tensor<4> {
        self.normalisation.forward(self.convolution.forward(values))
    }
}

impl Block {
    fn forward(&self, values: Tensor<4>) -> Tensor<4> {
        let inner = self.second.forward(relu(self.first.forward(values.clone())));
        let outer = match &self.shortcut {
            Some(shortcut) => shortcut.forward(values),
            None => values,
        };
        relu(inner + outer)
    }
}

impl Unet {
    /// For each pixel a number above zero where there is lung. Pictures have three channels, as those that encoders are
    /// pretrained on.
    pub fn forward(&self, pictures: Tensor<4>) -> Tensor<4> {
        let mut values = relu(self.stem.forward(pictures));
        let mut beside = vec![values.clone()];
        values = self.pool.forward(values);
        for stage in &self.stages {
            for block in stage {
                values = block.forward(values);
            }
            beside.push(values.clone());
        }
        // The last is what goes up.
        beside.pop();
        for upwards in &self.upwards {
            values = upwards.larger.forward(values);
            if let Some(seen) = beside.pop() {
                values = Tensor::cat(vec![values, seen], 1);
            }
            values = relu(upwards.first.forward(values));
            values = relu(upwards.second.forward(values));
        }
        self.head.forward(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models;

    #[test]
    fn full_scale_has_the_published_24_million_parameters() {
        assert_eq!(models::parameters(&UnetConfig::at(Scale::Full).init(&Device::flex())), 24_436_369);
    }

    #[test]
    fn a_picture_comes_out_as_large_as_it_went_in() {
        let device = Device::flex();
        let network = UnetConfig::at(Scale::Small).init(&device);
        let drawn = network.forward(Tensor::zeros([1, 3, 64, 64], &device));
        assert_eq!(drawn.dims(), [1, 1, 64, 64]);
    }
}
