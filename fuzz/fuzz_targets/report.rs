//! A log and a profile through all that is made of them: analysis, alignment, findings, JSON, timeline. The first two bytes
//! say how long the log is; the rest is the profile.
#![no_main]

use tulpar_trace::darshan::JobSet;
use tulpar_trace::report::{Report, Wanted, timeline};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((head, rest)) = bytes.split_at_checked(2) else { return };
    let length = usize::from(u16::from_le_bytes([head[0], head[1]])).min(rest.len());
    let (log, profile) = rest.split_at(length);
    let folder = tempfile::tempdir().expect("a folder");
    let (log_path, profile_path) = (folder.path().join("job.darshan"), folder.path().join("a.pt.trace.json"));
    std::fs::write(&log_path, log).expect("a log");
    std::fs::write(&profile_path, profile).expect("a profile");
    let (sets, _) = JobSet::group(&[log_path]);
    for set in &sets {
        let mut wanted = Wanted { profiles: vec![profile_path.clone()], ..Wanted::default() };
        wanted.part.requests = true;
        let Ok(report) = Report::of(set, &wanted) else { continue };
        drop(serde_json::to_string(&report).expect("JSON"));
        timeline(&[report], &mut Vec::new()).expect("memory");
    }
});
