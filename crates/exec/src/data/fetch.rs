//! Files behind URLs, fetched before the run into `.tulpar/cache/downloads/`.
//!
//! `curl` does the talking for `http`: it knows proxies, certificates and retries. Every run first asks the server whether
//! the file has changed; if it cannot say for certain, the file is fetched again and compared. A server is certain with a strong
//! `ETag` (`If-None-Match`), or when time and length (`HEAD`) are the same. Times have seconds: neither counts for a file that was
//! written within a minute of the answer that brought it. If the server cannot be reached, the copy is used, and that is told. A copy with a checksum in the catalogue needs no question. Other
//! places that Tulpar can move from (`osdf`, `s3`, `scp`) are not asked: their copy is used, and that is told. A file that is
//! there was fetched completely (temporary name, then rename).

use super::list::is_url;
use super::{DataError, Listed, hash_file};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tulpar_core::catalogue::Chosen;
use tulpar_core::ids::Digest;
use tulpar_core::units::Timestamp;
use tulpar_core::workflow::{Data, DataSource};
use tulpar_transfer::{Location, Options, Transfer};

const AT_ONCE: usize = 4;

/// A file to fetch: for which entry, from where, and what the sandbox calls it.
struct Wanted<'a> {
    entry: usize,
    url: &'a str,
    path: String,
    /// The catalogue says what it holds.
    pinned: bool,
}

/// How the copy of a file behind a URL stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    Fetched,
    /// The server still has the content that came then.
    Unchanged {
        since: Timestamp,
    },
    /// The server has other content than the copy that came then: it was fetched.
    Changed {
        since: Timestamp,
    },
    /// The server did not give it; the copy that came then is used.
    Unreachable {
        copied: Timestamp,
        cause: String,
    },
    /// Nobody was asked whether it changed; the copy that came then is used.
    NotAsked {
        copied: Timestamp,
    },
    /// The copy is compared with a checksum of the catalogue.
    Pinned,
}

pub(super) type Outcome = Result<(Listed, How), DataError>;

/// For each URL in the entries, the number of its entry, where it lies now and how it came there; in the order of the entries.
pub(super) fn fetch_all(folder: &Path, cache: &Path, data: &[Data], anew: bool) -> Vec<(usize, String, Outcome)> {
    let mut urls: Vec<Wanted<'_>> = Vec::new();
    for (entry, found) in data.iter().enumerate() {
        match &found.source {
            DataSource::Url(url) => {
                let path = format!("{}/{}", found.name, file_name(url));
                urls.push(Wanted { entry, url, path, pinned: false });
            }
            DataSource::Files(files) => {
                urls.extend(files.iter().filter(|(_, place)| is_url(place)).map(|(path, url)| Wanted {
                    entry,
                    url,
                    path: path.clone(),
                    pinned: false,
                }))
            }
            DataSource::Copies(copies) => urls.extend(copies.iter().filter_map(|copy| match copy {
                Chosen::File { name, place, sha256, .. } if is_url(place) && !place.starts_with("file:") => {
                    Some(Wanted { entry, url: place, path: name.clone(), pinned: sha256.is_some() })
                }
                _ => None,
            })),
            _ => {}
        }
    }
    let results: Vec<Mutex<Option<Outcome>>> = urls.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(urls.len()) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(wanted) = urls.get(number) else { break };
                    let listed = fetch(cache, wanted, anew).map(|(place, how)| {
                        let from = place.strip_prefix(folder).unwrap_or(&place).to_string_lossy().into_owned();
                        (Listed { path: wanted.path.clone(), from, within: None }, how)
                    });
                    *results[number].lock().unwrap_or_else(|poison| poison.into_inner()) = Some(listed);
                }
            });
        }
    });
    let results = results.into_iter().map(|result| result.into_inner().unwrap_or_else(|poison| poison.into_inner()));
    urls.iter()
        .zip(results)
        .filter_map(|(wanted, result)| Some((wanted.entry, wanted.url.to_owned(), result?)))
        .collect()
}

/// The files of an entry that are behind URLs, as if they were fetched.
pub(super) fn unfetched(entry: &Data) -> Vec<Listed> {
    let listed = |path: String, url: &str| Listed { path, from: url.to_owned(), within: None };
    match &entry.source {
        DataSource::Url(url) => vec![listed(format!("{}/{}", entry.name, file_name(url)), url)],
        DataSource::Files(files) => {
            let urls = files.iter().filter(|(_, place)| is_url(place));
            urls.map(|(path, url)| listed(path.clone(), url)).collect()
        }
        _ => Vec::new(),
    }
}

/// The last part of the URL's path, in characters that are safe in a file name.
fn file_name(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    let last = path.split_once('/').map_or("", |(_, rest)| rest).rsplit('/').next().unwrap_or_default();
    let safe: String = last
        .chars()
        .map(|character| if character.is_alphanumeric() || "._-+=@".contains(character) { character } else { '_' })
        .take(120)
        .collect();
    match safe.trim_start_matches('.') {
        "" => "file".to_owned(),
        safe => safe.to_owned(),
    }
}

/// Where the file behind a URL lies now, and how it came there.
fn fetch(cache: &Path, wanted: &Wanted<'_>, anew: bool) -> Result<(PathBuf, How), DataError> {
    let url = wanted.url;
    let downloads = cache.join("downloads");
    let unwritable = |cause| DataError::Cache { path: downloads.clone(), cause };
    fs::create_dir_all(&downloads).map_err(unwritable)?;
    let stem = Digest::of(url.as_bytes()).hex()[..16].to_owned();
    let about = downloads.join(format!("{stem}.json"));
    let copy = Copy::load(&about).filter(|copy| downloads.join(&copy.file).is_file());
    let is_http = url.starts_with("http://") || url.starts_with("https://");
    if let Some(copy) = &copy
        && (wanted.pinned || !is_http && !anew)
    {
        let how = if wanted.pinned { How::Pinned } else { How::NotAsked { copied: copy.fetched } };
        return Ok((downloads.join(&copy.file), how));
    }
    let temporary = downloads.join(format!("{stem}.part-{}", std::process::id()));
    let answer = if is_http { ask(url, &temporary, copy.as_ref(), anew) } else { move_here(url, &temporary) };
    let answer = match (answer, &copy) {
        (Ok(answer), _) => answer,
        (Err(DataError::Fetch { cause, .. }), Some(copy)) => {
            let _ = fs::remove_file(&temporary);
            return Ok((downloads.join(&copy.file), How::Unreachable { copied: copy.fetched, cause }));
        }
        (Err(error), _) => {
            let _ = fs::remove_file(&temporary);
            return Err(error);
        }
    };
    let fetched = crate::local::now();
    match (answer, &copy) {
        (Answer::NotModified, Some(copy)) => {
            let _ = fs::remove_file(&temporary);
            Ok((downloads.join(&copy.file), How::Unchanged { since: copy.fetched }))
        }
        (Answer::Content { etag, modified, settled }, _) => {
            if !temporary.exists() {
                // An empty answer leaves no file behind.
                fs::write(&temporary, b"").map_err(unwritable)?;
            }
            let (digest, length) =
                File::open(&temporary).and_then(|mut file| hash_file(&mut file)).map_err(unwritable)?;
            // Each version has a name of its own: a run that uses the old one goes on with it.
            let file = format!("{stem}-{}-{}", &digest.hex()[..8], file_name(url));
            let place = downloads.join(&file);
            let same = copy.as_ref().is_some_and(|copy| copy.digest == digest && place.is_file());
            if same {
                fs::remove_file(&temporary).map_err(unwritable)?;
            } else {
                fs::rename(&temporary, &place).map_err(unwritable)?;
            }
            let how = match &copy {
                None => How::Fetched,
                Some(copy) if same => How::Unchanged { since: copy.fetched },
                Some(copy) => How::Changed { since: copy.fetched },
            };
            let fetched = copy.filter(|_| same).map_or(fetched, |copy| copy.fetched);
            let url = url.to_owned();
            Copy { url, file, digest, length, etag, modified, settled, fetched }.save(&about).map_err(unwritable)?;
            Ok((place, how))
        }
        (Answer::NotModified, None) => Err(DataError::Fetch {
            url: url.to_owned(),
            cause: "the server says that it has not changed, but was not asked that".to_owned(),
            hint: "Fetch the file yourself and give its path".to_owned(),
        }),
    }
}

/// The copy that is here, beside it as JSON.
#[derive(Serialize, Deserialize)]
struct Copy {
    url: String,
    /// Its name in the folder of downloads.
    file: String,
    digest: Digest,
    #[serde(default)]
    length: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    modified: Option<String>,
    /// It was not written in the last minute before it came: another write gives it another time.
    #[serde(default)]
    settled: bool,
    /// When this content came.
    fetched: Timestamp,
}

impl Copy {
    fn load(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    fn save(&self, path: &Path) -> io::Result<()> {
        let temporary = path.with_extension(format!("json-{}", std::process::id()));
        fs::write(&temporary, serde_json::to_vec(self)?)?;
        fs::rename(&temporary, path)
    }
}

enum Answer {
    NotModified,
    /// It is under the temporary name now.
    Content {
        etag: Option<String>,
        modified: Option<String>,
        settled: bool,
    },
}

fn trouble(url: &str, cause: impl Into<String>, hint: &str) -> DataError {
    DataError::Fetch { url: url.to_owned(), cause: cause.into(), hint: hint.to_owned() }
}

fn move_here(url: &str, temporary: &Path) -> Result<Answer, DataError> {
    let from = Location::parse(url).map_err(|error| trouble(url, error.to_string(), "Correct the URL"))?;
    let moved = tulpar_transfer::transfer(&[Transfer::new(from, temporary.to_owned())], &Options::default());
    if let Some(Err(error)) = moved.into_iter().next() {
        let said = error.to_string();
        let cause = said.strip_prefix(&format!("{url} cannot be moved: ")).unwrap_or(&said);
        return Err(trouble(url, cause, "Or fetch it yourself and give its path"));
    }
    Ok(Answer::Content { etag: None, modified: None, settled: false })
}

/// Asks an HTTP server for the file; with a copy, only for one that is not the copy, unless it is wanted anew.
fn ask(url: &str, temporary: &Path, copy: Option<&Copy>, anew: bool) -> Result<Answer, DataError> {
    let known = copy.filter(|copy| !anew && copy.settled);
    let mut more: Vec<String> = Vec::new();
    match known.map(|copy| (copy, copy.etag.as_ref().filter(|etag| etag.starts_with('"')))) {
        Some((_, Some(etag))) => more = vec!["--header".into(), format!("If-None-Match: {etag}")],
        Some((copy, None)) if is_the_same(url, temporary, copy)? => return Ok(Answer::NotModified),
        _ => {}
    }
    if anew {
        // Of caches on the way.
        more.extend(["--header".into(), "Cache-Control: no-cache".into()]);
    }
    let told = curl(url, temporary, copy.is_some(), &more).map_err(|untold| untold.error)?;
    if told.not_modified {
        return Ok(Answer::NotModified);
    }
    let (etag, modified) = (header(&told.headers, "etag"), header(&told.headers, "last-modified"));
    let written = modified.as_deref().map(seconds);
    let answered = header(&told.headers, "date").as_deref().and_then(seconds);
    let settled = match (written, answered) {
        (None, _) => etag.is_some(),
        (Some(written), answered) => written.zip(answered).is_some_and(|(then, now)| now >= then + SETTLED),
    };
    Ok(Answer::Content { etag, modified, settled })
}

/// So many seconds after a write no other write can have the same time.
const SETTLED: i64 = 60;

/// Whether the server tells the time and length of the copy. One that does not answer this question is asked for the file.
fn is_the_same(url: &str, temporary: &Path, copy: &Copy) -> Result<bool, DataError> {
    let Some(modified) = &copy.modified else { return Ok(false) };
    let told = match curl(url, temporary, true, &["--head".to_owned()]) {
        Ok(told) => told,
        Err(Untold { code: Some(HTTP_ERROR), .. }) => return Ok(false),
        Err(Untold { error, .. }) => return Err(error),
    };
    let length = header(&told.headers, "content-length").and_then(|length| length.parse::<u64>().ok());
    Ok(length == Some(copy.length) && header(&told.headers, "last-modified").as_ref() == Some(modified))
}

/// An answer of a server; its content is under the temporary name.
struct Told {
    not_modified: bool,
    headers: String,
}

/// No answer, with the exit code of curl.
struct Untold {
    code: Option<i32>,
    error: DataError,
}

/// The exit code of curl when a server answered with an error.
const HTTP_ERROR: i32 = 22;

fn curl(url: &str, temporary: &Path, has_copy: bool, more: &[String]) -> Result<Told, Untold> {
    let headers = temporary.with_extension(format!("headers-{}", std::process::id()));
    let mut command = Command::new("curl");
    let (tries, patience) = if has_copy { ("1", "10") } else { ("3", "30") };
    command
        .args(["--fail", "--silent", "--show-error", "--location", "--retry", tries, "--connect-timeout", patience])
        .args(["--proto", "=http,https", "--proto-redir", "=http,https", "--write-out", "%{http_code}"])
        .args(more)
        .arg("--dump-header")
        .arg(&headers)
        .arg("--output")
        .arg(temporary)
        .args(["--url", url])
        .stdin(Stdio::null());
    let outcome = command.output();
    let told = fs::read(&headers).unwrap_or_default();
    let _ = fs::remove_file(&headers);
    let untold = |code, cause: String, hint: &str| Untold { code, error: trouble(url, cause, hint) };
    let output = match outcome {
        Ok(output) => output,
        Err(cause) if cause.kind() == ErrorKind::NotFound => {
            let hint = "Install curl, or fetch the file yourself and give its path";
            return Err(untold(None, "there is no `curl` here".to_owned(), hint));
        }
        Err(cause) => {
            let cause = format!("`curl` does not start: {cause}");
            return Err(untold(None, cause, "Fetch the file yourself and give its path"));
        }
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().last().unwrap_or("curl gave no reason").trim().to_owned();
        let hint = match output.status.code() {
            Some(6 | 7 | 28 | 35) => "Check the network and the proxy settings, then run again",
            Some(HTTP_ERROR) => "Open the URL in a browser: it may have moved, or need a login",
            _ => "Fetch the file yourself and give its path",
        };
        return Err(untold(output.status.code(), said, hint));
    }
    let headers = String::from_utf8_lossy(&told).into_owned();
    Ok(Told { not_modified: output.stdout.ends_with(b"304"), headers })
}

/// Seconds since 1970 of a time such as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn seconds(text: &str) -> Option<i64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let words: Vec<&str> = text.split_once(", ")?.1.split([' ', ':']).collect();
    let [day, month, year, hour, minute, second, "GMT"] = words[..] else { return None };
    let month = i64::try_from(MONTHS.find(month).filter(|_| month.len() == 3)? / 3).ok()?;
    let number = |text: &str| text.parse::<i64>().ok().filter(|number| (0..=9999).contains(number));
    // Years begin in March here, so that the day that is not always there is the last one.
    let (year, month) = if month < 2 { (number(year)? - 1, month + 10) } else { (number(year)?, month - 2) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + number(day)? - 719_469;
    Some(((days * 24 + number(hour)?) * 60 + number(minute)?) * 60 + number(second)?)
}

/// A header of the last answer: those before it only said where to look.
fn header(told: &str, name: &str) -> Option<String> {
    let last = told.trim_end().rsplit("\r\n\r\n").next()?;
    let mut lines = last.lines().filter_map(|line| line.split_once(':'));
    let found = lines.rfind(|(found, _)| found.trim().eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim().to_owned()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{file_name, header, seconds};

    #[test]
    fn headers_are_those_of_the_last_answer() {
        let told = "HTTP/1.1 302 Found\r\nETag: old\r\n\r\nHTTP/2 200\r\netag: W/\"a:b\"\r\nLast-Modified: Wed\r\n\r\n";
        assert_eq!(header(told, "etag").as_deref(), Some("W/\"a:b\""));
        assert_eq!(header("HTTP/1.1 200 OK\r\n\r\n", "etag"), None);
    }

    #[test]
    fn times_of_servers_are_read() {
        for (text, expected) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Thu, 29 Feb 2024 23:59:59 GMT", Some(1_709_251_199)),
            ("Fri, 01 Mar 2024 00:00:00 GMT", Some(1_709_251_200)),
            ("Thu, 19 Nov 2026 03:57:27 GMT", Some(1_795_060_647)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", None),
            ("yesterday", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }

    #[test]
    fn the_file_name_is_the_last_part_of_the_path() {
        for (url, name) in [
            ("https://example.org/data/labels.csv?download=1#top", "labels.csv"),
            ("https://example.org/", "file"),
            ("https://example.org", "file"),
            ("https://example.org/a/..", "file"),
            ("https://example.org/a/x y%20z", "x_y_20z"),
        ] {
            assert_eq!(file_name(url), name, "{url}");
        }
    }
}
