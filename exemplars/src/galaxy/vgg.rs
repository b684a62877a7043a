//! VGG-16: thirteen convolutions of three by three in five stages, and three linear layers. Small, it has a quarter of the
//! width, 64 by 64 pixels and batch normalisation, without which it would not learn from so few pictures.

use crate::options::Scale;
use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{
    BatchNorm, BatchNormConfig, Dropout, DropoutConfig, Initializer, Linear, LinearConfig, PaddingConfig2d,
};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};

/// How large the network is.
#[derive(Debug, Clone)]
pub struct Vgg16Config {
    /// Channels of the first stage: 64 as published.
    pub width: usize,
    /// Neurons of the linear layers: 4096 as published.
    pub hidden: usize,
    /// Pixels along a side: 224 as published.
    pub side: usize,
    pub classes: usize,
    pub normalised: bool,
    /// The part of the neurons that is left out by chance while learning: one half as published.
    pub dropout: f64,
}

/// Convolutions of each stage, and how many times the width of the first their channels are.
const STAGES: [(usize, usize); 5] = [(2, 1), (2, 2), (3, 4), (3, 8), (3, 8)];

#[derive(Module, Debug)]
struct Layer {
    convolution: Conv2d,
    normalisation: Option<BatchNorm>,
    pool: Option<MaxPool2d>,
}

/// The network.
#[derive(Module, Debug)]
pub struct Vgg16 {
    layers: Vec<Layer>,
    linear: Vec<Linear>,
    dropout: Dropout,
}

impl Vgg16Config {
    /// The size that a scale means.
    pub fn at(scale: Scale, classes: usize) -> Self {
        match scale {
            Scale::Small => Self { width: 16, hidden: 128, side: 64, classes, normalised: true, dropout: 0.2 },
            Scale::Full => Self { width: 64, hidden: 4096, side: 224, classes, normalised: false, dropout: 0.5 },
        }
    }

    /// The network with initial weights.
    pub fn init(&self, device: &Device) -> Vgg16 {
        let gain = Initializer::KaimingNormal { gain: std::f64::consts::SQRT_2, fan_out_only: false };
        let mut layers = Vec::new();
        let mut channels = 3;
        for (count, factor) in STAGES {
            for number in 1..=count {
                let next = self.width * factor;
                let convolution = Conv2dConfig::new([channels, next], [3, 3])
                    .with_padding(PaddingConfig2d::Same)
                    .with_initializer(gain.clone())
                    .init(device);
                layers.push(Layer {
                    convolution,
                    normalisation: self.normalised.then(|| BatchNormConfig::new(next).init(device)),
                    pool: (number == count).then(|| MaxPool2dConfig::new([2, 2]).with_strides([2, 2]).init()),
                });
                channels = next;
            }
        }
        // Nothing brings the values of so many neurons back to scale where there is no normalisation: they begin small,
        // as in the published networks; otherwise the first steps lead far away.
        let flat = if self.normalised { gain } else { Initializer::Normal { mean: 0.0, std: 0.01 } };
        let left = self.side >> STAGES.len();
        let sizes = [channels * left * left, self.hidden, self.hidden, self.classes];
        let linear = sizes
            .windows(2)
            .map(|pair| LinearConfig::new(pair[0], pair[1]).with_initializer(flat.clone()).init(device));
        Vgg16 { layers, linear: linear.collect(), dropout: DropoutConfig::new(self.dropout).init() }
    }
}

impl Vgg16 {
    /// Scores of each class for each picture.
    pub fn forward(&self, pictures: Tensor<4>) -> Tensor<2> {
        let mut values = pictures;
        for layer in &self.layers {
            values = layer.convolution.forward(values);
            if let Some(normalisation) = &layer.normalisation {
                values = normalisation.forward(values);
            }
            values = relu(values);
            if let Some(pool) = &layer.pool {
                values = pool.forward(values);
            }
        }
        let mut values: Tensor<2> = values.flatten(1, 3);
        for (number, linear) in self.linear.iter().enumerate() {
            values = linear.forward(values);
            if number + 1 < self.linear.len() {
                values = self.dropout.forward(relu(values));
            }
        }
        values
    }

    /// The same network whose first convolutions keep the weights that they have.
    pub fn frozen(mut self, count: usize) -> Self {
        self.layers = self
            .layers
            .into_iter()
            .enumerate()
            .map(|(number, layer)| match number < count {
                true => Layer { convolution: layer.convolution.no_grad(), ..layer },
                false => layer,
            })
            .collect();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models;

    #[test]
    fn full_scale_has_the_published_138_million_parameters() {
        let published = Vgg16Config::at(Scale::Full, 1000).init(&Device::flex());
        assert_eq!(models::parameters(&published), 138_357_544);
        assert_eq!(models::parameters(&Vgg16Config::at(Scale::Full, 5).init(&Device::flex())), 134_281_029);
    }

    #[test]
    fn small_scale_fits_a_laptop() {
        let network = Vgg16Config::at(Scale::Small, 5).init(&Device::flex());
        assert_eq!(models::parameters(&network), 1_005_717);
    }
}
