//! Logs as literal text: what each entry means, and what the reader makes of pieces, torn entries and garbage.

use super::*;

fn read(log: &str) -> Vec<Result<Entry, BadEntry>> {
    LogReader::default().push(log.as_bytes())
}

fn event(log: &str) -> Event {
    let mut found = read(log);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0).unwrap().event
}

fn row(name: &str, unit: Option<&str>, numbers: [Option<f64>; 3], assigned: Option<&str>) -> ResourceUse {
    let [used, requested, allocated] = numbers;
    ResourceUse {
        name: name.to_owned(),
        unit: unit.map(str::to_owned),
        used,
        requested,
        allocated,
        assigned: assigned.map(str::to_owned),
    }
}

const TERMINATED: &str = "\
005 (1042.003.000) 2026-11-16 06:06:53 Job terminated.
\t(1) Normal termination (return value 7)
\t\tUsr 0 00:01:02, Sys 0 00:00:03  -  Run Remote Usage
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage
\t\tUsr 0 00:01:02, Sys 0 00:00:03  -  Total Remote Usage
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Total Local Usage
\t120  -  Run Bytes Sent By Job
\t42  -  Run Bytes Received By Job
\t240  -  Total Bytes Sent By Job
\t84  -  Total Bytes Received By Job
\tPartitionable Resources :    Usage  Request Allocated Assigned
\t   Cpus                 :     0.25        1         1 
\t   Disk (KB)            :    15       10240     11264 
\t   GPUs                 :                 2         2 \"GPU-78c38183, GPU-94af4aed\"
\t   Memory (MB)          :     5          64       128 
\t   TimeExecute (s)      :    65                       

\tJob terminated of its own accord at 2026-11-16T06:06:53Z with exit-code 7.
...
";

#[test]
fn an_ended_job_has_its_ids_its_time_its_exit_and_what_it_used() {
    let entry = read(TERMINATED).remove(0).unwrap();
    assert_eq!((entry.kind, entry.cluster, entry.proc, entry.subproc), (5, 1042, 3, 0));
    assert_eq!(entry.time.moment(0, 0).0, 1_794_809_213_000_000);
    let Event::Terminated { exit, bytes, uses, remark } = entry.event else { panic!("{entry:?}") };
    assert_eq!(exit, Exit::Code(7));
    let total = (Some(240.0), Some(84.0));
    assert_eq!(bytes, Bytes { sent: 120.0, received: 42.0, total_sent: total.0, total_received: total.1 });
    assert_eq!(
        uses,
        [
            row("Cpus", None, [Some(0.25), Some(1.0), Some(1.0)], None),
            row("Disk", Some("KB"), [Some(15.0), Some(10240.0), Some(11264.0)], None),
            row("GPUs", None, [None, Some(2.0), Some(2.0)], Some("GPU-78c38183, GPU-94af4aed")),
            row("Memory", Some("MB"), [Some(5.0), Some(64.0), Some(128.0)], None),
            row("TimeExecute", Some("s"), [Some(65.0), None, None], None),
        ]
    );
    assert_eq!(remark.as_deref(), Some("Job terminated of its own accord at 2026-11-16T06:06:53Z with exit-code 7."));
}

#[test]
fn a_signal_and_its_core_file_are_told_apart_from_an_exit_code() {
    let log = "005 (12.000.000) 2026-11-16 06:06:53 Job terminated.\n\t(0) Abnormal termination (signal 11)\n\t(1) Corefile in: core.12\n...\n";
    let Event::Terminated { exit, .. } = event(log) else { panic!() };
    assert_eq!(exit, Exit::Signal { number: 11, core: Some("core.12".into()) });
}

#[test]
fn a_start_says_where_and_with_which_devices() {
    let log = "\
001 (001.000.000) 2026-11-16 06:06:53 Job executing on host: <127.0.0.1:9618?sock=n2>
\tSlotName: slot1_1@n2.condor.test
\tAvailableGPUs = { GPUs_GPU_78c38183 }
\tCondorScratchDir = \"/var/lib/condor/execute/dir \\\"196\\\"\"
\tCpus = 1
\tGPUs_GPU_78c38183 = [ Id = \"GPU-78c38183\"; Capability = 7.0 ]
...
";
    let Event::Execute { host, slot, scratch, attributes } = event(log) else { panic!() };
    assert_eq!(host, "<127.0.0.1:9618?sock=n2>");
    assert_eq!(slot.as_deref(), Some("slot1_1@n2.condor.test"));
    assert_eq!(scratch.as_deref(), Some("/var/lib/condor/execute/dir \"196\""));
    assert_eq!(
        attributes.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>(),
        [
            "AvailableGPUs: { GPUs_GPU_78c38183 }",
            "Cpus: 1",
            "GPUs_GPU_78c38183: [ Id = \"GPU-78c38183\"; Capability = 7.0 ]",
        ]
    );
}

#[test]
fn an_eviction_says_whether_the_job_ended_and_will_run_again() {
    let usage = "\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage\n\t0  -  Run Bytes Sent By Job\n\t42  -  Run Bytes Received By Job\n";
    let bytes = Bytes { received: 42.0, ..Bytes::default() };
    for (title, first, last, checkpointed, requeued, reason, code) in [
        ("", "(0) Job was not checkpointed.", "", false, None, None, None),
        ("", "(1) Job was checkpointed.", "", true, None, None, None),
        (
            "",
            "(0) CPU times",
            "\tSlot went away: no heartbeat\n",
            false,
            None,
            Some("Slot went away: no heartbeat"),
            None,
        ),
        (
            " Code 1022 Subcode 0",
            "(0) CPU times",
            "\tReason: Job vacated by schedd\n",
            false,
            None,
            Some("Job vacated by schedd"),
            Some((1022, 0)),
        ),
        (
            "",
            "(0) Job terminated and was requeued",
            "\t(1) Normal termination (return value 3)\n\tOnExitRemove evaluated to FALSE\n",
            false,
            Some(Exit::Code(3)),
            Some("OnExitRemove evaluated to FALSE"),
            None,
        ),
        (
            "",
            "(0) Job terminated and was requeued",
            "\t(0) Abnormal termination (signal 9)\n\t(0) No core file\n",
            false,
            Some(Exit::Signal { number: 9, core: None }),
            None,
            None,
        ),
    ] {
        let log = format!("004 (7.0.0) 2026-11-16 06:06:52 Job was evicted.{title}\n\t{first}\n{usage}{last}...\n");
        let reason = reason.map(str::to_owned);
        assert_eq!(event(&log), Event::Evicted { checkpointed, requeued, reason, code, bytes, uses: vec![] }, "{log}");
    }
}

#[test]
fn the_smaller_entries_keep_what_they_say() {
    let line = |number: &str, rest: &str| event(&format!("{number} (7.0.0) 2026-11-16 06:06:52 {rest}\n...\n"));
    let text = str::to_owned;
    for (found, expected) in [
        (
            line("000", "Job submitted from host: <10.0.0.1:9618>\n    DAG Node: train"),
            Event::Submit { host: text("<10.0.0.1:9618>"), notes: vec![text("DAG Node: train")] },
        ),
        (
            line(
                "006",
                "Image size of job updated: 7500\n\t5  -  MemoryUsage of job (MB)\n\t4772  -  ResidentSetSize of job (KB)",
            ),
            Event::ImageSize { image_kb: 7500, memory_mb: Some(5), resident_kb: Some(4772), proportional_kb: None },
        ),
        (
            line(
                "007",
                "Shadow exception!\n\tAssertion failed\n\t0  -  Run Bytes Sent By Job\n\t9  -  Run Bytes Received By Job",
            ),
            Event::ShadowException {
                text: text("Assertion failed"),
                bytes: Bytes { received: 9.0, ..Bytes::default() },
            },
        ),
        (line("008", "loss (0.25) ... still"), Event::Generic { text: text("loss (0.25) ... still") }),
        (
            line("009", "Job was aborted.\n\tvia condor_rm (by user sci)\n\n\tJob terminated by itself at noon."),
            Event::Aborted {
                reason: Some(text("via condor_rm (by user sci)")),
                remark: Some(text("Job terminated by itself at noon.")),
            },
        ),
        (
            line("010", "Job was suspended.\n\tNumber of processes actually suspended: 2"),
            Event::Suspended { processes: Some(2) },
        ),
        (line("011", "Job was unsuspended."), Event::Unsuspended),
        (
            line("012", "Job was held.\n\tno such file: a.txt\n\tCode 13 Subcode 2"),
            Event::Held { reason: text("no such file: a.txt"), code: 13, subcode: 2 },
        ),
        (
            line("012", "Job was held.\n\tit said -1\n\tCode 45 Subcode -1000"),
            Event::Held { reason: text("it said -1"), code: 45, subcode: -1000 },
        ),
        (
            line("012", "Job was held.\n\tReason unspecified\n\tCode 1 Subcode 0"),
            Event::Held { reason: String::new(), code: 1, subcode: 0 },
        ),
        (line("012", "Job was held."), Event::Held { reason: String::new(), code: 0, subcode: 0 }),
        (line("013", "Job was released.\n\tby sci"), Event::Released { reason: Some(text("by sci")) }),
        (
            line("021", "Error from starter on slot1_2@n1:\n\tfirst line\n\tsecond line\n\tCode 6 Subcode 8"),
            Event::RemoteError {
                critical: true,
                daemon: text("starter"),
                host: text("slot1_2@n1"),
                text: text("first line\nsecond line"),
                code: 6,
                subcode: 8,
            },
        ),
        (
            line(
                "022",
                "Job disconnected, attempting to reconnect\n    Socket closed\n    Trying to reconnect to slot1@n1 <10.0.0.2:9618>",
            ),
            Event::Disconnected {
                reason: text("Socket closed"),
                host: Some(text("slot1@n1")),
                address: Some(text("<10.0.0.2:9618>")),
            },
        ),
        (
            line("023", "Job reconnected to slot1@n1\n    startd address: <a>\n    starter address: <b>"),
            Event::Reconnected { host: text("slot1@n1"), startd: Some(text("<a>")), starter: Some(text("<b>")) },
        ),
        (
            line(
                "024",
                "Job reconnection failed\n    Job not found at execution machine\n    Can not reconnect to slot1@n1, rescheduling job",
            ),
            Event::ReconnectFailed { reason: text("Job not found at execution machine"), host: Some(text("slot1@n1")) },
        ),
        (
            line("033", "Setting job attribute Loss to 0.25"),
            Event::AttributeUpdate { name: text("Loss"), old: None, new: text("0.25") },
        ),
        (
            line("033", "Changing job attribute Note from \"a to b\" to \"c\""),
            Event::AttributeUpdate { name: text("Note"), old: Some(text("\"a to b\"")), new: text("\"c\"") },
        ),
        (
            line("035", "Cluster submitted from host: <10.0.0.1:9618>"),
            Event::ClusterSubmit { host: text("<10.0.0.1:9618>"), notes: vec![] },
        ),
        (
            line("036", "Cluster removed\n\tMaterialized 200 jobs from -1 items.\tComplete"),
            Event::ClusterRemove {
                materialized: Some(200),
                items: Some(-1),
                completion: Some(text("Complete")),
                notes: vec![],
            },
        ),
        (
            line("037", "Job Materialization Paused\n\tno items\n\tPauseCode 1\n\tHoldCode 3"),
            Event::FactoryPaused { reason: Some(text("no items")), pause_code: Some(1), hold_code: Some(3) },
        ),
        (line("038", "Job Materialization Resumed"), Event::FactoryResumed { reason: None }),
        (
            line("040", "Started transferring input files\n\tTransferring to host: <10.0.0.2:9618>"),
            Event::FileTransfer {
                phase: TransferPhase::InputStarted,
                host: Some(text("<10.0.0.2:9618>")),
                queued_seconds: None,
            },
        ),
        (
            line("040", "Started transferring output files\n\tSeconds spent in queue: 31"),
            Event::FileTransfer { phase: TransferPhase::OutputStarted, host: None, queued_seconds: Some(31) },
        ),
        (
            line("016", "POST Script terminated.\n\t(1) Normal termination (return value 0)"),
            Event::Other {
                title: text("POST Script terminated."),
                lines: vec![text("\t(1) Normal termination (return value 0)")],
            },
        ),
    ] {
        assert_eq!(found, expected);
    }
}

#[test]
fn attributes_of_the_job_come_as_expressions() {
    let log = "028 (010.-01.000) 2026-11-16 06:06:51 Job ad information event triggered.\nCluster = 10\nMyType = \"A = B\"\nEmpty = \n...\n";
    let mut found = read(log);
    let entry = found.remove(0).unwrap();
    assert_eq!((entry.cluster, entry.proc), (10, -1));
    let Event::AdInformation { attributes } = entry.event else { panic!() };
    assert_eq!(attributes.get("Cluster").map(String::as_str), Some("10"));
    assert_eq!(attributes.get("MyType").map(String::as_str), Some("\"A = B\""));
}

#[test]
fn times_are_read_in_every_form_that_htcondor_writes() {
    let day = 1_794_787_200_000_000;
    let now = |hour: u64, minute: u64, second: u64| day + ((hour * 60 + minute) * 60 + second) * 1_000_000;
    for (text, moment) in [
        ("2026-11-16 06:06:52", now(5, 6, 52)),
        ("11/16 06:06:52", now(5, 6, 52)),
        ("2026-11-16T06:06:52.605Z", now(6, 6, 52) + 605_000),
        ("2026-11-16 06:06:52.1234567", now(5, 6, 52) + 123_456),
        ("2026-11-16 06:06:52+05:30", now(0, 36, 52)),
        ("2026-11-16 06:06:52-0800", now(14, 6, 52)),
    ] {
        let entry = read(&format!("011 (7.0.0) {text} Job was unsuspended.\n...\n")).remove(0).unwrap();
        assert_eq!(entry.time.moment(2026, 3600).0, moment, "{text}");
    }
    for text in ["2026-13-16 06:06:52", "2026-11-16 24:06:52", "2026-11-16", "26-11-16 06:06:52", "é6/11 06:06:52"] {
        assert!(read(&format!("011 (7.0.0) {text} Job was unsuspended.\n...\n"))[0].is_err(), "{text}");
    }
}

#[test]
fn an_entry_counts_when_its_last_line_is_there_and_not_before() {
    let mut reader = LogReader::default();
    let log = format!("{TERMINATED}{}", TERMINATED.replace("return value 7", "return value 8"));
    let mut found = Vec::new();
    for byte in log.as_bytes() {
        found.extend(reader.push(&[*byte]));
    }
    assert_eq!(found, read(&log));
    assert_eq!(found.len(), 2);
    assert_eq!((reader.consumed(), reader.pending()), (log.len() as u64, 0));

    let mut reader = LogReader::starting_at(1000);
    assert_eq!(reader.push(b"011 (7.0.0) 2026-11-16 06:06:52 Job was unsuspended.\n..."), []);
    assert_eq!((reader.consumed(), reader.pending()), (1000, 56));
    assert_eq!(reader.push(b"\n").len(), 1);
    assert_eq!(reader.consumed(), 1057);
}

#[test]
fn what_is_no_entry_is_said_and_the_next_entry_is_read() {
    let good = "011 (7.0.0) 2026-11-16 06:06:52 Job was unsuspended.\n";
    for (garbage, damage) in [
        ("what is this\n...\n", Damage::Header),
        ("...\n", Damage::Header),
        ("\u{0}\u{1}\u{fffd}\n\n...\n", Damage::Header),
        ("005 (7.0.0) 2026-11-16 06:06:52 Job terminated.\n...\n", Damage::Body),
        ("005 (99999999999999999999.0.0) 2026-11-16 06:06:52 Job terminated.\n...\n", Damage::Header),
        ("005 (7.0.0) 2026-11-16 06:06:52 Job term", Damage::Body),
        ("012 (7.0.0) 2026-11-16 06:06:52 Job was held.\n\tbecau\n", Damage::Torn),
        ("half of a line\n", Damage::Header),
        ("<c>\n<a n=\"MyType\"><s>SubmitEvent</s></a>\n</c>\n...\n", Damage::Format),
    ] {
        let found = read(&format!("{garbage}{good}...\n{good}...\n"));
        assert_eq!(found[0].as_ref().unwrap_err().what, damage, "{garbage:?}: {found:?}");
        assert_eq!(found.last().unwrap().as_ref().unwrap().kind, 11, "{garbage:?}");
    }
    // Zeros before an entry, as a crashed file system leaves them, take nothing away.
    assert_eq!(read(&format!("\u{0}\u{0}\u{0}{good}...\n"))[0].as_ref().unwrap().kind, 11);
}

#[test]
fn an_entry_without_end_does_not_fill_the_memory() {
    let mut reader = LogReader::default();
    let mut found = Vec::new();
    for _ in 0..40 {
        found.extend(reader.push(&vec![b'x'; LONGEST / 10]));
        found.extend(reader.push(b"\n"));
    }
    assert!(reader.pending() <= LONGEST + LONGEST / 10);
    found.extend(reader.push(b"...\n011 (7.0.0) 2026-11-16 06:06:52 Job was unsuspended.\n...\n"));
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].as_ref().unwrap_err().what, Damage::Endless);
    assert!(found[1].is_ok());
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_and_no_cut_changes_what_is_read(
            pieces in proptest::collection::vec(
                prop_oneof![
                    Just(TERMINATED.as_bytes().to_vec()),
                    Just(b"...\n".to_vec()),
                    Just(b"004 (7.0.0) 11/16 06:06:52 Job was evicted.\n\t(0) CPU times\n".to_vec()),
                    Just(b"\tPartitionable Resources :    Usage  Request Allocated \n\t\xc3\xa9 :  1\n".to_vec()),
                    Just(b"021 (7.0.0) 11/16 06:06:52 Error from a on b:\n\tCode 1\n".to_vec()),
                    proptest::collection::vec(any::<u8>(), 0..40),
                ],
                0..12,
            ),
            cut in 1usize..50,
        ) {
            let log: Vec<u8> = pieces.concat();
            let whole = LogReader::default().push(&log);
            let mut reader = LogReader::default();
            let cut: Vec<_> = log.chunks(cut).flat_map(|chunk| reader.push(chunk)).collect();
            prop_assert_eq!(whole, cut);
        }
    }
}
