//! The tables of CrisisMMD 2.0: which message has which picture, what people said of both, and who is learnt from, who
//! judges and who is held out.

use crate::failure::{Failure, read_text, write_whole};
use std::path::{Path, PathBuf};

/// The two classes, in the order of their numbers.
pub(super) const CLASSES: [&str; 2] = ["not_informative", "informative"];

/// Learnt from, judged with, held out: the order of the files.
pub(super) const SPLITS: [&str; 3] = ["train", "dev", "test"];

const COLUMNS: [&str; 9] = [
    "event_name",
    "tweet_id",
    "image_id",
    "tweet_text",
    "image",
    "label",
    "label_text",
    "label_image",
    "label_text_image",
];

/// A message with one of its pictures.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tweet {
    pub(super) event: String,
    pub(super) id: String,
    pub(super) image_id: String,
    pub(super) text: String,
    /// Where the picture is, below the folder of the data set.
    pub(super) image: String,
    /// What people said of message and picture together, of the message, and of the picture.
    pub(super) label: u8,
    pub(super) label_text: u8,
    pub(super) label_image: u8,
    /// Its place in [`SPLITS`].
    pub(super) split: u8,
}

/// The name of the table of a split, as published.
pub(super) fn table_name(split: usize) -> String {
    format!("task_informative_text_img_{}.tsv", SPLITS[split])
}

/// The text of a table.
pub(super) fn write(path: &Path, tweets: &[&Tweet]) -> Result<(), Failure> {
    let mut text = COLUMNS.join("\t") + "\n";
    for tweet in tweets {
        let together = if tweet.label_text == tweet.label_image { "Positive" } else { "Negative" };
        let class = |label: u8| CLASSES[usize::from(label)];
        let cells = [
            tweet.event.as_str(),
            &tweet.id,
            &tweet.image_id,
            &tweet.text,
            &tweet.image,
            class(tweet.label),
            class(tweet.label_text),
            class(tweet.label_image),
            together,
        ];
        text += &(cells.join("\t") + "\n");
    }
    write_whole(path, text.as_bytes())
}

/// All messages of three tables: train, dev, test.
pub(super) fn read(tables: &[PathBuf]) -> Result<Vec<Tweet>, Failure> {
    let mut tweets = Vec::new();
    for path in tables {
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(split) = SPLITS.iter().position(|split| name.ends_with(split)) else {
            return Err(Failure::data(path, "a table's name ends in train.tsv, dev.tsv or test.tsv"));
        };
        parsed(&read_text(path)?, split as u8, &mut tweets).map_err(|what| Failure::data(path, what))?;
    }
    Ok(tweets)
}

fn parsed(text: &str, split: u8, tweets: &mut Vec<Tweet>) -> Result<(), String> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
    let place = |column: &str| head.iter().position(|name| *name == column);
    for (number, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
        let cells: Vec<&str> = line.split('\t').collect();
        let cell = |column: &str| {
            let at = place(column).ok_or(format!("it has no column {column}"))?;
            cells.get(at).copied().ok_or(format!("line {}: it has no {column}", number + 2))
        };
        // The names of the classes came with and without a dash; whatever does not begin with `not` informs.
        let label = |column: &str| cell(column).map(|text| u8::from(!text.starts_with("not")));
        let together = label("label")?;
        tweets.push(Tweet {
            event: cell("event_name")?.to_owned(),
            id: cell("tweet_id")?.to_owned(),
            image_id: cell("image_id")?.to_owned(),
            text: cell("tweet_text")?.to_owned(),
            image: cell("image")?.to_owned(),
            label: together,
            label_text: label("label_text").unwrap_or(together),
            label_image: label("label_image").unwrap_or(together),
            split,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let folder = crate::temporary::Temporary::folder().unwrap();
        let path = folder.path().join(table_name(1));
        let tweet = Tweet {
            event: "hurricane_irma".into(),
            id: "905970".into(),
            image_id: "905970_0".into(),
            text: "RT @you: bridge down https://t.co/x".into(),
            image: "data_image/hurricane_irma/7_9_2017/905970_0.jpg".into(),
            label: 1,
            label_text: 1,
            label_image: 0,
            split: 1,
        };
        write(&path, &[&tweet]).unwrap();
        assert_eq!(read(&[path]).unwrap(), [tweet]);
    }

    #[test]
    fn a_table_without_a_column_says_which() {
        let mut tweets = Vec::new();
        assert_eq!(
            parsed("tweet_id\tlabel\n1\tinformative\n", 0, &mut tweets).unwrap_err(),
            "it has no column event_name"
        );
    }
}
