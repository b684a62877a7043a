//! Batches that HTCondor takes only in parts: a schedd has room for so many jobs of a user (`MAX_JOBS_PER_OWNER`), or of all
//! (`MAX_JOBS_SUBMITTED`), and takes a submission whole or not at all; or no submission may have more than so many
//! (`MAX_JOBS_PER_SUBMISSION`). How many it does not say.

use super::{Waiting, Work};
use std::io;
use std::path::{Path, PathBuf};

impl Work {
    /// Hands over a batch that was not taken before; half of it, where the end of our own jobs would never make room for all.
    pub(super) fn hand_over_what_fits(&mut self, waiting: Waiting) {
        let too_many = waiting.too_many && waiting.attempts.len() > self.jobs.len().max(1);
        let parts = match too_many {
            // Where they cannot be written it stays whole.
            true => self.halves(waiting).unwrap_or_else(|(waiting, _)| vec![waiting]),
            false => vec![waiting],
        };
        for part in parts {
            match self.again {
                // What was refused a moment ago will be refused now.
                Some(_) => self.waiting.push(part),
                None => self.hand_over(part),
            }
        }
    }

    /// Hands over a batch that is larger than any may be.
    pub(super) fn hand_over_in_parts(&mut self, waiting: Waiting) {
        match self.halves(waiting) {
            Ok(halves) => halves.into_iter().for_each(|half| self.hand_over(half)),
            Err((waiting, error)) => self.refuse(waiting, &format!("it cannot be parted: {error}")),
        }
    }

    /// As descriptions of their own.
    fn halves(&mut self, mut waiting: Waiting) -> Result<Vec<Waiting>, (Waiting, io::Error)> {
        let middle = waiting.attempts.len().div_ceil(2);
        let mut name = || {
            self.batches += 1;
            waiting.file.with_file_name(format!("batch-{:05}.sub", self.batches))
        };
        let files = [name(), name()];
        match write_halves(&waiting.file, middle, &files) {
            Ok(()) => {
                let rest = waiting.attempts.split_off(middle);
                let attempts = [waiting.attempts, rest];
                let halves = files.into_iter().zip(attempts);
                Ok(halves.map(|(file, attempts)| Waiting { file, attempts, too_many: false }).collect())
            }
            Err(error) => Err((waiting, error)),
        }
    }
}

/// The two parts of a description's items, and descriptions that name them.
fn write_halves(description: &Path, middle: usize, files: &[PathBuf; 2]) -> io::Result<()> {
    let items_file = description.with_extension("items");
    let (text, items) = (std::fs::read_to_string(description)?, std::fs::read_to_string(&items_file)?);
    // One line a job.
    let split = items.split_inclusive('\n').take(middle).map(str::len).sum();
    let (first, rest) = items.split_at(split);
    let named = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for (file, part) in files.iter().zip([first, rest]) {
        let part_file = file.with_extension("items");
        std::fs::write(&part_file, part)?;
        std::fs::write(file, text.replace(&named(&items_file), &named(&part_file)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_parted_by_the_lines_of_its_items() {
        let folder = std::env::temp_dir().join(format!("tulpar-parts-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let whole = folder.join("batch-00001.sub");
        std::fs::write(&whole, "executable = x\nqueue attempt from /q/batch-00001.items\n").unwrap();
        std::fs::write(whole.with_extension("items"), "1.1\n2.1\n3.1\n").unwrap();
        let files = [folder.join("batch-00004.sub"), folder.join("batch-00005.sub")];
        write_halves(&whole, 2, &files).unwrap();
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
        assert_eq!(files.clone().map(|file| read(file.with_extension("items"))), ["1.1\n2.1\n", "3.1\n"]);
        assert_eq!(files.map(read)[1], "executable = x\nqueue attempt from /q/batch-00005.items\n");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
