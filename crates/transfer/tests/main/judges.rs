//! Others as judges: curl against our server, our client against Python's.

use crate::harness::{Running, content, folder, location, options, outcome, program, skipped};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use tulpar_transfer::{ErrorKind, Secret, ServeOptions, Server, Sha256Digest, Transfer, transfer};

#[test]
fn curl_gets_puts_resumes_and_removes() {
    let Some(curl) = program("curl") else { return skipped("curl is not installed: our server was not tried by it") };
    let (root, here) = (folder(), folder());
    let server =
        Server::start(ServeOptions { token: Some(Secret::new("hush")), ..ServeOptions::new(root.path()) }).unwrap();
    let url = |name: &str| server.url().join(name).exact();
    let curl = |arguments: &[&str]| {
        let mut command = Command::new(&curl);
        command.args(["--silent", "--show-error", "--fail", "--oauth2-bearer", "hush"]).args(arguments);
        outcome(command.current_dir(here.path()).stderr(Stdio::null()))
    };
    std::fs::write(here.path().join("up"), content(2_000_000)).unwrap();
    assert!(curl(&["--upload-file", "up", &url("a/b")]).0);
    assert_eq!(std::fs::read(root.path().join("a/b")).unwrap(), content(2_000_000));
    assert!(
        curl(&[
            "--header",
            "Transfer-Encoding: chunked",
            "--header",
            "Expect: 100-continue",
            "--upload-file",
            "up",
            &url("c")
        ])
        .0
    );
    assert_eq!(std::fs::read(root.path().join("c")).unwrap(), content(2_000_000));
    let sum = format!("X-Checksum-Sha256: {}", Sha256Digest::of(b"other"));
    assert!(!curl(&["--header", &sum, "--upload-file", "up", &url("never")]).0);
    assert!(!root.path().join("never").exists());
    assert_eq!(curl(&[&url("a/b")]).1, content(2_000_000));
    assert_eq!(curl(&["--range", "10-19", &url("a/b")]).1, &content(2_000_000)[10..20]);
    std::fs::write(here.path().join("part"), &content(2_000_000)[..1_234_567]).unwrap();
    assert!(curl(&["--continue-at", "-", "--output", "part", &url("a/b")]).0);
    assert_eq!(std::fs::read(here.path().join("part")).unwrap(), content(2_000_000));
    assert!(String::from_utf8(curl(&["--head", &url("a/b")]).1).unwrap().contains("Content-Length: 2000000\r\n"));
    assert!(curl(&["--request", "DELETE", &url("a/")]).0);
    assert!(!root.path().join("a").exists());
    assert!(!curl(&["--oauth2-bearer", "wrong", &url("c")]).0);
    assert!(!curl(&["--path-as-is", &url("../c")]).0);
}

#[test]
fn our_client_reads_from_the_server_of_python() {
    let Some(python) = program("python3") else {
        return skipped("python3 is not installed: our client was not tried with it");
    };
    let (root, here) = (folder(), folder());
    for number in 0..50 {
        std::fs::write(root.path().join(format!("{number} +.bin")), content(number * 1000)).unwrap();
    }
    let mut child = Command::new(python)
        .args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "0"])
        .current_dir(root.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let _running = Running(child);
    let url = line.split_once('(').unwrap().1.split_once(')').unwrap().0.to_owned();
    let mut list: Vec<Transfer> = (0..50)
        .map(|number| {
            let name = format!("{number} +.bin");
            Transfer::new(location(&url).join(&name), here.path().join(&name))
        })
        .collect();
    list.push(Transfer::new(location(&url).join("missing"), here.path().join("missing")));
    let mut results = transfer(&list, &options());
    assert_eq!(results.pop().unwrap().unwrap_err().kind(), ErrorKind::NotFound);
    for (number, result) in results.into_iter().enumerate() {
        assert_eq!(result.unwrap().sha256, Some(Sha256Digest::of(&content(number * 1000))));
    }
}
