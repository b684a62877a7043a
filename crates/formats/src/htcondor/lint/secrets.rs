//! Names and values that give a secret away.

const PARTS: &[&str] =
    &["api_key", "apikey", "secret", "password", "passwd", "access_key", "private_key", "credential"];
const BEGINNINGS: &[&str] = &["hf_", "sk-", "ghp_", "github_pat_", "glpat-", "AKIA", "xoxb-"];

/// A name that says so. A file or folder of secrets is none.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let place = ["_file", "_path", "_dir", "_env"].iter().any(|end| name.ends_with(end));
    let token = name.ends_with("token") || name.contains("auth_token") || name.contains("access_token");
    !place && (token || PARTS.iter().any(|part| name.contains(part)))
}

/// A value that looks like a key that some service gives out.
pub(super) fn is_secret_value(value: &str) -> bool {
    BEGINNINGS.iter().any(|start| value.starts_with(start) && value.len() >= start.len() + 16)
}

/// Files in which programs keep every secret of their user, not only the one that a job needs.
const FILES: &[&str] = &[
    ".netrc",
    "_netrc",
    ".git-credentials",
    ".pypirc",
    ".pgpass",
    "kaggle.json",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
];
const FOLDERS: &[&str] = &[".ssh", ".aws", ".gnupg", ".kaggle"];
/// What is written for others to fill in.
const EXAMPLES: &[&str] = &["example", "sample", "template", "dist"];

/// A path under which secrets are kept by convention.
pub(super) fn is_secret_file(path: &str) -> bool {
    let mut parts = path.trim_end_matches('/').rsplit('/');
    let name = parts.next().unwrap_or_default();
    let settings = name == ".env"
        || name.strip_prefix(".env.").is_some_and(|kind| !EXAMPLES.iter().any(|example| kind.ends_with(example)));
    settings
        || FILES.contains(&name)
        || FOLDERS.contains(&name)
        || (name == "credentials" && parts.next() == Some(".aws"))
}

/// The word of a command line that names or is a secret.
pub(super) fn in_arguments(words: &[String]) -> Option<&str> {
    for (at, word) in words.iter().enumerate() {
        if is_secret_value(word) {
            return Some(word);
        }
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, !value.is_empty()),
            None => {
                (word.as_str(), word.starts_with('-') && words.get(at + 1).is_some_and(|next| !next.starts_with('-')))
            }
        };
        if value && is_secret_name(name.trim_start_matches('-')) {
            return Some(name);
        }
        if word.split_once('=').is_some_and(|(_, value)| is_secret_value(value)) {
            return Some(name);
        }
    }
    None
}
