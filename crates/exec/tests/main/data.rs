//! Data entries against real folders: what is listed, where it is shown, and what is hashed again.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use tulpar_core::ids::Digest;
use tulpar_core::workflow::{Data, DataSource, Span};
use tulpar_exec::data::{How, Progress, Resolved, Stamp, StatCache, resolve, resolve_with};
use tulpar_transfer::{ServeOptions, Server};

/// A folder with these files; each holds its own name. They were written long ago.
fn folder(files: &[&str]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for file in files {
        write(folder.path(), file, file);
    }
    folder
}

fn write(folder: &Path, file: &str, content: &str) {
    let path = folder.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn entry(name: &str, source: DataSource) -> Data {
    Data { name: name.into(), source, sha256: Default::default(), span: Span::default() }
}

fn look(folder: &TempDir, entries: &[Data]) -> Resolved {
    resolve(folder.path(), &folder.path().join(".tulpar/cache"), entries, &|_| {})
}

fn shown(folder: &TempDir, source: DataSource) -> Vec<String> {
    let resolved = look(folder, &[entry("images", source)]);
    let problems: Vec<String> = resolved.problems.iter().map(|problem| problem.error.to_string()).collect();
    assert_eq!(problems, [""; 0]);
    resolved.files[0].iter().map(|file| file.path.clone()).collect()
}

fn glob(pattern: &str) -> DataSource {
    DataSource::Glob(pattern.into())
}

fn problem(folder: &TempDir, source: DataSource) -> String {
    let resolved = look(folder, &[entry("images", source)]);
    assert_eq!(resolved.problems.len(), 1);
    assert!(resolved.files[0].is_empty());
    resolved.problems[0].error.to_string()
}

#[test]
fn a_pattern_lists_what_a_shell_would_list() {
    let folder = folder(&[
        "images/b.jpg",
        "images/a.jpg",
        "images/.hidden.jpg",
        "images/notes.txt",
        "images/deep/c.jpg",
        "images/deep/deeper/d.jpg",
        "images/.git/e.jpg",
        "images/x{1}.jpg",
    ]);
    for (pattern, files) in [
        ("images/*.jpg", &["images/a.jpg", "images/b.jpg", "images/x{1}.jpg"][..]),
        ("./images//?.jpg", &["images/a.jpg", "images/b.jpg"]),
        ("images/[!a].jpg", &["images/b.jpg"]),
        ("images/.*.jpg", &["images/.hidden.jpg"]),
        ("images/x{1}*", &["images/x{1}.jpg"]),
        ("*/deep/*.jpg", &["images/deep/c.jpg"]),
        ("images/deep*/**", &["images/deep/c.jpg", "images/deep/deeper/d.jpg"]),
        ("**/[cd].jpg", &["images/deep/c.jpg", "images/deep/deeper/d.jpg"]),
        ("images/**/d*/*.jpg", &["images/deep/c.jpg", "images/deep/deeper/d.jpg"]),
        ("images/**/.git/*.jpg", &["images/.git/e.jpg"]),
        ("images/*", &["images/a.jpg", "images/b.jpg", "images/notes.txt", "images/x{1}.jpg"]),
        ("nothing/*.jpg", &[]),
        ("images/*.png", &[]),
    ] {
        assert_eq!(shown(&folder, glob(pattern)), files, "{pattern}");
    }
}

#[test]
fn a_directory_means_everything_below_it_that_is_not_hidden() {
    let folder = folder(&["raw/2/b", "raw/1/a", "raw/.DS_Store", "raw/.cache/x", "other"]);
    assert_eq!(shown(&folder, DataSource::Directory("raw/".into())), ["raw/1/a", "raw/2/b"]);
    fs::create_dir(folder.path().join("empty")).unwrap();
    assert_eq!(shown(&folder, DataSource::Directory("empty/".into())), [""; 0]);
}

#[test]
fn links_are_followed_and_a_circle_of_links_ends() {
    let folder = folder(&["store/a.jpg", "raw/b.jpg"]);
    symlink("../store", folder.path().join("raw/linked")).unwrap();
    symlink("../store/a.jpg", folder.path().join("raw/alias.jpg")).unwrap();
    symlink("..", folder.path().join("raw/up")).unwrap();
    symlink("nowhere", folder.path().join("raw/broken.jpg")).unwrap();
    let files = shown(&folder, DataSource::Directory("raw/".into()));
    for file in ["raw/b.jpg", "raw/alias.jpg", "raw/linked/a.jpg"] {
        assert!(files.contains(&file.to_owned()), "{file} in {files:?}");
    }
    assert!(files.len() < 12, "{files:?}");
    assert_eq!(shown(&folder, glob("raw/*.jpg")), ["raw/alias.jpg", "raw/b.jpg"]);
}

#[test]
fn a_manifest_lists_paths_relative_to_itself() {
    let folder = folder(&["lists/a", "raw/b"]);
    write(folder.path(), "lists/all.txt", "# what we use\r\n../raw/b\r\n\na\n./a\n");
    assert_eq!(shown(&folder, DataSource::Manifest("lists/all.txt".into())), ["raw/b", "lists/a"]);
    let resolved = look(&folder, &[entry("all", DataSource::Manifest("lists/all.txt".into()))]);
    assert_eq!(resolved.files[0][1].from, "lists/a");
}

#[test]
fn files_under_names_of_their_own_are_shown_by_them() {
    let folder = folder(&["archive/17", "archive/18"]);
    let files = |places: [(&str, &str); 2]| {
        DataSource::Files(places.map(|(path, place)| (path.to_owned(), place.to_owned())).into_iter().collect())
    };
    let named = files([("scans/b.png", "./archive/17"), ("a.png", "archive/18")]);
    assert_eq!(shown(&folder, named.clone()), ["a.png", "scans/b.png"]);
    let resolved = look(&folder, &[entry("scans", named)]);
    assert_eq!(resolved.files[0][1].from, "archive/17");
    let resolved = look(&folder, &[entry("scans", files([("a", "archive/19"), ("b", "s3://bucket/b")]))]);
    assert_eq!((resolved.problems.len(), resolved.problems[0].more, resolved.files[0].len()), (1, 1, 0));
}

#[test]
fn files_from_elsewhere_are_shown_under_the_name_of_their_entry() {
    let folder = folder(&["here"]);
    let elsewhere = self::folder(&["big/images/1.jpg", "big/images/x/2.jpg", "big/labels.csv"]);
    let away = elsewhere.path().display();
    assert_eq!(shown(&folder, DataSource::File(format!("{away}/big/labels.csv"))), ["images/labels.csv"]);
    assert_eq!(shown(&folder, glob(&format!("{away}/big/images/**/*.jpg"))), ["images/1.jpg", "images/x/2.jpg"]);
    assert_eq!(
        shown(&folder, DataSource::Directory(format!("{away}/big/"))),
        ["images/images/1.jpg", "images/images/x/2.jpg", "images/labels.csv"]
    );
    assert_eq!(shown(&folder, DataSource::File(folder.path().join("here").display().to_string())), ["here"]);
    let up = format!("../{}/big/*.csv", elsewhere.path().file_name().unwrap().to_str().unwrap());
    assert_eq!(shown(&folder, glob(&up)), ["images/labels.csv"]);
}

#[test]
fn size_and_digest_are_those_of_the_content() {
    let folder = folder(&["a"]);
    let big = "x".repeat(3_000_000);
    write(folder.path(), "big", &big);
    let resolved = look(&folder, &[entry("a", DataSource::File("a".into())), entry("big", glob("b*"))]);
    assert_eq!((resolved.files[0][0].size, resolved.files[0][0].digest), (1, Digest::of(b"a")));
    assert_eq!((resolved.files[1][0].size, resolved.files[1][0].digest), (3_000_000, Digest::of(big.as_bytes())));
    assert_eq!((resolved.hashed_files, resolved.hashed_bytes), (2, 3_000_001));
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_the_next_step() {
    let folder = folder(&["dir/a", "list.txt"]);
    write(folder.path(), "list.txt", "dir/a\n\ndir/b\ndir/c\n");
    for (source, message) in [
        (
            DataSource::File("labels.csv".into()),
            "labels.csv: no such file. Check the spelling; paths are relative to the workflow file",
        ),
        (
            DataSource::File("no/such/labels.csv".into()),
            "no/such/labels.csv: no such file. There is no folder `no` either; paths are relative to the workflow file",
        ),
        (DataSource::File("~/x".into()), "~/x: no such file. `~` is not expanded: write the whole path"),
        (DataSource::File("dir".into()), "dir: this is a directory. Write `dir/` to mean everything below it"),
        (
            DataSource::Directory("dir/a/".into()),
            "dir/a/: this is not a directory. Write it without the slash to mean the file itself",
        ),
        (
            DataSource::Manifest("list.txt".into()),
            "list.txt, line 3: dir/b: no such file. Check the spelling; paths are relative to the workflow file",
        ),
        (
            glob("dir/[a"),
            "`dir/[a` is not a pattern: unclosed character class; missing ']'. Patterns use *, **, ? and [abc]; \
             write [[] for a bracket itself",
        ),
        (
            DataSource::Url("shelf://any/x".into()),
            "shelf://any/x: cannot be fetched: nothing here knows shelf://; a program `tulpar-transfer-shelf` on PATH could. Or fetch it yourself and give its path",
        ),
    ] {
        assert_eq!(problem(&folder, source), message);
    }
    let resolved = look(&folder, &[entry("l", DataSource::Manifest("list.txt".into()))]);
    assert_eq!(resolved.problems[0].more, 1);
}

/// Makes a file look as if it had been written an hour ago (its ctime is still now).
fn age(path: &Path) {
    let past = SystemTime::now() - Duration::from_secs(3600);
    fs::File::options().write(true).open(path).unwrap().set_modified(past).unwrap();
}

#[test]
fn an_unchanged_file_is_not_read_again_and_a_changed_one_is() {
    let folder = folder(&["a", "b"]);
    let entries = [entry("all", glob("[ab]"))];
    // A file whose times are too fresh is never trusted: wait for the clock of the file system.
    let fresh = Stamp::of(&fs::metadata(folder.path().join("b")).unwrap());
    while !fresh.is_settled(Stamp::now()) {
        std::thread::yield_now();
    }
    assert_eq!(look(&folder, &entries).hashed_files, 2);
    assert_eq!(look(&folder, &entries).hashed_files, 0);
    // The same size and modification time, but another content: the change time gives it away.
    let path = folder.path().join("a");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "A").unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    let again = look(&folder, &entries);
    assert_eq!((again.hashed_files, again.files[0][0].digest), (1, Digest::of(b"A")));
}

#[test]
fn a_file_written_just_now_is_hashed_but_not_remembered() {
    let folder = folder(&["a"]);
    age(&folder.path().join("a"));
    look(&folder, &[entry("a", DataSource::File("a".into()))]);
    assert!(!folder.path().join(".tulpar/cache/stat").exists());
}

#[test]
fn the_stat_cache_survives_a_torn_line_and_damage_and_grows_no_further_than_needed() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("stat");
    let stamp = |n: u64| Stamp { size: n, mtime_ns: 1, ctime_ns: 2, inode: 3, device: 4 };
    let mut cache = StatCache::load(&file);
    cache
        .record(vec![("a\nb\\n c".into(), stamp(1), Digest([1; 32])), ("é".into(), stamp(2), Digest([2; 32]))])
        .unwrap();
    let torn = fs::read(&file).unwrap();
    fs::write(&file, [&torn[..], b"0123abcd half a li"].concat()).unwrap();
    let mut cache = StatCache::load(&file);
    cache.record(vec![("c".into(), stamp(3), Digest([3; 32]))]).unwrap();
    let cache = StatCache::load(&file);
    assert_eq!(cache.get("a\nb\\n c", &stamp(1)), Some(Digest([1; 32])));
    assert_eq!(cache.get("c", &stamp(3)), Some(Digest([3; 32])));
    assert_eq!(cache.get("c", &stamp(4)), None);
    let mut bytes = fs::read(&file).unwrap();
    bytes[20] ^= 1;
    fs::write(&file, bytes).unwrap();
    let mut cache = StatCache::load(&file);
    assert_eq!(cache.get("a\nb\\n c", &stamp(1)), None);
    assert_eq!(cache.get("é", &stamp(2)), Some(Digest([2; 32])));
    for n in 0..3000 {
        cache.record(vec![("c".into(), stamp(n), Digest([9; 32]))]).unwrap();
    }
    assert!(fs::read_to_string(&file).unwrap().lines().count() < 1100);
    assert_eq!(StatCache::load(&file).get("c", &stamp(2999)), Some(Digest([9; 32])));
}

#[test]
fn progress_ends_with_every_file_counted() {
    let names: Vec<String> = (0..1000).map(|n| format!("f/{n}")).collect();
    let folder = folder(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let said = Mutex::new(Vec::new());
    let cache = folder.path().join("cache");
    resolve(folder.path(), &cache, &[entry("f", glob("f/*"))], &|progress| said.lock().unwrap().push(progress));
    let said = said.into_inner().unwrap();
    assert!(said.len() >= 4);
    assert_eq!(said.last(), Some(&Progress { files: 1000, of_files: 1000, bytes: 4890 }));
}

fn curl_is_here() -> bool {
    std::process::Command::new("curl").arg("--version").output().is_ok()
}

#[test]
fn a_file_behind_a_url_follows_its_server_and_its_copy_serves_while_the_server_is_away() {
    if !curl_is_here() {
        return;
    }
    let shelf = folder(&[]);
    std::fs::write(shelf.path().join("labels.csv"), "a,b\n").unwrap();
    let server = Server::start(ServeOptions::new(shelf.path())).unwrap();
    let entries = [entry("labels", DataSource::Url(format!("http://{}/labels.csv?x=1", server.address())))];
    let folder = folder(&[]);
    let first = look(&folder, &entries);
    assert!(first.problems.is_empty(), "{:?}", first.problems);
    assert_eq!(first.fetched[0].1, How::Fetched);
    let file = &first.files[0][0];
    assert_eq!((file.path.as_str(), file.size, file.digest), ("labels/labels.csv", 4, Digest::of(b"a,b\n")));
    assert!(file.from.starts_with(".tulpar/cache/downloads/"));
    let again = look(&folder, &entries);
    assert!(matches!(again.fetched[0].1, How::Unchanged { .. }), "{:?}", again.fetched);
    assert_eq!(again.files, first.files);

    std::fs::write(shelf.path().join("labels.csv"), "a,b,c\n").unwrap();
    let changed = look(&folder, &entries);
    assert!(matches!(changed.fetched[0].1, How::Changed { .. }), "{:?}", changed.fetched);
    assert_eq!(changed.files[0][0].digest, Digest::of(b"a,b,c\n"));
    // A run that began before still finds what it began with.
    assert_eq!(std::fs::read(folder.path().join(&file.from)).unwrap(), b"a,b\n");

    server.stop();
    let away = look(&folder, &entries);
    assert!(matches!(away.fetched[0].1, How::Unreachable { .. }), "{:?}", away.fetched);
    assert_eq!(away.files, changed.files);
}

#[test]
fn a_server_that_tells_no_version_is_asked_for_the_content_each_time() {
    if !curl_is_here() {
        return;
    }
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/data/labels.csv", server.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        for content in ["one", "one", "two"] {
            let (mut stream, _) = server.accept().unwrap();
            let mut request = [0; 1024];
            let length = stream.read(&mut request).unwrap();
            assert!(request[..length].starts_with(b"GET /data/labels.csv HTTP/1.1"));
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\n{content}").unwrap();
        }
    });
    let folder = folder(&[]);
    let entries = [entry("labels", DataSource::Url(url))];
    let looks: Vec<Resolved> = (0..3).map(|_| look(&folder, &entries)).collect();
    served.join().unwrap();
    assert_eq!(looks[0].fetched[0].1, How::Fetched);
    assert!(matches!(looks[1].fetched[0].1, How::Unchanged { .. }));
    assert!(matches!(looks[2].fetched[0].1, How::Changed { .. }));
    assert_eq!(looks[2].files[0][0].digest, Digest::of(b"two"));
}

#[test]
fn a_server_that_tells_times_is_believed_only_where_a_write_must_have_changed_them() {
    if !curl_is_here() {
        return;
    }
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/a", server.local_addr().unwrap());
    // The minute and second of the write and of the answer, and the content.
    let answers = [
        ("GET", "00:10", "00:11", "one"),
        ("GET", "00:10", "00:11", "two"),
        ("GET", "00:10", "01:10", "two"),
        ("HEAD", "00:10", "02:00", "two"),
        ("HEAD", "00:09", "02:10", "old"),
        ("GET", "00:09", "02:10", "old"),
        ("HEAD", "00:09", "03:00", "longer"),
        ("GET", "00:09", "03:00", "longer"),
        // Without the cache nobody asks whether it changed.
        ("GET", "00:09", "03:00", "LONGER"),
    ];
    let served = std::thread::spawn(move || {
        for (method, written, answered, content) in answers {
            let (mut stream, _) = server.accept().unwrap();
            let mut request = [0; 1024];
            let length = stream.read(&mut request).unwrap();
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            assert!(request.starts_with(&format!("{method} /a HTTP/1.1")) && !request.contains("If-"), "{request}");
            let day = "Thu, 19 Nov 2026 03";
            let length = content.len();
            let content = if method == "HEAD" { "" } else { content };
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nDate: {day}:{answered} GMT\r\nLast-Modified: {day}:{written} GMT\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{content}"
            )
            .unwrap();
        }
    });
    let folder = folder(&[]);
    let entries = [entry("a", DataSource::Url(url))];
    let found = |anew: bool| {
        let cache = folder.path().join(".tulpar/cache");
        let looked = resolve_with(folder.path(), &cache, &entries, anew, &|_| {});
        (looked.fetched[0].1.clone(), looked.files[0][0].digest)
    };
    for (content, changed) in
        [("one", true), ("two", true), ("two", false), ("two", false), ("old", true), ("longer", true)]
    {
        let (how, digest) = found(false);
        assert_eq!(digest, Digest::of(content.as_bytes()));
        assert_eq!(matches!(how, How::Unchanged { .. }), !changed, "{how:?}");
    }
    assert_eq!(found(true).1, Digest::of(b"LONGER"));
    served.join().unwrap();
}

#[test]
fn a_strong_tag_is_believed_and_a_weak_one_is_not() {
    if !curl_is_here() {
        return;
    }
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/a", server.local_addr().unwrap());
    let answers = [("\"x\"", "", "one"), ("W/\"y\"", "If-None-Match: \"x\"", "two"), ("\"z\"", "", "six")];
    let served = std::thread::spawn(move || {
        let answer = |head: &str, wanted: &str, content: &str| {
            let (mut stream, _) = server.accept().unwrap();
            let mut request = [0; 1024];
            let length = stream.read(&mut request).unwrap();
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            assert_eq!(request.lines().find(|line| line.starts_with("If-")).unwrap_or_default(), wanted);
            let length = content.len();
            write!(stream, "HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{content}")
                .unwrap();
        };
        for (tag, wanted, content) in answers {
            answer(&format!("200 OK\r\nETag: {tag}"), wanted, content);
        }
        answer("304 Not Modified\r\nETag: \"z\"", "If-None-Match: \"z\"", "");
    });
    let folder = folder(&[]);
    let entries = [entry("a", DataSource::Url(url))];
    for content in ["one", "two", "six", "six"] {
        assert_eq!(look(&folder, &entries).files[0][0].digest, Digest::of(content.as_bytes()));
    }
    served.join().unwrap();
}

#[test]
fn a_server_that_is_not_there_is_told_with_what_to_do() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x", server.local_addr().unwrap());
    drop(server);
    let message = problem(&folder(&[]), DataSource::Url(url.clone()));
    assert!(message.starts_with(&format!("{url}: cannot be fetched: ")), "{message}");
}
