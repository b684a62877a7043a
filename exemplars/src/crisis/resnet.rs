//! ResNet-50: a stem, sixteen bottleneck blocks in four stages, and one linear layer. Small, it has an eighth of the width
//! and 64 by 64 pixels.

use crate::options::Scale;
use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::pool::{AdaptiveAvgPool2d, AdaptiveAvgPool2dConfig, MaxPool2d, MaxPool2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Initializer, Linear, LinearConfig, PaddingConfig2d};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};

/// How large the network is.
#[derive(Debug, Clone)]
pub(crate) struct Resnet50Config {
    /// Channels of the first stage: 64 as published.
    pub width: usize,
    /// Pixels along a side: 224 as published.
    pub side: usize,
    pub classes: usize,
}

/// Blocks of each stage.
const STAGES: [usize; 4] = [3, 4, 6, 3];
/// A block ends with so many times the channels that it computes with.
const EXPANSION: usize = 4;

#[derive(Module, Debug)]
struct Normalised {
    convolution: Conv2d,
    normalisation: BatchNorm,
}

#[derive(Module, Debug)]
struct Bottleneck {
    narrow: Normalised,
    across: Normalised,
    wide: Normalised,
    shortcut: Option<Normalised>,
}

/// The network.
#[derive(Module, Debug)]
pub(crate) struct Resnet50 {
    stem: Normalised,
    pool: MaxPool2d,
    blocks: Vec<Bottleneck>,
    mean: AdaptiveAvgPool2d,
    output: Linear,
}

impl Normalised {
    fn new(channels: [usize; 2], kernel: usize, stride: usize, device: &Device) -> Self {
        let edge = kernel / 2;
        let convolution = Conv2dConfig::new(channels, [kernel, kernel])
            .with_stride([stride, stride])
            .with_padding(PaddingConfig2d::Explicit(edge, edge, edge, edge))
            .with_bias(false)
            .with_initializer(Initializer::KaimingNormal { gain: std::f64::consts::SQRT_2, fan_out_only: true })
            .init(device);
        Self { convolution, normalisation: BatchNormConfig::new(channels[1]).init(device) }
    }

    fn forward(&self, input: Tensor<4>) -> Tensor<4> {
        self.normalisation.forward(self.convolution.forward(input))
    }
}

impl Bottleneck {
    fn new(from: usize, width: usize, stride: usize, device: &Device) -> Self {
        let to = width * EXPANSION;
        Self {
            narrow: Normalised::new([from, width], 1, 1, device),
            across: Normalised::new([width, width], 3, stride, device),
            wide: Normalised::new([width, to], 1, 1, device),
            shortcut: (from != to || stride != 1).then(|| Normalised::new([from, to], 1, stride, device)),
        }
    }

    fn forward(&self, input: Tensor<4>) -> Tensor<4> {
        let passed = match &self.shortcut {
            Some(shortcut) => shortcut.forward(input.clone()),
            None => input.clone(),
        };
        let inner = relu(self.across.forward(relu(self.narrow.forward(input))));
        relu(self.wide.forward(inner) + passed)
    }
}

impl Resnet50Config {
    /// The size that a scale means.
    pub(crate) fn at(scale: Scale, classes: usize) -> Self {
        match scale {
            Scale::Small => Self { width: 8, side: 64, classes },
            Scale::Full => Self { width: 64, side: 224, classes },
        }
    }

    /// The network with initial weights.
    pub(crate) fn init(&self, device: &Device) -> Resnet50 {
        let stem = Normalised::new([3, self.width], 7, 2, device);
        let mut blocks = Vec::new();
        let mut channels = self.width;
        for (stage, count) in STAGES.into_iter().enumerate() {
            let width = self.width << stage;
            for number in 0..count {
                let stride = if stage > 0 && number == 0 { 2 } else { 1 };
                blocks.push(Bottleneck::new(channels, width, stride, device));
                channels = width * EXPANSION;
            }
        }
        let pool = MaxPool2dConfig::new([3, 3])
            .with_strides([2, 2])
            .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
            .init();
        let mean = AdaptiveAvgPool2dConfig::new([1, 1]).init();
        Resnet50 { stem, pool, blocks, mean, output: LinearConfig::new(channels, self.classes).init(device) }
    }
}

impl Resnet50 {
    pub(crate) fn forward(&self, pictures: Tensor<4>) -> Tensor<2> {
        let mut values = self.pool.forward(relu(self.stem.forward(pictures)));
        for block in &self.blocks {
            values = block.forward(values);
        }
        self.output.forward(self.mean.forward(values).flatten(1, 3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::parameters;

    #[test]
    fn the_full_network_has_the_published_twenty_five_million_parameters() {
        let count = |classes| parameters(&Resnet50Config::at(Scale::Full, classes).init(&Device::flex()));
        // With the thousand classes that weights are usually pretrained for, and with the two of this workflow.
        assert_eq!((count(1000), count(2)), (25_557_032, 23_512_130));
    }

    #[test]
    fn the_small_network_takes_pictures_of_its_size() {
        let config = Resnet50Config::at(Scale::Small, 2);
        let network = config.init(&Device::flex());
        let said = network.forward(Tensor::zeros([2, 3, config.side, config.side], &Device::flex()));
        assert_eq!(said.dims(), [2, 2]);
    }
}
