//! The text pipeline: messages become words, words become vectors, and a BiLSTM reads them in both directions.

use super::examples::{Catalogue, Examples};
use super::glove;
use super::tweets;
use super::words::words;
use crate::arrays::Arrays;
use crate::failure::Failure;
use crate::options::{Computing, Scale};
use burn::module::Module;
use burn::nn::{BiLstm, BiLstmConfig, Dropout, DropoutConfig, Linear, LinearConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor, TensorData};
use clap::Args;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Words of a message that are read; the others are cut off.
const LENGTH: usize = 24;

#[derive(Debug, Args)]
pub struct Clean {
    /// The three tables: train, dev, test
    #[arg(required = true)]
    tables: Vec<PathBuf>,
    /// Vectors of words, in the text format of GloVe
    #[arg(long)]
    vectors: PathBuf,
    /// The file to write
    #[arg(long)]
    out: PathBuf,
}

/// Messages as rows of numbers of words, with the vectors of the words that occur.
pub(super) fn clean(options: &Clean) -> Result<(), Failure> {
    let mut catalogue = Catalogue::default();
    let mut messages = Vec::new();
    let mut seen = BTreeSet::new();
    for tweet in tweets::read(&options.tables)? {
        // A message with several pictures is in several rows, and one text.
        if seen.insert(tweet.id.clone()) {
            messages.push(words(&tweet.text));
            catalogue.names.push(tweet.id);
            catalogue.labels.push(tweet.label_text);
            catalogue.splits.push(tweet.split);
        }
    }
    let wanted: BTreeSet<String> = messages.iter().flatten().cloned().collect();
    let vectors = glove::read(&options.vectors, &wanted)?;
    if vectors.of.is_empty() {
        return Err(Failure::data(&options.vectors, "it has no vector for any word of the messages"));
    }
    // 0 stands for no word; words without a vector are left out, as they are in the published workflow.
    let numbers: BTreeMap<&str, usize> =
        vectors.of.keys().enumerate().map(|(at, word)| (word.as_str(), at + 1)).collect();
    let mut rows = Vec::with_capacity(messages.len() * LENGTH);
    for message in &messages {
        let mut row: Vec<f32> =
            message.iter().filter_map(|word| numbers.get(word.as_str())).map(|number| *number as f32).collect();
        row.resize(LENGTH, 0.0);
        rows.extend(row);
    }
    let mut arrays = Arrays::default();
    catalogue.put(&mut arrays);
    arrays.insert_floats("words", vec![messages.len(), LENGTH], rows);
    let table: Vec<f32> = vectors.of.values().flatten().copied().collect();
    arrays.insert_floats("vectors", vec![vectors.of.len(), vectors.width], table);
    arrays.save(&options.out)
}

/// The network: two LSTMs, the mean of what they say at each word, and two linear layers.
#[derive(Module, Debug)]
pub(super) struct Reader {
    lstm: BiLstm,
    dropout: Dropout,
    hidden: Linear,
    output: Linear,
}

impl Reader {
    pub(super) fn new(scale: Scale, width: usize, dropout: f64, device: &Device) -> Self {
        let (states, hidden) = match scale {
            Scale::Small => (48, 32),
            Scale::Full => (256, 128),
        };
        Self {
            lstm: BiLstmConfig::new(width, states, true).init(device),
            dropout: DropoutConfig::new(dropout).init(),
            hidden: LinearConfig::new(2 * states, hidden).init(device),
            output: LinearConfig::new(hidden, 2).init(device),
        }
    }

    /// Vectors of words, with 1 where there is a word and 0 behind the last.
    fn forward(&self, vectors: Tensor<3>, mask: Tensor<3>) -> Tensor<2> {
        let (said, _) = self.lstm.forward(vectors, None);
        let count = mask.clone().sum_dim(1).clamp_min(1.0);
        let mean: Tensor<2> = ((said * mask).sum_dim(1) / count).squeeze_dim(1);
        self.output.forward(relu(self.hidden.forward(self.dropout.forward(mean))))
    }
}

/// Messages to learn from.
pub(super) struct Messages {
    catalogue: Catalogue,
    words: Vec<usize>,
    vectors: Vec<f32>,
    width: usize,
}

impl Messages {
    pub(super) fn load(paths: &[PathBuf]) -> Result<Self, Failure> {
        let [path] = paths else {
            return Err(Failure::options("the messages are in one file: it has the vectors of its words"));
        };
        let read = || {
            let arrays = Arrays::load(path).map_err(|failure| failure.to_string())?;
            let mut catalogue = Catalogue::default();
            catalogue.take(&arrays)?;
            let (shape, rows) = arrays.floats("words")?;
            let (vectors_shape, vectors) = arrays.floats("vectors")?;
            let width = vectors_shape.get(1).copied().unwrap_or(0);
            let words: Vec<usize> = rows.iter().map(|number| *number as usize).collect();
            if shape != [catalogue.labels.len(), LENGTH] || words.iter().any(|word| *word * width > vectors.len()) {
                return Err("its words do not fit its vectors".to_owned());
            }
            Ok(Self { catalogue, words, vectors: vectors.to_vec(), width })
        };
        read().map_err(|what| Failure::data(path, what))
    }
}

impl Examples<Reader> for Messages {
    fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    fn scores(&self, model: &Reader, items: &[usize], _: Option<&mut ChaCha8Rng>, device: &Device) -> Tensor<2> {
        let row = |item: usize| &self.words[item * LENGTH..(item + 1) * LENGTH];
        // What is behind the last word of the longest message need not be computed.
        let used = |row: &[usize]| row.iter().position(|word| *word == 0).unwrap_or(LENGTH);
        let length = items.iter().map(|item| used(row(*item))).max().unwrap_or(0).max(1);
        let mut values = Vec::with_capacity(items.len() * length * self.width);
        let mut mask = Vec::with_capacity(items.len() * length);
        for item in items {
            for word in &row(*item)[..length] {
                mask.push(f32::from(*word > 0));
                match word {
                    0 => values.resize(values.len() + self.width, 0.0),
                    word => values.extend(&self.vectors[(word - 1) * self.width..word * self.width]),
                }
            }
        }
        let vectors = Tensor::from_data(TensorData::new(values, [items.len(), length, self.width]), device);
        let mask = Tensor::from_data(TensorData::new(mask, [items.len(), length, 1]), device);
        model.forward(vectors, mask)
    }

    fn make(&self, computing: &Computing, dropout: f64, device: &Device) -> Reader {
        Reader::new(computing.scale, self.width, dropout, device)
    }

    fn usual_batch(&self, computing: &Computing) -> usize {
        if computing.scale == Scale::Full { 128 } else { 32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_reader_has_the_published_million_parameters() {
        let reader = Reader::new(Scale::Full, 200, 0.2, &Device::flex());
        assert_eq!(crate::models::parameters(&reader), 1_003_906);
    }
}
