//! A small CrisisMMD that never was: messages and pictures with the structure of the true ones. Neither tells all: words of
//! the other class occur, pictures mislead, and both together know more than each.

use super::scenes::scene;
use super::tweets::{Tweet, table_name, write};
use crate::failure::{Failure, write_whole};
use crate::options::{Scale, Seed};
use crate::seeds::{generator, normal};
use clap::Args;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Generate {
    /// The folder to write to
    #[arg(long)]
    out: PathBuf,
    /// How many messages, each with a picture
    #[arg(long, default_value_t = 900)]
    tweets: usize,
    /// At full scale vectors of words have the 200 numbers of the published ones
    #[arg(long, value_enum, default_value = "small")]
    scale: Scale,
    #[command(flatten)]
    seed: Seed,
}

const EVENTS: [(&str, &str); 4] = [
    ("hurricane_irma", "7_9_2017"),
    ("mexico_earthquake", "20_9_2017"),
    ("california_wildfires", "10_10_2017"),
    ("srilanka_floods", "31_5_2017"),
];

/// Words by what they are about: those of crises, those of every day, and those of both.
const THEMES: [(&str, usize, &str); 7] = [
    (
        "damage",
        1,
        "collapsed destroyed bridge roof rubble flooded debris damage buildings homes burned cracked walls wreckage",
    ),
    ("needs", 1, "shelter water food donate supplies volunteers blankets medicine relief aid generators clinics"),
    (
        "people",
        1,
        "killed injured missing rescued trapped evacuated survivors casualties families stranded hospital toll",
    ),
    ("chatter", 0, "lol love song movie party birthday weekend selfie coffee happy tonight friends dance album"),
    ("offers", 0, "sale discount win click free follow phone shoes fashion giveaway promo shop brand ticket"),
    ("mood", 0, "feeling bored tired funny crazy dream smile beautiful morning game team season playlist"),
    (
        "both",
        2,
        "storm hurricane earthquake wildfire flood city people today news world live photo video day road time \
      state county media watch house car family power night sea",
    ),
];

const FILLERS: [&str; 8] = ["the", "in", "and", "so", "is", "we", "this", "for"];

/// Writes tables, pictures and vectors.
pub(super) fn generate(options: &Generate) -> Result<(), Failure> {
    let seed = options.seed.seed;
    let mut tweets = Vec::new();
    for number in 0..options.tweets {
        let mut random = generator(seed, "tweet", number as u64);
        let label = u8::from(random.random::<f32>() < 0.5);
        let (event, day) = EVENTS[number % EVENTS.len()];
        let id = format!("9{:017}", 1_000_003 * (number as u64 + 1));
        let image_id = format!("{id}_0");
        let image = format!("data_image/{event}/{day}/{image_id}.jpg");
        scene(&mut generator(seed, "picture", number as u64), label == 1).write(&options.out.join(&image))?;
        // As in the published split: about seven tenths to learn from, and as many to judge with as are held out.
        let split = [0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 1, 0, 0, 2][number % 14];
        let text = message(&mut random, usize::from(label));
        let (label_text, label_image) = (label, label);
        tweets.push(Tweet { event: event.into(), id, image_id, text, image, label, label_text, label_image, split });
    }
    for split in 0..3 {
        let some: Vec<&Tweet> = tweets.iter().filter(|tweet| usize::from(tweet.split) == split).collect();
        write(&options.out.join("crisismmd_datasplit_all").join(table_name(split)), &some)?;
    }
    write_whole(&options.out.join("glove.twitter.27B.200d.txt"), vectors(seed, options.scale).as_bytes())
}

/// Three words in four that are about something are about what the message's class is about.
fn message(random: &mut ChaCha8Rng, class: usize) -> String {
    let mut words: Vec<String> = Vec::new();
    for _ in 0..random.random_range(7..15) {
        let about = match random.random_range(0..100) {
            0..45 => 2,
            45..84 => class,
            _ => 1 - class,
        };
        let word = drawn(random, about);
        words.push(if random.random_range(0..8) == 0 { format!("#{word}") } else { word.to_owned() });
        if random.random_range(0..3) == 0 {
            words.push(FILLERS[random.random_range(0..FILLERS.len())].to_owned());
        }
    }
    if random.random_range(0..4) == 0 {
        words.insert(0, format!("RT @user{}:", random.random_range(10..9999)));
    }
    if random.random_range(0..2) == 0 {
        words.push(format!("https://t.co/{:x}", random.random::<u32>()));
    }
    words.join(" ")
}

fn drawn(random: &mut ChaCha8Rng, about: usize) -> &'static str {
    let themes: Vec<&str> = THEMES.iter().filter(|theme| theme.1 == about).map(|theme| theme.2).collect();
    let words: Vec<&str> = themes[random.random_range(0..themes.len())].split_whitespace().collect();
    words[random.random_range(0..words.len())]
}

/// Words of one theme lie near each other, as in vectors that were learnt from true messages.
fn vectors(seed: u64, scale: Scale) -> String {
    let width = if scale == Scale::Full { 200 } else { 50 };
    let mut text = String::new();
    for (theme, _, words) in THEMES {
        let mut random = generator(seed, theme, 0);
        let centre: Vec<f32> = (0..width).map(|_| 0.35 * normal(&mut random)).collect();
        for word in words.split_whitespace() {
            let numbers: Vec<String> =
                centre.iter().map(|middle| format!("{:.5}", middle + 0.4 * normal(&mut random))).collect();
            text += &format!("{word} {}\n", numbers.join(" "));
        }
    }
    text
}
