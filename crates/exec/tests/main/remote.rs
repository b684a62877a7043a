//! What comes back from workers: taken in whole and proven, or not at all.

use super::conformance::spec;
use std::fs;
use tulpar_core::ids::{AttemptId, Digest, JobId};
use tulpar_core::job::{Ending, InputFile, InputFiles, JobSpec, OutputFile, Report, Source, Usage};
use tulpar_core::parcel::{self, PackedInputs};
use tulpar_core::units::Timestamp;
use tulpar_exec::folder::Project;
use tulpar_exec::remote::{Files, HarvestError, Remote};

const ATTEMPT: AttemptId = AttemptId { job: JobId(3), n: 1 };

/// A project into which a report came back that promises `a model`, and these bytes in its place.
fn came_back(bytes: &[u8]) -> (tempfile::TempDir, Remote) {
    let folder = tempfile::tempdir().unwrap();
    let project = Project::new(folder.path()).unwrap();
    let run = project.new_run("harvest").unwrap();
    let remote = Remote::new(project, run, Box::new(|_| None));
    let out = remote.attempt_folder(ATTEMPT).join(parcel::OUT);
    let digest = Digest::of(b"a model");
    let report = Report {
        ending: Ending::Exit(0),
        started: Timestamp(1),
        ended: Timestamp(2),
        usage: Usage::default(),
        outputs: vec![OutputFile { output: 0, path: "model.bin".into(), size: 7, digest, executable: false }],
        stderr_tail: String::new(),
        script: None,
        told: None,
        left_out: Vec::new(),
    };
    fs::create_dir_all(out.join(parcel::OBJECTS)).unwrap();
    fs::write(out.join(parcel::OBJECTS).join(digest.hex()), bytes).unwrap();
    fs::write(out.join(parcel::REPORT), serde_json::to_vec(&report).unwrap()).unwrap();
    (folder, remote)
}

#[test]
fn what_came_back_whole_is_stored_and_may_be_taken_in_again() {
    let (folder, remote) = came_back(b"a model");
    for _ in 0..2 {
        assert_eq!(remote.harvest(ATTEMPT, Files::Sent).unwrap().ending, Ending::Exit(0));
    }
    let hex = Digest::of(b"a model").hex();
    let object = folder.path().join(".tulpar/cache/objects").join(&hex[..2]).join(&hex[2..]);
    assert_eq!(fs::read(object).unwrap(), b"a model");
}

#[test]
fn an_output_that_is_not_what_the_report_says_is_refused() {
    for damaged in [&b"a modeL"[..], b"a mode", b""] {
        let (_folder, remote) = came_back(damaged);
        assert!(
            matches!(remote.harvest(ATTEMPT, Files::Sent), Err(HarvestError::Damaged { path }) if path == "model.bin")
        );
    }
}

#[test]
fn without_a_report_nothing_came_back() {
    let (_folder, remote) = came_back(b"a model");
    let other = AttemptId { job: JobId(4), n: 1 };
    assert!(matches!(remote.harvest(other, Files::Sent), Err(HarvestError::NoReport(_))));
}

#[test]
fn jobs_with_the_same_many_inputs_share_what_is_sent_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let project = Project::new(folder.path()).unwrap();
    let run = project.new_run("many").unwrap();
    let remote = Remote::new(project, run, Box::new(|_| None));
    let file = |number: u32| {
        let text = format!("picture {number}");
        fs::write(folder.path().join(format!("{number}.png")), &text).unwrap();
        let (size, digest) = (text.len() as u64, Digest::of(text.as_bytes()));
        InputFile { path: format!("{number}.png"), source: Source::Path(format!("{number}.png")), size, digest }
    };
    let inputs = vec![InputFiles { name: "pictures".into(), files: (0..1000).map(file).collect(), list: None }];
    let sent = [1, 2].map(|job| {
        let spec = JobSpec { inputs: inputs.clone(), ..*spec(job, "true") };
        remote.send(&spec, Files::Sent, false).unwrap()
    });
    assert_eq!(sent[0].files.len(), 3, "the parcel, the contents, and what is what in them");
    assert_eq!(sent[0].files[1..], sent[1].files[1..]);
    assert_ne!(sent[0].files[0], sent[1].files[0]);
    let parcel = fs::read_to_string(&sent[1].files[0]).unwrap();
    assert!(parcel.len() < 1000 && !parcel.contains(".png"), "{parcel}");
    let listed: PackedInputs = serde_json::from_slice(&fs::read(&sent[0].files[2]).unwrap()).unwrap();
    assert_eq!((listed.inputs[0].files.len(), listed.objects.len()), (1000, 1000));
    assert_eq!(fs::metadata(&sent[0].files[1]).unwrap().len(), listed.objects.iter().map(|it| it.size).sum::<u64>());
}
