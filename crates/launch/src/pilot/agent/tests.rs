//! Attempts that go and come again.

use super::*;
use crate::pilot::inflow::Arrived;
use std::path::Path;
use tulpar_core::ids::JobId;

const ATTEMPT: AttemptId = AttemptId { job: JobId(7), n: 1 };

fn agent(folder: &Path) -> Agent {
    let at = |name: &str| folder.join(name);
    let folders = Folders {
        project: at("project"),
        attempts: at("attempts"),
        objects: at("objects"),
        records: at("records"),
        checkpoints: at("checkpoints"),
    };
    Agent::new(Means { folders, milli_cpus: 1000, gpus: Vec::new(), owns_cores: false, store: 1 << 20, end: None })
}

fn work(contents: &[&str]) -> Work {
    let limits = serde_json::to_string(&tulpar_core::workflow::Limits::default()).unwrap();
    let spec = format!(
        r#"{{"attempt":{{"job":7,"n":1}},"name":"a","command":{{"arguments":["true"]}},"limits":{limits},"milli_cpus":1000,"node":"p"}}"#
    );
    let mut spec: JobSpec = serde_json::from_str(&spec).unwrap();
    let file = |content: &&str| InputFile {
        path: (*content).into(),
        source: Source::Object,
        size: content.len() as u64,
        digest: Digest::of(content.as_bytes()),
    };
    spec.inputs =
        vec![InputFiles { name: "in".into(), files: contents.iter().map(file).collect::<Vec<_>>().into(), list: None }];
    Work { spec, lists: Vec::new(), secrets: BTreeMap::new(), checkpoint: Vec::new() }
}

fn arrive(agent: &Agent, folder: &Path, content: &str) {
    let path = folder.join("arriving");
    std::fs::write(&path, content).unwrap();
    let digest = Digest::of(content.as_bytes());
    agent.arrived(&Arrived { digest, size: content.len() as u64, path, executable: false });
}

#[test]
fn an_attempt_that_went_back_and_came_again_waits_for_all_its_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let agent = agent(folder.path());
    let contents = ["one", "two"];
    assert_eq!(agent.work(work(&contents)).len(), 2);
    assert_eq!(agent.give_back(&[ATTEMPT]), [ATTEMPT]);
    assert_eq!(agent.holds().0, []);
    // Nobody waited for them any more: on a new connection they must be asked for again.
    assert_eq!(agent.work(work(&contents)).len(), 2);
    arrive(&agent, folder.path(), "one");
    assert_eq!(agent.holds().0, [(ATTEMPT, Stage::Fetching)]);
    assert_eq!(agent.give_back(&[ATTEMPT]), [ATTEMPT]);
    // What nobody waits for is kept all the same.
    arrive(&agent, folder.path(), "two");
    assert_eq!(agent.holds().0, []);
    assert_eq!(agent.work(work(&["one", "two", "three"])), [(Digest::of(b"three"), 5)]);
    assert_eq!(agent.holds().0, [(ATTEMPT, Stage::Fetching)]);
}
