//! What opens staging sites: the secrets that travel with jobs that move files themselves, and the files that ssh wants.
//!
//! A token for HTTP, keys of an object store, a key of ssh with the hosts that it may be shown to. Each goes only with jobs
//! that have something to fetch from, or bring to, a site of that kind.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tulpar_core::job::{JobSpec, Source};

/// Opens a private staging server.
pub(super) const TOKEN: &str = "TULPAR_STAGING_TOKEN";
/// The text of a private key.
const SSH_KEY: &str = "TULPAR_STAGING_SSH_KEY";
/// Lines as in `~/.ssh/known_hosts`.
const SSH_HOSTS: &str = "TULPAR_STAGING_SSH_HOSTS";

/// What a site of each kind takes. The place of an object store is no secret, but must be known where its keys are.
const OF_SCHEMES: [(&[&str], &[&str]); 3] = [
    (&["http:", "https:"], &[TOKEN]),
    (
        &["s3:", "s3s:"],
        &["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_REGION"],
    ),
    (&["scp:", "sftp:"], &[SSH_KEY, SSH_HOSTS]),
];

/// All names, for jobs that go nowhere.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    OF_SCHEMES.iter().flat_map(|(_, names)| names.iter().copied())
}

/// The names of the secrets that a job needs at staging sites.
pub fn staging_secrets(spec: &JobSpec) -> Vec<&'static str> {
    let Some(script) = &spec.script else { return Vec::new() };
    let inputs = spec.inputs.iter().flat_map(|input| input.files.iter());
    let files = inputs.chain(script.images.iter().map(|image| &image.file));
    let urls: Vec<&str> = files
        .filter_map(|file| match &file.source {
            Source::Remote(url) => Some(url.as_str()),
            _ => None,
        })
        .chain(script.push.as_deref())
        .collect();
    let is_used = |schemes: &[&str]| urls.iter().any(|url| schemes.iter().any(|scheme| url.starts_with(scheme)));
    let used = OF_SCHEMES.iter().filter(|(schemes, _)| is_used(schemes));
    used.flat_map(|(_, names)| names.iter().copied()).collect()
}

/// The key and the hosts as files, as long as it lives.
pub(super) struct SshFiles(Vec<PathBuf>);

impl SshFiles {
    /// From the secrets of the job. Gives what ssh is to be told as well.
    pub(super) fn write(folder: &Path, secret: impl Fn(&str) -> Option<String>) -> io::Result<(Self, Vec<String>)> {
        let (mut files, mut words) = (Self(Vec::new()), Vec::new());
        if let Some(key) = secret(SSH_KEY) {
            let path = files.add(folder.join(".staging-key"), &key)?;
            words.extend(["-i".to_owned(), path, "-o".to_owned(), "IdentitiesOnly=yes".to_owned()]);
        }
        if let Some(hosts) = secret(SSH_HOSTS) {
            let path = files.add(folder.join(".staging-hosts"), &hosts)?;
            words.extend(["-o".to_owned(), format!("UserKnownHostsFile={path}")]);
        }
        Ok((files, words))
    }

    fn add(&mut self, path: PathBuf, text: &str) -> io::Result<String> {
        let _ = std::fs::remove_file(&path);
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        self.0.push(path.clone());
        // A key without its last line end is none to ssh.
        writeln!(file, "{}", text.trim_end())?;
        Ok(path.to_string_lossy().into_owned())
    }
}

impl Drop for SshFiles {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn spec(input: &str, push: &str) -> JobSpec {
        let digest = "0".repeat(64);
        let text = format!(
            r#"{{"attempt":{{"job":4,"n":2}},"name":"train","command":{{"arguments":["x"]}},
               "inputs":[{{"name":"a","files":[{{"path":"a","source":{{"remote":"{input}"}},"size":1,"digest":"{digest}"}}]}}],
               "script":{{"work":"command","push":"{push}","threads":2}},
               "limits":{{"memory":0,"time":null,"grace":null}},"milli_cpus":1000,"node":"here"}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_job_takes_the_secrets_of_the_sites_that_it_visits_and_no_others() {
        assert_eq!(staging_secrets(&spec("http://a/x", "https://a/out")), [TOKEN]);
        assert_eq!(staging_secrets(&spec("scp://a/x", "http://a/out")), [TOKEN, SSH_KEY, SSH_HOSTS]);
        assert_eq!(staging_secrets(&spec("s3://b/x", "file:///out"))[0], "AWS_ACCESS_KEY_ID");
        assert_eq!(staging_secrets(&spec("file:///x", "file:///out")), [""; 0]);
    }

    #[test]
    fn keys_are_files_for_their_owner_alone_and_go_with_the_job() {
        let folder = tempfile::tempdir().unwrap();
        let secret = |name: &str| (name == SSH_KEY).then(|| "-----BEGIN\nabc".to_owned());
        let (files, words) = SshFiles::write(folder.path(), secret).unwrap();
        let path = folder.path().join(".staging-key");
        assert_eq!(words, ["-i", path.to_str().unwrap(), "-o", "IdentitiesOnly=yes"]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "-----BEGIN\nabc\n");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(files);
        assert!(!path.exists());
    }
}
