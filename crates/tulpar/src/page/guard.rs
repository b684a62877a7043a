//! Who may look: whoever shows the token. Other users of this machine reach its own addresses too.

use tulpar_transfer::{Answer, Asked, Secret, is_this_machine};

/// How the name of the cookie begins that remembers the token.
const COOKIE: &str = "tulpar-token";
const YEAR: u32 = 365 * 24 * 60 * 60;

pub struct Guard {
    token: Secret,
    /// It listens on this machine's own addresses only.
    local: bool,
}

impl Guard {
    pub fn new(token: Secret, local: bool) -> Self {
        Guard { token, local }
    }

    pub(super) fn refuses(&self, asked: &Asked) -> Option<Answer> {
        let token = &self.token;
        // A page elsewhere can make its own name lead here; what it asks for still carries that name.
        if self.local && !asked.header("host").is_none_or(is_this_machine) {
            return Some(plain(421, "this page is for this machine: ask for it by its address, or as localhost\n"));
        }
        let cookie_name = cookie_name(asked.header("host").unwrap_or_default());
        // A link with the token opens the page; afterwards it is in a cookie and no longer in the address.
        if let Some(shown) = asked.query("token") {
            if !token.is(shown) {
                return Some(plain(
                    401,
                    "this token is not the right one; `tulpar serve` prints the address with it\n",
                ));
            }
            let cookie = format!("{cookie_name}={shown}; Path=/; Max-Age={YEAR}; HttpOnly; SameSite=Strict");
            let path: String = asked.path.iter().map(|part| format!("/{}", escaped(part))).collect();
            let path = if path.is_empty() { "/".to_owned() } else { path };
            return Some(plain(303, "").with("Location", path).with("Set-Cookie", cookie));
        }
        let bearer = asked.header("authorization").and_then(|text| text.strip_prefix("Bearer ")).map(str::trim);
        let shown = bearer.or_else(|| asked.cookie(&cookie_name)).unwrap_or_default();
        (!token.is(shown)).then(|| {
            plain(
                401,
                "a token is needed: open the address that `tulpar serve` printed, or send Authorization: Bearer …\n",
            )
            .with("WWW-Authenticate", "Bearer")
        })
    }
}

/// Cookies do not know ports: each server has one of its own.
fn cookie_name(host: &str) -> String {
    match host.rsplit_once(':') {
        Some((_, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{COOKIE}-{port}")
        }
        _ => COOKIE.to_owned(),
    }
}

fn plain(status: u16, text: &'static str) -> Answer {
    Answer::new(status, "text/plain; charset=utf-8", text.as_bytes())
}

fn escaped(part: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    part.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(guard: &Guard, target: &str) -> Option<u16> {
        guard.refuses(&Asked::parse(target).unwrap()).map(|answer| answer.status)
    }

    #[test]
    fn a_token_is_asked_for_and_kept_in_a_cookie() {
        let guard = Guard::new(Secret::new("hush"), true);
        assert_eq!(status(&guard, "/"), Some(401));
        assert_eq!(status(&guard, "/?token=wrong"), Some(401));
        let answer = guard.refuses(&Asked::parse("/runs/a%2Fb?token=hush").unwrap()).unwrap();
        assert_eq!(answer.status, 303);
        assert!(answer.headers.iter().any(|(name, value)| *name == "Location" && value == "/runs/a%2Fb"));
        assert!(answer.headers.iter().any(|(name, value)| *name == "Set-Cookie" && value.contains("HttpOnly")));
    }
}
