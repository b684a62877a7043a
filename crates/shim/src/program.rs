//! Whether the library can be loaded into a program: not where nothing loads libraries, and not where the system refuses
//! because the program runs as somebody else.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What can be seen of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    Seen,
    /// Linked statically: no library is loaded into it.
    Static,
    /// Runs as another user or group (setuid, setgid): no library of ours is loaded into it.
    OtherUser,
}

impl Sight {
    /// Why it is not seen, in words.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Sight::Seen => None,
            Sight::Static => Some("it is linked statically"),
            Sight::OtherUser => Some("it runs as another user (setuid)"),
        }
    }
}

/// Looks at a program, or at the interpreter of a script. What cannot be read is taken for seen: whoever starts it will say.
pub fn sight(program: &Path) -> Sight {
    let mut path = PathBuf::from(program);
    let mut first = Vec::new();
    for _ in 0..2 {
        let Ok(file) = File::open(&path) else { return Sight::Seen };
        let Ok(status) = file.metadata() else { return Sight::Seen };
        first.clear();
        if file.take(4096).read_to_end(&mut first).is_err() {
            return Sight::Seen;
        }
        if let Some(line) = first.strip_prefix(b"#!") {
            let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let words = String::from_utf8_lossy(line);
            path = PathBuf::from(words.split_whitespace().next().unwrap_or_default());
            continue;
        }
        // SAFETY: cannot fail.
        let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
        if status.mode() & 0o4000 != 0 && status.uid() != user
            || status.mode() & 0o2010 == 0o2010 && status.gid() != group
        {
            return Sight::OtherUser;
        }
        return if is_loaded_dynamically(&first) { Sight::Seen } else { Sight::Static };
    }
    Sight::Seen
}

fn is_loaded_dynamically(file: &[u8]) -> bool {
    const INTERPRETER: [u8; 4] = 3u32.to_le_bytes();
    const SIXTY_FOUR_BITS: u8 = 2;
    if file.len() < 64 || !file.starts_with(b"\x7fELF") {
        return true;
    }
    if file[4] != SIXTY_FOUR_BITS {
        return false;
    }
    let short = |at: usize| usize::from(u16::from_le_bytes([file[at], file[at + 1]]));
    let (start, size, count) = (short(32), short(54), short(56));
    (0..count).any(|index| file.get(start + index * size..).is_none_or(|rest| rest.starts_with(&INTERPRETER)))
}
