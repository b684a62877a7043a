//! What an entry says, by its number. Kinds that nobody acts upon keep their text. It knows no ids and no time.

use super::lines::{amount, attribute, choice, codes, in_brackets, unquoted};
use super::usage::{Bytes, Columns, ResourceUse};
use std::collections::BTreeMap;

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal { number: i32, core: Option<String> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferPhase {
    InputQueued,
    InputStarted,
    InputFinished,
    OutputQueued,
    OutputStarted,
    OutputFinished,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Event 0. Notes are `log_notes` of the submit file, for one `DAG Node: …`, and warnings.
    Submit { host: String, notes: Vec<String> },
    /// Event 1. Attributes are those of the slot, as ClassAd expressions: `Cpus` is `1`.
    Execute { host: String, slot: Option<String>, scratch: Option<String>, attributes: BTreeMap<String, String> },
    /// Event 4. `requeued` says how the job ended when it will run again because of its own retry policy. Newer versions give
    /// a code with the reason: of a hold that follows, or above 1000 for a vacate.
    Evicted {
        checkpointed: bool,
        requeued: Option<Exit>,
        reason: Option<String>,
        code: Option<(i32, i32)>,
        bytes: Bytes,
        uses: Vec<ResourceUse>,
    },
    /// Event 5. `remark` is HTCondor's sentence about who ended the job and when.
    Terminated { exit: Exit, bytes: Bytes, uses: Vec<ResourceUse>, remark: Option<String> },
    /// Event 6.
    ImageSize { image_kb: u64, memory_mb: Option<u64>, resident_kb: Option<u64>, proportional_kb: Option<u64> },
    /// Event 7.
    ShadowException { text: String, bytes: Bytes },
    /// Event 8. What the job itself or a tool wrote.
    Generic { text: String },
    /// Event 9.
    Aborted { reason: Option<String>, remark: Option<String> },
    /// Event 10.
    Suspended { processes: Option<u32> },
    /// Event 11.
    Unsuspended,
    /// Event 12.
    Held { reason: String, code: i32, subcode: i32 },
    /// Event 13.
    Released { reason: Option<String> },
    /// Event 21. A warning is not critical. The codes are those of a hold, but input and output may be swapped: 12 for 13.
    RemoteError { critical: bool, daemon: String, host: String, text: String, code: i32, subcode: i32 },
    /// Event 22.
    Disconnected { reason: String, host: Option<String>, address: Option<String> },
    /// Event 23.
    Reconnected { host: String, startd: Option<String>, starter: Option<String> },
    /// Event 24.
    ReconnectFailed { reason: String, host: Option<String> },
    /// Event 28. ClassAd expressions, of the entry before it and of the job.
    AdInformation { attributes: BTreeMap<String, String> },
    /// Event 33. Values are ClassAd expressions.
    AttributeUpdate { name: String, old: Option<String>, new: String },
    /// Event 35.
    ClusterSubmit { host: String, notes: Vec<String> },
    /// Event 36.
    ClusterRemove { materialized: Option<i64>, items: Option<i64>, completion: Option<String>, notes: Vec<String> },
    /// Event 37. No more jobs are made of the cluster until it is resumed.
    FactoryPaused { reason: Option<String>, pause_code: Option<i32>, hold_code: Option<i32> },
    /// Event 38.
    FactoryResumed { reason: Option<String> },
    /// Event 40.
    FileTransfer { phase: TransferPhase, host: Option<String>, queued_seconds: Option<u64> },
    /// Every other number.
    Other { title: String, lines: Vec<String> },
}

impl Event {
    /// `None`: the text does not fit the number.
    pub(super) fn read(kind: u16, title: &str, lines: &[&str]) -> Option<Self> {
        Some(match kind {
            0 => Self::Submit { host: after(title, "host: ")?, notes: texts(lines) },
            1 => execute(title, lines)?,
            4 => evicted(title, lines)?,
            5 => terminated(lines)?,
            6 => image_size(title, lines)?,
            7 => {
                let mut bytes = Bytes::default();
                let text = lines.iter().filter(|line| !bytes.take(line)).map(|line| line.trim()).collect::<Vec<_>>();
                Self::ShadowException { text: text.join("\n").trim().to_owned(), bytes }
            }
            8 => Self::Generic { text: title.to_owned() },
            9 => {
                let (remarks, reasons): (Vec<_>, Vec<_>) = texts(lines).into_iter().partition(|line| is_remark(line));
                Self::Aborted { reason: joined(reasons), remark: remarks.into_iter().next() }
            }
            10 => {
                let suspended = texts(lines).iter().find_map(|line| line.rsplit_once(": ")?.1.parse().ok());
                Self::Suspended { processes: suspended }
            }
            11 => Self::Unsuspended,
            12 => {
                // Old logs have neither reason nor codes; newer ones have words for there being none.
                let (code, subcode) = lines.iter().rev().find_map(|line| codes(line)).unwrap_or_default();
                let says = |line: &String| codes(line).is_none() && line != "Reason unspecified";
                let reason = joined(texts(lines).into_iter().filter(says).collect());
                Self::Held { reason: reason.unwrap_or_default(), code, subcode }
            }
            13 => Self::Released { reason: joined(texts(lines)) },
            21 => remote_error(title, lines)?,
            22 => disconnected(lines),
            23 => {
                let after =
                    |what: &str| lines.iter().find_map(|line| line.trim().strip_prefix(what)).map(str::to_owned);
                let host = title.strip_prefix("Job reconnected to ")?.to_owned();
                Self::Reconnected { host, startd: after("startd address: "), starter: after("starter address: ") }
            }
            24 => {
                let texts = texts(lines);
                let host = texts.iter().find_map(|line| {
                    let host = line.strip_prefix("Can not reconnect to ")?;
                    Some(host.strip_suffix(", rescheduling job").unwrap_or(host).to_owned())
                });
                Self::ReconnectFailed { reason: texts.into_iter().next().unwrap_or_default(), host }
            }
            28 => Self::AdInformation { attributes: lines.iter().filter_map(|line| attribute(line)).collect() },
            33 => attribute_update(title)?,
            35 => Self::ClusterSubmit { host: after(title, "host: ")?, notes: texts(lines) },
            36 => cluster_remove(lines),
            37 => {
                let code =
                    |what: &str| texts(lines).iter().find_map(|line| line.strip_prefix(what)?.trim().parse().ok());
                let is_code = |line: &String| line.starts_with("PauseCode ") || line.starts_with("HoldCode ");
                let reason = joined(texts(lines).into_iter().filter(|line| !is_code(line)).collect());
                Self::FactoryPaused { reason, pause_code: code("PauseCode "), hold_code: code("HoldCode ") }
            }
            38 => Self::FactoryResumed { reason: joined(texts(lines)) },
            40 => file_transfer(title, lines)?,
            _ => Self::Other { title: title.to_owned(), lines: lines.iter().map(|line| (*line).to_owned()).collect() },
        })
    }
}

fn execute(title: &str, lines: &[&str]) -> Option<Event> {
    let host = after(title, "host: ")?;
    let slot = lines.iter().find_map(|line| line.trim().strip_prefix("SlotName: ")).map(str::to_owned);
    let mut attributes: BTreeMap<String, String> = lines.iter().filter_map(|line| attribute(line)).collect();
    let scratch = attributes.remove("CondorScratchDir").map(|value| unquoted(&value));
    Some(Event::Execute { host, slot, scratch, attributes })
}

/// What 4 and 5 have in common, and the lines that are left.
#[derive(Default)]
struct Account<'a> {
    bytes: Bytes,
    uses: Vec<ResourceUse>,
    exit: Option<Exit>,
    first: Option<(i32, &'a str)>,
    rest: Vec<String>,
}

impl<'a> Account<'a> {
    fn read(lines: &[&'a str]) -> Self {
        let mut account = Self::default();
        let mut columns: Option<Columns> = None;
        for line in lines {
            if let Some(found) = Columns::read(line) {
                columns = Some(found);
                continue;
            }
            if line.trim().is_empty() {
                columns = None;
                continue;
            }
            if let Some(row) = columns.and_then(|columns| columns.row(line)) {
                account.uses.push(row);
            } else if !account.bytes.take(line) && !line.contains("  -  ") {
                account.text(line);
            }
        }
        account
    }

    fn text(&mut self, line: &'a str) {
        let Some((number, text)) = choice(line) else { return self.rest.push(line.trim().to_owned()) };
        if let Some(code) = in_brackets(text, "Normal termination (return value ") {
            self.exit = Some(Exit::Code(code));
        } else if let Some(number) = in_brackets(text, "Abnormal termination (signal ") {
            self.exit = Some(Exit::Signal { number, core: None });
        } else if let (Some(file), Some(Exit::Signal { core, .. })) =
            (text.strip_prefix("Corefile in: "), &mut self.exit)
        {
            *core = Some(file.to_owned());
        } else if self.first.is_none() {
            self.first = Some((number, text));
        }
    }
}

fn evicted(title: &str, lines: &[&str]) -> Option<Event> {
    let account = Account::read(lines);
    let (number, text) = account.first?;
    let requeued = text.starts_with("Job terminated and was requeued");
    if requeued && account.exit.is_none() {
        return None;
    }
    Some(Event::Evicted {
        checkpointed: number != 0 && !requeued,
        requeued: account.exit.filter(|_| requeued),
        reason: joined(account.rest).map(|reason| reason.strip_prefix("Reason: ").unwrap_or(&reason).to_owned()),
        code: title.find("Code ").and_then(|start| codes(&title[start..])),
        bytes: account.bytes,
        uses: account.uses,
    })
}

fn terminated(lines: &[&str]) -> Option<Event> {
    let account = Account::read(lines);
    let remark = account.rest.into_iter().find(|line| is_remark(line));
    Some(Event::Terminated { exit: account.exit?, bytes: account.bytes, uses: account.uses, remark })
}

fn image_size(title: &str, lines: &[&str]) -> Option<Event> {
    let image_kb = after(title, "updated: ")?.trim().parse().ok()?;
    let of = |what: &str| {
        let number = lines.iter().filter_map(|line| amount(line)).find(|(_, of)| of.starts_with(what))?.0;
        (number >= 0.0).then_some(number as u64)
    };
    let (memory_mb, resident_kb) = (of("MemoryUsage"), of("ResidentSetSize"));
    Some(Event::ImageSize { image_kb, memory_mb, resident_kb, proportional_kb: of("ProportionalSetSize") })
}

/// `Error from starter on slot1_2@n1:`, the text in lines of its own, and the codes.
fn remote_error(title: &str, lines: &[&str]) -> Option<Event> {
    let (word, rest) = title.split_once(" from ")?;
    let (daemon, host) = rest.trim_end().trim_end_matches(':').split_once(" on ")?;
    let (code, subcode) = lines.iter().rev().find_map(|line| codes(line)).unwrap_or_default();
    let text = joined(texts(lines).into_iter().filter(|line| codes(line).is_none()).collect()).unwrap_or_default();
    Some(Event::RemoteError {
        critical: word == "Error",
        daemon: daemon.to_owned(),
        host: host.to_owned(),
        text,
        code,
        subcode,
    })
}

fn disconnected(lines: &[&str]) -> Event {
    let texts = texts(lines);
    let place = texts.iter().find_map(|line| line.strip_prefix("Trying to reconnect to "));
    let (host, address) = match place.and_then(|place| place.split_once(' ')) {
        Some((host, address)) => (Some(host.to_owned()), Some(address.to_owned())),
        None => (place.map(str::to_owned), None),
    };
    Event::Disconnected { reason: texts.first().cloned().unwrap_or_default(), host, address }
}

/// `Setting job attribute Loss to 0.25`, `Changing job attribute Loss from 0.5 to 0.25`
fn attribute_update(title: &str) -> Option<Event> {
    if let Some(rest) = title.strip_prefix("Setting job attribute ") {
        let (name, new) = rest.split_once(" to ")?;
        return Some(Event::AttributeUpdate { name: name.to_owned(), old: None, new: new.to_owned() });
    }
    let (name, values) = title.strip_prefix("Changing job attribute ")?.split_once(" from ")?;
    // A string may contain the word that separates; its end cannot be mistaken.
    let from = if values.starts_with('"') { values.find("\" to ")? + 1 } else { values.find(" to ")? };
    let (old, new) = (values[..from].to_owned(), values[from + " to ".len()..].to_owned());
    Some(Event::AttributeUpdate { name: name.to_owned(), old: Some(old), new })
}

/// `Materialized 3 jobs from 0 items.`, and behind a tab how it ended.
fn cluster_remove(lines: &[&str]) -> Event {
    let (mut materialized, mut items, mut completion, mut notes) = (None, None, None, Vec::new());
    for line in texts(lines) {
        if let Some(rest) = line.strip_prefix("Materialized ") {
            let mut words = rest.split_ascii_whitespace();
            materialized = words.next().and_then(|word| word.parse().ok());
            items = words.nth(2).and_then(|word| word.parse().ok());
            completion = rest.split_once('\t').map(|(_, word)| word.trim().to_owned());
        } else {
            notes.push(line);
        }
    }
    Event::ClusterRemove { materialized, items, completion, notes }
}

fn file_transfer(title: &str, lines: &[&str]) -> Option<Event> {
    let phase = match title.trim_end() {
        "Entered queue to transfer input files" => TransferPhase::InputQueued,
        "Started transferring input files" => TransferPhase::InputStarted,
        "Finished transferring input files" => TransferPhase::InputFinished,
        "Entered queue to transfer output files" => TransferPhase::OutputQueued,
        "Started transferring output files" => TransferPhase::OutputStarted,
        "Finished transferring output files" => TransferPhase::OutputFinished,
        _ => return None,
    };
    let of = |what: &str| lines.iter().find_map(|line| line.trim().strip_prefix(what));
    let host = of("Transferring to host: ").map(str::to_owned);
    let queued_seconds = of("Seconds spent in queue: ").and_then(|seconds| seconds.trim().parse().ok());
    Some(Event::FileTransfer { phase, host, queued_seconds })
}

/// HTCondor's last sentence of 5 and 9.
fn is_remark(line: &str) -> bool {
    line.starts_with("Job terminated ")
}

fn after(title: &str, what: &str) -> Option<String> {
    Some(title.split_once(what)?.1.to_owned())
}

fn texts(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn joined(lines: Vec<String>) -> Option<String> {
    (!lines.is_empty()).then(|| lines.join("\n"))
}
