//! Servers that lie, stop, stutter and forget: the damage is found, named, and the file fetched again.

use crate::harness::{answer, content, expecting, folder, location, names, options, scripted, whole};
use std::time::Duration;
use tulpar_transfer::{ErrorKind, Moved, Options, Transfer, TransferError, Transfers, transfer};

fn fetch(list: &[Transfer], options: &Options) -> Result<Moved, TransferError> {
    transfer(list, options).remove(0)
}

#[test]
fn wrong_bytes_are_found_by_their_checksum_and_fetched_again() {
    let (right, mut wrong) = (content(50_000), content(50_000));
    wrong[30_000] ^= 1;
    let (url, asked) = scripted(vec![whole(&wrong), whole(&right)]);
    let here = folder();
    let to = here.path().join("a");
    let moved = fetch(&[expecting(location(&format!("{url}/a")), &to, &right)], &options()).unwrap();
    assert_eq!(moved.attempts, 2);
    assert_eq!(std::fs::read(&to).unwrap(), right);
    assert_eq!(asked.try_iter().count(), 2);
}

#[test]
fn bytes_that_stay_wrong_are_named_and_leave_nothing() {
    let (right, wrong) = (content(500), vec![7; 500]);
    let (url, _asked) = scripted(vec![whole(&wrong), whole(&wrong)]);
    let here = folder();
    let to = here.path().join("a");
    let options = Options { retries: 1, ..options() };
    let error = fetch(&[expecting(location(&format!("{url}/a")), &to, &right)], &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Mismatch);
    assert_eq!(
        error.to_string(),
        format!(
            "{url}/a is damaged: its SHA-256 is {}, expected {}",
            tulpar_transfer::Sha256Digest::of(&wrong),
            tulpar_transfer::Sha256Digest::of(&right)
        )
    );
    assert_eq!(names(here.path()), Vec::<String>::new());
}

#[test]
fn a_file_cut_short_is_resumed_where_it_broke() {
    let right = content(100_000);
    let (url, asked) = scripted(vec![
        answer("200 OK\nContent-Length: 100000\nETag: \"one\"", &right[..60_000]).then_close(),
        answer("206 Partial Content\nContent-Length: 40000\nContent-Range: bytes 60000-99999/100000", &right[60_000..]),
    ]);
    let here = folder();
    let to = here.path().join("a");
    let moved = fetch(&[Transfer::new(location(&format!("{url}/a")), to.as_path())], &options()).unwrap();
    assert_eq!((moved.attempts, moved.bytes), (2, 100_000));
    assert_eq!(moved.sha256, Some(tulpar_transfer::Sha256Digest::of(&right)));
    assert_eq!(std::fs::read(&to).unwrap(), right);
    let second = asked.iter().nth(1).unwrap();
    assert!(second.contains("Range: bytes=60000-\r\nIf-Range: \"one\"\r\n"), "{second}");
}

#[test]
fn a_file_that_changed_meanwhile_is_fetched_from_its_beginning() {
    let (old, new) = (content(100_000), content(90_000));
    let (url, _asked) = scripted(vec![
        answer("200 OK\nContent-Length: 100000\nETag: \"one\"", &old[..60_000]).then_close(),
        answer("200 OK\nContent-Length: 90000\nETag: \"two\"", &new),
    ]);
    let here = folder();
    let to = here.path().join("a");
    let moved = fetch(&[Transfer::new(location(&format!("{url}/a")), to.as_path())], &options()).unwrap();
    assert_eq!(moved.sha256, Some(tulpar_transfer::Sha256Digest::of(&new)));
    assert_eq!(std::fs::read(&to).unwrap(), new);
}

#[test]
fn a_part_that_was_not_asked_for_is_not_glued_to_the_file() {
    let right = content(1000);
    let (url, _asked) = scripted(vec![
        answer("200 OK\nContent-Length: 1000\nETag: \"one\"", &right[..600]).then_close(),
        answer("206 Partial Content\nContent-Length: 500\nContent-Range: bytes 500-999/1000", &right[500..]),
        whole(&right),
    ]);
    let here = folder();
    let to = here.path().join("a");
    let moved = fetch(&[Transfer::new(location(&format!("{url}/a")), to.as_path())], &options()).unwrap();
    assert_eq!(moved.attempts, 3);
    assert_eq!(std::fs::read(&to).unwrap(), right);
}

#[test]
fn a_wrong_length_is_a_wrong_size() {
    let right = content(1000);
    let (url, _asked) =
        scripted(vec![whole(&right[..900]), answer("200 OK\nContent-Length: 1100", &right), whole(&right)]);
    let here = folder();
    let to = here.path().join("a");
    let moved = fetch(&[expecting(location(&format!("{url}/a")), &to, &right)], &options()).unwrap();
    assert_eq!(moved.attempts, 3);
    assert_eq!(std::fs::read(&to).unwrap(), right);
}

#[test]
fn a_busy_server_is_asked_again() {
    let right = content(10);
    let (url, _asked) = scripted(vec![
        answer("503 Busy\nContent-Length: 0", b""),
        answer("429 Slow\nContent-Length: 0", b""),
        whole(&right),
    ]);
    let here = folder();
    let to = here.path().join("a");
    assert_eq!(fetch(&[Transfer::new(location(&format!("{url}/a")), to.as_path())], &options()).unwrap().attempts, 3);
}

#[test]
fn what_is_missing_or_forbidden_is_asked_for_once() {
    for (status, kind) in [
        ("404 Not Found", ErrorKind::NotFound),
        ("410 Gone", ErrorKind::NotFound),
        ("403 Forbidden", ErrorKind::Denied),
        ("401 Unauthorized", ErrorKind::Denied),
        ("501 Not Implemented", ErrorKind::Unsupported),
    ] {
        let (url, asked) = scripted(vec![answer(&format!("{status}\nContent-Length: 0"), b"")]);
        let here = folder();
        let to = here.path().join("a");
        let list = [Transfer::new(location(&format!("{url}/a")), to.as_path())];
        assert_eq!(fetch(&list, &options()).unwrap_err().kind(), kind, "{status}");
        assert_eq!(asked.try_iter().count(), 1, "{status}");
    }
}

#[test]
fn a_server_that_hangs_is_given_up() {
    // It takes connections into its queue and never answers.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let here = folder();
    let to = here.path().join("a");
    let options = Options { retries: 0, timeout: Duration::from_millis(50), ..options() };
    let url = format!("http://{}/a", listener.local_addr().unwrap());
    let error = fetch(&[Transfer::new(location(&url), to.as_path())], &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transient);
    assert_eq!(error.to_string(), format!("{url} could not be moved this time: no answer: nothing came for 0.05 s"));
}

#[test]
fn chunks_without_a_length_are_read_and_their_end_is_noticed() {
    let head = "200 OK\nTransfer-Encoding: chunked\nETag: \"one\"";
    let (url, _asked) = scripted(vec![
        answer(head, b"5\r\nhello\r\n6\r\n worl").then_close(),
        answer(head, b"5\r\nhello\r\n6;more=1\r\n world\r\n0\r\nTrailer: x\r\n\r\n"),
    ]);
    let here = folder();
    let to = here.path().join("a");
    let moved = fetch(&[Transfer::new(location(&format!("{url}/a")), to.as_path())], &options()).unwrap();
    assert_eq!(moved.attempts, 2);
    assert_eq!(std::fs::read(&to).unwrap(), b"hello world");
}

#[test]
fn nonsense_instead_of_http_is_no_panic() {
    for nonsense in [
        "\0\0\0\0\r\n\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        "HTTP/1.1 206 Partial\r\nContent-Range: bytes x/y\r\nContent-Length: 1\r\n\r\na",
        "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n",
    ] {
        let scene = crate::harness::Scene { answer: nonsense.as_bytes().to_vec(), close: true };
        let (url, _asked) = scripted(vec![scene]);
        let here = folder();
        let to = here.path().join("a");
        let options = Options { retries: 0, ..options() };
        let list = [Transfer::new(location(&format!("{url}/a")), to.as_path())];
        assert!(fetch(&list, &options).is_err(), "{nonsense:?}");
        assert_eq!(names(here.path()), Vec::<String>::new(), "{nonsense:?}");
    }
}

#[test]
fn redirects_are_followed_and_tokens_stay_with_their_host() {
    let (other, asked_there) = scripted(vec![whole(b"found")]);
    let (url, asked_here) =
        scripted(vec![answer(&format!("302 Found\nLocation: {other}/real\nContent-Length: 0"), b"")]);
    let ours = url.strip_prefix("http://").unwrap().to_owned();
    let credentials = tulpar_transfer::Credentials::none()
        .with_tokens(move |host| (host == ours).then(|| tulpar_transfer::Secret::new("hush")));
    let here = folder();
    let to = here.path().join("a");
    let options = Options { credentials, ..options() };
    fetch(&[Transfer::new(location(&format!("{url}/a")), to.as_path())], &options).unwrap();
    assert_eq!(std::fs::read(&to).unwrap(), b"found");
    assert!(asked_here.recv().unwrap().contains("Authorization: Bearer hush"));
    let there = asked_there.recv().unwrap();
    assert!(there.starts_with("GET /real ") && !there.contains("hush"), "{there}");
}

#[test]
fn a_server_that_hangs_up_after_every_answer_delivers_a_whole_list() {
    let script = (0..40).map(|number| whole(format!("file {number}").as_bytes()).then_close()).collect();
    let (url, _asked) = scripted(script);
    let here = folder();
    let list: Vec<Transfer> = (0..40)
        .map(|number| Transfer::new(location(&format!("{url}/{number}")), here.path().join(number.to_string())))
        .collect();
    let options = Options { threads: 1, ..options() };
    let results = Transfers::new(options).transfer(&list);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    for number in 0..40 {
        let text = std::fs::read_to_string(here.path().join(number.to_string())).unwrap();
        assert_eq!(text, format!("file {number}"), "answers were mixed up");
    }
}

#[test]
fn a_list_that_mostly_fails_is_given_up() {
    let (url, asked) = scripted((0..500).map(|_| answer("404 Gone\nContent-Length: 0", b"")).collect());
    let here = folder();
    let list: Vec<Transfer> = (0..500)
        .map(|number| Transfer::new(location(&format!("{url}/{number}")), here.path().join(number.to_string())))
        .collect();
    let options = Options { threads: 1, ..options() };
    let results = transfer(&list, &options);
    let kinds = |kind| results.iter().filter(|result| result.as_ref().unwrap_err().kind() == kind).count();
    assert_eq!(results.len(), 500);
    assert_eq!(kinds(ErrorKind::NotFound) + kinds(ErrorKind::Stopped), 500);
    assert!(kinds(ErrorKind::Stopped) > 300, "{} were tried", kinds(ErrorKind::NotFound));
    assert!(asked.try_iter().count() < 200);
}

#[test]
fn a_cancelled_list_ends_and_says_so() {
    let here = folder();
    let options = options();
    options.cancel.store(true, std::sync::atomic::Ordering::SeqCst);
    let list = [Transfer::new(location("http://127.0.0.1:9/a"), here.path().join("a"))];
    assert_eq!(fetch(&list, &options).unwrap_err().kind(), ErrorKind::Stopped);
}
