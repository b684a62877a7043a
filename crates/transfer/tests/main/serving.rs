//! Our server and our client together: round trips, tokens, ranges, paths that try to leave, requests that make no sense.

use crate::harness::{content, expecting, folder, location, names, options};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};
use tulpar_transfer::{
    Credentials, Entry, ErrorKind, How, Options, Secret, ServeOptions, Server, Sha256Digest, Transfer, Transfers,
};

fn server(root: &Path) -> Server {
    Server::start(ServeOptions::new(root)).unwrap()
}

/// Sends bytes as they are, and gives all that came back.
fn raw(server: &Server, request: &str) -> String {
    let mut socket = TcpStream::connect(server.address()).unwrap();
    // A server that has seen enough may be gone by now.
    let _ = socket.write_all(request.as_bytes());
    let _ = socket.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn status(server: &Server, request: &str) -> String {
    raw(server, request).split_whitespace().nth(1).unwrap_or("nothing").to_owned()
}

#[test]
fn files_go_up_and_come_back_the_same() {
    let (root, here) = (folder(), folder());
    let server = server(root.path());
    let transfers = Transfers::new(options());
    let sizes = [0, 1, 13_000, 131_072, 131_073, 3_000_000];
    let names = |size: &usize| format!("sub dir/deep/file #{size}.bin");
    let up: Vec<Transfer> = sizes
        .iter()
        .map(|size| {
            let path = here.path().join(size.to_string());
            std::fs::write(&path, content(*size)).unwrap();
            Transfer {
                sha256: Some(Sha256Digest::of(&content(*size))),
                ..Transfer::new(path, server.url().join(&names(size)))
            }
        })
        .collect();
    for (result, size) in transfers.transfer(&up).into_iter().zip(sizes) {
        let moved = result.unwrap();
        assert_eq!((moved.bytes, moved.how), (size as u64, How::Upload));
        assert_eq!(std::fs::read(root.path().join(names(&size))).unwrap(), content(size));
    }
    let down: Vec<Transfer> = sizes
        .iter()
        .map(|size| {
            expecting(server.url().join(&names(size)), &here.path().join(format!("back/{size}")), &content(*size))
        })
        .collect();
    for result in transfers.transfer(&down) {
        assert_eq!(result.unwrap().attempts, 1);
    }
    let listed = transfers.tree(&server.url(), &here.path().into()).unwrap();
    assert_eq!(listed.len(), sizes.len());
    assert_eq!(
        transfers.list(&server.url().join("sub dir")).unwrap(),
        [Entry { name: "deep".to_owned(), size: None, directory: true }]
    );
    let about = transfers.stat(&server.url().join(&names(&13_000))).unwrap();
    assert_eq!(about, Entry { name: "file #13000.bin".to_owned(), size: Some(13_000), directory: false });
    let removed = transfers.remove(&[server.url().join(&names(&0)), server.url().join("never there")]);
    assert_eq!(removed, [Ok(()), Ok(())]);
    assert!(!root.path().join(names(&0)).exists());
    transfers.remove(&[location(&format!("{}sub%20dir/", server.url()))]).remove(0).unwrap();
    assert!(!root.path().join("sub dir").exists());
    transfers.make_directory(&server.url().join("new/inner")).unwrap();
    assert!(root.path().join("new/inner").is_dir());
}

#[test]
fn an_upload_that_is_not_what_was_expected_is_never_kept() {
    let (root, here) = (folder(), folder());
    let server = server(root.path());
    let path = here.path().join("a");
    std::fs::write(&path, content(600_000)).unwrap();
    let wrong = Transfer { sha256: Some(Sha256Digest::of(b"other")), ..Transfer::new(path, server.url().join("a")) };
    let options = Options { retries: 0, ..options() };
    let error = tulpar_transfer::transfer(&[wrong], &options).remove(0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Mismatch);
    server.stop();
    assert_eq!(names(root.path()), Vec::<String>::new());
    let server = self::server(root.path());
    let put = format!(
        "PUT /a HTTP/1.1\r\nContent-Length: 5\r\nX-Checksum-Sha256: {}\r\n\r\nhello",
        Sha256Digest::of(b"other")
    );
    assert_eq!(status(&server, &put), "422");
    assert_eq!(names(root.path()), Vec::<String>::new());
    let digest = "PUT /a HTTP/1.1\r\nContent-Length: 5\r\nDigest: md5=x, SHA-256=LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=\r\n\r\nhello";
    assert_eq!(status(&server, digest), "201");
    assert_eq!(status(&server, &digest.replace("hello", "hallo")), "422");
    assert_eq!(std::fs::read(root.path().join("a")).unwrap(), b"hello");
}

#[test]
fn an_upload_that_breaks_off_leaves_nothing() {
    let root = folder();
    let server = server(root.path());
    raw(&server, "PUT /a HTTP/1.1\r\nContent-Length: 100\r\n\r\nonly this");
    raw(&server, "PUT /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    server.stop();
    assert_eq!(names(root.path()), Vec::<String>::new());
}

#[test]
fn without_the_token_nothing_is_told() {
    let (root, here) = (folder(), folder());
    std::fs::write(root.path().join("a"), "secret data").unwrap();
    let server =
        Server::start(ServeOptions { token: Some(Secret::new("hush")), ..ServeOptions::new(root.path()) }).unwrap();
    let list = [Transfer::new(server.url().join("a"), here.path().join("a"))];
    let with = |token: &'static str| Options {
        credentials: Credentials::none().with_tokens(move |_| Some(Secret::new(token))),
        ..options()
    };
    for refused in [options(), with("hus"), with("hushh"), with("")] {
        let error = tulpar_transfer::transfer(&list, &refused).remove(0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied);
        assert!(!error.to_string().contains("hus"), "{error}");
    }
    assert!(tulpar_transfer::transfer(&list, &with("hush")).remove(0).is_ok());
    assert_eq!(status(&server, "GET /missing HTTP/1.1\r\n\r\n"), "401");
    assert_eq!(status(&server, "PUT /b HTTP/1.1\r\nContent-Length: 1\r\n\r\nb"), "401");
    assert_eq!(status(&server, "DELETE /a HTTP/1.1\r\n\r\n"), "401");
    assert_eq!(names(root.path()), ["a"]);
}

#[test]
fn without_a_token_a_name_that_others_decide_about_leads_nowhere() {
    let root = folder();
    let server = server(root.path());
    let put =
        |host: &str| status(&server, &format!("PUT /a HTTP/1.1\r\nHost: {host}\r\nContent-Length: 4\r\n\r\nevil"));
    assert_eq!(put("evil.example"), "421");
    assert_eq!(status(&server, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), "421");
    assert_eq!(names(root.path()), Vec::<String>::new());
    assert_eq!((put("localhost:80"), put("127.0.0.1:80")), ("201".into(), "201".into()));
}

#[test]
fn a_read_only_server_changes_nothing() {
    let root = folder();
    std::fs::write(root.path().join("a"), "data").unwrap();
    let server = Server::start(ServeOptions { read_only: true, ..ServeOptions::new(root.path()) }).unwrap();
    assert_eq!(status(&server, "GET /a HTTP/1.1\r\n\r\n"), "200");
    for request in
        ["PUT /b HTTP/1.1\r\nContent-Length: 1\r\n\r\nb", "DELETE /a HTTP/1.1\r\n\r\n", "MKCOL /c HTTP/1.1\r\n\r\n"]
    {
        assert_eq!(status(&server, request), "403", "{request}");
    }
    assert_eq!(names(root.path()), ["a"]);
}

#[test]
fn no_path_and_no_link_leads_out() {
    let outside = folder();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    let root = outside.path().join("root");
    std::fs::create_dir_all(root.join("inner")).unwrap();
    std::fs::write(root.join("inner/fine"), "fine").unwrap();
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, root.join(name)).unwrap();
    link("../secret", "up");
    link("..", "parent");
    link("/etc", "etc");
    link("inner/fine", "good");
    link("loop", "loop");
    let server = server(&root);
    for path in [
        "/../secret",
        "/%2e%2e/secret",
        "/%2e%2e%2fsecret",
        "/inner/../../secret",
        "/up",
        "/parent/secret",
        "/etc/passwd",
        "/parent/",
        "/loop",
        "/..%5csecret",
        "/inner/%00",
        "//../secret",
    ] {
        for method in ["GET", "HEAD", "DELETE"] {
            let answer = raw(&server, &format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n\r\n"));
            let code = answer.split_whitespace().nth(1).unwrap_or("nothing");
            let link = method == "DELETE" && matches!(path, "/up" | "/loop");
            assert!(link || matches!(code, "400" | "403" | "404"), "{method} {path}: {answer}");
            assert!(!answer.contains("root:") && !answer.contains("\r\n\r\nsecret"), "{method} {path}: {answer}");
        }
        if path != "/up" && path != "/loop" {
            let put = format!("PUT {path} HTTP/1.1\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx");
            let code = status(&server, &put);
            assert!(matches!(code.as_str(), "400" | "403" | "404" | "201"), "PUT {path}: {code}");
        }
    }
    assert_eq!(std::fs::read_to_string(outside.path().join("secret")).unwrap(), "secret");
    assert_eq!(names(outside.path()), ["root", "secret"]);
    assert_eq!(status(&server, "GET /good HTTP/1.1\r\n\r\n"), "200");
    let listing = raw(&server, "GET /?recursive HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert!(listing.contains("inner/fine") && !listing.contains("etc") && !listing.contains("\"secret"), "{listing}");
    assert_eq!(status(&server, "DELETE / HTTP/1.1\r\n\r\n"), "403");
    assert_eq!(status(&server, "DELETE /parent/ HTTP/1.1\r\n\r\n"), "404");
}

#[test]
fn requests_that_make_no_sense_are_answered() {
    let root = folder();
    std::fs::create_dir(root.path().join("dir")).unwrap();
    let server = server(root.path());
    for (request, expected) in [
        ("nonsense\r\n\r\n", "400"),
        ("GET a HTTP/1.1\r\n\r\n", "400"),
        ("GET /a HTTP/1.1\r\nContent-Length: x\r\n\r\n", "400"),
        ("PUT /a HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", "400"),
        ("PUT /a HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx", "400"),
        ("PUT /a HTTP/1.1\r\n\r\n", "411"),
        ("PUT /a HTTP/1.1\r\nContent-Length: 1\r\nContent-Range: bytes 0-0/5\r\n\r\nx", "400"),
        ("PUT /a HTTP/1.1\r\nContent-Length: 1\r\nX-Checksum-Sha256: abc\r\n\r\nx", "400"),
        ("PUT /dir HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", "409"),
        ("PUT / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "201"),
        ("PUT /.tulpar-part-1 HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", "404"),
        ("BREW /a HTTP/1.1\r\n\r\n", "405"),
        ("DELETE /dir HTTP/1.1\r\n\r\n", "409"),
        ("GET /missing HTTP/1.1\r\n\r\n", "404"),
        ("OPTIONS * HTTP/1.1\r\n\r\n", "204"),
    ] {
        assert_eq!(status(&server, request), expected, "{request:?}");
    }
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(5000));
    assert_eq!(status(&server, &long), "400");
    let endless = format!("GET / HTTP/1.1\r\nX: {}", "a".repeat(200_000));
    let answer = raw(&server, &endless);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
    assert_eq!(status(&server, "GET /dir/ HTTP/1.1\r\n\r\n"), "200");
}

#[test]
fn several_requests_in_one_packet_are_answered_in_order() {
    let root = folder();
    std::fs::write(root.path().join("a"), "first").unwrap();
    std::fs::write(root.path().join("b"), content(300_000)).unwrap();
    let server = server(root.path());
    let requests = "GET /a HTTP/1.1\r\n\r\nHEAD /b HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\nPUT /c HTTP/1.1\r\nContent-Length: 2\r\n\r\nhiGET /c HTTP/1.1\r\nConnection: close\r\n\r\n";
    let answer = raw(&server, requests);
    let heads: Vec<&str> = answer.split("HTTP/1.1 ").skip(1).map(|head| &head[..3]).collect();
    assert_eq!(heads, ["200", "200", "200", "201", "200"]);
    assert!(answer.ends_with("\r\n\r\nhi"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Any range is what the same slice of the file is.
    #[test]
    fn a_range_is_a_slice(size in 1_usize..5000, first in 0_usize..6000, count in 1_usize..6000, suffix: bool) {
        let root = folder();
        let bytes = content(size);
        std::fs::write(root.path().join("a"), &bytes).unwrap();
        let server = server(root.path());
        let last = first + count - 1;
        let (asked, slice) = if suffix {
            (format!("-{count}"), Some(&bytes[size.saturating_sub(count)..]))
        } else {
            (format!("{first}-{last}"), (first < size).then(|| &bytes[first..=last.min(size - 1)]))
        };
        let mut socket = TcpStream::connect(server.address()).unwrap();
        write!(socket, "GET /a HTTP/1.1\r\nRange: bytes={asked}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        match slice {
            Some(slice) => {
                prop_assert!(head.starts_with("HTTP/1.1 206 "), "{}", head);
                prop_assert_eq!(&answer[end..], slice);
            }
            None => prop_assert!(head.starts_with("HTTP/1.1 416 "), "{}", head),
        }
    }
}

#[test]
fn a_throttled_server_takes_its_time() {
    let (root, here) = (folder(), folder());
    for name in ["a", "b", "c", "d"] {
        std::fs::write(root.path().join(name), content(50_000)).unwrap();
    }
    let options_of_server = ServeOptions {
        throttle: Some(1_000_000),
        latency: Some(Duration::from_millis(20)),
        ..ServeOptions::new(root.path())
    };
    let server = Server::start(options_of_server).unwrap();
    let transfers = Transfers::new(options());
    let list = transfers.tree(&server.url(), &here.path().into()).unwrap();
    let begun = Instant::now();
    assert!(transfers.transfer(&list).iter().all(Result::is_ok));
    // 200 KB at 1 MB/s, whatever the number of connections, and one way there and back.
    assert!(begun.elapsed() >= Duration::from_millis(220), "{:?}", begun.elapsed());
    assert_eq!(server.figures().1, 200_000);
}

#[test]
fn files_pass_from_one_server_to_another() {
    let (one, other) = (folder(), folder());
    std::fs::write(one.path().join("a"), content(20_000)).unwrap();
    let (from, to) = (server(one.path()), server(other.path()));
    let list = [Transfer::new(from.url().join("a"), to.url().join("b"))];
    let moved = tulpar_transfer::transfer(&list, &options()).remove(0).unwrap();
    assert_eq!((moved.how, moved.bytes), (How::Relay, 20_000));
    assert_eq!(std::fs::read(other.path().join("b")).unwrap(), content(20_000));
}

#[test]
fn an_executable_stays_one() {
    use std::os::unix::fs::PermissionsExt;
    let (root, here) = (folder(), folder());
    let server = server(root.path());
    let path = here.path().join("program");
    std::fs::write(&path, "#!/bin/sh\n").unwrap();
    let up = Transfer { executable: true, ..Transfer::new(path, server.url().join("program")) };
    let down = Transfer { executable: true, ..Transfer::new(server.url().join("program"), here.path().join("back")) };
    for transfer in [up, down] {
        tulpar_transfer::transfer(&[transfer], &options()).remove(0).unwrap();
    }
    for path in [root.path().join("program"), here.path().join("back")] {
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o100, 0o100, "{}", path.display());
    }
}

#[test]
fn a_connection_that_the_server_closed_meanwhile_is_no_failure() {
    let (root, here) = (folder(), folder());
    std::fs::write(root.path().join("a"), "data").unwrap();
    let first = server(root.path());
    let address = first.address().to_string();
    let transfers = Transfers::new(Options { retries: 0, ..options() });
    let list = [Transfer::new(first.url().join("a"), here.path().join("a"))];
    assert!(transfers.transfer(&list)[0].is_ok());
    first.stop();
    let again = Server::start(ServeOptions { address, ..ServeOptions::new(root.path()) }).unwrap();
    let moved = transfers.transfer(&list).remove(0).unwrap();
    assert_eq!(moved.attempts, 1);
    drop(again);
}
