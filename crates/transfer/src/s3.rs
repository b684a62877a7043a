//! Object stores that speak S3: `s3://[user@]endpoint/bucket/key` as Pegasus writes it, or `s3://bucket/key` with an
//! endpoint from the settings. Path-style requests, signed, by the HTTP client. It stores objects of up to 5 GiB.

use crate::credentials::Keys;
use crate::error::TransferError;
use crate::http::{Ask, Client};
use crate::local::Arrived;
use crate::location::{Location, Url, escape};
use crate::sigv4::{self, Signed};
use crate::target::{self, Folders};
use crate::types::Entry;
use crate::types::{Options, Sha256Digest};
use crate::work::Work;
use std::time::SystemTime;

type Result<T> = std::result::Result<T, TransferError>;

const LARGEST_PUT: u64 = 5 << 30;

/// An object, or a bucket when the key is empty, on its server.
struct Object {
    /// Scheme, host and port of the endpoint.
    endpoint: Url,
    bucket: String,
    key: String,
    keys: Option<Keys>,
}

pub(crate) fn perform(
    client: &Client,
    options: &Options,
    folders: &mut Folders,
    batch: &mut [Work<'_>],
) -> Vec<Result<Arrived>> {
    if batch.first().is_some_and(|work| work.transfer.from.as_path().is_none()) {
        return client.fetch_with(options, folders, batch, &|url| {
            Ok(Object::of(options, url)?.ask("GET", "", Sha256Digest::of(b"")))
        });
    }
    client.send_with(options, batch, &|transfer, url, path| {
        let object = Object::of(options, url)?;
        // The signature covers the content, so the store itself refuses what was damaged on its way.
        let (size, sha256) =
            target::hash_file(path, &|| !options.is_cancelled()).map_err(|error| TransferError::local(path, error))?;
        if size > LARGEST_PUT {
            return Err(TransferError::unsupported(
                url,
                "an object of more than 5 GiB cannot be stored in one request",
            ));
        }
        target::check(&path.display(), transfer.size, transfer.sha256, size, Some(sha256))?;
        Ok(object.ask("PUT", "", sha256))
    })
}

pub(crate) fn stat(client: &Client, options: &Options, url: &Url) -> Result<Entry> {
    let reply = client.demand(options, &Object::of(options, url)?.ask("HEAD", "", Sha256Digest::of(b"")))?;
    Ok(Entry { name: Location::Url(url.clone()).name(), size: reply.answer.body.length, directory: false })
}

/// An object; or, when the location ends in `/`, every object whose key begins so.
pub(crate) fn remove(client: &Client, options: &Options, url: &Url) -> Result<()> {
    let object = Object::of(options, url)?;
    if object.key.is_empty() {
        return Err(TransferError::unsupported(url, "a whole bucket is not removed: name what is to go"));
    }
    let one = |object: &Object| client.demand(options, &object.ask("DELETE", "", Sha256Digest::of(b""))).map(|_| ());
    if !object.key.ends_with('/') {
        return one(&object);
    }
    for entry in list(client, options, url, true)? {
        one(&Object { key: format!("{}{}", object.key, entry.name), ..Object::of(options, url)? })?;
    }
    Ok(())
}

pub(crate) fn list(client: &Client, options: &Options, url: &Url, recursive: bool) -> Result<Vec<Entry>> {
    let object = Object::of(options, url)?;
    let mut prefix = object.key.clone();
    if !prefix.is_empty() && !prefix.ends_with('/') {
        prefix.push('/');
    }
    let bucket = Object { key: String::new(), ..object };
    let mut entries = Vec::new();
    let mut more = String::new();
    loop {
        let delimiter = if recursive { "" } else { "delimiter=%2F&" };
        // In the order of their names: the signature wants them so.
        let query = format!("{more}{delimiter}list-type=2&prefix={}", escape(&prefix).replace('/', "%2F"));
        let reply = client.demand(options, &bucket.ask("GET", &query, Sha256Digest::of(b"")))?;
        let text = reply.text();
        for part in elements(&text, "Contents") {
            let key = unescape_xml(elements(part, "Key").next().unwrap_or_default());
            let size = elements(part, "Size").next().and_then(|size| size.trim().parse().ok());
            if let Some(name) = key.strip_prefix(&prefix).filter(|name| !name.is_empty()) {
                entries.push(Entry { name: name.to_owned(), size, directory: false });
            }
        }
        for part in elements(&text, "CommonPrefixes") {
            let folder = unescape_xml(elements(part, "Prefix").next().unwrap_or_default());
            if let Some(name) = folder.strip_prefix(&prefix) {
                entries.push(Entry { name: name.trim_end_matches('/').to_owned(), size: None, directory: true });
            }
        }
        match elements(&text, "NextContinuationToken").next() {
            Some(token) if !token.is_empty() => {
                more = format!("continuation-token={}&", escape(&unescape_xml(token)).replace('/', "%2F"));
            }
            _ => return Ok(entries),
        }
    }
}

impl Object {
    fn of(options: &Options, url: &Url) -> Result<Object> {
        let path = url.decoded_path().to_string_lossy().trim_start_matches('/').to_owned();
        let setting = options.s3_endpoint.clone().or_else(|| {
            let variable = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
            variable("AWS_ENDPOINT_URL_S3").or_else(|| variable("AWS_ENDPOINT_URL"))
        });
        let named = options.credentials.endpoint(&url.authority());
        let with_host = |endpoint: &str| {
            let (bucket, key) = path.split_once('/').unwrap_or((&path, ""));
            Ok((parse(url, endpoint)?, bucket.to_owned(), key.to_owned()))
        };
        let without_host = |endpoint: &str| Ok((parse(url, endpoint)?, url.host.clone(), path.clone()));
        let (endpoint, bucket, key) = match (named, setting) {
            (Some(endpoint), _) => with_host(&endpoint),
            (None, Some(endpoint)) if url.user.is_none() && !endpoint.contains(&url.authority()) => {
                without_host(&endpoint)
            }
            (None, Some(endpoint)) if endpoint.contains(&url.authority()) => with_host(&endpoint),
            (None, None) if url.user.is_none() && url.port.is_none() && !url.host.contains('.') => {
                without_host(&format!("https://s3.{}.amazonaws.com", region()))
            }
            (None, _) => {
                let here = url.host == "localhost" || url.host.starts_with("127.");
                let scheme = if here && url.scheme == "s3" { "http" } else { "https" };
                with_host(&format!("{scheme}://{}", url.authority()))
            }
        }?;
        if bucket.is_empty() {
            return Err(TransferError::unsupported(url, "it names no bucket: write s3://endpoint/bucket/key"));
        }
        let keys = options.credentials.keys(url.user.as_deref(), &url.host);
        Ok(Object { endpoint, bucket, key, keys })
    }

    /// A signed request; without keys an anonymous one, for public buckets.
    fn ask(&self, method: &'static str, query: &str, payload: Sha256Digest) -> Ask {
        let path = format!("/{}/{}", escape(&self.bucket), escape(&self.key));
        let mark = if query.is_empty() { "" } else { "?" };
        let url = Url { path: format!("{path}{mark}{query}"), ..self.endpoint.clone() };
        let host = url.authority();
        let ask = Ask::new(method, url).signed();
        let Some(keys) = &self.keys else { return ask };
        let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let signed = Signed { method, host: &host, path: &path, query, payload, region: &region(), seconds };
        sigv4::headers(&signed, keys).iter().fold(ask, |ask, header| ask.with(header))
    }
}

fn parse(url: &Url, endpoint: &str) -> Result<Url> {
    match Location::parse(endpoint) {
        Ok(Location::Url(endpoint)) if matches!(endpoint.scheme.as_str(), "http" | "https") => {
            Ok(Url { path: "/".to_owned(), ..endpoint })
        }
        _ => Err(TransferError::unsupported(url, "the endpoint of its object store is no http URL")),
    }
}

fn region() -> String {
    let variable = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION")).unwrap_or_else(|| "us-east-1".to_owned())
}

/// The insides of every `<name>…</name>`. Enough for the flat answers of a listing.
fn elements<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(&open)? + open.len();
        let length = rest[start..].find(&close)?;
        let inside = &rest[start..start + length];
        rest = &rest[start + length + close.len()..];
        Some(inside)
    })
}

fn unescape_xml(text: &str) -> String {
    let named = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#34;", "\""), ("&apos;", "'"), ("&#39;", "'")];
    named.iter().fold(text.to_owned(), |text, (name, letter)| text.replace(name, letter)).replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::Credentials;

    fn object(text: &str, endpoint: Option<&str>) -> (String, String, String) {
        let options = Options {
            s3_endpoint: endpoint.map(str::to_owned),
            credentials: Credentials::none(),
            ..Options::default()
        };
        let Ok(Location::Url(url)) = Location::parse(text) else { panic!("{text}") };
        let object = Object::of(&options, &url).unwrap();
        (object.endpoint.exact(), object.bucket, object.key)
    }

    #[test]
    fn both_ways_of_writing_an_object_are_understood() {
        let expected = |one: &str, two: &str, three: &str| (one.to_owned(), two.to_owned(), three.to_owned());
        let here = Some("http://127.0.0.1:5000");
        assert_eq!(object("s3://bucket/a/b", here), expected("http://127.0.0.1:5000/", "bucket", "a/b"));
        assert_eq!(object("s3://127.0.0.1:5000/bucket/a", here), expected("http://127.0.0.1:5000/", "bucket", "a"));
        assert_eq!(object("s3://ada@s3.example.org/b/a%20c", here), expected("https://s3.example.org/", "b", "a c"));
        assert_eq!(object("s3://localhost:9000/b/a", None), expected("http://localhost:9000/", "b", "a"));
    }
}
