//! Texts that end in NUL, and paths: absolute, without `.`, `..` and double slashes, as they are named, links and all.

use crate::{settings, system};

pub(crate) const LONGEST: usize = 4096;

pub(crate) unsafe fn length(text: *const u8) -> usize {
    let mut length = 0;
    // SAFETY: the caller says that it ends.
    while unsafe { *text.add(length) } != 0 {
        length += 1;
    }
    length
}

pub(crate) unsafe fn begins(text: *const u8, with: &[u8]) -> bool {
    // SAFETY: stops at the first difference, the NUL at the latest.
    with.iter().enumerate().all(|(at, byte)| unsafe { *text.add(at) } == *byte)
}

/// A path in the making.
pub(crate) struct Path {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Path {
    /// What a call names, from where it looks. `None` if that is too long or not there.
    pub(crate) unsafe fn new(folder: i32, named: *const u8) -> Option<Path> {
        if named.is_null() {
            return None;
        }
        let mut path = Path { bytes: [0; LONGEST], length: 0 };
        // SAFETY: the text ends; buffers are as long as said.
        unsafe {
            if *named != b'/' {
                let mut start = [0u8; LONGEST];
                let length = if folder == system::AT_FDCWD {
                    system::current_folder(start.as_mut_ptr(), LONGEST - 1)
                } else {
                    link_of(folder, &mut start)
                };
                if length <= 0 || start[0] != b'/' {
                    return None;
                }
                path.append(start.as_ptr(), length as usize)?;
            }
            path.append(named, length(named))?;
        }
        if path.length == 0 {
            path.push(b'/')?;
        }
        Some(path)
    }

    /// Where a descriptor leads, as the kernel says.
    pub(crate) fn of_descriptor(descriptor: i32) -> Option<Path> {
        let mut path = Path { bytes: [0; LONGEST], length: 0 };
        let length = link_of(descriptor, &mut path.bytes);
        path.length = usize::try_from(length).ok()?;
        (path.bytes[0] == b'/').then_some(path)
    }

    fn push(&mut self, byte: u8) -> Option<()> {
        *self.bytes.get_mut(self.length)? = byte;
        self.length += 1;
        Some(())
    }

    /// Appends the parts of a path one by one.
    unsafe fn append(&mut self, text: *const u8, length: usize) -> Option<()> {
        let mut at = 0;
        while at < length {
            let begin = at;
            // SAFETY: below the length.
            while at < length && unsafe { *text.add(at) } != b'/' {
                at += 1;
            }
            // SAFETY: as above.
            let part = unsafe { core::slice::from_raw_parts(text.add(begin), at - begin) };
            at += 1;
            match part {
                b"" | b"." => {}
                b".." => {
                    while self.length > 0 && self.bytes[self.length - 1] != b'/' {
                        self.length -= 1;
                    }
                    self.length = self.length.saturating_sub(1);
                }
                part => {
                    self.push(b'/')?;
                    for &byte in part {
                        self.push(byte)?;
                    }
                }
            }
        }
        Some(())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length.min(LONGEST)]
    }

    /// What is no file of anybody, or a file of ours.
    pub(crate) fn is_none_of_ours(&self) -> bool {
        const NEVER: [&[u8]; 4] = [b"/proc/", b"/sys/", b"/dev/", b"/memfd:"];
        let path = self.bytes();
        NEVER.iter().any(|prefix| path.starts_with(prefix)) || path.starts_with(settings::folder())
    }

    /// Programs, libraries and settings of the system: what everything loads, and nobody asks about.
    pub(crate) fn is_of_the_system(&self) -> bool {
        const SYSTEM: [&[u8]; 9] =
            [b"/usr/", b"/etc/", b"/lib/", b"/lib64/", b"/lib32/", b"/bin/", b"/sbin/", b"/boot/", b"/run/"];
        !settings::everything() && SYSTEM.iter().any(|prefix| self.bytes().starts_with(prefix))
    }
}

fn link_of(descriptor: i32, buffer: &mut [u8; LONGEST]) -> isize {
    let mut link = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
    let mut digits = [0u8; 10];
    let mut at = 10;
    let mut rest = descriptor.max(0) as u32;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    for (index, digit) in digits[at..].iter().enumerate() {
        link[14 + index] = *digit;
    }
    // SAFETY: the buffer is as long as said.
    unsafe { system::read_link(link.as_ptr(), buffer.as_mut_ptr(), LONGEST - 1) }
}
