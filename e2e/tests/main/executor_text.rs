//! What the executor submits for random requests and folders: `condor_submit` reads in it what was meant.

use crate::main::dry_run::{Dice, ads, cases, string};
use crate::main::harness::Pool;
use std::time::Duration;
use tulpar_core::resources::Request;
use tulpar_core::site::{Queue, System, profile};
use tulpar_core::units::Bytes;
use tulpar_exec::condor::{Paths, Shape, describe};
use tulpar_exec::remote::Files;
use tulpar_formats::htcondor::items::Items;
use tulpar_formats::htcondor::submit::Value;

const FOLDERS: &[&str] = &["runs", "my runs", "it is $(HOME)", "50%", "é", "a;b=c", "back\\slash", "q\"q", "it's"];

#[test]
fn htcondor_reads_in_what_the_executor_writes_what_was_meant() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("executor-text");
    for case in 0..cases() {
        let mut dice = Dice(case + 7);
        let request = Request {
            milli_cpus: *dice.one(&[500, 1000, 2000, 3500]),
            memory: Bytes(*dice.one(&[0, 1 << 20, 3 << 30, 1_000_000_000])),
            disk: Bytes(*dice.one(&[0, 1 << 30, 5_000_000])),
            gpus: *dice.one(&[0, 0, 1, 2]),
            gpu_memory: Bytes(*dice.one(&[0, 20 << 30])),
            gpu_capability: *dice.one(&[0, 80, 86]),
            named: if dice.below(4) == 0 { [("fpga".to_owned(), 2000)].into() } else { Default::default() },
            time: *dice.one(&[None, Some(Duration::from_secs(3600)), Some(Duration::from_secs(20 * 3600))]),
            ..Request::default()
        };
        let files = *dice.one(&[Files::Sent, Files::Sent, Files::Shared]);
        // On a shared file system `launch` starts them.
        let images = if files == Files::Sent { 3 } else { 1 };
        let container =
            [None, Some("docker://python:3.12"), Some("/images/tools.sif")][dice.below(images)].map(str::to_owned);
        let starts_containers = container.is_none() && dice.below(3) == 0;
        let mut queue = Queue::new(System::Htcondor);
        if let Some(name) = dice.one(&[None, Some("chtc"), Some("ospool")]) {
            profile(name).expect("a profile").apply(&mut queue);
        }
        if dice.below(2) == 0 {
            queue.lines.push(("accounting_group".into(), "physics".into()));
            queue.lines.push(("requirements".into(), "Memory > 1".into()));
            queue.lines.push(("+ProjectName".into(), "\"a \\\"b\\\"\"".into()));
        }
        let saves = dice.below(2) == 0;
        let continues = saves && dice.below(2) == 0;
        let shape = Shape {
            request: request.clone(),
            container: container.clone(),
            starts_containers,
            saves,
            continues,
            grace: Duration::from_secs(10),
        };
        let run = project.folder.join(dice.one(FOLDERS));
        let jobs = run.join("jobs");
        let mut items = Items::new(["attempt", "place", "inputs"]);
        let mut meant: Vec<(String, Vec<String>)> = Vec::new();
        for number in 0..1 + dice.below(3) {
            let place = format!("0/{number}.1");
            project.write(
                &format!("{}/.keep", jobs.join(&place).strip_prefix(&project.folder).expect("inside").display()),
                "",
            );
            let inputs: Vec<String> =
                (0..1 + dice.below(3)).map(|input| format!("../shared/{} {input}.tar", dice.one(FOLDERS))).collect();
            let attempt = format!("{number}.1");
            let values =
                [Value::plain(&attempt), Value::plain(&place), Value::files(inputs.iter().map(String::as_str))];
            items.push(&values).expect("can be written");
            meant.push((attempt, inputs));
        }
        project.write("items", items.to_text());
        let (log, launch, items_file) =
            (run.join("events.log"), project.folder.join("launch"), project.folder.join("items"));
        project.write("launch", "#!/bin/sh\n");
        let paths =
            Paths { jobs: &jobs, log: &log, launch: &launch, items: &items, items_file: &items_file, run: &run };
        let description = describe(&shape, &queue, files, 0, &paths);
        let text = description.to_text().expect("can be written");
        project.write("job.sub", &text);
        let found = ads(&project, "job.sub");
        assert_eq!(found.len(), meant.len(), "case {case}\n{text}");
        for ((attempt, inputs), ad) in meant.iter().zip(&found) {
            let context = format!("case {case}, {attempt}\n{text}\n{}", items.to_text());
            assert_eq!(string(ad, "TulparAttempt"), *attempt, "{context}");
            assert_eq!(string(ad, "TulparRun"), run.display().to_string(), "{context}");
            assert_eq!(string(ad, "Iwd"), jobs.join("0").join(attempt).display().to_string(), "{context}");
            assert_eq!(string(ad, "UserLog"), log.display().to_string(), "{context}");
            let sent = files == Files::Sent;
            if sent {
                let told = string(ad, "TransferInput");
                let own: Vec<&str> = told.split(',').filter(|file| Some(*file) != container.as_deref()).collect();
                assert_eq!(own, *inputs, "{context}");
            }
            let place = jobs.join("0").join(attempt).display().to_string();
            let work = if sent { "work .".to_owned() } else { format!("work '{}'", place.replace('\'', "''")) };
            let plain = |text: &str| text.replace('\'', "");
            assert_eq!(plain(&string(ad, "Arguments")), plain(&work), "{context}");
            assert_eq!(string(ad, "ShouldTransferFiles"), if sent { "YES" } else { "NO" }, "{context}");
            assert_eq!(ad.contains_key("ContainerImage"), container.is_some(), "{context}");
            let requirements = ad.get("Requirements").map_or("", String::as_str);
            assert_eq!(requirements.contains("TARGET.HasSingularity"), starts_containers, "{context}");
            let fpga = ad.iter().find(|(name, _)| name.eq_ignore_ascii_case("RequestFpga"));
            assert_eq!(fpga.map(|(_, amount)| amount.as_str()), request.named.get("fpga").map(|_| "2"), "{context}");
            for (key, value) in queue.class(&request).map(|class| class.lines.as_slice()).unwrap_or_default() {
                assert_eq!(ad.get(key.trim_start_matches('+')), Some(value), "{context}");
            }
            let lab = ad.contains_key("WantGPULab");
            assert_eq!(ad.get("is_resumable").is_some_and(|value| value == "true"), saves && lab, "{context}");
            if queue.lines.iter().any(|(key, _)| key == "+ProjectName") {
                assert_eq!(string(ad, "ProjectName"), "a \"b\"", "{context}");
                assert_eq!(string(ad, "AcctGroup"), "physics", "{context}");
            }
            assert_eq!(ad["RequestCpus"], request.milli_cpus.div_ceil(1000).to_string(), "{context}");
            let memory = if request.memory.0 == 0 { 1024 } else { request.memory.0.div_ceil(1 << 20) };
            assert_eq!(ad["RequestMemory"], memory.to_string(), "{context}");
            let disk = if request.disk.0 == 0 { 1 << 20 } else { request.disk.0.div_ceil(1024) };
            assert_eq!(ad["RequestDisk"], disk.to_string(), "{context}");
            assert_eq!(ad.get("RequestGPUs").map_or("0", String::as_str), request.gpus.to_string(), "{context}");
            let capability = format!("{}.{}", request.gpu_capability / 10, request.gpu_capability % 10);
            let asked = (request.gpus > 0 && request.gpu_capability > 0).then_some(capability);
            assert_eq!(ad.get("GPUsMinCapability").cloned(), asked, "{context}");
            let memory = (request.gpus > 0 && request.gpu_memory.0 > 0).then(|| "20480".to_owned());
            assert_eq!(ad.get("GPUsMinMemory").cloned(), memory, "{context}");
            assert_eq!(ad.contains_key("TransferCheckpoint"), continues && sent, "{context}");
        }
    }
}
