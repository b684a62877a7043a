//! Local files: copies, links, checks, and nothing half-done.

use crate::harness::{content, expecting, folder, names, options};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use tulpar_transfer::{ErrorKind, How, LinkMode, Location, Options, Sha256Digest, Transfer, Transfers, transfer};

fn with(links: LinkMode) -> Options {
    Options { links, ..options() }
}

#[test]
fn a_copy_is_a_file_of_its_own_with_the_same_bytes_and_mode() {
    let here = folder();
    let (from, to) = (here.path().join("from"), here.path().join("deep/er/to"));
    std::fs::write(&from, content(300_000)).unwrap();
    std::fs::set_permissions(&from, std::fs::Permissions::from_mode(0o640)).unwrap();
    for links in [LinkMode::Auto, LinkMode::Copy] {
        let moved = transfer(&[Transfer::new(from.as_path(), to.as_path())], &with(links)).remove(0).unwrap();
        assert!(matches!(moved.how, How::Copy | How::Reflink));
        assert_eq!(moved.bytes, 300_000);
        assert_eq!(std::fs::read(&to).unwrap(), content(300_000));
        let (one, other) = (std::fs::metadata(&from).unwrap(), std::fs::metadata(&to).unwrap());
        assert_ne!(one.ino(), other.ino());
        assert_eq!(other.permissions().mode() & 0o777, 0o640);
    }
    assert_eq!(names(&here.path().join("deep/er")), ["to"]);
}

#[test]
fn links_are_links_and_replace_what_was_there() {
    let here = folder();
    let (from, to) = (here.path().join("from"), here.path().join("to"));
    std::fs::write(&from, "new").unwrap();
    for (links, how) in [(LinkMode::HardLink, How::HardLink), (LinkMode::Symlink, How::Symlink)] {
        let _ = std::fs::remove_file(&to);
        std::fs::write(&to, "old content").unwrap();
        for _ in 0..2 {
            let moved = transfer(&[Transfer::new(from.as_path(), to.as_path())], &with(links)).remove(0).unwrap();
            assert_eq!((moved.how, moved.bytes), (how, 3));
            assert_eq!(std::fs::read_to_string(&to).unwrap(), "new");
        }
    }
    assert_eq!(std::fs::read_link(&to).unwrap(), from);
    assert_eq!(names(here.path()), ["from", "to"]);
}

#[test]
fn a_file_moved_onto_itself_survives() {
    let here = folder();
    let path = here.path().join("a");
    std::fs::write(&path, "precious").unwrap();
    for links in [LinkMode::Auto, LinkMode::Copy, LinkMode::HardLink, LinkMode::Symlink] {
        let moved = transfer(&[Transfer::new(path.as_path(), path.as_path())], &with(links)).remove(0);
        assert!(moved.is_ok(), "{links:?}: {moved:?}");
        assert!(!path.is_symlink(), "{links:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious", "{links:?}");
    }
    assert_eq!(names(here.path()), ["a"]);
}

#[test]
fn damage_is_found_whatever_the_way() {
    let here = folder();
    let (from, to) = (here.path().join("from"), here.path().join("to"));
    std::fs::write(&from, content(1000)).unwrap();
    let mut other = content(1000);
    other[999] ^= 1;
    for links in [LinkMode::Auto, LinkMode::Copy, LinkMode::HardLink, LinkMode::Symlink] {
        for wrong in [&other[..], &other[..999]] {
            let list = [expecting(from.as_path().into(), &to, wrong)];
            let error = transfer(&list, &Options { retries: 1, ..with(links) }).remove(0).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Mismatch, "{links:?}");
            assert!(!to.exists(), "{links:?}");
        }
        let moved = transfer(&[expecting(from.as_path().into(), &to, &content(1000))], &with(links)).remove(0).unwrap();
        assert_eq!(moved.sha256, Some(Sha256Digest::of(&content(1000))));
        std::fs::remove_file(&to).unwrap();
    }
    assert_eq!(names(here.path()), ["from"]);
}

#[test]
fn what_cannot_be_moved_says_why() {
    let here = folder();
    std::fs::create_dir(here.path().join("dir")).unwrap();
    std::fs::write(here.path().join("file"), "").unwrap();
    for links in [LinkMode::Auto, LinkMode::HardLink, LinkMode::Symlink] {
        for (from, to, kind) in [
            ("missing", "to", ErrorKind::NotFound),
            ("no/such/folder", "to", ErrorKind::NotFound),
            ("dir", "to", ErrorKind::Unsupported),
            ("file", "file/below", ErrorKind::NotFound),
        ] {
            let list = [Transfer::new(here.path().join(from), here.path().join(to))];
            let error = transfer(&list, &with(links)).remove(0).unwrap_err();
            assert_eq!(error.kind(), kind, "{from} to {to} by {links:?}: {error}");
        }
    }
    assert_eq!(names(here.path()), ["dir", "file"]);
}

#[test]
fn a_tree_arrives_whole() {
    let here = folder();
    let from = here.path().join("from");
    for number in 0..300 {
        let folder = from.join(format!("{}/{}", number % 7, number % 3));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("file {number}")), content(number * 31)).unwrap();
    }
    std::os::unix::fs::symlink("..", from.join("0/loop")).unwrap();
    let transfers = Transfers::new(options());
    let list = transfers.tree(&from.as_path().into(), &here.path().join("to").into()).unwrap();
    assert_eq!(list.len(), 300);
    assert!(transfers.transfer(&list).iter().all(Result::is_ok));
    for transfer in &list {
        let read = |location: &Location| std::fs::read(location.as_path().unwrap()).unwrap();
        assert_eq!(read(&transfer.from), read(&transfer.to));
    }
    let whole = Location::File(format!("{}/", here.path().join("to").display()).into());
    transfers.remove(&[whole]).remove(0).unwrap();
    assert_eq!(names(here.path()), ["from"]);
}

#[test]
fn one_missing_file_does_not_stop_the_others() {
    let here = folder();
    let list: Vec<Transfer> = (0..100)
        .map(|number| {
            let from = here.path().join(format!("{number}"));
            if number != 42 {
                std::fs::write(&from, "data").unwrap();
            }
            Transfer::new(from, here.path().join(format!("to/{number}")))
        })
        .collect();
    let results = transfer(&list, &options());
    let failed: Vec<usize> = (0..100).filter(|number| results[*number].is_err()).collect();
    assert_eq!(failed, [42]);
    assert_eq!(names(&here.path().join("to")).len(), 99);
}
