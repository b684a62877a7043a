//! Votes become a data set: galaxies that people agree about, their classes, and who is learnt from, who judges and who
//! is held out.

use super::classes::{CLASSES, class_of};
use crate::failure::{Failure, read_text, write_whole};
use crate::folder::Folder;
use crate::options::Seed;
use crate::seeds::{generator, shuffled};
use clap::Args;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct MakeDataset {
    /// The table of votes: `training_solutions_rev1.csv`
    #[arg(long)]
    labels: PathBuf,
    /// The folder of pictures, `images_training_rev1`, or a tar archive of it
    #[arg(long)]
    images: PathBuf,
    /// The table to write: one row a galaxy that is kept
    #[arg(long)]
    out: PathBuf,
    /// Keep at most so many galaxies; 0 keeps all
    #[arg(long, default_value_t = 0)]
    limit: usize,
    #[command(flatten)]
    seed: Seed,
}

/// What a galaxy is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    Train,
    Validation,
    Test,
}

const SPLITS: [(Split, &str); 3] = [(Split::Train, "train"), (Split::Validation, "validation"), (Split::Test, "test")];

/// A galaxy of the data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub file: String,
    pub class: usize,
    pub split: Split,
}

/// Writes the table of galaxies.
pub fn make_dataset(options: &MakeDataset) -> Result<(), Failure> {
    let there: BTreeSet<String> = Folder::open(&options.images, |_| true)?.names()?.into_iter().collect();
    let mut kept = clear_galaxies(&options.labels, &there)?;
    if options.limit > 0 {
        let order = shuffled(&mut generator(options.seed.seed, "limit", 0), kept.len());
        let chosen: BTreeSet<usize> = order.into_iter().take(options.limit).collect();
        let mut number = 0..;
        kept.retain(|_| number.next().is_some_and(|number| chosen.contains(&number)));
    }
    if kept.is_empty() {
        return Err(Failure::data(&options.labels, "no galaxy has clear votes and a picture"));
    }
    let members = split(&kept, options.seed.seed);
    let mut table = "file,class,split\n".to_owned();
    for member in &members {
        let split = SPLITS.iter().find(|(split, _)| *split == member.split).map_or("", |(_, name)| name);
        table += &format!("{},{},{split}\n", member.file, CLASSES[member.class]);
    }
    for (class, name) in CLASSES.iter().enumerate() {
        eprintln!("{name}: {}", members.iter().filter(|member| member.class == class).count());
    }
    write_whole(&options.out, table.as_bytes())
}

/// Galaxies with a picture and a class, in the order of the table.
fn clear_galaxies(path: &Path, there: &BTreeSet<String>) -> Result<Vec<(String, usize)>, Failure> {
    let text = read_text(path)?;
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split(',').map(str::trim).collect();
    let needed =
        ["GalaxyID", "Class1.1", "Class1.2", "Class2.1", "Class2.2", "Class4.1", "Class7.1", "Class7.2", "Class7.3"];
    let mut places = Vec::new();
    for name in needed {
        let place = head.iter().position(|column| *column == name);
        places.push(place.ok_or_else(|| Failure::data(path, format!("it has no column {name}")))?);
    }
    let mut kept = Vec::new();
    for (number, line) in lines.enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let wrong = || Failure::data(path, format!("line {} cannot be read: {line}", number + 2));
        let mut shares = Vec::new();
        for place in &places[1..] {
            shares.push(cells.get(*place).and_then(|cell| cell.parse::<f32>().ok()).ok_or_else(wrong)?);
        }
        let share = |name: &str| needed.iter().position(|column| *column == name).map_or(0.0, |at| shares[at - 1]);
        let id = cells.get(places[0]).ok_or_else(wrong)?;
        let file = ["jpg", "png"].iter().map(|ending| format!("{id}.{ending}")).find(|file| there.contains(file));
        if let (Some(class), Some(file)) = (class_of(share), file) {
            kept.push((file, class));
        }
    }
    Ok(kept)
}

/// Seven in ten of each class are learnt from, one judges, two are held out.
fn split(kept: &[(String, usize)], seed: u64) -> Vec<Member> {
    let mut splits = vec![Split::Train; kept.len()];
    for class in 0..CLASSES.len() {
        let of_class: Vec<usize> = (0..kept.len()).filter(|at| kept[*at].1 == class).collect();
        for (place, at) in shuffled(&mut generator(seed, "split", class as u64), of_class.len()).into_iter().enumerate()
        {
            splits[of_class[at]] = match place * 10 / of_class.len() {
                0 | 1 => Split::Test,
                2 => Split::Validation,
                _ => Split::Train,
            };
        }
    }
    kept.iter().zip(splits).map(|((file, class), split)| Member { file: file.clone(), class: *class, split }).collect()
}

/// The table that [`make_dataset`] wrote.
pub fn read_dataset(path: &Path) -> Result<Vec<Member>, Failure> {
    let text = read_text(path)?;
    let member = |line: &str| {
        let mut cells = line.split(',');
        let (file, class, split) = (cells.next()?, cells.next()?, cells.next()?);
        let class = CLASSES.iter().position(|name| *name == class)?;
        let (split, _) = SPLITS.iter().find(|(_, name)| *name == split)?;
        Some(Member { file: file.to_owned(), class, split: *split })
    };
    let rows = text.lines().skip(1);
    rows.map(|line| member(line).ok_or_else(|| Failure::data(path, format!("no galaxy: {line}")))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_has_seven_two_and_one_in_ten_of_each_class() {
        let kept: Vec<(String, usize)> = (0..100).map(|number| (format!("{number}.jpg"), number % 5)).collect();
        let members = split(&kept, 1);
        for class in 0..5 {
            let count = |split| members.iter().filter(|member| member.class == class && member.split == split).count();
            assert_eq!([Split::Train, Split::Validation, Split::Test].map(count), [14, 2, 4]);
        }
        assert_eq!(members, split(&kept, 1));
        assert_ne!(members, split(&kept, 2));
    }
}
