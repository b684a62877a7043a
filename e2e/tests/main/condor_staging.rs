//! Jobs of a real HTCondor pool that fetch and bring their files themselves, by ssh and with an object store: the servers are
//! real, and let nobody in who does not have the key that travelled with the job.

use crate::main::condor_runs::{DIAMOND, served_to_a_node_that_keeps};
use crate::main::harness::{Pool, Project, skipped, until};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const RESULT: &str = "HELLO\nWORLD\nmore\n";

fn staged(project: &Project<'_>, server: &str) {
    project.write("workflow.yaml", DIAMOND);
    project.write("words.txt", "hello\nworld\n");
    project.write("scratch/keep", "");
    project.write(
        "catalogue.yaml",
        &format!(
            "sites:\n  head:\n    scratch: {{path: scratch, servers: [\"{server}\"]}}\n  \
             pool: {{kind: htcondor, data: nonsharedfs, staging: head}}\n"
        ),
    );
}

/// Runs it, and gives everything that others could have read of it.
fn run(project: &Project<'_>, cleanup: &str) -> String {
    project.tulpar(&["run", "--site", "pool", "--cleanup", cleanup]).good();
    assert_eq!(project.read("results/all.txt"), RESULT);
    let items = project.run(&["sh", "-c", "cat .tulpar/runs/diamond-1/queue/*.items"]).good();
    assert!(!items.contains("/objects/"), "HTCondor was told to move a file: {items}");
    let history = project.run(&["condor_history", "-l", "-limit", "10"]).good();
    let kept = project.run(&["sh", "-c", "find .tulpar -type f -exec cat {} +"]).good();
    items + &history + &kept
}

/// A server of ssh that knows one key.
fn serve_ssh(project: &Project<'_>, port: u16) -> String {
    for name in ["host", "user"] {
        project.run(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", name]).good();
    }
    let here = project.folder.display();
    project.write(
        "sshd.conf",
        &format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {here}/host\nAuthorizedKeysFile {here}/user.pub\nPidFile none\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\nSubsystem sftp internal-sftp\n"
        ),
    );
    let key = project.read("user");
    project.write("config/tulpar/secrets/TULPAR_STAGING_SSH_KEY", &key);
    let host = format!("[127.0.0.1]:{port} {}", project.read("host.pub"));
    project.write("config/tulpar/secrets/TULPAR_STAGING_SSH_HOSTS", &host);
    key.lines().nth(1).unwrap().to_owned()
}

#[test]
fn jobs_pull_and_push_by_ssh_with_a_key_that_nobody_else_sees() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("by-ssh");
    let key = serve_ssh(&project, 18441);
    let config = project.folder.join("sshd.conf").display().to_string();
    let log = project.folder.join("sshd.log").display().to_string();
    let server = project.start_program(&["/usr/sbin/sshd", "-D", "-E", &log, "-f", &config]);
    until("the server listens", || project.read("sshd.log").contains("Server listening"));
    staged(&project, &format!("scp://sci@127.0.0.1:18441{}/scratch", project.folder.display()));
    let seen = run(&project, "inplace");
    assert!(!seen.contains(&key), "the key is where others can read it");
    // The directory, what comes in, four jobs, what goes out, the end.
    assert!(
        project.read("sshd.log").matches("Accepted publickey for sci").count() >= 6,
        "{}",
        project.read("sshd.log")
    );
    project.run(&["rm", "config/tulpar/secrets/TULPAR_STAGING_SSH_KEY"]).good();
    let without = project.tulpar(&["run", "--site", "pool", "--no-cache"]);
    assert!(without.code != Some(0), "without the key nobody is let in: {without:?}");
    server.signal("TERM");
    server.wait();
}

/// An object store that ends with its test.
struct Store(Child);

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One that lets somebody in, after four requests that make him known, only with his keys. Gives these.
fn serve_objects(pool: &Pool, project: &Project<'_>, port: u16) -> Option<(Store, String, String)> {
    if !Command::new("moto_server").arg("--help").output().is_ok_and(|output| output.status.success()) {
        skipped("moto_server is not installed (pip install 'moto[server]'): jobs did not use an object store");
        return None;
    }
    let mut command = pool.beside("moto_server");
    command.args(["-H", "127.0.0.1", "-p", &port.to_string()]).env("INITIAL_NO_AUTH_ACTION_COUNT", "4");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = child.stderr.take().unwrap();
    let store = Store(child);
    let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("Running on ")), "the store did not start");
    // What it says later must not fill the pipe.
    std::thread::spawn(move || lines.for_each(drop));
    let ask = |what: &str| {
        let script = format!(
            "import sys, urllib.request\nhead = {{'Authorization': 'AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=x'}}\n\
             url = 'http://127.0.0.1:{port}/'\n{what}\nprint(urllib.request.urlopen(request).read().decode())\n"
        );
        project.write("ask.py", &script);
        project.run(&["python3", "ask.py"]).good()
    };
    let manage =
        |words: &str| ask(&format!("request = urllib.request.Request(url, data={words:?}.encode(), headers=head)"));
    manage("Action=CreateUser&UserName=jobs&Version=2010-05-08");
    let keys = manage("Action=CreateAccessKey&UserName=jobs&Version=2010-05-08");
    manage(
        "Action=PutUserPolicy&UserName=jobs&PolicyName=all&Version=2010-05-08&PolicyDocument=%7B%22Version%22%3A%222012-10-17%22\
         %2C%22Statement%22%3A%7B%22Effect%22%3A%22Allow%22%2C%22Action%22%3A%22s3%3A%2A%22%2C%22Resource%22%3A%22%2A%22%7D%7D",
    );
    ask("request = urllib.request.Request(url + 'bucket', method='PUT')");
    let part = |name: &str| {
        let (_, rest) = keys.split_once(&format!("<{name}>")).unwrap_or_else(|| panic!("{keys}"));
        rest.split('<').next().unwrap().trim().to_owned()
    };
    Some((store, part("AccessKeyId"), part("SecretAccessKey")))
}

#[test]
fn jobs_pull_from_an_object_store_and_push_to_it_with_keys_that_nobody_else_sees() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("objects");
    let Some((_store, access, secret)) = serve_objects(&pool, &project, 18442) else { return };
    staged(&project, "s3://127.0.0.1:18442/bucket/scratch");
    let without = project.tulpar(&["run", "--site", "pool"]);
    assert!(without.code != Some(0), "without keys nobody is let in: {without:?}");
    project.run(&["rm", "-r", ".tulpar"]).good();
    project.write("config/tulpar/secrets/AWS_ACCESS_KEY_ID", &access);
    project.write("config/tulpar/secrets/AWS_SECRET_ACCESS_KEY", &secret);
    // To clean up it would list what is there, and this store knows no signature of a list below a folder, not even boto3's.
    let seen = run(&project, "none");
    assert!(!seen.contains(&secret), "the secret key is where others can read it");
}

#[test]
fn jobs_of_a_node_fetch_an_input_once_where_the_node_has_a_place_for_it() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("fetched-once");
    project.write("genome.txt", &"acgt\n".repeat(100_000));
    project.write(
        "workflow.yaml",
        "workflow: again\ndata: {genome: genome.txt}\ntasks:\n  first:\n    in: [genome]\n    out: {n: n.txt}\n    run: wc -l < {genome} > {n}\n  \
         second:\n    in: [genome, first.n]\n    out: {m: m.txt}\n    run: wc -c < {genome} | cat {n} - > {m}\n",
    );
    let server = served_to_a_node_that_keeps(&pool, &project, "127.0.0.1:18443");
    project.tulpar(&["run", "--site", "pool"]).good();
    assert_eq!(project.read("results/m.txt"), "100000\n500000\n");
    let records = project.read(".tulpar/runs/again-1/records.jsonl");
    let fetched: Vec<u64> = records
        .lines()
        .filter(|line| line.contains("\"node\":\"pool\""))
        .filter_map(|line| line.split_once("\"input_bytes\":")?.1.split([',', '}']).next()?.parse().ok())
        .collect();
    assert_eq!(fetched, [500_000, 7], "the second job has fetched only what the first one made: {records}");
    server.signal("TERM");
    server.wait();
}
