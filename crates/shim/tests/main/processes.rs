//! Many processes, threads and unusual ends: nothing is lost.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use crate::harness::{Place, Recorded};
use crate::single::unindent;
use tulpar_shim::Mode;

fn reads(recorded: &Recorded) -> (i64, i64, usize) {
    (recorded.sum("/data", "POSIX_READS"), recorded.sum("/data", "POSIX_BYTES_READ"), recorded.ranks("/data"))
}

const READ: &str = r#"
        #define _GNU_SOURCE
        #include <fcntl.h>
        #include <pthread.h>
        #include <signal.h>
        #include <spawn.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/wait.h>
        #include <unistd.h>
        extern char **environ;
        static int in;
        static void *work(void *count) {
            char buffer[100];
            for (long i = 0; i < (long)count; i++) if (pread(in, buffer, 100, i % 900 * 100) != 100) abort();
            return 0;
        }
"#;

fn c(rest: &str) -> String {
    format!("{READ}{rest}")
}

#[test]
fn children_by_fork_that_leave_through_underscore_exit_are_recorded() {
    let place = Place::new();
    let source = c(r#"
        int main() {
            in = open("data", O_RDONLY);
            work((void *)10);
            for (int i = 0; i < 4; i++) if (fork() == 0) { work((void *)1000); _exit(0); }
            while (wait(0) > 0);
            work((void *)10);
            return 0;
        }"#);
    let Some(recorded) = place.record_c(Mode::Trace, &source) else { return };
    assert_eq!(reads(&recorded), (4020, 402_000, 5));
    assert_eq!(recorded.sum("/data", "POSIX_OPENS"), 1);
    assert_eq!(recorded.read.segments_of("/data").len(), 4020);
    assert_eq!((recorded.read.processes, recorded.summary.ranks), (5, 5));
}

#[test]
fn a_process_that_is_killed_in_the_middle_loses_nothing() {
    let place = Place::new();
    let source = c(r#"
        int main() {
            in = open("data", O_RDONLY);
            if (fork() == 0) { work((void *)12345); kill(getpid(), SIGKILL); }
            wait(0);
            work((void *)20000);
            kill(getpid(), SIGKILL);
            return 0;
        }"#);
    for mode in [Mode::Count, Mode::Trace] {
        let Some(recorded) = place.record_c(mode, &source) else { return };
        assert_eq!(recorded.status.signal(), Some(9));
        assert_eq!(reads(&recorded), (32_345, 3_234_500, 2));
        let segments = recorded.read.segments_of("/data").len();
        assert_eq!(segments, if mode == Mode::Trace { 32_345 } else { 0 });
    }
}

#[test]
fn threads_that_read_one_file_together_are_all_counted() {
    let place = Place::new();
    let source = c(r#"
        int main() {
            pthread_t threads[8];
            in = open("data", O_RDONLY);
            for (int i = 0; i < 8; i++) pthread_create(threads + i, 0, work, (void *)20000);
            for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
            return 0;
        }"#);
    for mode in [Mode::Count, Mode::Trace] {
        let Some(recorded) = place.record_c(mode, &source) else { return };
        assert_eq!(reads(&recorded), (160_000, 16_000_000, 1));
        let sizes = recorded.sum("/data", "POSIX_SIZE_READ_0_100");
        assert_eq!(sizes, 160_000);
    }
}

#[test]
fn a_signal_handler_that_reads_while_its_thread_reads_is_counted() {
    let place = Place::new();
    let source = c(r#"
        #include <sys/time.h>
        static volatile long handled;
        static void handler(int signal) {
            char buffer[100]; (void)signal;
            if (pread(in, buffer, 100, 0) == 100) handled++;
        }
        int main() {
            in = open("data", O_RDONLY);
            signal(SIGALRM, handler);
            struct itimerval often = {{0, 50}, {0, 50}};
            setitimer(ITIMER_REAL, &often, 0);
            while (handled < 2000) work((void *)100);
            struct itimerval never = {{0, 0}, {0, 0}};
            setitimer(ITIMER_REAL, &never, 0);
            int out = open("count", O_WRONLY | O_CREAT, 0600);
            char text[32]; int length = sprintf(text, "%ld", handled);
            return write(out, text, length) != length;
        }"#);
    let Some(recorded) = place.record_c(Mode::Count, &source) else { return };
    let handled: i64 = std::fs::read_to_string(place.path("count")).unwrap().parse().unwrap();
    let (calls, bytes, _) = reads(&recorded);
    assert_eq!(bytes, calls * 100);
    assert_eq!((calls - handled) % 100, 0, "every one of the handler is there: {calls}, {handled}");
    assert_eq!(recorded.summary.lost, 0);
}

#[test]
fn programs_that_are_started_by_every_means_are_recorded() {
    let place = Place::new();
    let source = c(r#"
        int main(int count, char **words) {
            if (count > 1) { in = open("data", O_RDONLY); work((void *)10); return 0; }
            char *none[] = {0}, *own[] = {"MINE=1", "LD_PRELOAD=", 0};
            char *again[] = {words[0], "again", 0};
            pid_t child;
            posix_spawn(&child, words[0], 0, 0, again, environ); wait(0);
            posix_spawn(&child, words[0], 0, 0, again, none); wait(0);      /* an empty environment */
            posix_spawnp(&child, words[0], 0, 0, again, own); wait(0);      /* without our LD_PRELOAD */
            if (fork() == 0) { execve(words[0], again, none); _exit(1); } wait(0);
            if (fork() == 0) { execv(words[0], again); _exit(1); } wait(0);
            if (fork() == 0) { execvp(words[0], again); _exit(1); } wait(0);
            if (vfork() == 0) { close(0); dup2(1, 0); execve(words[0], again, environ); _exit(1); } wait(0);
            char line[4096]; snprintf(line, sizeof line, "%s again", words[0]);
            if (system(line)) return 1;
            in = open("data", O_RDONLY); work((void *)10);
            execl(words[0], words[0], "again", (char *)0);
            return 1;
        }"#);
    let Some(recorded) = place.record_c(Mode::Count, &source) else { return };
    assert_eq!(recorded.status.code(), Some(0));
    assert_eq!(reads(&recorded), (100, 10_000, 10));
}

#[test]
fn a_shell_with_redirections_is_recorded_where_the_data_flows() {
    let place = Place::new();
    let recorded = place
        .record(Mode::Count, Command::new("sh").args(["-c", "cat < data > copy; head -c 10 copy | wc -c > count"]));
    assert_eq!(recorded.sum("/data", "POSIX_BYTES_READ"), 100_000);
    assert_eq!(recorded.sum("/copy", "POSIX_BYTES_WRITTEN"), 100_000);
    assert_eq!(std::fs::read_to_string(place.path("count")).unwrap().trim(), "10");
}

#[test]
fn a_loader_of_python_with_forked_and_spawned_workers_is_recorded() {
    for method in ["fork", "spawn"] {
        let place = Place::new();
        for number in 0..12 {
            std::fs::write(place.path(&format!("sample{number:02}.npy")), vec![1; 10_000 + number]).unwrap();
        }
        let source = unindent(
            r#"
        import multiprocessing, os, sys

        def load(paths, queue):
            for path in paths:
                with open(path, "rb", buffering=0) as file:
                    size = 0
                    while block := file.read(4096):
                        size += len(block)
                queue.put((path, size))
            queue.put(None)

        if __name__ == "__main__":
            context = multiprocessing.get_context(sys.argv[1])
            paths = sorted(name for name in os.listdir(".") if name.endswith(".npy"))
            queue = context.Queue()
            workers = [context.Process(target=load, args=(paths[part::3], queue), daemon=True) for part in range(3)]
            for worker in workers:
                worker.start()
            sizes, ended = {}, 0
            while ended < 3:
                item = queue.get()
                if item is None:
                    ended += 1
                else:
                    sizes.update([item])
            for worker in workers:
                worker.terminate()
                worker.join()
            assert sum(sizes.values()) == 120066, sizes
        "#,
        );
        std::fs::write(place.path("loader.py"), source).unwrap();
        let recorded = place.record(Mode::Trace, Command::new(crate::harness::python()).args(["loader.py", method]));
        assert_eq!(recorded.status.code(), Some(0));
        assert_eq!(recorded.sum(".npy", "POSIX_BYTES_READ"), 120_066, "{method}");
        assert_eq!(recorded.sum(".npy", "POSIX_OPENS"), 12, "{method}");
        assert_eq!(recorded.sum(".npy", "POSIX_READS"), 12 * 4, "{method}: three blocks and the end");
        assert_eq!(recorded.ranks(".npy"), 3, "{method}");
        assert_eq!(recorded.read.segments_of("sample03.npy").len(), 4);
    }
}

#[test]
fn a_program_with_its_own_preloaded_library_keeps_it() {
    let place = Place::new();
    let library = r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <unistd.h>
        #include <sys/types.h>
        ssize_t pread(int number, void *buffer, size_t size, off_t offset) {
            ssize_t (*next)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, "pread");
            ssize_t result = next(number, buffer, size, offset);
            if (result > 0) ((char *)buffer)[0] = 'X';
            return result;
        }"#;
    let Some(library) = place.compile("theirs.so", library, &["-shared", "-fPIC", "-ldl"]) else { return };
    let source = c(r#"
        int main(int count, char **words) {
            char buffer[100]; in = open("data", O_RDONLY);
            if (pread(in, buffer, 100, 0) != 100 || buffer[0] != 'X') return 1;
            if (count == 1) { execl(words[0], words[0], "again", (char *)0); return 2; }
            return 0;
        }"#);
    let Some(program) = place.compile("program", &source, &[]) else { return };
    let recorded = place.record(Mode::Count, Command::new(program).env("LD_PRELOAD", &library));
    assert_eq!(recorded.status.code(), Some(0));
    assert_eq!(reads(&recorded), (2, 200, 2));
}

#[test]
fn error_numbers_and_results_are_those_of_the_system() {
    let place = Place::new();
    let source = r#"
        #include <errno.h>
        #include <fcntl.h>
        #include <stdio.h>
        #include <unistd.h>
        int main() {
            char buffer[8];
            if (open("missing", O_RDONLY) != -1 || errno != ENOENT) return 1;
            if (read(12345, buffer, 8) != -1 || errno != EBADF) return 2;
            if (close(12345) != -1 || errno != EBADF) return 3;
            if (fopen("missing", "r") || errno != ENOENT) return 4;
            int in = open("data", O_RDONLY);
            errno = 77;
            if (read(in, buffer, 8) != 8 || errno != 77) return 5;
            if (write(in, buffer, 8) != -1 || errno != EBADF) return 6;
            return 0;
        }"#;
    let Some(recorded) = place.record_c(Mode::Trace, source) else { return };
    assert_eq!(recorded.status.code(), Some(0));
}
