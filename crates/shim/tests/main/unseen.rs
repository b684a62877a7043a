//! What cannot be seen into is said.

use std::process::Command;

use crate::harness::{Place, skipped};
use tulpar_shim::{Mode, Sight, sight};

const READ: &str = r#"
    #include <fcntl.h>
    #include <unistd.h>
    int main() { char buffer[10]; int in = open("data", O_RDONLY); return read(in, buffer, 10) != 10; }
"#;

fn static_program(place: &Place) -> Option<std::path::PathBuf> {
    let archive = Command::new("cc").arg("-print-file-name=libc.a").output().ok()?;
    if !std::path::Path::new(String::from_utf8_lossy(&archive.stdout).trim()).is_file() {
        skipped("there is no libc.a: no static program is recorded");
        return None;
    }
    place.compile("static", READ, &["-static"])
}

#[test]
fn a_static_program_is_told_from_others_before_it_runs() {
    let place = Place::new();
    let Some(program) = static_program(&place) else { return };
    assert_eq!(sight(&program), Sight::Static);
    let script = place.path("script");
    std::fs::write(&script, format!("#!{} -x\n", program.display())).unwrap();
    assert_eq!(sight(&script), Sight::Static);
    assert_eq!(sight(std::path::Path::new("/bin/sh")), Sight::Seen);
    assert_eq!(sight(&place.path("data")), Sight::Seen);
}

#[test]
fn static_programs_that_others_start_are_named_in_the_log() {
    let place = Place::new();
    let Some(program) = static_program(&place) else { return };
    let line = "./static && cat data > /dev/null && ./static";
    let recorded = place.record(Mode::Count, Command::new("sh").args(["-c", line]));
    assert_eq!(recorded.status.code(), Some(0));
    let program = std::fs::canonicalize(program).unwrap().display().to_string();
    assert_eq!(recorded.summary.unseen, std::slice::from_ref(&program));
    assert_eq!(recorded.read.metadata["tulpar_unseen"], program);
    assert_eq!(recorded.sum("/data", "POSIX_BYTES_READ"), 100_000, "the others are there");
    let spawned = place.record_python(Mode::Count, "import subprocess; subprocess.run(['./static'], check=True)");
    assert_eq!(spawned.status.code(), Some(0));
    assert_eq!(spawned.summary.unseen, [program]);
}

#[test]
fn a_static_program_alone_leaves_a_log_without_records() {
    let place = Place::new();
    let Some(program) = static_program(&place) else { return };
    let recorded = place.record(Mode::Count, &mut Command::new(program));
    assert_eq!(recorded.status.code(), Some(0));
    assert_eq!((recorded.summary.processes, recorded.read.records.len()), (0, 0));
}
