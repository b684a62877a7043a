//! Where Darshan is installed, it does the recording. A stand-in leaves logs where and when Darshan's documentation says;
//! no real one was at hand.

use tulpar_shim::{Darshan, Logs, Mode, Recorded, Request, run};

use crate::harness::Place;

const STAND_IN: &str = r#"
    #include <stdio.h>
    #include <stdlib.h>
    #include <time.h>
    #include <unistd.h>
    __attribute__((destructor)) static void leave(void) {
        const char *path = getenv("DARSHAN_LOGPATH");
        if (!path || !getenv("DARSHAN_ENABLE_NONMPI")) return;
        time_t now = time(0);
        struct tm *day = localtime(&now);
        char name[4096];
        snprintf(name, sizeof name, "%s/%d/%d/%d/user_program_id%d.darshan", path, 1900 + day->tm_year,
                 day->tm_mon + 1, day->tm_mday, getpid());
        FILE *file = fopen(name, "w");
        if (!file) return;
        fputs(getenv("DXT_ENABLE_IO_TRACE") ? "traced" : "counted", file);
        /* The number of the job, as Darshan finds it. */
        const char *where = getenv("DARSHAN_JOBID");
        if (where && getenv(where)) fprintf(file, " %d", atoi(getenv(where)));
        fclose(file);
    }"#;

#[test]
fn its_logs_are_brought_to_where_they_were_asked_for() {
    let place = Place::new();
    let Some(library) = place.compile("libdarshan.so", STAND_IN, &["-shared", "-fPIC"]) else { return };
    let darshan = Darshan { library };
    let log = place.path("one.darshan");
    for (mode, text) in [(Mode::Count, "counted"), (Mode::Trace, "traced")] {
        let words = ["true".to_owned()];
        let request = Request { words: &words, log: &log, mode, everything: false, darshan: Some(&darshan) };
        let outcome = run(&request).unwrap();
        assert_eq!(outcome.code(), 0);
        assert!(matches!(outcome.recorded, Recorded::ByDarshan(Logs::One(ref one)) if *one == log), "{outcome:?}");
        assert!(std::fs::read_to_string(&log).unwrap().starts_with(text));
    }
    // The shell leaves through `_exit`, where a library like Darshan's has no say.
    let words = ["sh", "-c", "true; /bin/true; /bin/true; exit 3"].map(str::to_owned);
    let request = Request { words: &words, log: &log, mode: Mode::Count, everything: false, darshan: Some(&darshan) };
    let outcome = run(&request).unwrap();
    assert_eq!(outcome.code(), 3);
    assert!(
        matches!(outcome.recorded, Recorded::ByDarshan(Logs::Several(ref folder, 2)) if *folder == place.path("one.logs")),
        "{outcome:?}"
    );
    // All processes say the same number of a job.
    let mut texts: Vec<String> = std::fs::read_dir(place.path("one.logs"))
        .unwrap()
        .map(|item| std::fs::read_to_string(item.unwrap().path()).unwrap())
        .collect();
    texts.dedup();
    let number: i64 = texts[0].strip_prefix("counted ").unwrap().parse().unwrap();
    assert!(texts.len() == 1 && number > 0, "{texts:?}");
}
