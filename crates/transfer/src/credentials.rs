//! Tokens, logins and keys by host. Looked up when needed, never shown: a [`Secret`] prints as dots.
//!
//! In order: what the caller's closure says, Tulpar's token file, `~/.netrc`; keys of object stores from Pegasus'
//! `credentials.conf` or from the environment.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether somebody shows it. Takes as long whatever is shown, so that time tells nothing about it.
    pub fn is(&self, shown: &str) -> bool {
        let (shown, own) = (shown.as_bytes(), self.0.as_bytes());
        let differ =
            own.iter().enumerate().fold(0, |sum, (place, byte)| sum | byte ^ shown.get(place).copied().unwrap_or(0));
        differ == 0 && shown.len() == own.len()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(…)")
    }
}

/// How a request says who it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Login {
    Bearer(Secret),
    Basic { user: String, password: Secret },
}

/// Keys of an object store.
#[derive(Clone, Debug)]
pub struct Keys {
    pub access: String,
    pub secret: Secret,
    pub session: Option<Secret>,
}

type TokenLookup = Arc<dyn Fn(&str) -> Option<Secret> + Send + Sync>;

/// Where secrets come from. `Default` reads the user's files and environment; `none()` reads nothing.
#[derive(Clone)]
pub struct Credentials {
    lookup: Option<TokenLookup>,
    keys: Option<Keys>,
    from_user: bool,
}

impl Default for Credentials {
    fn default() -> Self {
        Credentials { lookup: None, keys: None, from_user: true }
    }
}

impl Credentials {
    pub fn none() -> Self {
        Credentials { lookup: None, keys: None, from_user: false }
    }

    /// Asked first, with `host` or `host:port` as the URL has it.
    #[must_use]
    pub fn with_tokens(mut self, lookup: impl Fn(&str) -> Option<Secret> + Send + Sync + 'static) -> Self {
        self.lookup = Some(Arc::new(lookup));
        self
    }

    /// These keys for every object store, instead of those of the environment.
    #[must_use]
    pub fn with_keys(mut self, keys: Keys) -> Self {
        self.keys = Some(keys);
        self
    }

    pub(crate) fn login(&self, host: &str, authority: &str) -> Option<Login> {
        if let Some(token) = self.lookup.as_ref().and_then(|lookup| lookup(authority)) {
            return Some(Login::Bearer(token));
        }
        if !self.from_user {
            return None;
        }
        let tokens = std::env::var_os("TULPAR_TOKENS").map(PathBuf::from).or_else(|| Some(config()?.join("tokens")));
        if let Some(token) = tokens.and_then(read).and_then(|text| token_of(&text, host, authority)) {
            return Some(Login::Bearer(token));
        }
        let netrc = std::env::var_os("NETRC").map(PathBuf::from).or_else(|| Some(home()?.join(".netrc")));
        netrc.and_then(read).and_then(|text| netrc_of(&text, host))
    }

    /// The keys for `s3://[user@]endpoint/…`.
    pub(crate) fn keys(&self, user: Option<&str>, endpoint: &str) -> Option<Keys> {
        if let Some(keys) = &self.keys {
            return Some(keys.clone());
        }
        if !self.from_user {
            return None;
        }
        let section = user.map_or_else(|| endpoint.to_owned(), |user| format!("{user}@{endpoint}"));
        let listed = pegasus().and_then(|text| {
            Some(Keys {
                access: setting(&text, &section, "access_key")?,
                secret: Secret::new(setting(&text, &section, "secret_key")?),
                session: setting(&text, &section, "session_token").map(Secret::new),
            })
        });
        listed.or_else(|| {
            Some(Keys {
                access: std::env::var("AWS_ACCESS_KEY_ID").ok()?,
                secret: Secret::new(std::env::var("AWS_SECRET_ACCESS_KEY").ok()?),
                session: std::env::var("AWS_SESSION_TOKEN").ok().map(Secret::new),
            })
        })
    }

    /// The URL that Pegasus' `credentials.conf` gives to the name of an endpoint.
    pub(crate) fn endpoint(&self, name: &str) -> Option<String> {
        if !self.from_user {
            return None;
        }
        setting(&pegasus()?, name, "endpoint")
    }
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from)
}

fn config() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| Some(home()?.join(".config")))?;
    Some(base.join("tulpar"))
}

fn pegasus() -> Option<String> {
    let named = std::env::var_os("PEGASUS_CREDENTIALS").map(PathBuf::from);
    named.or_else(|| Some(home()?.join(".pegasus/credentials.conf"))).and_then(read)
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// Lines of `host token` or `host:port token`; the one with the port counts more.
fn token_of(text: &str, host: &str, authority: &str) -> Option<Secret> {
    let lines = || text.lines().filter_map(|line| line.trim().split_once(char::is_whitespace));
    let of = |wanted: &str| lines().find(|(name, _)| *name == wanted).map(|(_, token)| Secret::new(token.trim()));
    of(authority).or_else(|| of(host))
}

/// `machine host login user password secret`; without a login the password is a token.
fn netrc_of(text: &str, host: &str) -> Option<Login> {
    let mut words = text.split_whitespace();
    let (mut ours, mut user, mut password) = (false, None, None);
    while let Some(word) = words.next() {
        match word {
            "machine" | "default" if ours => break,
            "machine" => ours = words.next() == Some(host),
            "login" if ours => user = words.next(),
            "password" if ours => password = words.next(),
            _ => {}
        }
    }
    match (user, password) {
        (Some(user), Some(password)) => Some(Login::Basic { user: user.to_owned(), password: Secret::new(password) }),
        (None, Some(password)) => Some(Login::Bearer(Secret::new(password))),
        _ => None,
    }
}

/// `key = value` of a `[section]`.
fn setting(text: &str, section: &str, key: &str) -> Option<String> {
    let mut ours = false;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            ours = name.trim() == section;
        } else if ours && let Some((name, value)) = line.split_once(['=', ':']).filter(|(name, _)| name.trim() == key) {
            debug_assert_eq!(name.trim(), key);
            return Some(value.trim().to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_for_host_and_port_counts_more_than_one_for_the_host() {
        let text = "data.example.org  first\ndata.example.org:8080 second\n";
        assert_eq!(token_of(text, "data.example.org", "data.example.org:8080").unwrap().expose(), "second");
        assert_eq!(token_of(text, "data.example.org", "data.example.org").unwrap().expose(), "first");
        assert_eq!(token_of(text, "example.org", "example.org"), None);
    }

    #[test]
    fn netrc_gives_a_login_or_a_token() {
        let text = "machine a login ada password secret\nmachine b password token\n";
        assert_eq!(netrc_of(text, "a"), Some(Login::Basic { user: "ada".to_owned(), password: Secret::new("secret") }));
        assert_eq!(netrc_of(text, "b"), Some(Login::Bearer(Secret::new("token"))));
        assert_eq!(netrc_of(text, "c"), None);
    }

    #[test]
    fn sections_of_pegasus_credentials_are_kept_apart() {
        let text = "[store]\nendpoint = https://s3.example.org\n[ada@store]\naccess_key = A\nsecret_key = B\n";
        assert_eq!(setting(text, "store", "endpoint").as_deref(), Some("https://s3.example.org"));
        assert_eq!(setting(text, "ada@store", "secret_key").as_deref(), Some("B"));
        assert_eq!(setting(text, "store", "secret_key"), None);
    }

    #[test]
    fn a_secret_is_never_printed() {
        assert_eq!(format!("{:?}", Login::Bearer(Secret::new("hush"))), "Bearer(Secret(…))");
    }
}
