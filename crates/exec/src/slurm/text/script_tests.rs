//! Scripts, word for word.

use super::*;
use tulpar_core::units::Bytes;

const FILES: Files<'static> = Files {
    launch: "/shared/it's/tulpar-launch",
    items: "/run/7.items",
    log: "/run/100% sure/7.log",
    events: "/run/events",
    prefix: "7",
    void: "/run/7.void",
};

fn cluster() -> Cluster {
    Cluster::read(
        "NodeName=n1 CPUTot=4 Gres=gpu:v100:2 RealMemory=4000 Partitions=main\n\
         NodeName=n2 CPUTot=4 Gres=gpu:a100:2,fpga:1 RealMemory=4000 Partitions=main\n",
        "PartitionName=main Default=YES MaxTime=1-00:00:00 DefMemPerNode=UNLIMITED\n",
        "SelectTypeParameters = CR_CORE_MEMORY\n",
    )
}

fn lines(lines: &[(&str, &str)]) -> Vec<(String, String)> {
    lines.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn written(request: &Request, lines: &[(String, String)]) -> Result<String, ScriptError> {
    let grace = Duration::from_secs(10);
    write(&Batch { name: "diamond-1.k3.7", tasks: 20, request, grace, lines, files: &FILES }, &cluster())
}

fn options_of(request: &Request, given: &[(&str, &str)]) -> Vec<String> {
    let text = written(request, &lines(given)).unwrap();
    text.lines().filter_map(|line| line.strip_prefix("#SBATCH ")).map(str::to_owned).collect()
}

#[test]
fn a_script_says_all_that_the_request_says() {
    let request = Request {
        milli_cpus: 1500,
        memory: Bytes(1_000_000_000),
        gpus: 2,
        gpu_capability: 80,
        named: [("fpga".to_owned(), 1000), ("matlab".to_owned(), 2000)].into(),
        time: Some(Duration::from_secs(3600)),
        ..Request::default()
    };
    assert_eq!(
        options_of(&request, &[("account", "physics"), ("gpu:titan", "7.5, 24 GB"), ("--exclusive", "")]),
        [
            "--job-name=diamond-1.k3.7",
            "--array=1-20",
            "--output=\"/run/100%% sure/7.log\"",
            "--open-mode=append",
            "--cpus-per-task=2",
            "--nodes=1",
            "--ntasks-per-node=1",
            "--mem=954M",
            "--time=62",
            "--signal=B:TERM@30",
            "--gres=gpu:a100:2,fpga:1",
            "--licenses=matlab:2",
            "--requeue",
            "--account=physics",
            "--exclusive",
        ]
    );
}

#[test]
fn the_body_runs_the_attempt_of_its_line() {
    let text = written(&Request::default(), &[]).unwrap();
    assert!(text.starts_with("#!/bin/sh\n#SBATCH "));
    assert!(text.contains("\nlaunch='/shared/it'\\''s/tulpar-launch'\n"), "{text}");
    assert!(text.ends_with("exit $code\n"));
}

#[test]
fn memory_that_is_not_asked_for_is_a_fair_share() {
    let options = options_of(&Request::default(), &[]);
    assert!(options.contains(&"--mem-per-cpu=1000M".to_owned()), "{options:?}");
    let options = options_of(&Request::default(), &[("mem", "2G")]);
    assert!(options.contains(&"--mem=2G".to_owned()) && !options.iter().any(|one| one.contains("mem-per-cpu")));
}

#[test]
fn the_time_fits_into_the_partition() {
    let day = Request { time: Some(Duration::from_secs(86400)), ..Request::default() };
    assert!(options_of(&day, &[]).contains(&"--time=1440".to_owned()));
    let short = Request { time: Some(Duration::from_secs(1)), ..Request::default() };
    assert!(options_of(&short, &[]).contains(&"--time=2".to_owned()), "rounded up, and room for the grace time");
    assert!(options_of(&short, &[("t", "5")]).contains(&"--time=5".to_owned()), "the site knows better");
}

#[test]
fn what_the_site_may_not_say_is_refused() {
    let refused = |key: &str, value: &str| written(&Request::default(), &lines(&[(key, value)])).unwrap_err();
    assert_eq!(refused("--array", "1-3"), ScriptError::Reserved("array".into()));
    assert_eq!(refused("-o", "/dev/null"), ScriptError::Reserved("output".into()));
    assert_eq!(refused("+WantGPULab", "true"), ScriptError::NoOption("+WantGPULab".into()));
    assert_eq!(refused("comment", "a\n#SBATCH --uid=0"), ScriptError::Control("comment".into()));
    let options = options_of(&Request::default(), &[("no-requeue", "true"), ("comment", "say \"hi\" \\ bye")]);
    assert_eq!(options[options.len() - 2..], ["--no-requeue", "--comment=\"say \\\"hi\\\" \\\\ bye\""]);
    assert!(!options.contains(&"--requeue".to_owned()));
}

#[test]
fn the_warning_never_comes_before_the_limit_of_the_task_itself() {
    for seconds in 1..400 {
        let request = Request { time: Some(Duration::from_secs(seconds)), ..Request::default() };
        let options = options_of(&request, &[]);
        let number = |start: &str| {
            let found = options.iter().find_map(|option| option.strip_prefix(start)).unwrap();
            found.parse::<u64>().unwrap()
        };
        let warning = number("--time=") * 60 - number("--signal=B:TERM@") - 60;
        assert!(warning >= seconds, "{seconds}: {options:?}");
    }
}

#[test]
fn several_nodes_are_asked_for() {
    let two = Request { nodes: 2, milli_cpus: 2000, ..Request::default() };
    assert!(options_of(&two, &[]).contains(&"--nodes=2".to_owned()));
}
