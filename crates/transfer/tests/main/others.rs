//! ssh, object stores, TLS, Pelican and plug-ins: against the real thing where it is installed.

use crate::harness::{Running, content, expecting, folder, location, names, options, outcome, program, skipped};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use tulpar_transfer::{
    Credentials, Entry, ErrorKind, How, Keys, Options, Secret, Sha256Digest, Transfer, Transfers, transfer,
};

/// Waits for a line of a stream that says that a server is ready; the port that it names after `mark`.
fn port_after(stream: impl std::io::Read, mark: &str) -> Option<u16> {
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if let Some((_, rest)) = line.split_once(mark) {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            return digits.parse().ok();
        }
    }
    None
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// An ssh server of our own on a high port, and the arguments with which its clients trust it.
fn sshd(folder: &Path) -> Option<(Running, u16, Vec<String>)> {
    let (sshd, keygen) = (program("sshd")?, program("ssh-keygen")?);
    program("sftp")?;
    for key in ["host", "user"] {
        let mut command = Command::new(&keygen);
        command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.join(key));
        assert!(outcome(&mut command).0);
    }
    std::fs::copy(folder.join("user.pub"), folder.join("authorized")).unwrap();
    // As root it wants an empty folder to lock itself into.
    let _ = std::fs::create_dir("/run/sshd");
    let port = free_port();
    let here = folder.display();
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {here}/host\nAuthorizedKeysFile {here}/authorized\nPidFile none\n\
         StrictModes no\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\nSubsystem sftp internal-sftp\n"
    );
    std::fs::write(folder.join("config"), config).unwrap();
    let mut child = Command::new(sshd)
        .args(["-D", "-e", "-f"])
        .arg(folder.join("config"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let stderr = child.stderr.take().unwrap();
    let running = Running(child);
    port_after(stderr, "Server listening on 127.0.0.1 port ")?;
    let arguments = [
        "-F",
        "/dev/null",
        "-i",
        &format!("{here}/user"),
        "-o",
        "StrictHostKeyChecking=no",
        "-o",
        &format!("UserKnownHostsFile={here}/known"),
    ];
    Some((running, port, arguments.iter().map(|word| (*word).to_owned()).collect()))
}

#[test]
fn files_go_by_ssh_and_come_back() {
    let (keys, there, here) = (folder(), folder(), folder());
    let Some((_running, port, ssh_arguments)) = sshd(keys.path()) else {
        return skipped("no sshd could be started: scp:// and sftp:// were not tried");
    };
    let transfers = Transfers::new(Options { ssh_arguments, ..options() });
    let remote = |scheme: &str, name: &str| {
        location(&format!("{scheme}://127.0.0.1:{port}{}", there.path().display())).join(name)
    };
    let odd = "odd dir/a*[b] 'c' \"d\" \\e.bin";
    let mut up = Vec::new();
    for (number, name) in [odd, "deep/er/two", "deep/three"].into_iter().enumerate() {
        let path = here.path().join(format!("up {number}"));
        std::fs::write(&path, content(number * 70_000 + 1)).unwrap();
        up.push(Transfer { executable: number == 1, ..Transfer::new(path, remote("scp", name)) });
    }
    up.push(Transfer::new(here.path().join("missing"), remote("scp", "missing")));
    let mut results = transfers.transfer(&up);
    assert_eq!(results.pop().unwrap().unwrap_err().kind(), ErrorKind::NotFound);
    for (number, result) in results.into_iter().enumerate() {
        let moved = result.unwrap();
        assert_eq!((moved.how, moved.sha256), (How::Program, Some(Sha256Digest::of(&content(number * 70_000 + 1)))));
    }
    assert_eq!(std::fs::read(there.path().join(odd)).unwrap(), content(1));
    assert_eq!(names(&there.path().join("deep")), ["er", "three"]);
    assert_eq!(std::fs::metadata(there.path().join("deep/er/two")).unwrap().permissions().mode() & 0o777, 0o755);

    let down = [
        expecting(remote("sftp", odd), &here.path().join("down/0"), &content(1)),
        Transfer::new(remote("sftp", "nothing"), here.path().join("down/nothing")),
        expecting(remote("sftp", "deep/er/two"), &here.path().join("down/1"), &content(70_001)),
        Transfer {
            sha256: Some(Sha256Digest::of(b"other")),
            ..Transfer::new(remote("scp", "deep/three"), here.path().join("down/2"))
        },
    ];
    let kinds: Vec<Option<ErrorKind>> =
        transfers.transfer(&down).into_iter().map(|result| result.err().map(|error| error.kind())).collect();
    assert_eq!(kinds, [None, Some(ErrorKind::NotFound), None, Some(ErrorKind::Mismatch)]);
    assert_eq!(names(&here.path().join("down")), ["0", "1"]);

    let file = |name: &str, size| Entry { name: name.to_owned(), size: Some(size), directory: false };
    assert_eq!(transfers.stat(&remote("scp", "deep/three")).unwrap(), file("three", 140_001));
    let listed = transfers.list(&remote("scp", "deep")).unwrap();
    assert_eq!(listed, [Entry { name: "er".to_owned(), size: None, directory: true }, file("three", 140_001)]);
    assert_eq!(transfers.tree(&remote("scp", "deep"), &here.path().into()).unwrap().len(), 2);
    transfers.make_directory(&remote("scp", "new/inner")).unwrap();
    assert_eq!(transfers.remove(&[remote("scp", "deep/"), remote("scp", odd)]), [Ok(()), Ok(())]);
    assert_eq!(names(there.path()), ["new", "odd dir"]);
}

#[test]
fn an_ssh_server_that_is_not_there_is_tried_again_and_named() {
    if program("sftp").is_none() {
        return skipped("sftp is not installed: scp:// was not tried");
    }
    let here = folder();
    let ssh_arguments = vec!["-F".to_owned(), "/dev/null".to_owned()];
    let from = location(&format!("scp://127.0.0.1:{}/a", free_port()));
    let options = Options { retries: 1, ssh_arguments, ..options() };
    let error = transfer(&[Transfer::new(from, here.path().join("a"))], &options).remove(0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transient, "{error}");
}

#[test]
fn objects_go_to_a_store_and_come_back() {
    let Some(moto) = program("moto_server") else {
        return skipped("moto_server is not installed (pip install 'moto[server]'): s3:// was not tried");
    };
    let here = folder();
    let port = free_port();
    let mut child = Command::new(moto)
        .args(["-H", "127.0.0.1", "-p", &port.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = child.stderr.take().unwrap();
    let _running = Running(child);
    let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("Running on ")), "the store did not start");
    // What it says later must not fill the pipe.
    std::thread::spawn(move || lines.for_each(drop));
    let keys = Keys { access: "access".to_owned(), secret: Secret::new("secret"), session: None };
    let transfers = Transfers::new(Options {
        credentials: Credentials::none().with_keys(keys),
        s3_endpoint: Some(format!("http://127.0.0.1:{port}")),
        ..options()
    });
    // Buckets are made by whoever runs the store, here with a plain request to moto.
    let made = transfer(
        &[Transfer::new(
            {
                let path = here.path().join("empty");
                std::fs::write(&path, "").unwrap();
                path
            },
            location(&format!("http://127.0.0.1:{port}/bucket")),
        )],
        &options(),
    );
    assert!(made[0].is_ok(), "{made:?}");

    let sizes = [0, 10, 13_000, 400_000];
    let object = |size: &usize| location(&format!("s3://bucket/in%20put/{size}/x+y&z"));
    let up: Vec<Transfer> = sizes
        .iter()
        .map(|size| {
            let path = here.path().join(size.to_string());
            std::fs::write(&path, content(*size)).unwrap();
            Transfer::new(path, object(size))
        })
        .collect();
    for result in transfers.transfer(&up) {
        assert_eq!(result.unwrap().how, How::Upload);
    }
    let down: Vec<Transfer> = sizes
        .iter()
        .map(|size| {
            // The way Pegasus writes it.
            let from = location(&format!("s3://127.0.0.1:{port}/bucket/in%20put/{size}/x+y&z"));
            expecting(from, &here.path().join(format!("back/{size}")), &content(*size))
        })
        .collect();
    for result in transfers.transfer(&down) {
        result.unwrap();
    }
    let missing = Transfer::new(location("s3://bucket/missing"), here.path().join("missing"));
    assert_eq!(transfers.transfer(&[missing]).remove(0).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(transfers.stat(&object(&13_000)).unwrap().size, Some(13_000));
    let listed = transfers.list(&location("s3://bucket/in%20put/")).unwrap();
    assert_eq!(listed.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["0", "10", "13000", "400000"]);
    let tree = transfers.tree(&location("s3://bucket/in%20put"), &here.path().join("tree").into()).unwrap();
    assert_eq!(tree.len(), sizes.len());
    assert!(transfers.transfer(&tree).iter().all(Result::is_ok));
    assert_eq!(std::fs::read(here.path().join("tree/13000/x+y&z")).unwrap(), content(13_000));
    transfers.remove(&[object(&0)]).remove(0).unwrap();
    transfers.remove(&[location("s3://bucket/in%20put/10/")]).remove(0).unwrap();
    assert_eq!(transfers.tree(&location("s3://bucket/"), &here.path().into()).unwrap().len(), 2);
}

#[test]
fn https_is_checked_against_the_certificate() {
    let (Some(python), Some(openssl)) = (program("python3"), program("openssl")) else {
        return skipped("python3 or openssl is not installed: https was not tried");
    };
    let (root, here) = (folder(), folder());
    std::fs::write(root.path().join("a"), content(100_000)).unwrap();
    let mut command = Command::new(openssl);
    command.current_dir(here.path()).stderr(Stdio::null()).args([
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        "key.pem",
        "-out",
        "cert.pem",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
    ]);
    assert!(outcome(&mut command).0);
    let script = "import http.server, ssl\n\
        class Handler(http.server.SimpleHTTPRequestHandler):\n    protocol_version = 'HTTP/1.1'\n    def log_message(self, *a): pass\n\
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)\n\
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n\
        import sys\ncontext.load_cert_chain(sys.argv[1] + '/cert.pem', sys.argv[1] + '/key.pem')\n\
        server.socket = context.wrap_socket(server.socket, server_side=True)\n\
        print('port', server.server_port, flush=True)\nserver.serve_forever()\n";
    let mut child = Command::new(python)
        .args(["-c", script])
        .arg(here.path())
        .current_dir(root.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let stdout = child.stdout.take().unwrap();
    let _running = Running(child);
    let port = port_after(stdout, "port ").unwrap();
    let list: Vec<Transfer> = (0..20)
        .map(|number| {
            expecting(
                location(&format!("https://localhost:{port}/a")),
                &here.path().join(number.to_string()),
                &content(100_000),
            )
        })
        .collect();
    let trusting = Options { certificates: Some(here.path().join("cert.pem")), ..options() };
    for result in transfer(&list, &trusting) {
        assert_eq!(result.unwrap().attempts, 1);
    }
    let error = transfer(&list[..1], &Options { retries: 0, ..options() }).remove(0).unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[test]
fn osdf_without_its_client_says_what_to_install() {
    if program("pelican").is_some() {
        return skipped("pelican is installed: what is said without it was not tried");
    }
    let here = folder();
    let list = [Transfer::new(location("osdf:///ospool/data"), here.path().join("data"))];
    let error = transfer(&list, &options()).remove(0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(
        error.to_string(),
        "osdf:///ospool/data cannot be moved: it needs the Pelican client: install `pelican` from pelicanplatform.org and \
         put it on PATH"
    );
}

#[test]
fn a_scheme_that_nobody_knows_names_the_plug_in_that_could() {
    let here = folder();
    let list = [Transfer::new(location("gsiftp://host/data"), here.path().join("data"))];
    let error = transfer(&list, &options()).remove(0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "gsiftp://host/data cannot be moved: nothing here knows gsiftp://; a program `tulpar-transfer-gsiftp` on PATH could"
    );
}

/// The plug-in of docs/transfers.md, on the PATH of a process of its own: this test runs itself again.
#[test]
fn a_plug_in_moves_files_both_ways() {
    const CHILD: &str = "TULPAR_TEST_PLUGIN_STORE";
    let Some(python) = program("python3") else { return skipped("python3 is not installed: plug-ins were not tried") };
    if let Some(store) = std::env::var_os(CHILD) {
        return with_plug_in(Path::new(&store));
    }
    let here = folder();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/transfers.md");
    let page = std::fs::read_to_string(page).unwrap();
    let script = page.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let plugin = here.path().join("tulpar-transfer-shelf");
    std::fs::write(&plugin, script.replace("#!/usr/bin/env python3", &format!("#!{}", python.display()))).unwrap();
    std::fs::set_permissions(&plugin, std::fs::Permissions::from_mode(0o755)).unwrap();
    let paths = std::env::var_os("PATH").unwrap();
    let paths = std::env::join_paths(std::iter::once(here.path().to_owned()).chain(std::env::split_paths(&paths)));
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "others::a_plug_in_moves_files_both_ways"])
        .env("PATH", paths.unwrap())
        .env("SHELF", here.path())
        .env(CHILD, here.path())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "run it alone to see why");
}

fn with_plug_in(store: &Path) {
    let here = folder();
    std::fs::write(here.path().join("up"), content(5000)).unwrap();
    let up = [Transfer::new(here.path().join("up"), location("shelf://any/file%20one"))];
    assert_eq!(transfer(&up, &options()).remove(0).unwrap().how, How::Program);
    assert_eq!(std::fs::read(store.join("file one")).unwrap(), content(5000));
    let down = [
        expecting(location("shelf://any/file%20one"), &here.path().join("new/down"), &content(5000)),
        Transfer::new(location("shelf://any/missing"), here.path().join("missing")),
        Transfer {
            sha256: Some(Sha256Digest::of(b"other")),
            ..Transfer::new(location("shelf://any/file%20one"), here.path().join("wrong"))
        },
    ];
    let results = transfer(&down, &options());
    assert_eq!(results[0].as_ref().unwrap().sha256, Some(Sha256Digest::of(&content(5000))));
    assert_eq!(results[1].as_ref().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(results[2].as_ref().unwrap_err().kind(), ErrorKind::Mismatch);
    assert_eq!(names(here.path()), ["new", "up"]);
}
