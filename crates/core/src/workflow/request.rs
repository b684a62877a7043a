//! What a task asks of the nodes, as it is written: in settings, and again in each of its variants.

use super::Span;
use super::reader::Reader;
use super::settings::{count, duration};
use crate::diagnostic::{BAD_NAME, CONFLICT, Diagnostic, QUANTITY};
use crate::resources::{Named, Request};
use crate::units::{
    AMOUNT_ACCEPTED, BYTE_UNITS, BYTES_ACCEPTED, Bytes, CAPABILITY_ACCEPTED, CPUS_ACCEPTED, GPUS_ACCEPTED, parse_bytes,
    parse_capability, parse_cpus, parse_gpus,
};
use crate::workflow::keys;
use crate::yaml::Node;
use std::time::Duration;

/// What was said; what was not is left to whoever lies below.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    milli_cpus: Option<u32>,
    memory: Option<Bytes>,
    disk: Option<Bytes>,
    /// Devices, and thousandths of each.
    gpus: Option<(u32, u32)>,
    gpu_memory: Option<Bytes>,
    gpu_capability: Option<u32>,
    nodes: Option<u32>,
    /// 0 takes back what was asked below.
    named: Named,
    pin: Option<bool>,
    time: Option<Duration>,
}

impl Asked {
    /// Takes the value of one of the keys of `keys::REQUEST`.
    pub(super) fn read(&mut self, reader: &mut Reader, name: &str, value: Node<'_>) {
        match name {
            "cpus" => {
                self.milli_cpus = reader.quantity(value, name, parse_cpus, CPUS_ACCEPTED, &[]);
                if self.milli_cpus == Some(0) {
                    reader.report(
                        Diagnostic::error(QUANTITY, value.span(), "`cpus`: a task needs more than 0")
                            .help(CPUS_ACCEPTED),
                    );
                }
            }
            "memory" => self.memory = bytes(reader, name, value),
            "disk" => self.disk = bytes(reader, name, value),
            "gpus" => self.gpus = reader.quantity(value, name, parse_gpus, GPUS_ACCEPTED, &[]),
            "gpu_memory" => self.gpu_memory = bytes(reader, name, value),
            "gpu_capability" => {
                self.gpu_capability = reader.quantity(value, name, parse_capability, CAPABILITY_ACCEPTED, &[]);
            }
            "nodes" => {
                self.nodes = count(reader, name, value);
                if self.nodes == Some(0) {
                    reader.report(Diagnostic::error(QUANTITY, value.span(), "`nodes`: a task needs at least 1"));
                }
            }
            "resources" => self.named = named(reader, value, "`resources`"),
            "pin" => self.pin = reader.boolean(value, "`pin`"),
            "time" => self.time = duration(reader, name, value),
            _ => unreachable!("every key of the table is taken above"),
        }
    }

    /// Lays what was said over a request.
    pub(super) fn apply(&self, request: &mut Request) {
        fn set<T: Copy>(target: &mut T, value: Option<T>) {
            *target = value.unwrap_or(*target);
        }
        set(&mut request.milli_cpus, self.milli_cpus);
        set(&mut request.memory, self.memory);
        set(&mut request.disk, self.disk);
        if let Some((gpus, share)) = self.gpus {
            (request.gpus, request.gpu_share) = (gpus, share);
        }
        set(&mut request.gpu_memory, self.gpu_memory);
        set(&mut request.gpu_capability, self.gpu_capability);
        set(&mut request.nodes, self.nodes);
        set(&mut request.pin, self.pin);
        request.time = self.time.or(request.time);
        for (name, amount) in &self.named {
            match amount {
                0 => drop(request.named.remove(name)),
                amount => drop(request.named.insert(name.clone(), *amount)),
            }
        }
    }

    /// Reports what it says of devices though the whole asks for none.
    pub(super) fn without_effect(&self, reader: &mut Reader, whole: &Request, place: &dyn Fn(&str) -> Option<Span>) {
        if whole.gpus > 0 {
            return;
        }
        let wanted = [
            ("gpu_memory", self.gpu_memory.is_some_and(|memory| memory.0 > 0)),
            ("gpu_capability", self.gpu_capability.is_some_and(|capability| capability > 0)),
        ];
        for (key, _) in wanted.into_iter().filter(|(_, wanted)| *wanted) {
            if let Some(span) = place(key) {
                reader.report(
                    Diagnostic::warning(CONFLICT, span, format!("`{key}` has no effect without `gpus`"))
                        .help("add `gpus: 1`"),
                );
            }
        }
    }
}

/// `{matlab: 1, fpga: 0.5}`, in thousandths: what tasks ask for, nodes have and sites have.
pub(crate) fn named(reader: &mut Reader, node: Node<'_>, what: &str) -> Named {
    let mut found = Named::new();
    for (key, value) in reader.map(node, what).into_iter().flatten() {
        let Some(name) = reader.name(key, "a resource") else { continue };
        if keys::REQUEST.contains(&name) {
            reader.report(
                Diagnostic::error(BAD_NAME, key.span(), format!("`{name}` is no resource with only a name"))
                    .help(format!("write `{name}` beside {what}, not in it")),
            );
            continue;
        }
        if let Some(amount) = reader.quantity(value, name, parse_cpus, AMOUNT_ACCEPTED, &[]) {
            found.insert(name.to_owned(), amount);
        }
    }
    found
}

fn bytes(reader: &mut Reader, name: &str, value: Node<'_>) -> Option<Bytes> {
    reader.quantity(value, name, parse_bytes, BYTES_ACCEPTED, BYTE_UNITS)
}
