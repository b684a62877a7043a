//! Profiles: what workflows, jobs, sites, transformations and properties say beside the data flow.

use super::codes::SHAPE;
use super::decoder::Decoder;
use std::collections::BTreeMap;
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::yaml::{Kind, Node};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Namespace {
    Env,
    Pegasus,
    Condor,
    Dagman,
    Globus,
    Selector,
}

impl Namespace {
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "env" => Namespace::Env,
            "pegasus" => Namespace::Pegasus,
            "condor" => Namespace::Condor,
            "dagman" => Namespace::Dagman,
            "globus" => Namespace::Globus,
            "selector" | "hints" => Namespace::Selector,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Namespace::Env => "env",
            Namespace::Pegasus => "pegasus",
            Namespace::Condor => "condor",
            Namespace::Dagman => "dagman",
            Namespace::Globus => "globus",
            Namespace::Selector => "selector",
        }
    }

    /// One spelling a key: DAGMan's and HTCondor's keys do not depend on case.
    fn key(self, key: &str) -> String {
        match self {
            Namespace::Dagman => key.to_ascii_uppercase(),
            Namespace::Condor => key.to_ascii_lowercase(),
            _ => key.to_owned(),
        }
    }
}

/// Keys and values by namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Profiles(BTreeMap<(Namespace, String), String>);

impl Profiles {
    pub fn get(&self, namespace: Namespace, key: &str) -> Option<&str> {
        // The keys we look for are written in the spelling of the namespace.
        self.0.get(&(namespace, key.to_owned())).map(String::as_str)
    }

    pub fn set(&mut self, namespace: Namespace, key: &str, value: &str) {
        self.0.insert((namespace, namespace.key(key)), value.to_owned());
    }

    /// Lays others over these: what they say wins.
    pub fn overlay(&mut self, others: &Profiles) {
        self.0.extend(others.0.iter().map(|(key, value)| (key.clone(), value.clone())));
    }

    pub fn iter(&self) -> impl Iterator<Item = (Namespace, &str, &str)> {
        self.0.iter().map(|((namespace, key), value)| (*namespace, key.as_str(), value.as_str()))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn read(&mut self, decoder: &mut Decoder<'_>, node: Node<'_>) {
        decoder.map(node, "`profiles`", |decoder, name, key, value| {
            let Some(namespace) = Namespace::parse(name) else {
                decoder.unknown(key, "`profiles`", &["env", "pegasus", "condor", "dagman", "globus", "selector"]);
                return;
            };
            decoder.map(value, &format!("the profiles of `{name}`"), |decoder, name, key, value| {
                if !matches!(value.kind(), Kind::Scalar { .. }) {
                    let message = format!("the profile `{name}` must be a single value");
                    decoder.report(Diagnostic::error(SHAPE, key.span(), message));
                    return;
                }
                let value = decoder.text(value, "a profile");
                self.set(namespace, name, value);
            });
        });
    }
}
