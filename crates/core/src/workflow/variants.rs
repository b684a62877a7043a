//! `variants:` of a task: other ways to do the same, each laid over what the task itself says.

use super::reader::{Reader, place};
use super::request::Asked;
use super::settings::duration;
use super::{Run, Span, Variant, keys};
use crate::diagnostic::{CONFLICT, Diagnostic};
use crate::resources::Request;
use crate::yaml::{Kind, Node};

/// Reads the list. `run` reads and checks a command as that of the task is.
pub(super) fn read<'d>(
    reader: &mut Reader,
    node: Node<'d>,
    own: &Request,
    mut run: impl FnMut(&mut Reader, Node<'d>, Node<'d>) -> Run,
) -> Vec<Variant> {
    if !matches!(node.kind(), Kind::Sequence) || node.size() == 0 {
        reader.wrong_shape(node, "`variants` must be a list of maps, as in `[{cpus: 8, gpus: 0}]`");
        return Vec::new();
    }
    let mut found: Vec<Variant> = Vec::with_capacity(node.size());
    for item in node.items() {
        let errors = reader.findings.errors();
        let Some(entries) = reader.map(item, "a variant") else { continue };
        let mut asked = Asked::default();
        let mut variant = Variant { request: own.clone(), run: None, runtime: None };
        let mut places: Vec<(&str, Span)> = Vec::new();
        for (key, value) in entries {
            let name = key.text().unwrap_or("");
            places.push((name, place(key, value)));
            match name {
                "run" => variant.run = Some(run(reader, key, value)),
                "runtime" => variant.runtime = duration(reader, "runtime", value),
                asks if keys::REQUEST.contains(&asks) => asked.read(reader, asks, value),
                _ => reader.unknown_key(key, "a variant", &[keys::REQUEST, keys::VARIANT]),
            }
        }
        asked.apply(&mut variant.request);
        if variant.request.gpus == 0 {
            // What the task wants of its devices means nothing to a variant that has none.
            let request = variant.request;
            variant.request = Request { gpu_share: 0, gpu_memory: Default::default(), gpu_capability: 0, ..request };
        }
        let place_of = |key: &str| places.iter().find(|(name, _)| *name == key).map(|(_, span)| *span);
        asked.without_effect(reader, &variant.request, &place_of);
        let same = variant.request == *own && variant.run.is_none();
        let repeated = same || found.iter().any(|other| other.request == variant.request && other.run == variant.run);
        if repeated && reader.findings.errors() == errors {
            let what = if same { "the task itself says" } else { "an earlier one says" };
            reader.report(
                Diagnostic::warning(CONFLICT, item.span(), format!("this variant asks for and runs what {what}"))
                    .help("a variant has other resources or another `run`; what it does not say is the task's"),
            );
        }
        found.push(variant);
    }
    found
}
