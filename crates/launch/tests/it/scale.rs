use super::scene::*;
use tulpar_core::ids::Digest;
use tulpar_core::job::{Ending, InputFile, InputFiles, Source};
use tulpar_core::workflow::OutputKind;
use tulpar_launch::Notice;

#[test]
fn thousands_of_files_go_in_and_come_out_of_one_task() {
    let mut scene = Scene::new();
    let data = scene.path("data");
    std::fs::create_dir(&data).unwrap();
    let files: Vec<InputFile> = (0..3000)
        .map(|n| {
            std::fs::write(data.join(n.to_string()), n.to_string()).unwrap();
            InputFile {
                path: format!("in/{}/{n}", n % 7),
                source: Source::Path(format!("data/{n}")),
                size: n.to_string().len() as u64,
                digest: Digest::of(n.to_string().as_bytes()),
            }
        })
        .collect();
    let mut spec = shell("mkdir out; xargs cp -t out < names");
    spec.inputs = vec![InputFiles { name: "in".into(), files: files.into(), list: Some("names".into()) }];
    spec.outputs = vec![output("out", OutputKind::Directory)];
    let report = scene.run(spec);
    assert_eq!((report.stderr_tail.as_str(), report.ending, report.outputs.len()), ("", Ending::Exit(0), 3000));
    let one = report.outputs.iter().find(|file| file.path == "out/1234").unwrap();
    assert_eq!(std::fs::read_to_string(scene.object(&one.digest)).unwrap(), "1234");
    scene.close();
    assert_eq!(scene.attempts(), [""; 0]);
}

#[test]
fn two_thousand_six_hundred_and_eighty_eight_tasks_sleep_at_once_and_are_all_ended() {
    let scene = Scene::new();
    let specs = (0..2688)
        .map(|job| {
            let mut spec = arguments(&["sleep", "1000"]);
            spec.attempt = attempt(job, 1);
            Box::new(spec)
        })
        .collect();
    scene.launcher().launch(specs);
    let mut started = Vec::new();
    while started.len() < 2688 {
        match scene.notice() {
            Notice::Started(attempt) => started.push(attempt),
            Notice::Ended(attempt, report) => panic!("{attempt}: {:?}", report.ending),
        }
    }
    scene.launcher().cancel(&started, Ending::Cancelled);
    for _ in 0..2688 {
        assert_eq!(scene.ended().1.ending, Ending::Cancelled);
    }
}
