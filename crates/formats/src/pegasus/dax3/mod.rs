//! Pegasus' old workflows in XML, DAX 2.1 to 3.6, into the same [`Model`] as those of Pegasus 5.
//!
//! It reads no file. Document types and entities of their own are refused, never expanded.

mod catalogues;
mod codes;
mod decode;
mod elements;
mod inside;
mod jobs;
mod xml;

pub use codes::CODES;

pub(crate) use catalogues::catalogue;
pub(crate) use decode::decode;

use crate::pegasus::Model;
use tulpar_core::diagnostic::{Diagnostic, Findings};

/// True for XML whose first element is `adag`.
pub fn is_dax(text: &str) -> bool {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        let end = if rest.starts_with("<!--") {
            "-->"
        } else if rest.starts_with("<?") {
            "?>"
        } else if rest.starts_with("<!") {
            // A document type is refused later, with its place.
            return rest.contains("<adag");
        } else {
            break;
        };
        let Some((_, after)) = rest.split_once(end) else { return false };
        rest = after.trim_start();
    }
    let Some(tag) = rest.strip_prefix('<') else { return false };
    let name = tag.split(|letter: char| letter.is_whitespace() || matches!(letter, '>' | '/')).next().unwrap_or("");
    name.rsplit(':').next() == Some("adag")
}

/// The workflow by itself. With catalogues and properties it is read by [`crate::pegasus::read`].
pub fn read(text: &str) -> (Option<Model>, Vec<Diagnostic>) {
    let mut findings = Findings::default();
    let model = decode(text, &mut findings);
    (model, findings.finish())
}
