//! Starting other programs: they inherit the recording even with an environment of their own, and those that cannot be
//! seen into are noted. And the ways to end without the end of `main`.

use core::ffi::{c_char, c_int, c_void};

use crate::layout::entry;
use crate::path::{self, LONGEST};
use crate::symbol::{Symbol, hooks};
use crate::system::{self, Status};
use crate::{active, files, settings};

type Texts = *const *const c_char;

const PRELOAD: &[u8] = b"LD_PRELOAD=";
/// More variables are left as they are.
const MOST: usize = 2048;

/// Hands on an environment in which the recording goes on.
unsafe fn with_recording<T>(environment: Texts, run: impl FnOnce(Texts) -> T) -> T {
    let library = settings::library();
    if !active() || environment.is_null() || library.is_empty() {
        return run(environment);
    }
    // On the stack: the child of `vfork` must leave nothing in its parent's memory.
    let mut texts = [core::ptr::null::<c_char>(); MOST + 8];
    let mut preload = [0u8; 2 * LONGEST];
    let mut count = 0;
    let mut has = [false; settings::NAMES.len()];
    let mut theirs: &[u8] = b"";
    let mut changed = true;
    // SAFETY: a NULL-terminated list of NUL-terminated texts.
    unsafe {
        while !(*environment.add(count)).is_null() {
            if count >= MOST {
                return run(environment);
            }
            count += 1;
        }
        let mut kept = 0;
        for at in 0..count {
            let text = (*environment.add(at)).cast::<u8>();
            if path::begins(text, PRELOAD) {
                let value = text.add(PRELOAD.len());
                theirs = core::slice::from_raw_parts(value, path::length(value));
                changed = !contains(theirs, library);
                if changed {
                    continue;
                }
            }
            for (index, name) in settings::NAMES.iter().enumerate() {
                has[index] |= path::begins(text, name);
            }
            texts[kept] = text.cast();
            kept += 1;
        }
        if changed {
            if PRELOAD.len() + library.len() + 2 + theirs.len() > preload.len() {
                return run(environment);
            }
            let separator: &[u8] = if theirs.is_empty() { b"" } else { b":" };
            let mut length = 0;
            for part in [PRELOAD, library, separator, theirs] {
                core::ptr::copy_nonoverlapping(part.as_ptr(), preload.as_mut_ptr().add(length), part.len());
                length += part.len();
            }
            texts[kept] = preload.as_ptr().cast();
            kept += 1;
        }
        for (index, has) in has.iter().enumerate() {
            if !has && let Some(text) = settings::setting(index) {
                texts[kept] = text;
                kept += 1;
            }
        }
    }
    run(texts.as_ptr())
}

fn contains(list: &[u8], item: &[u8]) -> bool {
    list.split(|byte| matches!(byte, b':' | b' ')).any(|one| one == item)
}

/// Notes a program that the library will not be loaded into.
unsafe fn examine(program: *const c_char) {
    if !active() || program.is_null() {
        return;
    }
    // SAFETY: the text ends.
    unsafe {
        let mut named = program.cast::<u8>();
        let mut first = [0u8; 1024];
        // A script is as visible as the program that runs it.
        let mut interpreter = [0u8; 256];
        for _ in 0..2 {
            let file = system::open_for_reading(named);
            if file < 0 {
                return;
            }
            let status = Status::of_descriptor(file as i32);
            let length = system::read(file, first.as_mut_ptr(), first.len()).max(0) as usize;
            system::close(file);
            if length > 2 && first[0] == b'#' && first[1] == b'!' {
                let mut from = 2;
                while from < length && first[from] == b' ' {
                    from += 1;
                }
                let mut size = 0;
                while from + size < length && size < 255 && !matches!(first[from + size], b' ' | b'\n' | b'\t') {
                    interpreter[size] = first[from + size];
                    size += 1;
                }
                interpreter[size] = 0;
                named = interpreter.as_ptr();
                continue;
            }
            let changes_user = status.is_some_and(|status| {
                let (user, group) = system::effective_user();
                status.mode & 0o4000 != 0 && status.user != user
                    || status.mode & 0o2010 == 0o2010 && status.group != group
            });
            if changes_user || !is_loaded_dynamically(&first[..length]) {
                note(named);
            }
            return;
        }
    }
}

unsafe fn note(program: *const u8) {
    // SAFETY: the text ends.
    match unsafe { path::Path::new(system::AT_FDCWD, program) } {
        Some(path) => files::note(entry::UNSEEN, path.bytes()),
        None => files::note(entry::UNSEEN, b"?"),
    }
}

/// Has an interpreter, and is of this kind of machine. What is no ELF at all is not judged.
fn is_loaded_dynamically(file: &[u8]) -> bool {
    const INTERPRETER: u32 = 3;
    const SIXTY_FOUR_BITS: u8 = 2;
    if file.len() < 64 || !file.starts_with(b"\x7fELF") {
        return true;
    }
    if file[4] != SIXTY_FOUR_BITS {
        return false;
    }
    let short = |at: usize| usize::from(u16::from_le_bytes([file[at], file[at + 1]]));
    let (size, count) = (short(54), short(56));
    let start = usize::from(u16::from_le_bytes([file[32], file[33]]));
    (0..count).map(|index| start + index * size).any(|at| {
        // Headers beyond what was read are those of a program with very many: it has one.
        file.get(at..at + 4).is_none_or(|kind| kind == INTERPRETER.to_le_bytes())
    })
}

/// As the shell finds it.
unsafe fn examine_in_path(program: *const c_char) {
    if !active() || program.is_null() {
        return;
    }
    // SAFETY: texts end.
    unsafe {
        let length = path::length(program.cast());
        let name = core::slice::from_raw_parts(program.cast::<u8>(), length);
        if name.contains(&b'/') {
            return examine(program);
        }
        let mut environment = crate::environment();
        let mut folders: &[u8] = b"/bin:/usr/bin";
        while !environment.is_null() && !(*environment).is_null() {
            let text = (*environment).cast::<u8>();
            if path::begins(text, b"PATH=") {
                folders = core::slice::from_raw_parts(text.add(5), path::length(text.add(5)));
            }
            environment = environment.add(1);
        }
        for folder in folders.split(|byte| *byte == b':') {
            let mut whole = [0u8; LONGEST];
            if folder.is_empty() || folder.len() + length + 2 > LONGEST {
                continue;
            }
            core::ptr::copy_nonoverlapping(folder.as_ptr(), whole.as_mut_ptr(), folder.len());
            whole[folder.len()] = b'/';
            core::ptr::copy_nonoverlapping(name.as_ptr(), whole.as_mut_ptr().add(folder.len() + 1), length);
            let file = system::open_for_reading(whole.as_ptr());
            if file >= 0 {
                system::close(file);
                return examine(whole.as_ptr().cast());
            }
        }
    }
}

unsafe fn execute(program: *const c_char, arguments: Texts, environment: Texts) -> c_int {
    static REAL: Symbol = Symbol::new(c"execve".as_ptr());
    // SAFETY: of the C library.
    let real: unsafe extern "C" fn(*const c_char, Texts, Texts) -> c_int = unsafe { core::mem::transmute(REAL.get()) };
    // SAFETY: what the caller handed over.
    unsafe { with_recording(environment, |environment| real(program, arguments, environment)) }
}

unsafe fn execute_in_path(program: *const c_char, arguments: Texts, environment: Texts) -> c_int {
    static REAL: Symbol = Symbol::new(c"execvpe".as_ptr());
    // SAFETY: of the C library.
    let real: unsafe extern "C" fn(*const c_char, Texts, Texts) -> c_int = unsafe { core::mem::transmute(REAL.get()) };
    // SAFETY: what the caller handed over.
    unsafe { with_recording(environment, |environment| real(program, arguments, environment)) }
}

hooks! {
    fn execve[_real](program: *const c_char, arguments: Texts, environment: Texts) -> c_int {
        examine(program);
        execute(program, arguments, environment)
    }
    fn execv[_real](program: *const c_char, arguments: Texts) -> c_int {
        examine(program);
        execute(program, arguments, crate::environment())
    }
    fn execvp[_real](program: *const c_char, arguments: Texts) -> c_int {
        examine_in_path(program);
        execute_in_path(program, arguments, crate::environment())
    }
    fn execvpe[_real](program: *const c_char, arguments: Texts, environment: Texts) -> c_int {
        examine_in_path(program);
        execute_in_path(program, arguments, environment)
    }
    fn fexecve[real](number: c_int, arguments: Texts, environment: Texts) -> c_int {
        with_recording(environment, |environment| real(number, arguments, environment))
    }
    fn posix_spawn[real](
        process: *mut c_int, program: *const c_char, actions: *const c_void, attributes: *const c_void,
        arguments: Texts, environment: Texts
    ) -> c_int {
        examine(program);
        with_recording(environment, |environment| {
            real(process, program, actions, attributes, arguments, environment)
        })
    }
    fn posix_spawnp[real](
        process: *mut c_int, program: *const c_char, actions: *const c_void, attributes: *const c_void,
        arguments: Texts, environment: Texts
    ) -> c_int {
        examine_in_path(program);
        with_recording(environment, |environment| {
            real(process, program, actions, attributes, arguments, environment)
        })
    }
    fn _exit[real](code: c_int) -> () {
        ended();
        real(code)
    }
    fn _Exit[real](code: c_int) -> () {
        ended();
        real(code)
    }
}

/// The child of `vfork` ends here too, when it could not start its program: that is not the end of its parent.
fn ended() {
    if crate::store::is_ours() {
        crate::at_end();
    }
}
