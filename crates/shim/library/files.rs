//! Entries of files: found by kind and name, made when they are new. And the table of descriptors, which leads from a
//! number to its entries at once.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::layout::{UNIT, entry, header};
use crate::path::Path;
use crate::rules::Words;
use crate::{lock, store, system};

/// A descriptor that leads to no file, or to one that is left out.
pub(crate) const IGNORED: u32 = u32::MAX;
const DESCRIPTORS: usize = 1 << 16;
const FIRST_PLACES: usize = 1024;

/// What is known of a descriptor.
pub(crate) struct Descriptor {
    /// Unit of the entry; 0 is not known yet, [`IGNORED`] is of no interest.
    pub(crate) posix: AtomicU32,
    pub(crate) stdio: AtomicU32,
    /// Where the next read or write without an offset is.
    pub(crate) position: AtomicU64,
}

impl Descriptor {
    const NEW: Descriptor =
        Descriptor { posix: AtomicU32::new(0), stdio: AtomicU32::new(0), position: AtomicU64::new(0) };

    pub(crate) fn forget(&self) {
        self.posix.store(0, Ordering::Relaxed);
        self.stdio.store(0, Ordering::Relaxed);
    }
}

static TABLE: [Descriptor; DESCRIPTORS] = [const { Descriptor::NEW }; DESCRIPTORS];
/// One more than the highest that was ever known.
static HIGHEST: AtomicUsize = AtomicUsize::new(0);

#[inline(always)]
pub(crate) fn descriptor(number: i32) -> Option<&'static Descriptor> {
    TABLE.get(number as u32 as usize)
}

fn note_highest(number: i32) {
    HIGHEST.fetch_max(number as usize + 1, Ordering::Relaxed);
}

pub(crate) fn known() -> impl Iterator<Item = (i32, &'static Descriptor)> {
    let highest = HIGHEST.load(Ordering::Relaxed).min(DESCRIPTORS);
    TABLE[..highest].iter().enumerate().map(|(number, descriptor)| (number as i32, descriptor))
}

/// The words of an entry.
#[derive(Clone, Copy)]
pub(crate) struct Entry(pub(crate) *mut u64);

impl Words for Entry {
    #[inline(always)]
    fn get(self, position: usize) -> u64 {
        // SAFETY: positions are those of the layout.
        unsafe { *self.0.add(position) }
    }

    #[inline(always)]
    fn set(self, position: usize, value: u64) {
        // SAFETY: as above.
        unsafe { *self.0.add(position) = value }
    }
}

impl Entry {
    #[inline(always)]
    pub(crate) fn at(unit: u32) -> Entry {
        // SAFETY: units are given out by the store alone, and stay mapped.
        Entry(unsafe { store::FILES.base().add(unit as usize * UNIT).cast() })
    }

    #[inline(always)]
    pub(crate) fn lock(self) -> &'static AtomicU32 {
        // SAFETY: as above; nothing else looks at this word.
        unsafe { &*self.0.add(entry::LOCK).cast::<AtomicU32>() }
    }

    fn name(self) -> &'static [u8] {
        // SAFETY: the name follows the words, inside the entry.
        unsafe { core::slice::from_raw_parts(self.0.add(entry::WORDS).cast(), self.get(entry::NAME_LENGTH) as usize) }
    }

    fn kind(self) -> u64 {
        self.get(entry::KIND) & 0xffff_ffff
    }

    /// Another entry of the same file, for when this one cannot be waited for. The reader adds them up.
    #[cold]
    #[inline(never)]
    pub(crate) fn beside(self) -> Option<Entry> {
        let unit = make(self.kind(), self.name());
        if unit == 0 {
            store::lose(header::CALLS_LOST);
            return None;
        }
        let made = Entry::at(unit);
        made.set(entry::FILE_ALIGNMENT, self.get(entry::FILE_ALIGNMENT));
        Some(made)
    }
}

fn make(kind: u64, name: &[u8]) -> u32 {
    let units = (entry::WORDS * 8 + name.len()).div_ceil(UNIT);
    let unit = store::allocate(units);
    if unit == 0 {
        return 0;
    }
    let made = Entry::at(unit);
    made.set(entry::NAME_LENGTH, name.len() as u64);
    // SAFETY: the entry has room for its name.
    unsafe { core::ptr::copy_nonoverlapping(name.as_ptr(), made.0.add(entry::WORDS).cast(), name.len()) };
    // SAFETY: the word is aligned, and a reader that sees it must see the rest.
    unsafe { (*made.0.cast::<AtomicU64>()).store(kind | (units as u64) << 32, Ordering::Release) };
    unit
}

/// Leaves a note that has only a name.
pub(crate) fn note(kind: u64, name: &[u8]) {
    if !store::FILES.base().is_null() {
        make(kind, name);
    }
}

/// Kind and name → entry: open addressing, in memory of this process. A place holds a hash (its upper half) and a unit.
struct Places {
    lock: AtomicU32,
    base: AtomicPtr<u64>,
    room: AtomicUsize,
    used: AtomicUsize,
}

static PLACES: Places = Places {
    lock: AtomicU32::new(0),
    base: AtomicPtr::new(core::ptr::null_mut()),
    room: AtomicUsize::new(0),
    used: AtomicUsize::new(0),
};

fn hash(kind: u64, name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325 ^ kind, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// The entry of a file, and whether it is new. 0 if it cannot be kept.
pub(crate) fn entry_of(kind: u64, name: &[u8]) -> (u32, bool) {
    if !lock::acquire(&PLACES.lock) {
        store::lose(header::CALLS_LOST);
        return (0, false);
    }
    let found = find_or_make(kind, name);
    lock::release(&PLACES.lock);
    found
}

fn find_or_make(kind: u64, name: &[u8]) -> (u32, bool) {
    if 2 * PLACES.used.load(Ordering::Relaxed) >= PLACES.room.load(Ordering::Relaxed) && !enlarge() {
        return (0, false);
    }
    let hash = hash(kind, name);
    let tag = hash & 0xffff_ffff_0000_0000;
    let (base, room) = (PLACES.base.load(Ordering::Relaxed), PLACES.room.load(Ordering::Relaxed));
    let mut at = hash as usize & (room - 1);
    loop {
        // SAFETY: below the room, which is a power of two.
        let place = unsafe { &mut *base.add(at) };
        if *place == 0 {
            let unit = make(kind, name);
            if unit != 0 {
                *place = tag | u64::from(unit);
                PLACES.used.fetch_add(1, Ordering::Relaxed);
            }
            return (unit, true);
        }
        let unit = *place as u32;
        if *place & 0xffff_ffff_0000_0000 == tag {
            let entry = Entry::at(unit);
            if entry.kind() == kind && entry.name() == name {
                return (unit, false);
            }
        }
        at = (at + 1) & (room - 1);
    }
}

fn enlarge() -> bool {
    let (old, room) = (PLACES.base.load(Ordering::Relaxed), PLACES.room.load(Ordering::Relaxed));
    let larger = (2 * room).max(FIRST_PLACES);
    // SAFETY: fresh, zeroed memory; the old one is known to nobody else under the lock.
    unsafe {
        let new = system::memory(larger * 8).cast::<u64>();
        if new.is_null() {
            return false;
        }
        for index in 0..room {
            let place = *old.add(index);
            if place != 0 {
                let entry = Entry::at(place as u32);
                let mut at = hash(entry.kind(), entry.name()) as usize & (larger - 1);
                while *new.add(at) != 0 {
                    at = (at + 1) & (larger - 1);
                }
                *new.add(at) = place;
            }
        }
        PLACES.base.store(new, Ordering::Relaxed);
        PLACES.room.store(larger, Ordering::Relaxed);
        if !old.is_null() {
            system::release(old.cast(), room * 8);
        }
    }
    true
}

/// In the child of a fork, when it has a store of its own: its open files get entries there.
pub(crate) fn carry_over(before: &store::Before) {
    PLACES.lock.store(0, Ordering::Relaxed);
    let old = PLACES.base.swap(core::ptr::null_mut(), Ordering::Relaxed);
    let room = PLACES.room.swap(0, Ordering::Relaxed);
    PLACES.used.store(0, Ordering::Relaxed);
    if !old.is_null() {
        // SAFETY: this process has one thread now, and it is here.
        unsafe { system::release(old.cast(), room * 8) };
    }
    for (_, descriptor) in known() {
        for slot in [&descriptor.posix, &descriptor.stdio] {
            let unit = slot.load(Ordering::Relaxed);
            if unit == 0 || unit == IGNORED {
                continue;
            }
            if before.base().is_null() {
                slot.store(0, Ordering::Relaxed);
                continue;
            }
            // SAFETY: still mapped until the caller releases it.
            let parents = Entry(unsafe { before.base().add(unit as usize * UNIT).cast() });
            let (unit, is_new) = entry_of(parents.kind(), parents.name());
            if is_new && unit != 0 {
                Entry::at(unit).set(entry::FILE_ALIGNMENT, parents.get(entry::FILE_ALIGNMENT));
            }
            slot.store(unit, Ordering::Relaxed);
        }
    }
}

/// The entry of a path, if it is one that counts.
pub(crate) fn entry_of_path(kind: u64, path: &Path) -> u32 {
    if path.is_none_of_ours() {
        return IGNORED;
    }
    if path.is_of_the_system() {
        store::lose(header::SYSTEM_OPENS);
        return IGNORED;
    }
    entry_of(kind, path.bytes()).0
}

/// A descriptor was opened by name: only regular files count.
pub(crate) fn opened(number: i32, path: Option<Path>, kind: u64) -> Option<Entry> {
    let Some(descriptor) = descriptor(number) else {
        // What is done with a number beyond the table is not seen: that is said.
        store::lose(header::CALLS_LOST);
        return None;
    };
    note_highest(number);
    descriptor.forget();
    descriptor.position.store(0, Ordering::Relaxed);
    let mut unit = match &path {
        Some(path) => entry_of_path(kind, path),
        None => 0,
    };
    if unit != 0 && unit != IGNORED && Entry::at(unit).get(entry::FILE_ALIGNMENT) == 0 {
        match system::Status::of_descriptor(number) {
            Some(status) if !status.is_regular() => unit = IGNORED,
            status => {
                let block = status.as_ref().map_or(4096, alignment);
                Entry::at(unit).set(entry::FILE_ALIGNMENT, block);
            }
        }
    }
    slot(descriptor, kind).store(unit, Ordering::Relaxed);
    (unit != 0 && unit != IGNORED).then(|| Entry::at(unit))
}

/// A power of two, so that a mask is enough to look at an offset.
fn alignment(status: &system::Status) -> u64 {
    u64::from(status.block.max(1)).next_power_of_two()
}

fn slot(descriptor: &Descriptor, kind: u64) -> &AtomicU32 {
    if kind == entry::STDIO { &descriptor.stdio } else { &descriptor.posix }
}

/// A descriptor that came from somewhere else: from the parent, through a socket, from the C library itself.
#[cold]
#[inline(never)]
pub(crate) fn resolve(number: i32, kind: u64) -> u32 {
    let Some(descriptor) = descriptor(number) else { return IGNORED };
    note_highest(number);
    let mut unit = IGNORED;
    if let Some(status) = system::Status::of_descriptor(number)
        && status.is_regular()
        && let Some(path) = Path::of_descriptor(number)
    {
        unit = entry_of_path(kind, &path);
        if unit == 0 {
            return IGNORED;
        }
        if unit != IGNORED {
            Entry::at(unit).set(entry::FILE_ALIGNMENT, alignment(&status));
            descriptor.position.store(system::position(number), Ordering::Relaxed);
        }
    }
    slot(descriptor, kind).store(unit, Ordering::Relaxed);
    unit
}

/// `new` leads where `old` leads.
pub(crate) fn copied(old: i32, new: i32) {
    let Some(from) = descriptor(old) else { return };
    let Some(to) = descriptor(new) else {
        if !matches!(from.posix.load(Ordering::Relaxed), 0 | IGNORED) {
            store::lose(header::CALLS_LOST);
        }
        return;
    };
    note_highest(new);
    to.posix.store(from.posix.load(Ordering::Relaxed), Ordering::Relaxed);
    to.stdio.store(from.stdio.load(Ordering::Relaxed), Ordering::Relaxed);
    to.position.store(from.position.load(Ordering::Relaxed), Ordering::Relaxed);
}
