//! Which file system a folder lies on, and whether that is behind a network. It knows nothing of experiments.

use std::path::Path;

/// Whether what lies in a folder is reached over a network; what cannot be told is not.
pub fn is_remote(folder: &Path) -> bool {
    let Ok(folder) = folder.canonicalize() else { return false };
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    kind(&mounts, &folder).is_some_and(tulpar_trace::find::is_remote)
}

/// The kind of the file system that a path lies on, by the table of mounts.
fn kind<'m>(mounts: &'m str, path: &Path) -> Option<&'m str> {
    let mut found: Option<(usize, &str)> = None;
    for line in mounts.lines() {
        let mut words = line.split(' ').skip(1);
        let (Some(at), Some(kind)) = (words.next(), words.next()) else { continue };
        // The table writes spaces of names as `\040`.
        let at = at.replace("\\040", " ");
        // Of mounts at the same place the last one counts.
        if path.starts_with(&at) && found.is_none_or(|(length, _)| at.len() >= length) {
            found = Some((at.len(), kind));
        }
    }
    found.map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_that_is_nearest_counts_and_of_several_the_last() {
        let mounts = "\
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
me@far:/x /home/my\\040data fuse.sshfs rw 0 0
tmpfs /home/scratch tmpfs rw 0 0
/dev/sdb1 /home/scratch xfs rw 0 0
";
        let of = |path: &str| kind(mounts, Path::new(path));
        assert_eq!(of("/var/tmp"), Some("ext4"));
        assert_eq!(of("/home/me/runs"), Some("nfs4"));
        assert_eq!(of("/homework"), Some("ext4"));
        assert_eq!(of("/home/my data/runs"), Some("fuse.sshfs"));
        assert_eq!(of("/home/scratch/x"), Some("xfs"));
        assert_eq!(kind("", Path::new("/")), None);
    }
}
