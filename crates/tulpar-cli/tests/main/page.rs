//! `serve`: what the page asks for, asked without a browser. How it looks is for `e2e/page`.

use crate::main::harness::Scene;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

const WORKFLOW: &str = "\
workflow: w
tasks:
  make:
    for: {n: 1..3}
    out: {o: 'made-{n}'}
    run: echo {n} > {o}
  use:
    in: [make.o]
    out: {u: used}
    run: echo oh no >&2; exit 3
  last:
    in: [use.u]
    run: cat {u}
";

pub(crate) struct Served {
    server: Child,
    host: String,
    query: String,
}

impl Served {
    pub(crate) fn start(scene: &Scene, more: &[&str]) -> Self {
        let words = [&["serve", "--address", "127.0.0.1:0"], more].concat();
        let mut server = scene.command(&words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("http://").unwrap_or_else(|| panic!("no URL but {line}"));
        let (host, query) = url.split_once('/').unwrap();
        Self { server, host: host.to_owned(), query: query.to_owned() }
    }

    /// As somebody who opened the printed address.
    fn send(&self, target: &str, headers: &str) -> TcpStream {
        let token = self.query.strip_prefix("?token=").unwrap_or_else(|| panic!("no token in {}", self.query));
        self.send_as_stranger(target, &format!("Authorization: Bearer {token}\r\n{headers}"))
    }

    fn send_as_stranger(&self, target: &str, headers: &str) -> TcpStream {
        let mut socket = TcpStream::connect(&self.host).unwrap();
        let host = if headers.contains("Host:") { String::new() } else { format!("Host: {}\r\n", self.host) };
        write!(socket, "GET {target} HTTP/1.1\r\n{host}{headers}Connection: close\r\n\r\n").unwrap();
        socket
    }

    /// The status, the head and the body.
    fn get(&self, target: &str, headers: &str) -> (u16, String, String) {
        Self::answer(self.send(target, headers))
    }

    fn get_as_stranger(&self, target: &str, headers: &str) -> (u16, String, String) {
        Self::answer(self.send_as_stranger(target, headers))
    }

    fn answer(mut socket: TcpStream) -> (u16, String, String) {
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_owned(), body.to_owned())
    }

    pub(crate) fn json(&self, target: &str) -> Value {
        let (status, head, body) = self.get(target, "");
        assert_eq!(status, 200, "{target}: {head}\n{body}");
        assert!(head.contains("application/json"), "{target}: {head}");
        serde_json::from_str(&body).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn a_run_that_failed_is_told_with_its_last_words() {
    let scene = Scene::new(WORKFLOW);
    scene.tulpar("run").expect(1);
    let served = Served::start(&scene, &[]);
    let runs = served.json("/api/runs");
    assert_eq!(runs["runs"][0]["run"], "w-1");
    assert_eq!(runs["runs"][0]["standing"], "failed");
    assert_eq!(runs["runs"][0]["states"], serde_json::json!({"done": 3, "failed": 1, "skipped": 1}));
    let run = served.json("/api/runs/w-1");
    assert_eq!(run["failures"][0]["name"], "use");
    assert_eq!(run["failures"][0]["code"], 3);
    assert_eq!(run["failures"][0]["blame"], "task");
    assert_eq!(run["failures"][0]["stderr_tail"], "oh no");
    let sets: Vec<&Value> = run["sets"].as_array().unwrap().iter().map(|set| &set["name"]).collect();
    assert_eq!(sets, ["make", "use", "last"]);
    assert_eq!(run["edges"], serde_json::json!([[0, 1], [1, 2]]));
    assert_eq!(run["sets"][0]["states"]["done"], 3);
}

#[test]
fn the_page_explains_a_task_as_explain_does() {
    let scene = Scene::new(WORKFLOW);
    scene.tulpar("run").expect(1);
    let served = Served::start(&scene, &[]);
    let job = served.json("/api/runs/w-1/jobs?state=failed")["jobs"][0]["job"].as_u64().unwrap();
    let why = served.json(&format!("/api/runs/w-1/jobs/{job}/why"));
    let folder = scene.path("").display().to_string();
    let told = why["explain"].to_string().replace(folder.trim_end_matches('/'), "<folder>");
    assert_eq!(told, scene.tulpar("explain use --json").done().json().to_string());
    assert!(why["words"].as_array().unwrap().iter().any(|line| line == "It failed: exit code 3."), "{why}");
    assert_eq!(why["inputs"]["total"], 3);
    let lines = why["by_hand"]["lines"].as_array().unwrap();
    assert!(lines[0].as_str().unwrap().starts_with("cd "), "{lines:?}");
    let (_, _, script) = served.get(&format!("/api/runs/w-1/jobs/{job}/by-hand.sh"), "");
    let again = std::process::Command::new("sh").arg("-c").arg(&script).output().unwrap();
    assert_eq!((again.status.code(), again.stderr.as_slice()), (Some(3), &b"oh no\n"[..]), "{script}");
    let logs = served.json(&format!("/api/runs/w-1/jobs/{job}/logs?attempt=1"));
    assert_eq!(logs["stderr"]["text"], "oh no\n");
    let task = served.json(&format!("/api/runs/w-1/jobs/{job}"));
    assert_eq!(task["attempts"][0]["ending"], "exit");
    let made = served.json("/api/runs/w-1/jobs/0");
    assert_eq!(made["outputs"][0]["path"], "made-1");
}

#[test]
fn jobs_come_in_pages_and_as_columns() {
    let scene = Scene::new(WORKFLOW);
    scene.tulpar("run").expect(1);
    let served = Served::start(&scene, &[]);
    let page = served.json("/api/runs/w-1/jobs?set=make&sort=name&down&limit=2&text=make");
    let names: Vec<&Value> = page["jobs"].as_array().unwrap().iter().map(|job| &job["name"]).collect();
    assert_eq!((page["total"].as_u64(), names), (Some(3), vec![&"make[n=3]".into(), &"make[n=2]".into()]));
    let cells = served.json("/api/runs/w-1/cells");
    assert_eq!(cells["states"], "dddfs");
    assert_eq!(cells["kinds"], serde_json::json!([[0, 3], [1, 1], [2, 1]]));
    let last = cells["seq"].as_u64().unwrap();
    let none = served.json(&format!("/api/runs/w-1/cells?after={last}&known=5"));
    assert_eq!((&none["states"], &none["jobs"]), (&"".into(), &serde_json::json!([])));
    let bars = served.json("/api/runs/w-1/timeline");
    assert_eq!(bars["states"], "dddf");
    // In one column there is place for one of each lane, and for what failed.
    let few = served.json("/api/runs/w-1/timeline?width=1&lanes=1");
    assert_eq!(
        (&few["attempts"], &few["any_failed"], &few["all_kinds"]),
        (&4.into(), &true.into(), &serde_json::json!([0, 1]))
    );
    assert!(few["lane"].as_array().unwrap().iter().all(|lane| lane == 0), "{few}");
    let all = served.json("/api/runs/w-1/timeline?width=4096");
    assert_eq!(all["jobs"].as_array().unwrap().len(), 4, "{all}");
    assert_eq!(served.json("/api/runs/w-1/timeline?width=9&from=999999999999")["jobs"], serde_json::json!([]));
    assert_eq!(served.get("/api/runs/w-1/jobs?sort=beauty", "").0, 400);
    assert_eq!(served.get("/api/runs/w-9", "").0, 404);
    assert_eq!(served.get("/api/runs/..%2F..%2Fetc", "").0, 404);
    assert_eq!(served.get("/api/runs/w-1/jobs/99", "").0, 404);
}

#[test]
fn of_a_long_run_everything_is_told_at_once_and_more_when_its_journal_was_read() {
    let scene = Scene::empty();
    // Long names make a long journal of few events.
    let long = vec!["n".repeat(200); 10].join("/");
    let text =
        "workflow: w\ntasks:\n  make:\n    for: {n: 1..3500}\n    out: {o: 'LONG-{n}'}\n    run: echo {n} > {o}\n";
    scene.write("workflow.yaml", &text.replace("LONG", &long));
    scene.tulpar("simulate --cpus 64 --nodes 2 --failures 0.01").expect(1);
    // The store has all of it before the page asks.
    scene.tulpar("runs").done();
    let served = Served::start(&scene, &[]);
    let failed = served.json("/api/runs/w-1/jobs?state=failed&limit=1")["jobs"][0]["job"].as_u64().unwrap();
    let why = format!("/api/runs/w-1/jobs/{failed}/why");
    let first = served.json(&why);
    assert!(first["words"].as_array().unwrap().iter().any(|line| line == "It failed: exit code 1."), "{first}");
    assert!(first["reading"].is_object() && first["by_hand"].is_null(), "{first}");
    let (status, _, reading) = served.get("/api/runs/w-1/report", "");
    assert_eq!(status, 202, "{reading}");
    let whole = std::iter::repeat_with(|| served.json(&why)).find(|why| why["reading"].is_null()).unwrap();
    assert_eq!(whole["story"], first["story"]);
    let said = whole["words"].as_array().unwrap();
    assert!(first["words"].as_array().unwrap().iter().all(|line| said.contains(line)), "{first}");
    assert!(whole["by_hand"].is_object(), "{whole}");
    let report = std::iter::repeat_with(|| served.get("/api/runs/w-1/report", "")).find(|(status, ..)| *status == 200);
    let report: Value = serde_json::from_str(&report.unwrap().2).unwrap();
    assert_eq!(report, scene.tulpar("report w-1 --json").done().json()["runs"][0]);
    let nodes = &served.json("/api/runs/w-1/nodes")["nodes"];
    assert_eq!(nodes[0]["ran"].as_u64().unwrap() + nodes[1]["ran"].as_u64().unwrap(), 3500, "{nodes}");
    drop(served);
    // Made once: the next server has it.
    let kept = |served: &Served| served.get("/api/runs/w-1/report", "").0;
    let wait = || Served::start(&scene, &[]);
    assert!(std::iter::repeat_with(wait).take(20).any(|served| kept(&served) == 200));
}

#[test]
fn a_long_journal_that_the_store_does_not_have_is_read_while_the_page_answers() {
    let scene = Scene::empty();
    let long = vec!["n".repeat(200); 10].join("/");
    let text =
        "workflow: w\ntasks:\n  make:\n    for: {n: 1..3500}\n    out: {o: 'LONG-{n}'}\n    run: echo {n} > {o}\n";
    scene.write("workflow.yaml", &text.replace("LONG", &long));
    scene.tulpar("simulate --cpus 64 --nodes 2").done();
    let served = Served::start(&scene, &[]);
    let runs = std::iter::repeat_with(|| {
        let (status, _, body) = served.get("/api/runs/w-1/jobs?limit=1", "");
        let said: Value = serde_json::from_str(&body).unwrap();
        match status {
            503 => assert!(said["error"].as_str().unwrap().starts_with("its journal is being read, "), "{said}"),
            status => assert_eq!((status, &said["total"]), (200, &3500.into()), "half of it is never told"),
        }
        served.json("/api/runs")
    });
    let whole = runs
        .inspect(|runs| assert_eq!(runs["runs"][0]["run"], "w-1"))
        .find(|runs| runs["runs"][0]["reading"].is_null());
    assert_eq!(whole.unwrap()["runs"][0]["tasks"], 3500);
    assert_eq!(served.json("/api/runs/w-1/cells")["states"].as_str().unwrap().len(), 3500);
}

#[test]
fn a_search_is_shown_with_its_trials_and_its_charts_everywhere() {
    let scene = Scene::new(
        "\
workflow: w
tasks:
  search:
    search: {trials: 12, parallel: 2, minimize: loss, seed: 1, space: {x: 'float(0, 1)', mode: [a, b]}}
    run: |
      echo '{\"step\": 1, \"loss\": 2}'
      echo '{\"step\": 2, \"loss\": {x}}'
      echo '{\"loss\": {x}}'
",
    );
    scene.tulpar("run").done();
    let status = scene.tulpar("status").done().out;
    let line = status
        .lines()
        .find(|line| line.starts_with("search: 12 of 12 trials, best loss 0."))
        .unwrap_or_else(|| panic!("{status}"));
    let report = scene.tulpar("report --json --csv tables").done().json();
    let found = &report["runs"][0]["searches"][0];
    let best = found["best"].as_u64().unwrap();
    assert!(line.ends_with(&format!("(trial {best})")), "{line}");
    assert_eq!(found["trials"].as_array().unwrap().len(), 12, "{found}");
    assert_eq!(found["trials"][0]["steps"].as_array().unwrap().len(), 2, "{found}");
    assert_eq!(scene.read("tables/trials.csv").lines().count(), 13);
    assert_eq!(scene.read("tables/trial_steps.csv").lines().count(), 25);
    scene.tulpar("report --html page.html").done();
    let page = scene.read("page.html");
    assert!(
        page.contains("<h2>Search: search</h2>") && page.contains("<h3>What mattered</h3>"),
        "no search in the page"
    );
    let served = Served::start(&scene, &[]);
    assert_eq!(served.json("/api/runs/w-1")["searches"], 1);
    let shown = served.json("/api/runs/w-1/search");
    let titles: Vec<&str> = shown["searches"][0]["charts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|chart| chart["title"].as_str().unwrap())
        .collect();
    assert_eq!(titles[..2], ["History", "How trials learned"], "{titles:?}");
    assert_eq!(shown["searches"][0]["trials"][0]["trial"], best);
}

#[test]
fn the_tasks_of_a_cluster_are_run_by_hand_one_after_another() {
    let scene = Scene::new(
        "\
workflow: w
tasks:
  make:
    for: {n: 1..2}
    out: {o: 'deep/made {n}'}
    run: echo {n} > {o}
  use:
    in: [make.o]
    out: {u: used}
    run: cat {o} > {u}
",
    );
    scene.tulpar("run --cluster whole").done();
    let served = Served::start(&scene, &[]);
    let jobs = served.json("/api/runs/w-1/jobs")["jobs"].as_array().unwrap().clone();
    let cluster = jobs.iter().find(|job| job["name"].as_str().unwrap().starts_with("merge")).unwrap();
    let (status, _, script) = served.get(&format!("/api/runs/w-1/jobs/{}/by-hand.sh", cluster["job"]), "");
    assert_eq!(status, 200, "{script}");
    let folder = scene.path("again");
    std::fs::create_dir(&folder).unwrap();
    let again = std::process::Command::new("sh").arg("-c").arg(&script).current_dir(&folder).output().unwrap();
    assert!(again.status.success(), "{script}\n{}", String::from_utf8_lossy(&again.stderr));
    let made = folder.join(format!("by-hand-{}.1", cluster["job"])).join("3/used");
    assert_eq!(std::fs::read_to_string(made).unwrap(), "1\n2\n", "{script}");
}

#[test]
fn news_come_while_a_run_goes_on() {
    let scene = Scene::empty();
    let gate = scene.path("gate").display().to_string();
    scene.write(
        "workflow.yaml",
        &format!("workflow: w\ntasks:\n  wait:\n    run: while [ ! -e {gate} ]; do sleep 0.02; done\n"),
    );
    let served = Served::start(&scene, &[]);
    let mut news = BufReader::new(served.send("/api/events", "")).lines().map(|line| line.unwrap());
    assert!(news.any(|line| line == "event: hello"));
    let mut run = scene.command(&["run"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let running = |line: &String| line.contains("\"standing\":\"running\"") && line.contains("\"running\":1");
    assert!(news.any(|line| running(&line)), "it starts");
    assert_eq!(served.json("/api/runs/w-1")["states"]["running"], 1);
    scene.write("gate", "");
    assert!(news.any(|line| line.contains("\"standing\":\"done\"")), "it ends");
    run.wait().unwrap();
}

#[test]
fn without_the_token_nothing_is_told_and_no_other_name_leads_here() {
    let scene = Scene::new(WORKFLOW);
    let new = Served::start(&scene, &[]);
    assert_eq!(new.get("/api/runs", "").0, 200);
    // Other users of this machine reach its own addresses too.
    assert_eq!(new.get_as_stranger("/api/runs", "").0, 401);
    assert_eq!(new.get("/api/runs", "Host: evil.example:8230\r\n").0, 421);
    scene.write("token", "hush\n");
    let served = Served::start(&scene, &["--token-file", &scene.path("token").display().to_string()]);
    assert_eq!(served.query, "?token=hush");
    for path in ["/", "/api/runs", "/api/events", "/metrics", "/assets/app.js"] {
        assert_eq!(served.get_as_stranger(path, "").0, 401, "{path}");
    }
    assert_eq!(served.get_as_stranger("/?token=wrong", "").0, 401);
    let (status, head, _) = served.get_as_stranger("/?token=hush", "");
    let port = served.host.rsplit(':').next().unwrap();
    let cookie = format!("tulpar-token-{port}=hush");
    assert!(status == 303 && head.contains(&format!("Set-Cookie: {cookie};")), "{head}");
    assert_eq!(served.get_as_stranger("/api/runs", &format!("Cookie: {cookie}\r\n")).0, 200);
    assert_eq!(served.get_as_stranger("/metrics", "Authorization: Bearer hush\r\n").0, 200);
}

#[test]
fn the_page_is_one_file_that_runs_nothing_from_elsewhere() {
    let scene = Scene::empty();
    let served = Served::start(&scene, &[]);
    for path in ["/", "/runs/w-1", "/runs/w-1/jobs/3", "/compare"] {
        let (status, head, body) = served.get(path, "");
        assert!(status == 200 && body.starts_with("<!doctype html>"), "{path}: {head}");
        assert!(head.contains("Content-Security-Policy: default-src 'none'; script-src 'self';"), "{head}");
    }
    let (_, head, _) = served.get("/assets/app.js", "");
    let tag = head.lines().find_map(|line| line.strip_prefix("ETag: ")).unwrap();
    assert_eq!(served.get("/assets/app.js", &format!("If-None-Match: {tag}\r\n")).0, 304);
    assert_eq!(served.get("/assets/secret.js", "").0, 404);
    let (_, _, text) = served.get("/metrics", "");
    assert!(text.contains("# TYPE tulpar_run_jobs gauge"), "{text}");
}

#[test]
fn logs_on_the_page_show_no_secret_and_follow_no_link() {
    let scene = Scene::new(
        "workflow: w
tasks:
  a: {secrets: [API_TOKEN], run: 'echo \"it is $API_TOKEN\"'}
  b: {run: 'rm ../stdout; ln -s /etc/passwd ../stdout'}
",
    );
    std::fs::create_dir_all(scene.home(".config/tulpar/secrets")).unwrap();
    std::fs::write(scene.home(".config/tulpar/secrets/API_TOKEN"), "s3cr3t-hunter2-value\n").unwrap();
    scene.tulpar("run").done();
    let served = Served::start(&scene, &[]);
    assert_eq!(served.json("/api/runs/w-1/jobs/0/logs")["stdout"]["text"], "it is ***\n");
    let (status, _, body) = served.get("/api/runs/w-1/jobs/1/logs", "");
    assert!(status != 200 && !body.contains("root:"), "{body}");
}
