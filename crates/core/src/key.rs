//! The digest over a cache key: canonical bytes, so that equal keys have equal digests for ever.
//!
//! It knows nothing of the cache. A change of this encoding makes every cached result unknown: then the
//! first line below must change too.

use crate::event::Key;
use crate::ids::Digest;

const DOMAIN: &[u8] = b"tulpar key 2\n";
const FILES_DOMAIN: &[u8] = b"tulpar files 1\n";
const LIST_DOMAIN: &[u8] = b"tulpar list 1\n";

impl Key {
    /// Every part goes in with its length before it: no two different keys give the same bytes. Inputs
    /// lie in a map, so the order in which the workflow lists them does not count.
    pub fn digest(&self) -> Digest {
        let mut hasher = blake3::Hasher::new();
        hasher.update(DOMAIN);
        part(&mut hasher, self.command.as_bytes());
        part(&mut hasher, self.environment.as_bytes());
        part(&mut hasher, self.outputs.as_bytes());
        hasher.update(&(self.inputs.len() as u64).to_le_bytes());
        for (name, digest) in &self.inputs {
            part(&mut hasher, name.as_bytes());
            hasher.update(&digest.0);
        }
        Digest(*hasher.finalize().as_bytes())
    }
}

/// The content of one input: its files with the names that the task sees, whatever their order.
pub fn files_digest<'a>(files: impl IntoIterator<Item = (&'a str, Digest)>) -> Digest {
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort_unstable();
    let mut hasher = blake3::Hasher::new();
    hasher.update(FILES_DOMAIN);
    for (path, digest) in files {
        part(&mut hasher, path.as_bytes());
        hasher.update(&digest.0);
    }
    Digest(*hasher.finalize().as_bytes())
}

/// The names of an input's files in their order, as a list file has them.
pub fn list_digest<'a>(paths: impl IntoIterator<Item = &'a str>) -> Digest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(LIST_DOMAIN);
    for path in paths {
        part(&mut hasher, path.as_bytes());
    }
    Digest(*hasher.finalize().as_bytes())
}

fn part(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(command: &str, environment: &str, inputs: &[(&str, &[u8])]) -> Key {
        Key {
            command: command.into(),
            environment: environment.into(),
            outputs: "model.bin".into(),
            inputs: inputs.iter().map(|(name, content)| (name.to_string(), Digest::of(content))).collect(),
        }
    }

    #[test]
    fn the_digest_of_a_key_never_changes() {
        assert_eq!(key("train", "", &[("a", b"1"), ("b", b"2")]).digest().short(), "91cfa4d75036");
    }

    #[test]
    fn the_order_of_inputs_does_not_matter_but_their_names_and_contents_do() {
        let one = key("train", "", &[("a", b"1"), ("b", b"2")]).digest();
        assert_eq!(key("train", "", &[("b", b"2"), ("a", b"1")]).digest(), one);
        assert_ne!(key("train", "", &[("a", b"2"), ("b", b"1")]).digest(), one);
        assert_ne!(key("train", "", &[("a", b"1"), ("c", b"2")]).digest(), one);
        assert_ne!(key("train", "", &[("a", b"1")]).digest(), one);
    }

    #[test]
    fn text_cannot_move_from_one_part_to_the_next() {
        assert_ne!(key("train", "x", &[]).digest(), key("trainx", "", &[]).digest());
    }

    #[test]
    fn the_order_of_the_files_of_an_input_does_not_matter() {
        let (a, b) = (Digest::of(b"1"), Digest::of(b"2"));
        assert_eq!(files_digest([("x", a), ("y", b)]), files_digest([("y", b), ("x", a)]));
        assert_ne!(files_digest([("x", a), ("y", b)]), files_digest([("x", b), ("y", a)]));
    }

    #[test]
    fn the_order_of_a_list_does_matter() {
        assert_ne!(list_digest(["x", "y"]), list_digest(["y", "x"]));
        assert_ne!(list_digest(["xy"]), list_digest(["x", "y"]));
    }
}
