//! Locations as people write them.

use crate::harness::location;
use tulpar_transfer::{BadLocation, Location, Transfer};

#[test]
fn paths_and_urls_are_told_apart() {
    assert_eq!(location("/data/a b"), Location::File("/data/a b".into()));
    assert_eq!(location("data/a:b"), Location::File("data/a:b".into()));
    assert_eq!(location("file:///data/a%20b"), Location::File("/data/a b".into()));
    assert_eq!(location("file://localhost/data"), Location::File("/data".into()));
    let Location::Url(url) = location("HTTPS://ada:lovelace@Data.Example.org:8443/x/y?token=z") else { panic!() };
    assert_eq!((url.scheme.as_str(), url.host.as_str(), url.port), ("https", "data.example.org", Some(8443)));
    assert_eq!(
        (url.user.as_deref(), url.password(), url.path.as_str()),
        (Some("ada"), Some("lovelace"), "/x/y?token=z")
    );
    let Location::Url(url) = location("http://[::1]:80/a") else { panic!() };
    assert_eq!((url.host.as_str(), url.port), ("[::1]", Some(80)));
    let Location::Url(url) = location("osdf:///ospool/a") else { panic!() };
    assert_eq!((url.host.as_str(), url.path.as_str()), ("", "/ospool/a"));
}

#[test]
fn what_cannot_be_understood_is_said_without_its_password() {
    assert_eq!(Location::parse(""), Err(BadLocation::Empty));
    assert_eq!(Location::parse("http:///a"), Err(BadLocation::NoHost("http:///a".to_owned())));
    assert_eq!(
        Location::parse("http://a:secret@host:99999/").unwrap_err().to_string(),
        "`http://…@host:99999/` has a port that is no number from 1 to 65535"
    );
    assert_eq!(Location::parse("file://other/a"), Err(BadLocation::FileElsewhere("file://other/a".to_owned())));
}

#[test]
fn secrets_are_not_shown() {
    let with_secrets = location("http://ada:secret@host/a?sig=secret");
    assert_eq!(with_secrets.to_string(), "http://ada@host/a?…");
    assert_eq!(format!("{with_secrets:?}"), "Url(Url(http://ada@host/a?…))");
    assert_eq!(with_secrets.exact(), "http://ada:secret@host/a?sig=secret");
}

#[test]
fn names_are_joined_and_escaped() {
    assert_eq!(location("http://host/base").join("a b/#1%.txt").exact(), "http://host/base/a%20b/%231%25.txt");
    assert_eq!(location("http://host/base/?key=1").join("x").exact(), "http://host/base/x?key=1");
    assert_eq!(location("/base").join("a b"), Location::File("/base/a b".into()));
    assert_eq!(location("http://host/a%20b").name(), "a b");
}

#[test]
fn a_transfer_is_written_and_read_as_json() {
    let text = r#"{"from":"http://host/a","to":"/b","size":3,"executable":true}"#;
    let transfer: Transfer = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&transfer).unwrap(), text);
}
