//! One process: which calls are counted, and how.

use crate::harness::Place;
use tulpar_shim::Mode;
use tulpar_trace::darshan::Operation::{Read, Write};

#[test]
fn reads_writes_and_seeks_are_counted_by_file_with_darshans_rules() {
    let source = r#"
        #define _GNU_SOURCE
        #include <fcntl.h>
        #include <unistd.h>
        #include <sys/stat.h>
        #include <sys/uio.h>
        #include <sys/mman.h>
        int main() {
            char buffer[65536]; struct stat status;
            int in = open("data", O_RDONLY);
            read(in, buffer, 1000);              /* 0..1000 */
            read(in, buffer, 1000);              /* 1000..2000: consecutive */
            pread(in, buffer, 50, 4096);         /* sequential */
            pread(in, buffer, 50, 0);            /* back */
            lseek(in, 90000, SEEK_SET);
            if (read(in, buffer, 20000) != 10000) return 1;  /* the last 10,000 bytes */
            if (read(in, buffer, 20000) != 0) return 2;      /* the end counts too, as in Darshan */
            struct iovec parts[2] = {{buffer, 10}, {buffer + 10, 20}};
            preadv(in, parts, 2, 100);
            fstat(in, &status);
            mmap(0, 4096, PROT_READ, MAP_PRIVATE, in, 0);
            close(in);
            int out = open("sub/../out", O_WRONLY | O_CREAT | O_TRUNC, 0640);
            write(out, buffer, 4096);
            pwrite(out, buffer, 4096, 8192);
            fsync(out); fdatasync(out);
            int copy = dup(out);
            close(out);
            write(copy, buffer, 100);            /* goes on at 4096 */
            close(copy);
            int append = open("out", O_WRONLY | O_APPEND);
            write(append, buffer, 10);           /* at 12288 */
            rename("out", "renamed");
            stat("renamed", &status);
            read(-1, buffer, 1);
            return 0;
        }"#;
    // As they happen, and from a trace afterwards.
    for mode in [Mode::Count, Mode::Trace] {
        let place = Place::new();
        std::fs::create_dir(place.path("sub")).unwrap();
        let Some(recorded) = place.record_c(mode, source) else { return };
        assert_eq!(recorded.status.code(), Some(0));
        let data = |counter: &str| recorded.sum("/data", &format!("POSIX_{counter}"));
        assert_eq!((data("OPENS"), data("READS"), data("SEEKS"), data("STATS"), data("MMAPS")), (1, 7, 1, 1, 1));
        assert_eq!(data("BYTES_READ"), 1000 + 1000 + 50 + 50 + 10_000 + 30);
        assert_eq!((data("MAX_BYTE_READ"), data("CONSEC_READS"), data("SEQ_READS")), (99_999, 2, 4));
        let sizes = ["0_100", "100_1K", "1K_10K", "10K_100K"].map(|range| data(&format!("SIZE_READ_{range}")));
        assert_eq!(sizes, [4, 2, 1, 0]);
        assert_eq!((data("ACCESS1_ACCESS"), data("ACCESS1_COUNT")), (1000, 2));
        assert_eq!((data("ACCESS2_ACCESS"), data("ACCESS2_COUNT")), (50, 2));
        let out = |counter: &str| recorded.sum("/out", &format!("POSIX_{counter}"));
        assert_eq!((out("OPENS"), out("WRITES"), out("DUPS"), out("FSYNCS"), out("FDSYNCS")), (2, 4, 1, 1, 1));
        assert_eq!((out("BYTES_WRITTEN"), out("MAX_BYTE_WRITTEN"), out("RENAME_SOURCES")), (8302, 12_297, 1));
        assert_eq!(recorded.sum("/renamed", "POSIX_RENAME_TARGETS"), 1);
        assert_eq!(recorded.sum("/renamed", "POSIX_STATS"), 1);
        assert_eq!((recorded.summary.reads, recorded.summary.writes), (7, 4));
        if mode == Mode::Count {
            assert_eq!(recorded.summary.segments, 0);
            continue;
        }
        assert_eq!(
            recorded.read.segments_of("/out"),
            [(Write, 0, 4096), (Write, 8192, 4096), (Write, 4096, 100), (Write, 12_288, 10)]
        );
        assert_eq!(
            recorded.read.segments_of("/data"),
            [
                (Read, 0, 1000),
                (Read, 1000, 1000),
                (Read, 4096, 50),
                (Read, 0, 50),
                (Read, 90_000, 10_000),
                (Read, 100_000, 0),
                (Read, 100, 30)
            ]
        );
        assert_eq!(recorded.summary.segments, 11);
    }
}

#[test]
fn times_are_of_the_clock_on_the_wall() {
    let place = Place::new();
    let source = r#"
        import os, time
        data = os.open("data", os.O_RDONLY)
        before = time.monotonic()
        os.pread(data, 10, 0)
        between = time.monotonic()
        while time.monotonic() < between + 0.1: pass
        least = time.monotonic() - between
        os.pread(data, 10, 0)
        open("spans", "w").write(f"{least} {time.monotonic() - before}")
    "#;
    let recorded = place.record_python(Mode::Trace, &unindent(source));
    let starts: Vec<f64> = (recorded.read.segments.iter())
        .filter(|(trace, ..)| recorded.read.names[&trace.id].ends_with("/data"))
        .map(|(.., segment)| segment.start)
        .collect();
    assert_eq!(starts.len(), 2);
    // As the program itself saw it, however busy the machine is; a thousandth is for the rate of the counter.
    let spans = std::fs::read_to_string(place.path("spans")).unwrap();
    let [least, most] = spans.split(' ').map(|span| span.parse::<f64>().unwrap()).collect::<Vec<_>>()[..] else {
        panic!("{spans}")
    };
    let apart = starts[1] - starts[0];
    assert!(apart >= least * 0.999 && apart <= most * 1.001, "{least} {apart} {most}");
    assert!(apart <= recorded.read.run_time, "{starts:?}");
    assert!(recorded.read.segments.iter().all(|(.., segment)| {
        segment.start >= 0.0 && segment.end >= segment.start && segment.end <= recorded.read.run_time
    }));
}

#[test]
fn streams_are_a_layer_of_their_own() {
    let place = Place::new();
    let source = r#"
        #define _GNU_SOURCE
        #include <stdio.h>
        #include <stdlib.h>
        #include <stdarg.h>
        static int say(FILE *to, const char *format, ...) {
            va_list list; va_start(list, format); int n = vfprintf(to, format, list); va_end(list); return n;
        }
        int main() {
            char buffer[8192], *line = 0; size_t room = 0;
            FILE *out = fopen("text", "w");
            fputs("0123456789\n", out);                       /* 11 */
            fwrite(buffer, 1, 5000, out);
            fputc('x', out);
            fprintf(out, "%s %d %.2f %d %d %d %d %d\n", "a", 1, 2.5, 3, 4, 5, 6, 7);  /* 19 */
            say(out, "%05d\n", 42);                           /* 6 */
            fflush(out);
            fclose(out);
            FILE *in = fopen("text", "r");
            if (!fgets(buffer, 100, in)) return 1;            /* 11 */
            fseek(in, 5000, SEEK_SET);
            if (fread(buffer, 1, 11, in) != 11) return 2;
            fgetc(in);
            if (getline(&line, &room, in) != 19) return 3;
            int number; if (fscanf(in, "%d", &number) != 1 || number != 42) return 4;
            fclose(in);
            return 0;
        }"#;
    let Some(recorded) = place.record_c(Mode::Trace, source) else { return };
    assert_eq!(recorded.status.code(), Some(0));
    let text = |counter: &str| recorded.sum("/text", &format!("STDIO_{counter}"));
    assert_eq!((text("OPENS"), text("WRITES"), text("FLUSHES"), text("SEEKS")), (2, 5, 1, 1));
    assert_eq!(text("BYTES_WRITTEN"), 11 + 5000 + 1 + 19 + 6);
    assert_eq!(text("MAX_BYTE_WRITTEN"), 5036);
    assert_eq!((text("READS"), text("BYTES_READ")), (5, 11 + 11 + 1 + 19 + 5));
    assert_eq!(recorded.sum("/text", "POSIX_OPENS"), 0, "the C library's own calls are underneath");
}

#[test]
fn a_million_small_reads_are_all_there_and_a_trace_has_an_end_that_is_said() {
    let place = Place::new();
    let source = r#"
        #include <fcntl.h>
        #include <unistd.h>
        int main() {
            char buffer[16]; int in = open("data", O_RDONLY);
            for (int i = 0; i < 1000000; i++) if (pread(in, buffer, 16, i % 90000) != 16) return 1;
            return 0;
        }"#;
    let Some(program) = place.compile("program", source, &[]) else { return };
    let recorded = place.record(Mode::Trace, std::process::Command::new(&program).env("TULPAR_IO_SEGMENTS", "200000"));
    assert_eq!(recorded.sum("/data", "POSIX_READS"), 1_000_000);
    assert_eq!(recorded.sum("/data", "POSIX_BYTES_READ"), 16_000_000);
    // Files grow in steps, so that a little more may fit than was asked for.
    let kept = recorded.read.segments_of("/data").len() as u64;
    assert!((200_000..210_000).contains(&kept), "{kept}");
    assert_eq!(recorded.summary.lost, 1_000_000 - kept);
    let log = tulpar_trace::darshan::Log::open(&recorded.log).unwrap();
    let partial: Vec<String> =
        log.header().modules.iter().filter(|entry| entry.partial).map(|entry| entry.module.name()).collect();
    assert_eq!(partial, ["DXT_POSIX"]);
}

pub(crate) fn unindent(source: &str) -> String {
    source.lines().map(|line| line.strip_prefix("        ").unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn questions_with_no_room_for_the_answer_fail_as_they_do_alone() {
    let source = r#"
        #define _GNU_SOURCE
        #include <errno.h>
        #include <fcntl.h>
        #include <sys/stat.h>
        int main() {
            struct stat *nowhere = 0;
            __asm__("" : "+r"(nowhere));
            if (stat("data", nowhere) != -1 || errno != EFAULT) return 1;
            if (lstat("data", nowhere) != -1 || errno != EFAULT) return 2;
            if (fstatat(AT_FDCWD, "data", nowhere, 0) != -1 || errno != EFAULT) return 3;
            return 0;
        }"#;
    let Some(recorded) = Place::new().record_c(Mode::Count, source) else { return };
    assert_eq!(recorded.status.code(), Some(0), "{:?}", recorded.status);
}

#[test]
fn every_recording_has_a_number_of_its_own() {
    let number = || {
        let place = Place::new();
        let recorded = place.record(Mode::Count, std::process::Command::new("cat").arg("data"));
        tulpar_trace::darshan::Log::open(&recorded.log).unwrap().job().id
    };
    let (one, other) = (number(), number());
    assert!(one > 0 && other > 0 && one != other, "{one} {other}");
}

#[test]
fn descriptors_beyond_the_table_are_counted_as_lost() {
    let source = r#"
        #include <fcntl.h>
        #include <sys/resource.h>
        #include <unistd.h>
        int main() {
            struct rlimit most = {70000, 70000};
            if (setrlimit(RLIMIT_NOFILE, &most)) return 77;
            char byte;
            int in = open("data", O_RDONLY);
            if (dup2(in, 69000) != 69000) return 1;
            return read(69000, &byte, 1) == 1 ? 0 : 2;
        }"#;
    let Some(recorded) = Place::new().record_c(Mode::Count, source) else { return };
    if recorded.status.code() == Some(77) {
        return crate::harness::skipped("so many descriptors are not allowed here");
    }
    assert_eq!(recorded.status.code(), Some(0));
    assert_eq!(recorded.summary.lost, 1);
}
