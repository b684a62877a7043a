//! `share` and `transfer`: a folder goes to a server and comes back; what fails is said and counted.

use super::harness::Scene;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

#[test]
fn a_folder_goes_to_a_server_and_comes_back() {
    let scene = Scene::empty();
    scene.write("data/a.txt", "one");
    scene.write("data/deep/b.txt", "two");
    scene.write("token", "hush\n");
    std::fs::create_dir(scene.path("staging")).unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_tulpar"))
        .args(["share", "staging", "--token-file", "token", "--throttle", "100MB/s", "--latency", "1ms"])
        .current_dir(scene.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let url = url.trim();
    let host = url.trim_start_matches("http://").trim_end_matches('/');
    scene.write("tokens", &format!("{host} hush\n"));
    let transfer = |words: &[&str], tokens: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tulpar"));
        command.arg("transfer").args(words).current_dir(scene.path("")).env("TULPAR_TOKENS", scene.path(tokens));
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, out, _) = transfer(&["data", &format!("{url}in/")], "tokens");
    assert_eq!((code, out.starts_with("2 of 2 files moved: 6 B in ")), (Some(0), true), "{out}");
    let (code, out, _) = transfer(&[&format!("{url}in/"), "back", "--json"], "tokens");
    assert_eq!(code, Some(0));
    assert!(out.contains("\"files\": 2") && out.contains("\"attempts\": 1"), "{out}");
    assert_eq!(scene.read("back/deep/b.txt"), "two");

    let (code, out, said) = transfer(&[&format!("{url}in/a.txt"), "never"], "token");
    assert_eq!((code, out.starts_with("0 of 1 files moved")), (Some(3), true), "{out}");
    assert!(said.contains("may not be used: the server answered 401"), "{said}");
    let wrong = "0".repeat(64);
    let (code, _, said) = transfer(&["data/a.txt", "never", "--sha256", &wrong, "--retries", "0"], "tokens");
    assert_eq!(code, Some(3));
    assert!(said.contains("data/a.txt is damaged: its SHA-256 is "), "{said}");
    scene.write("list", "{\"from\": \"data/a.txt\", \"to\": \"copy\"}\n{\"from\": \"data/a.txt\"}\n");
    let (code, _, said) = transfer(&["list"], "tokens");
    assert_eq!(code, Some(2));
    assert!(said.contains("list, line 2: missing field `to`"), "{said}");

    let asked = Command::new("kill").args(["-INT", &server.id().to_string()]).status().unwrap();
    assert!(asked.success());
    let status = server.wait().unwrap();
    let mut said = String::new();
    server.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(said.contains("Ended after "), "{said}");
}
