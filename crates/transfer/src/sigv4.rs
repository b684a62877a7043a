//! AWS Signature Version 4, as object stores want it. It reads no clock: the time is an argument.

use crate::credentials::Keys;
use crate::date;
use crate::types::Sha256Digest;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What is signed of a request. The path is escaped already.
pub(crate) struct Signed<'a> {
    pub(crate) method: &'a str,
    pub(crate) host: &'a str,
    pub(crate) path: &'a str,
    /// `name=value` pairs, escaped, in the order of their names.
    pub(crate) query: &'a str,
    pub(crate) payload: Sha256Digest,
    pub(crate) region: &'a str,
    pub(crate) seconds: u64,
}

/// The headers to add, without their line ends.
pub(crate) fn headers(signed: &Signed<'_>, keys: &Keys) -> Vec<String> {
    let when = date::compact(signed.seconds);
    let day = when.get(..8).unwrap_or_default();
    let Signed { method, host, path, query, payload, region, .. } = signed;
    let session = keys.session.as_ref().map(|token| token.expose());
    let (mut named, mut names) = (
        format!("host:{host}\nx-amz-content-sha256:{payload}\nx-amz-date:{when}\n"),
        "host;x-amz-content-sha256;x-amz-date".to_owned(),
    );
    if let Some(token) = session {
        named.push_str(&format!("x-amz-security-token:{token}\n"));
        names.push_str(";x-amz-security-token");
    }
    let request = format!("{method}\n{path}\n{query}\n{named}\n{names}\n{payload}");
    let scope = format!("{day}/{region}/s3/aws4_request");
    let text = format!("AWS4-HMAC-SHA256\n{when}\n{scope}\n{}", Sha256Digest::of(request.as_bytes()));
    let mut key = hmac(format!("AWS4{}", keys.secret.expose()).as_bytes(), day);
    for part in [*region, "s3", "aws4_request"] {
        key = hmac(&key.0, part);
    }
    let signature = hmac(&key.0, &text);
    let mut headers = vec![
        format!("x-amz-content-sha256: {payload}"),
        format!("x-amz-date: {when}"),
        format!(
            "Authorization: AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
            keys.access
        ),
    ];
    headers.extend(session.map(|token| format!("x-amz-security-token: {token}")));
    headers
}

fn hmac(key: &[u8], text: &str) -> Sha256Digest {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("an HMAC takes keys of any length");
    mac.update(text.as_bytes());
    Sha256Digest(mac.finalize().into_bytes().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::Secret;

    /// The example "GET Bucket Lifecycle" of Amazon's documentation of the signature.
    #[test]
    fn the_signature_is_that_of_the_documentation() {
        let keys = Keys {
            access: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret: Secret::new("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
            session: None,
        };
        let signed = Signed {
            method: "GET",
            host: "examplebucket.s3.amazonaws.com",
            path: "/",
            query: "lifecycle=",
            payload: Sha256Digest::of(b""),
            region: "us-east-1",
            seconds: 1_369_353_600,
        };
        let headers = headers(&signed, &keys);
        assert_eq!(headers[1], "x-amz-date: 20130524T000000Z");
        assert!(headers[2].ends_with("Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
    }
}
