//! Who may look: everybody on this machine, or whoever shows the token.

use tulpar_transfer::{Answer, Asked, Secret};

/// The name of the cookie that remembers the token.
const COOKIE: &str = "tulpar-token";
const YEAR: u32 = 365 * 24 * 60 * 60;

pub(crate) struct Guard {
    token: Option<Secret>,
}

impl Guard {
    /// Without a token everybody who reaches the address may look.
    pub(crate) fn new(token: Option<Secret>) -> Self {
        Guard { token }
    }

    pub(super) fn refuses(&self, asked: &Asked) -> Option<Answer> {
        let Some(token) = &self.token else {
            // A page elsewhere can make its own name lead here; what it asks for still carries that name.
            return (!asked.header("host").is_none_or(is_this_machine))
                .then(|| plain(421, "this page is for this machine: ask for it by its address, or as localhost\n"));
        };
        // A link with the token opens the page; afterwards it is in a cookie and no longer in the address.
        if let Some(shown) = asked.query("token") {
            if !token.is(shown) {
                return Some(plain(
                    401,
                    "this token is not the right one; `tulpar serve` prints the address with it\n",
                ));
            }
            let cookie = format!("{COOKIE}={shown}; Path=/; Max-Age={YEAR}; HttpOnly; SameSite=Strict");
            let path: String = asked.path.iter().map(|part| format!("/{}", escaped(part))).collect();
            let path = if path.is_empty() { "/".to_owned() } else { path };
            return Some(plain(303, "").with("Location", path).with("Set-Cookie", cookie));
        }
        let bearer = asked.header("authorization").and_then(|text| text.strip_prefix("Bearer ")).map(str::trim);
        let shown = bearer.or_else(|| asked.cookie(COOKIE)).unwrap_or_default();
        (!token.is(shown)).then(|| {
            plain(
                401,
                "a token is needed: open the address that `tulpar serve` printed, or send Authorization: Bearer …\n",
            )
            .with("WWW-Authenticate", "Bearer")
        })
    }
}

fn plain(status: u16, text: &'static str) -> Answer {
    Answer::new(status, "text/plain; charset=utf-8", text.as_bytes())
}

fn escaped(part: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    part.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// `localhost`, or an address in digits: no name that somebody else decides about.
fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => return rest.split(']').next().is_some_and(|ip| ip.parse::<std::net::Ipv6Addr>().is_ok()),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::Ipv4Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(guard: &Guard, target: &str) -> Option<u16> {
        guard.refuses(&Asked::parse(target).unwrap()).map(|answer| answer.status)
    }

    #[test]
    fn only_names_that_nobody_else_decides_about_are_this_machine() {
        for host in ["localhost:8230", "LOCALHOST", "127.0.0.1:8230", "[::1]:8230", "10.0.0.7"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["evil.example:8230", "localhost.evil.example", "127.0.0.1.evil.example", ""] {
            assert!(!is_this_machine(host), "{host}");
        }
    }

    #[test]
    fn a_token_is_asked_for_and_kept_in_a_cookie() {
        let guard = Guard::new(Some(Secret::new("hush")));
        assert_eq!(status(&guard, "/"), Some(401));
        assert_eq!(status(&guard, "/?token=wrong"), Some(401));
        let answer = guard.refuses(&Asked::parse("/runs/a%2Fb?token=hush").unwrap()).unwrap();
        assert_eq!(answer.status, 303);
        assert!(answer.headers.iter().any(|(name, value)| *name == "Location" && value == "/runs/a%2Fb"));
        assert!(answer.headers.iter().any(|(name, value)| *name == "Set-Cookie" && value.contains("HttpOnly")));
        assert_eq!(status(&Guard::new(None), "/"), None);
    }
}
