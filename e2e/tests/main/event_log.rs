//! Tulpar's reader of the job event log against HTCondor's own, over a log that a real pool wrote about jobs of every
//! fate: success, failure, a signal, holds, release, eviction, retries, checkpoints, late materialisation, removal.

use crate::main::harness::{Pool, Project, skipped, until};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::process::Command;
use tulpar_exec::condor::text::log::{Bytes, Entry, Event, Exit, LogReader, ResourceUse};

const JUDGE: &str = include_str!("event_log.py");

/// What every submit file starts with.
const COMMON: &str = "\
log = all.log
should_transfer_files = YES
request_cpus = 1
request_memory = 32
request_disk = 1M
job_ad_information_attrs = RequestMemory, Owner
";

/// Name, and what is to be done.
const JOBS: [(&str, &str); 15] = [
    ("success", "executable = /bin/true\ntransfer_executable = false\nrequest_gpus = 1\nqueue"),
    ("failure", "executable = /bin/sh\ntransfer_executable = false\narguments = \"-c 'exit 7'\"\nqueue"),
    ("signal", "executable = /bin/sh\ntransfer_executable = false\narguments = \"-c 'kill -9 \\$\\$'\"\nqueue"),
    ("no input", "executable = /bin/true\ntransfer_executable = false\ntransfer_input_files = not-there\nqueue"),
    ("no output", "executable = /bin/true\ntransfer_executable = false\ntransfer_output_files = not-there\nqueue"),
    ("no program", "executable = note.txt\nqueue"),
    (
        "retries",
        "executable = /bin/sh\ntransfer_executable = false\narguments = \"-c 'exit 3'\"\nmax_retries = 1\nqueue",
    ),
    ("checkpoint", "executable = thrice.sh\ncheckpoint_exit_code = 85\ntransfer_checkpoint_files = count\nqueue"),
    (
        "word",
        "executable = /usr/libexec/condor/condor_chirp\ntransfer_executable = false\n+WantIOProxy = true\n\
         arguments = \"ulog 'epoch 3: loss 0.25 ... (1) Normal'\"\nqueue",
    ),
    (
        "attribute",
        "executable = /usr/libexec/condor/condor_chirp\ntransfer_executable = false\n+WantIOProxy = true\n\
         +Note = \"before\"\narguments = \"set_job_attr Note 0.25\"\nqueue",
    ),
    ("late", "executable = /bin/true\ntransfer_executable = false\nmax_materialize = 1\nqueue 3"),
    ("noted", "executable = /bin/true\ntransfer_executable = false\nlog_notes = task train(3)#1\nqueue"),
    (
        "own hold",
        "executable = /bin/false\ntransfer_executable = false\non_exit_hold = ExitCode =!= 0\n\
         on_exit_hold_reason = strcat(\"it said: \", ExitCode)\non_exit_hold_subcode = 42\nqueue",
    ),
    ("long", "executable = long.sh\njob_max_vacate_time = 2\nqueue"),
    ("never", "executable = /bin/true\ntransfer_executable = false\nrequest_memory = 999999\nqueue"),
];

#[test]
fn the_log_of_jobs_of_every_fate_is_read_as_htcondor_reads_it() {
    let Some(pool) = Pool::condor() else { return };
    let there = Command::new("python3").args(["-c", "import htcondor2"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        skipped("no Python package `htcondor`, which judges how Tulpar reads the job event log");
        return;
    }
    let project = pool.project("event-log");
    let log = log_of_every_fate(&project);

    // The judge reads the log at its end alone, and then as it grows, cut at any byte.
    for sizes in [vec![log.len()], cuts(&log)] {
        let judged = judge(&project, &sizes);
        assert_eq!(judged.len(), sizes.len());
        let (mut reader, mut from) = (LogReader::default(), 0);
        for (size, judged) in sizes.iter().zip(judged) {
            let read = reader.push(&log[from..*size]);
            let read: Vec<Map<String, Value>> =
                read.iter().map(|entry| in_their_words(entry.as_ref().unwrap())).collect();
            assert_eq!(read.len(), judged.len(), "at byte {size}");
            for (ours, theirs) in read.iter().zip(&judged) {
                compare(ours, theirs);
            }
            from = *size;
        }
        assert_eq!(reader.pending(), 0);
    }

    let kinds: BTreeSet<u16> = LogReader::default().push(&log).into_iter().map(|entry| entry.unwrap().kind).collect();
    let wanted = BTreeSet::from([0, 1, 4, 5, 6, 8, 9, 12, 13, 21, 28, 33, 35, 36, 40]);
    assert!(kinds.is_superset(&wanted), "the pool wrote {kinds:?}");
}

/// Lets the pool write the log, and gives it when all has been said.
fn log_of_every_fate(project: &Project) -> Vec<u8> {
    project.write("note.txt", "no program\n");
    project.write(
        "thrice.sh",
        "#!/bin/sh\ncount=$(($(cat count || echo 0) + 1))\necho $count >count\n[ $count -gt 2 ] || exit 85\n",
    );
    project.write("long.sh", "#!/bin/sh\nsleep 600 & wait\n");
    let mut clusters = Vec::new();
    for (name, rest) in JOBS {
        let file = format!("{}.sub", name.replace(' ', "-"));
        project.write(&file, &format!("{COMMON}{rest}\n"));
        clusters.push((name, i64::from(project.submit(&file))));
    }
    let cluster = |wanted: &str| clusters.iter().find(|(name, _)| *name == wanted).unwrap().1;
    let says = |what: &str, is_so: &dyn Fn(&[Entry]) -> bool| {
        until(what, || is_so(&entries(&std::fs::read(project.folder.join("all.log")).unwrap_or_default())));
    };
    let count = |entries: &[Entry], cluster: i64, kind: u16| {
        entries.iter().filter(|entry| entry.cluster == cluster && entry.kind == kind).count()
    };
    let long = cluster("long");
    let number = long.to_string();
    says("the long job runs", &|entries| count(entries, long, 1) == 1);
    project.run(&["condor_vacate_job", &number]).good();
    says("the long job runs again", &|entries| count(entries, long, 4) == 1 && count(entries, long, 1) == 2);
    project.run(&["condor_hold", "-reason", "because of Code 7 Subcode 8", &number]).good();
    says("the long job is held", &|entries| count(entries, long, 12) == 1);
    project.run(&["condor_release", &number]).good();
    says("the long job runs for the third time", &|entries| count(entries, long, 1) == 3);
    for held in ["no input", "no output", "no program", "own hold"] {
        says("jobs are held", &|entries| count(entries, cluster(held), 12) == 1);
    }
    for ended in ["success", "failure", "signal", "retries", "checkpoint", "word", "attribute", "noted"] {
        says("jobs end", &|entries| count(entries, cluster(ended), 5) == 1);
    }
    says("the late ones end", &|entries| count(entries, cluster("late"), 36) == 1);
    let left: Vec<i64> =
        ["no input", "no output", "no program", "own hold", "long", "never"].iter().map(|name| cluster(name)).collect();
    let words: Vec<String> = left.iter().map(i64::to_string).collect();
    let words: Vec<&str> = ["condor_rm"].into_iter().chain(words.iter().map(String::as_str)).collect();
    project.run(&words).good();
    says("the rest is removed", &|entries| left.iter().all(|cluster| count(entries, *cluster, 9) == 1));
    // The attributes of a job follow its last entry.
    says("the log ends", &|entries| {
        left.iter().all(|cluster| {
            let last = entries.iter().rfind(|entry| entry.cluster == *cluster);
            last.is_some_and(|entry| entry.kind == 28)
        })
    });
    std::fs::read(project.folder.join("all.log")).unwrap()
}

fn entries(log: &[u8]) -> Vec<Entry> {
    LogReader::default().push(log).into_iter().flatten().collect()
}

/// Sizes that end in ten different places of an entry. HTCondor's reader waits a second in the middle of one, hence few;
/// and it takes the first two digits of `028` for an event number and loses the log for ever, so none ends there.
fn cuts(log: &[u8]) -> Vec<usize> {
    let in_header = |size: usize| {
        let line = log[..size].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        (1..40).contains(&(size - line)) && log[line].is_ascii_digit()
    };
    // HTCondor takes an event for whole before the end of its last line, Tulpar does not.
    let lacks_newline = |size: usize| log[..size].ends_with(b"\n...");
    let is_good = |size: &usize| !in_header(*size) && !lacks_newline(*size);
    let places = (1..=10).map(|part| log.len() * part / 11 + part * part);
    places.filter_map(|place| (place..log.len()).find(is_good)).chain([log.len()]).collect()
}

fn judge(project: &Project, sizes: &[usize]) -> Vec<Vec<Map<String, Value>>> {
    let output = Command::new("python3")
        .args(["-c", JUDGE])
        .arg(project.folder.join("all.log"))
        .args(sizes.iter().map(usize::to_string))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What we do not keep: names of types, and processor times, which other entries tell better.
const NOT_KEPT: [&str; 7] =
    ["MyType", "EventTypeNumber", "RunLocalUsage", "RunRemoteUsage", "TotalLocalUsage", "TotalRemoteUsage", "ToE"];

fn compare(ours: &Map<String, Value>, theirs: &Map<String, Value>) {
    for (name, value) in ours {
        assert_eq!(
            Some(value),
            theirs.get(name).map(number_as_float).as_ref(),
            "{name}\nours {ours:?}\ntheirs {theirs:?}"
        );
    }
    for name in theirs.keys() {
        assert!(
            ours.contains_key(name) || NOT_KEPT.contains(&name.as_str()),
            "{name} is missing\nours {ours:?}\ntheirs {theirs:?}"
        );
    }
}

/// 1 and 1.0 are one number.
fn number_as_float(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Object(ad) => ad.iter().map(|(name, value)| (name.clone(), number_as_float(value))).collect(),
        other => other.clone(),
    }
}

/// An entry under the names that HTCondor gives to its parts.
fn in_their_words(entry: &Entry) -> Map<String, Value> {
    let mut words = Map::new();
    let mut say = |name: &str, value: Value| {
        words.insert(name.to_owned(), number_as_float(&value));
    };
    let time = entry.time;
    let time = format!(
        "{}-{:02}-{:02}T{:02}:{:02}:{:02}",
        time.year.unwrap_or(0),
        time.month,
        time.day,
        time.hour,
        time.minute,
        time.second
    );
    if let Event::AdInformation { attributes } = &entry.event {
        // They repeat what the entry was that they belong to; its type and time are then this entry's own.
        for (name, value) in attributes.iter().filter(|(name, _)| !NOT_KEPT.contains(&name.as_str())) {
            say(name, classad(value));
        }
    }
    say("Kind", json!(entry.kind));
    say("Cluster", json!(entry.cluster));
    say("Proc", json!(entry.proc));
    say("Subproc", json!(entry.subproc));
    say("EventTime", json!(time));
    match &entry.event {
        Event::Submit { host, notes } => {
            say("SubmitHost", json!(host));
            notes.iter().for_each(|note| say("LogNotes", json!(note)));
        }
        Event::ClusterSubmit { host, .. } => say("SubmitHost", json!(host)),
        Event::Execute { host, slot, scratch, attributes } => {
            say("ExecuteHost", json!(host));
            slot.iter().for_each(|slot| say("SlotName", json!(slot)));
            let mut properties: Map<String, Value> =
                attributes.iter().map(|(name, value)| (name.clone(), classad(value))).collect();
            scratch.iter().for_each(|scratch| {
                properties.insert("CondorScratchDir".into(), json!(scratch));
            });
            say("ExecuteProps", json!(properties));
        }
        Event::Evicted { checkpointed, requeued, reason, code, bytes, .. } => {
            say("Checkpointed", json!(checkpointed));
            say("TerminatedAndRequeued", json!(requeued.is_some()));
            say("TerminatedNormally", json!(matches!(requeued, Some(Exit::Code(_)))));
            requeued.iter().for_each(|exit| say_exit(exit, &mut say));
            reason.iter().for_each(|reason| say("Reason", json!(reason)));
            code.iter().for_each(|(code, subcode)| {
                say("ReasonCode", json!(code));
                // Theirs is left out when it is 0.
                if *subcode != 0 {
                    say("ReasonSubCode", json!(subcode));
                }
            });
            // HTCondor's reader passes over the table here.
            say_uses(bytes, &[], &mut say);
        }
        Event::Terminated { exit, bytes, uses, .. } => {
            say("TerminatedNormally", json!(matches!(exit, Exit::Code(_))));
            say_exit(exit, &mut say);
            say_uses(bytes, uses, &mut say);
        }
        Event::ImageSize { image_kb, memory_mb, resident_kb, proportional_kb } => {
            say("Size", json!(image_kb));
            memory_mb.iter().for_each(|value| say("MemoryUsage", json!(value)));
            resident_kb.iter().for_each(|value| say("ResidentSetSize", json!(value)));
            proportional_kb.iter().for_each(|value| say("ProportionalSetSize", json!(value)));
        }
        Event::Generic { text } => say("Info", json!(text)),
        Event::Aborted { reason, .. } | Event::Released { reason } => {
            reason.iter().for_each(|reason| say("Reason", json!(reason)));
        }
        Event::Held { reason, code, subcode } => {
            if !reason.is_empty() {
                say("HoldReason", json!(reason));
            }
            say("HoldReasonCode", json!(code));
            say("HoldReasonSubCode", json!(subcode));
        }
        Event::RemoteError { critical, daemon, host, text, code, subcode } => {
            // It is said only where it is not so.
            if !critical {
                say("CriticalError", json!(0));
            }
            say("Daemon", json!(daemon));
            say("ExecuteHost", json!(host));
            say("ErrorMsg", json!(text));
            say("HoldReasonCode", json!(code));
            say("HoldReasonSubCode", json!(subcode));
        }
        // HTCondor's reader forgets the value before.
        Event::AttributeUpdate { name, new, .. } => {
            say("Attribute", json!(name));
            say("Value", json!(new));
        }
        Event::ClusterRemove { materialized, items, completion, .. } => {
            materialized.iter().for_each(|jobs| say("NextProcId", json!(jobs)));
            items.iter().for_each(|items| say("NextRow", json!(items)));
            say("Completion", json!(i32::from(completion.as_deref() == Some("Complete"))));
        }
        Event::FileTransfer { phase, host, queued_seconds } => {
            say("Type", json!(*phase as i32 + 1));
            host.iter().for_each(|host| say("Host", json!(host)));
            queued_seconds.iter().for_each(|seconds| say("QueueingDelay", json!(seconds)));
        }
        Event::AdInformation { .. } => {}
        other => panic!("nothing is known of what HTCondor calls the parts of {other:?}"),
    }
    words
}

fn say_exit(exit: &Exit, say: &mut impl FnMut(&str, Value)) {
    match exit {
        Exit::Code(code) => say("ReturnValue", json!(code)),
        Exit::Signal { number, core } => {
            say("TerminatedBySignal", json!(number));
            core.iter().for_each(|core| say("CoreFile", json!(core)));
        }
    }
}

fn say_uses(bytes: &Bytes, uses: &[ResourceUse], say: &mut impl FnMut(&str, Value)) {
    say("SentBytes", json!(bytes.sent));
    say("ReceivedBytes", json!(bytes.received));
    bytes.total_sent.iter().for_each(|value| say("TotalSentBytes", json!(value)));
    bytes.total_received.iter().for_each(|value| say("TotalReceivedBytes", json!(value)));
    for ResourceUse { name, used, requested, allocated, assigned, .. } in uses {
        used.iter().for_each(|value| say(&format!("{name}Usage"), json!(value)));
        requested.iter().for_each(|value| say(&format!("Request{name}"), json!(value)));
        allocated.iter().for_each(|value| say(name, json!(value)));
        assigned.iter().for_each(|value| say(&format!("Assigned{name}"), json!(value)));
    }
}

/// The value of a ClassAd's literal, an ad in brackets as a map; anything else is text without spaces.
fn classad(value: &str) -> Value {
    if let Some(text) = value.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        return json!(text.replace("\\\"", "\"").replace("\\\\", "\\"));
    }
    if let Some(inside) = value.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        let pairs = parts(inside).into_iter().filter_map(|part| part.trim().split_once(" = "));
        return pairs.map(|(name, value)| (name.to_owned(), classad(value))).collect();
    }
    match value {
        "true" => json!(true),
        "false" => json!(false),
        _ => value
            .parse::<f64>()
            .map_or_else(|_| json!(value.split_ascii_whitespace().collect::<String>()), |number| json!(number)),
    }
}

/// What stands between semicolons that belong to no inner ad and to no string.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut quoted) = (0, false);
    text.split(|character| {
        match character {
            '"' => quoted = !quoted,
            '[' if !quoted => depth += 1,
            ']' if !quoted => depth -= 1,
            _ => {}
        }
        character == ';' && depth == 0 && !quoted
    })
    .collect()
}
