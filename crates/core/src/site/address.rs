//! Where pilots call: a name of this machine as workers see it, and the port if it must be a certain one.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PilotAddress {
    /// A name or an address; one of IPv6 without brackets.
    pub host: String,
    /// None: any that is free.
    pub port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("`{0}` is no HOST or HOST:PORT, like `submit.example.org:9618`")]
    Shape(String),
    #[error("`{0}` is no port: they go from 1 to 65535")]
    Port(String),
}

impl FromStr for PilotAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError::Shape(text.to_owned());
        if text.parse::<Ipv6Addr>().is_ok() {
            return Ok(Self { host: text.to_owned(), port: None });
        }
        let (host, port) = match text.strip_prefix('[') {
            Some(inside) => {
                let (host, behind) = inside.split_once(']').ok_or_else(wrong)?;
                host.parse::<Ipv6Addr>().map_err(|_| wrong())?;
                (host, behind)
            }
            None => {
                let end = text.find(':').unwrap_or(text.len());
                let named = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
                if end == 0 || text.starts_with('-') || !text[..end].chars().all(named) {
                    return Err(wrong());
                }
                text.split_at(end)
            }
        };
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => None,
            None => return Err(wrong()),
            Some(digits) if !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()) => {
                let port = digits.parse::<u16>().ok().filter(|port| *port > 0);
                Some(port.ok_or_else(|| AddressError::Port(digits.to_owned()))?)
            }
            Some(_) => return Err(wrong()),
        };
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for PilotAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.port, self.is_ipv6()) {
            (None, _) => write!(formatter, "{}", self.host),
            (Some(port), false) => write!(formatter, "{}:{port}", self.host),
            (Some(port), true) => write!(formatter, "[{}]:{port}", self.host),
        }
    }
}

impl PilotAddress {
    pub fn is_ipv6(&self) -> bool {
        self.host.contains(':')
    }
}

impl TryFrom<String> for PilotAddress {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl From<PilotAddress> for String {
    fn from(address: PilotAddress) -> Self {
        address.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_perhaps_a_port() {
        for (text, host, port) in [
            ("submit.example.org", "submit.example.org", None),
            ("submit.example.org:9618", "submit.example.org", Some(9618)),
            ("10.0.0.7:40000", "10.0.0.7", Some(40000)),
            ("2001:db8::7", "2001:db8::7", None),
            ("[2001:db8::7]:40000", "2001:db8::7", Some(40000)),
        ] {
            let address: PilotAddress = text.parse().unwrap();
            assert_eq!((address.host.as_str(), address.port), (host, port), "{text}");
            assert_eq!(address.to_string(), text);
            let saved = serde_json::to_string(&address).unwrap();
            assert_eq!(serde_json::from_str::<PilotAddress>(&saved).unwrap(), address);
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_what_it_should_be() {
        for text in
            ["", ":9618", "http://here:1", "here:", "here:x", "a b", "a,b", "a:1:2", "[::1", "[::1]9", "[here]:1", "-x"]
        {
            assert_eq!(text.parse::<PilotAddress>(), Err(AddressError::Shape(text.to_owned())));
        }
        for port in ["0", "65536", "99999999999"] {
            assert_eq!(format!("here:{port}").parse::<PilotAddress>(), Err(AddressError::Port(port.to_owned())));
        }
    }
}
