//! What a `container:` names: a file of Apptainer, an archive as `docker save` writes it, or a reference.
//!
//! A file is told by its content where it is one of the formats known here: an image that was sent along lies under its
//! digest and has no ending. It knows no runtime.

use crate::refusal::Refusal;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use tulpar_core::ids::Digest;

#[derive(Debug, PartialEq)]
pub(super) enum Image {
    /// SIF, SquashFS, a file system or an unpacked folder.
    File(PathBuf),
    /// A tar, compressed or not, of `docker save`, `podman save` or an OCI layout.
    Archive { file: PathBuf, identity: String },
    /// Without the `docker://`, and whether that was written.
    Docker { reference: String, protocol: bool },
    /// Of a protocol that only Apptainer speaks.
    Registry,
}

const FILES: [&str; 6] = [".sif", ".simg", ".img", ".sqsh", ".sqfs", ".squashfs"];
const ARCHIVES: [&str; 6] = [".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar.zst"];

pub(super) fn image(name: &str, project: &Path) -> Result<Image, Refusal> {
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    if let Some(reference) = name.strip_prefix("docker://") {
        return Ok(Image::Docker { reference: reference.to_owned(), protocol: true });
    }
    if name.contains("://") {
        return Ok(Image::Registry);
    }
    if !(ends(&FILES) || ends(&ARCHIVES) || name.starts_with('/') || name.starts_with("./")) {
        return Ok(Image::Docker { reference: name.to_owned(), protocol: false });
    }
    let file = project.join(name);
    if !file.exists() {
        return Err(Refusal::NoImage(file.display().to_string()));
    }
    let archive = archive_by_content(&file).unwrap_or_else(|| ends(&ARCHIVES));
    if !archive {
        return Ok(Image::File(file));
    }
    let identity = identity(&file).map_err(Refusal::sandbox(format!("reading the image {}", file.display())))?;
    Ok(Image::Archive { file, identity })
}

/// Nothing when the content is of no known format.
fn archive_by_content(file: &Path) -> Option<bool> {
    if file.is_dir() {
        return Some(false);
    }
    let mut head = [0; 512];
    let mut opened = File::open(file).ok()?;
    let mut length = 0;
    while length < head.len() {
        match opened.read(&mut head[length..]).ok()? {
            0 => break,
            more => length += more,
        }
    }
    let head = &head[..length];
    let has = |at: usize, magic: &[u8]| head.get(at..at + magic.len()) == Some(magic);
    let packed: [&[u8]; 4] = [b"\x1f\x8b", b"\xfd7zXZ", b"BZh", b"\x28\xb5\x2f\xfd"];
    if has(257, b"ustar") || packed.iter().any(|magic| has(0, magic)) {
        return Some(true);
    }
    (has(32, b"SIF_MAGIC") || has(0, b"hsqs")).then_some(false)
}

/// The same for the same content: under it a runtime that has read the archive once finds it again. Files of a pool
/// are named by their digest; of others the name, size and times must do, as hashing gigabytes for every task would
/// cost more than reading an archive twice.
fn identity(file: &Path) -> std::io::Result<String> {
    use std::os::unix::fs::MetadataExt;
    let last_two = file.parent().and_then(Path::file_name).zip(file.file_name());
    if let Some((folder, name)) = last_two.and_then(|(folder, name)| Some((folder.to_str()?, name.to_str()?)))
        && folder.len() == 2
        && name.len() == 62
        && folder.bytes().chain(name.bytes()).all(|byte| byte.is_ascii_hexdigit())
    {
        return Ok(format!("{folder}{}", &name[..22]));
    }
    let about = file.metadata()?;
    let text = format!(
        "{}\n{}\n{}\n{}\n{}.{:09}\n{}.{:09}",
        file.display(),
        about.dev(),
        about.ino(),
        about.size(),
        about.mtime(),
        about.mtime_nsec(),
        about.ctime(),
        about.ctime_nsec()
    );
    Ok(Digest::of(text.as_bytes()).hex()[..24].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tar() -> Vec<u8> {
        let mut head = vec![0; 512];
        head[257..262].copy_from_slice(b"ustar");
        head
    }

    fn sif() -> Vec<u8> {
        [&[b' '; 32], b"SIF_MAGIC\0".as_slice()].concat()
    }

    #[test]
    fn files_are_told_by_their_content_then_by_their_ending() {
        let folder = tempfile::tempdir().unwrap();
        let object = format!("ab/{}", "c".repeat(62));
        std::fs::create_dir(folder.path().join("ab")).unwrap();
        std::fs::create_dir(folder.path().join("unpacked")).unwrap();
        let files: [(&str, Vec<u8>, bool); 7] = [
            ("a.tar", tar(), true),
            ("a.sif", sif(), false),
            ("named-wrongly.sif", tar(), true),
            ("old.tar", b"of a kind from before ustar".to_vec(), true),
            ("a.img", b"some file system".to_vec(), false),
            ("a.tgz", b"\x1f\x8b\x08".to_vec(), true),
            (&object, tar(), true),
        ];
        for (name, content, archive) in files {
            std::fs::write(folder.path().join(name), content).unwrap();
            let name = if name.contains('/') { format!("./{name}") } else { name.to_owned() };
            let found = image(&name, folder.path()).unwrap();
            assert_eq!(matches!(found, Image::Archive { .. }), archive, "{name}: {found:?}");
            assert_eq!(matches!(found, Image::File(_)), !archive, "{name}: {found:?}");
        }
        assert!(matches!(image("./unpacked", folder.path()).unwrap(), Image::File(_)));
        assert_eq!(identity(&folder.path().join(&object)).unwrap(), format!("ab{}", "c".repeat(22)));
    }

    #[test]
    fn another_content_under_the_same_name_is_another_image() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.tar");
        std::fs::write(&file, "one").unwrap();
        let first = identity(&file).unwrap();
        assert_eq!(identity(&file).unwrap(), first);
        std::fs::write(&file, "three").unwrap();
        assert_ne!(identity(&file).unwrap(), first);
    }
}
