//! Files behind URLs, fetched before the run into `.tulpar/cache/downloads/`, once for each URL.
//!
//! `curl` does the talking for `http`: it knows proxies, certificates and retries. Whatever else Tulpar can move, `osdf`,
//! `s3`, `scp`, is moved as `tulpar transfer` would. A file that is there was
//! fetched completely (temporary name, then rename) and is not fetched again; whoever wants it anew
//! removes it.

use super::list::is_url;
use super::{DataError, Listed};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tulpar_core::catalogue::Chosen;
use tulpar_core::ids::Digest;
use tulpar_core::workflow::{Data, DataSource};
use tulpar_transfer::{Location, Options, Transfer};

const AT_ONCE: usize = 4;

/// A file to fetch: for which entry, from where, and what the sandbox calls it.
struct Wanted<'a> {
    entry: usize,
    url: &'a str,
    path: String,
}

/// For each URL in the entries, the number of its entry and where it lies now; in the order of the entries.
pub(super) fn fetch_all(folder: &Path, cache: &Path, data: &[Data]) -> Vec<(usize, Result<Listed, DataError>)> {
    let mut urls: Vec<Wanted<'_>> = Vec::new();
    for (entry, found) in data.iter().enumerate() {
        match &found.source {
            DataSource::Url(url) => {
                urls.push(Wanted { entry, url, path: format!("{}/{}", found.name, file_name(url)) });
            }
            DataSource::Files(files) => {
                urls.extend(files.iter().filter(|(_, place)| is_url(place)).map(|(path, url)| Wanted {
                    entry,
                    url,
                    path: path.clone(),
                }))
            }
            DataSource::Copies(copies) => urls.extend(copies.iter().filter_map(|copy| match copy {
                Chosen::File { name, place, .. } if is_url(place) && !place.starts_with("file:") => {
                    Some(Wanted { entry, url: place, path: name.clone() })
                }
                _ => None,
            })),
            _ => {}
        }
    }
    let results: Vec<Mutex<Option<Result<Listed, DataError>>>> = urls.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(urls.len()) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(wanted) = urls.get(number) else { break };
                    let listed = fetch(cache, wanted.url).map(|place| {
                        let from = place.strip_prefix(folder).unwrap_or(&place).to_string_lossy().into_owned();
                        Listed { path: wanted.path.clone(), from, within: None }
                    });
                    *results[number].lock().unwrap_or_else(|poison| poison.into_inner()) = Some(listed);
                }
            });
        }
    });
    let results = results.into_iter().map(|result| result.into_inner().unwrap_or_else(|poison| poison.into_inner()));
    urls.iter().zip(results).filter_map(|(wanted, result)| Some((wanted.entry, result?))).collect()
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

fn fetch(cache: &Path, url: &str) -> Result<PathBuf, DataError> {
    let trouble = |cause: String, hint: &str| DataError::Fetch { url: url.to_owned(), cause, hint: hint.to_owned() };
    let downloads = cache.join("downloads");
    let place = downloads.join(format!("{}-{}", &Digest::of(url.as_bytes()).hex()[..16], file_name(url)));
    if place.is_file() {
        return Ok(place);
    }
    let unwritable = |cause| DataError::Cache { path: downloads.clone(), cause };
    fs::create_dir_all(&downloads).map_err(unwritable)?;
    let temporary = place.with_extension(format!("part-{}", std::process::id()));
    if !url.starts_with("http://") && !url.starts_with("https://") {
        let from = Location::parse(url).map_err(|error| trouble(error.to_string(), "Correct the URL"))?;
        let moved = tulpar_transfer::transfer(&[Transfer::new(from, temporary.clone())], &Options::default());
        if let Some(Err(error)) = moved.into_iter().next() {
            let _ = fs::remove_file(&temporary);
            let said = error.to_string();
            let cause = said.strip_prefix(&format!("{url} cannot be moved: ")).unwrap_or(&said);
            return Err(trouble(cause.to_owned(), "Or fetch it yourself and give its path"));
        }
        fs::rename(&temporary, &place).map_err(unwritable)?;
        return Ok(place);
    }
    let outcome = Command::new("curl")
        .args(["--fail", "--silent", "--show-error", "--location", "--retry", "3", "--connect-timeout", "30"])
        .args(["--proto", "=http,https", "--proto-redir", "=http,https", "--output"])
        .arg(&temporary)
        .args(["--url", url])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output();
    let output = match outcome {
        Ok(output) => output,
        Err(cause) if cause.kind() == ErrorKind::NotFound => {
            return Err(trouble(
                "there is no `curl` here".into(),
                "Install curl, or fetch the file yourself and give its path",
            ));
        }
        Err(cause) => {
            return Err(trouble(
                format!("`curl` does not start: {cause}"),
                "Fetch the file yourself and give its path",
            ));
        }
    };
    if !output.status.success() {
        let _ = fs::remove_file(&temporary);
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().last().unwrap_or("curl gave no reason").trim().to_owned();
        let hint = match output.status.code() {
            Some(6 | 7 | 28 | 35) => "Check the network and the proxy settings, then run again",
            Some(22) => "Open the URL in a browser: it may have moved, or need a login",
            _ => "Fetch the file yourself and give its path",
        };
        return Err(trouble(said, hint));
    }
    if !temporary.exists() {
        // An empty answer leaves no file behind.
        fs::write(&temporary, b"").map_err(unwritable)?;
    }
    fs::rename(&temporary, &place).map_err(unwritable)?;
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::file_name;

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
