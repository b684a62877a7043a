//! Makes jobs fit for another machine: inputs become objects, and long lists of them are sent once a connection.

use crate::bundle;
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tulpar_core::ids::Digest;
use tulpar_core::job::{InputFile, Source};
use tulpar_launch::pilot::message::{Message, Work};

/// Shorter ones are not worth a name.
const LONG: usize = 8;
/// A connection knows so many; the oldest goes.
const MOST: usize = 64;

/// The lists that one connection knows.
#[derive(Default)]
pub(super) struct Lists {
    known: VecDeque<(Arc<[InputFile]>, Digest, u32)>,
    next: u32,
}

/// Lays what a pilot must be told to run a job, with what lists it does not know yet. Notes where files of the user's are.
pub(super) fn lay(
    lists: &mut Lists,
    mut work: Work,
    root: &Path,
    sources: &mut HashMap<Digest, PathBuf>,
    to: &mut Vec<u8>,
) {
    let nothing: Arc<[InputFile]> = Arc::new([]);
    for (position, input) in work.spec.inputs.iter_mut().enumerate() {
        if input.files.len() < LONG {
            if input.files.iter().any(|file| matches!(file.source, Source::Path(_))) {
                input.files = portable(&input.files, root, sources).into();
            }
            continue;
        }
        let files = std::mem::replace(&mut input.files, Arc::clone(&nothing));
        work.lists.push((position as u32, lists.id(files, root, sources, to)));
    }
    for image in work.spec.script.iter_mut().flat_map(|script| &mut script.images) {
        image.file = portable(std::slice::from_ref(&image.file), root, sources).remove(0);
    }
    Message::Work(Box::new(work)).lay(to);
}

impl Lists {
    fn id(
        &mut self,
        files: Arc<[InputFile]>,
        root: &Path,
        sources: &mut HashMap<Digest, PathBuf>,
        to: &mut Vec<u8>,
    ) -> u32 {
        if let Some((.., id)) = self.known.iter().find(|(known, ..)| Arc::ptr_eq(known, &files)) {
            return *id;
        }
        let digest = digest(&files);
        if let Some((.., id)) = self.known.iter().find(|(_, known, _)| *known == digest) {
            return *id;
        }
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        Message::List { id, files: portable(&files, root, sources) }.lay(to);
        self.known.push_back((files, digest, id));
        if self.known.len() > MOST
            && let Some((.., oldest)) = self.known.pop_front()
        {
            Message::DropList(oldest).lay(to);
        }
        id
    }
}

/// Equal lists may have been made twice.
fn digest(files: &[InputFile]) -> Digest {
    let mut hasher = blake3::Hasher::new();
    for file in files {
        hasher.update(&file.digest.0).update(&(file.path.len() as u64).to_le_bytes()).update(file.path.as_bytes());
        if let Source::Remote(address) = &file.source {
            hasher.update(address.as_bytes());
        }
    }
    Digest(*hasher.finalize().as_bytes())
}

fn portable(files: &[InputFile], root: &Path, sources: &mut HashMap<Digest, PathBuf>) -> Vec<InputFile> {
    let mut note = |digest, original: Option<PathBuf>| {
        if let Some(original) = original {
            sources.entry(digest).or_insert(original);
        }
    };
    files.iter().map(|file| bundle::portable(file, root, &mut note)).collect()
}
