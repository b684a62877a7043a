//! The inputs that a task was given, so that collecting its outputs can tell inputs from files that the task wrote.

use crate::inputs::{Giver, Way};
use crate::shares::Look;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use tulpar_core::job::{InputFile, InputFiles};

pub(crate) struct Shown<'a> {
    inputs: &'a [InputFiles],
    seen: &'a [Look],
    giver: Giver<'a>,
    by_path: OnceCell<HashMap<&'a str, (&'a InputFile, Look)>>,
    by_source: OnceCell<HashMap<PathBuf, &'a InputFile>>,
}

impl<'a> Shown<'a> {
    pub(crate) fn new(inputs: &'a [InputFiles], seen: &'a [Look], giver: Giver<'a>) -> Self {
        Self { inputs, seen, giver, by_path: OnceCell::new(), by_source: OnceCell::new() }
    }

    fn files(&self) -> impl Iterator<Item = &'a InputFile> + use<'a> {
        self.inputs.iter().flat_map(|input| input.files.iter())
    }

    /// The input given at `path`, and a place of its content, if the task left it as it was.
    pub(crate) fn unchanged(&self, path: &str) -> Option<(&'a InputFile, PathBuf)> {
        let by_path = self.by_path.get_or_init(|| {
            self.files().zip(self.seen).map(|(file, seen)| (file.path.as_str(), (file, *seen))).collect()
        });
        let (input, seen) = *by_path.get(path)?;
        let here = self.giver.work.join(path);
        let (from, same) = match self.giver.ways(self.inputs)(input) {
            Way::Copy => (here.clone(), Look::at(&here) == Some(seen)),
            Way::Pin => linked(&here, self.giver.pin_path(input), seen),
            Way::Object => linked(&here, self.giver.object(input), seen),
            Way::Original => {
                let from = self.giver.original(input)?;
                let same = std::fs::read_link(&here).is_ok_and(|target| target == from);
                (from, same)
            }
        };
        same.then_some((input, from))
    }

    /// The input behind a link that the task moved or copied to another name.
    pub(crate) fn behind(&self, link: &Path) -> Option<(&'a InputFile, PathBuf)> {
        let target = std::fs::read_link(link).ok()?;
        let by_source = self.by_source.get_or_init(|| {
            let way_of = self.giver.ways(self.inputs);
            let place = |file: &'a InputFile| match way_of(file) {
                Way::Copy => None,
                Way::Pin => Some((self.giver.pin_path(file), file)),
                Way::Object => Some((self.giver.object(file), file)),
                Way::Original => Some((self.giver.original(file)?, file)),
            };
            self.files().filter_map(place).collect()
        });
        Some((*by_source.get(&target)?, target))
    }
}

/// Whether `here` is another name of a shared file, or a link to it.
fn linked(here: &Path, from: PathBuf, seen: Look) -> (PathBuf, bool) {
    let same = Look::at(here).is_some_and(|now| now.is_like(&seen))
        || std::fs::read_link(here).is_ok_and(|target| target == from);
    (from, same)
}
