//! The files of the page, inside the binary: nothing is fetched from anywhere else.

/// What a browser may do with the page: run and show what comes from this server, and nothing else.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asset {
    pub kind: &'static str,
    pub bytes: &'static [u8],
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! scripts {
    ($($name:literal),* $(,)?) => {
        &[$(($name, Asset { kind: SCRIPT, bytes: include_bytes!(concat!("assets/", $name)) })),*]
    };
}

const SCRIPTS: &[(&str, Asset)] = scripts![
    "app.js",
    "dom.js",
    "words.js",
    "server.js",
    "table.js",
    "runs.js",
    "run.js",
    "graph.js",
    "cells.js",
    "gantt.js",
    "chart.js",
    "task.js",
    "compare.js",
    "search.js",
];

const OTHERS: &[(&str, Asset)] = &[
    ("style.css", Asset { kind: "text/css; charset=utf-8", bytes: include_bytes!("assets/style.css") }),
    ("icon.svg", Asset { kind: "image/svg+xml", bytes: include_bytes!("assets/icon.svg") }),
];

/// A file of the page by its name.
pub fn asset(name: &str) -> Option<Asset> {
    SCRIPTS.iter().chain(OTHERS).find(|(known, _)| *known == name).map(|(_, asset)| *asset)
}

/// The page itself: the same for every address, which its script then reads.
pub fn shell() -> Asset {
    Asset { kind: "text/html; charset=utf-8", bytes: include_bytes!("assets/index.html") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(asset: Asset) -> &'static str {
        std::str::from_utf8(asset.bytes).unwrap()
    }

    #[test]
    fn the_page_names_only_files_that_are_there() {
        let everything = SCRIPTS.iter().map(|(_, script)| *script).chain([shell()]);
        for file in everything {
            for part in text(file).split("/assets/").skip(1).chain(text(file).split("from './").skip(1)) {
                let name = part.split(['"', '\'', ')']).next().unwrap();
                assert!(asset(name).is_some(), "{name} is not among the files of the page");
            }
        }
    }

    #[test]
    fn nothing_is_fetched_from_elsewhere_and_all_of_it_is_small() {
        let all: Vec<Asset> = SCRIPTS.iter().chain(OTHERS).map(|(_, asset)| *asset).chain([shell()]).collect();
        for file in &all {
            let text = text(*file).replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http://") && !text.contains("https://"), "something is fetched: {text}");
        }
        assert!(all.iter().map(|file| file.bytes.len()).sum::<usize>() < 150_000);
    }

    #[test]
    fn no_script_writes_markup() {
        for (name, script) in SCRIPTS {
            for forbidden in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
                assert!(!text(*script).contains(forbidden), "{name}: {forbidden}");
            }
        }
    }
}
