//! Exported workflows: HTCondor and Slurm run them without Tulpar, and HTCondor reads in them what was meant.

use crate::main::dry_run::{Dice, cases, read, string};
use crate::main::harness::{Pool, Project, until};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use tulpar_core::plan::{Graph, Plan};
use tulpar_core::workflow;
use tulpar_formats::export;

/// A scatter inside a diamond, with patterns, folders, optional files and names that want quoting.
const WORKFLOW: &str = r#"workflow: handed
data: {words: data/a.txt, all: data/*.txt}
tasks:
  split:
    in: [words, all]
    out: {pieces: pieces/*.txt, index: index.txt}
    run: |
      for i in 1 2 3; do echo "piece $i $(wc -l < {words})" > pieces/p$i.txt; done
      cat {all} > {index}
  work:
    for: {part: 1..3}
    in: [split.pieces, index]
    out: {made: "made/part {part}.txt", tree: "tree/{part}/", maybe: {path: "maybe {part}.txt", optional: true}}
    env: {MODE: "it's $(x) {part}"}
    memory: 100 MB
    retry: {times: 1, on: [failure]}
    run: |
      cat {pieces} {index} > {made}
      echo "$MODE" >> {made}
      mkdir -p {tree}/deep; echo {part} > {tree}/deep/x.txt; echo "a b" > "{tree}/y z.txt"
      [ {part} = 1 ] || echo there > {maybe}
  gather:
    in: [work.made, work.tree, work.maybe]
    out: {result: result.txt}
    run: "cat {made} {maybe} > {result}; sort {tree.list} >> {result}; cat {tree} >> {result}"
  left: {in: [gather.result], out: {l: l.txt}, run: [cp, "{result}", "{l}"]}
  right: {in: [gather.result], out: {r: r.txt}, run: "wc -l < {result} > {r}"}
  join: {in: [left.l, right.r], out: {end: end.txt}, run: "cat {l} {r} > {end}"}
"#;

fn prepare(project: &Project<'_>) {
    project.write("workflow.yaml", WORKFLOW);
    project.write("data/a.txt", "one\ntwo\n");
    project.write("data/b c.txt", "three\n");
    project.write("data/$(q) \"d\".txt", "four\n");
    project.tulpar(&["run"]).good();
}

/// Every result of the run, and the same file of the other system.
fn same(project: &Project<'_>) {
    let mut open = vec![project.folder.join("results")];
    let mut count = 0;
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("results").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.strip_prefix(project.folder.join("results")).expect("inside").to_owned();
            let other = project.folder.join("out/files").join(&name);
            assert_eq!(std::fs::read(&path).ok(), std::fs::read(other).ok(), "{}", name.display());
            count += 1;
        }
    }
    assert!(count >= 17, "only {count} results");
}

#[test]
fn dagman_gives_the_files_of_a_run() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("handed-dagman");
    prepare(&project);
    project.tulpar(&["export", "dagman", "--to", "out"]).good();
    // The pool of a test may lie where DAGMan does not like to work.
    let start = "cd out && _CONDOR_DAGMAN_USE_STRICT=0 condor_submit_dag workflow.dag && \
                 condor_wait -wait 150 workflow.dag.dagman.log";
    project.run(&["sh", "-c", start]).good();
    let metrics = project.read("out/workflow.dag.metrics");
    assert!(metrics.contains("\"DagStatus\":0"), "{metrics}\n{}", project.read("out/workflow.dag.dagman.out"));
    same(&project);
}

#[test]
fn slurm_gives_the_files_of_a_run() {
    let Some(pool) = Pool::slurm() else { return };
    let project = pool.project("handed-slurm");
    prepare(&project);
    project.tulpar(&["export", "slurm", "--to", "out"]).good();
    let said = project.run(&["out/submit.sh"]).good();
    let ids: Vec<&str> = said.lines().filter_map(|line| Some(line.split_once(':')?.1)).collect();
    assert_eq!(ids.len(), 6, "{said}");
    let asked = format!("--jobs={}", ids.join(","));
    until("the jobs have ended", || project.run(&["squeue", "--noheader", &asked]).stdout.trim().is_empty());
    same(&project);
}

#[test]
fn submit_files_and_dags_run_on_the_pool_as_they_are() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("existing");
    project.write("train.sh", "#!/bin/bash\nset -e\necho \"$1 $MODE $(cat labels.csv)\" > model.txt\nexit 4\n");
    project.write("labels.csv", "a,1\n");
    project.write(
        "train.sub",
        "executable = train.sh\narguments = \"'$(rate) %'\"\nenvironment = \"MODE='it''s'\"\n\
         transfer_input_files = labels.csv\ntransfer_output_files = model.txt\n\
         transfer_output_remaps = \"model.txt=model-$(name).txt\"\nshould_transfer_files = YES\nsuccess_exit_code = 4\n\
         request_cpus = 1\nrequest_memory = 100MB\nrequest_disk = 100MB\n\
         queue name, rate from (\n  slow, 0.01\n  fast, 0.1\n)\n",
    );
    project.write(
        "study.dag",
        "JOB TRAIN train.sub\nJOB ALL {\n  executable = /bin/cat\n  arguments = model-slow.txt model-fast.txt\n  \
         transfer_input_files = model-slow.txt, model-fast.txt\n  transfer_output_files =\n  output = all.txt\n}\n\
         PARENT TRAIN CHILD ALL\n",
    );
    project.tulpar(&["run", "train.sub", "--site", "condor"]).good();
    assert_eq!(project.read("results/model-fast.txt"), "0.1 % it's a,1\n");
    project.tulpar(&["run", "study.dag", "--site", "condor", "--no-cache"]).good();
    assert_eq!(project.read("results/all.txt"), "0.01 % it's a,1\n0.1 % it's a,1\n");
}

/// A task set of a random workflow, as it was meant.
struct Meant {
    cpus: u32,
    memory: Option<u64>,
    gpus: u32,
    capability: Option<&'static str>,
    checkpoint: bool,
    count: usize,
    scattered: bool,
    name: &'static str,
    /// Sets whose files it reads.
    reads: Vec<usize>,
}

const NAMES: &[&str] =
    &["plain", "with space", "quo'te", "dol$(x)lar", "per%cent", "uni é", "back\\slash", "q\"uote", "$$(y)"];

impl Meant {
    fn random(dice: &mut Dice, number: usize) -> Self {
        let scattered = dice.below(2) == 0;
        Self {
            cpus: 1 + dice.below(4) as u32,
            memory: (dice.below(2) == 0).then(|| 100 + 300 * dice.below(9) as u64),
            gpus: if dice.below(3) == 0 { 1 + dice.below(2) as u32 } else { 0 },
            capability: (dice.below(2) == 0).then(|| *dice.one(&["7.0", "8.0", "8.6"])),
            checkpoint: dice.below(4) == 0,
            count: if scattered { 1 + dice.below(3) } else { 1 },
            scattered,
            name: *dice.one(NAMES),
            reads: (0..number).filter(|_| dice.below(2) == 0).collect(),
        }
    }

    fn files(&self, number: usize) -> Vec<String> {
        let name = |index: usize| match self.scattered {
            true => format!("d{number}/{} {}.txt", self.name, index + 1),
            false => format!("d{number}/{}.txt", self.name),
        };
        (0..self.count).map(name).collect()
    }

    fn write(&self, number: usize, text: &mut String) {
        let _ = writeln!(text, "  t{number}:\n    cpus: {}", self.cpus);
        if self.scattered {
            let _ = writeln!(text, "    for: {{v{number}: 1..{}}}", self.count);
        }
        if let Some(memory) = self.memory {
            let _ = writeln!(text, "    memory: {memory} MiB");
        }
        if self.gpus > 0 {
            let _ = writeln!(text, "    gpus: {}", self.gpus);
            if let Some(capability) = self.capability {
                let _ = writeln!(text, "    gpu_capability: {capability}");
            }
        }
        if self.checkpoint {
            let _ = writeln!(text, "    checkpoint: [state one.pt]");
        }
        let inputs: Vec<String> = self.reads.iter().map(|other| format!("t{other}.o{other}")).collect();
        let path = match self.scattered {
            true => format!("d{number}/{} {{v{number}}}.txt", self.name),
            false => format!("d{number}/{}.txt", self.name),
        };
        let path = serde_json::to_string(&path).expect("a string");
        let words: String = self.reads.iter().map(|other| format!("{{o{other}}} ")).collect();
        let _ = writeln!(text, "    in: [{}]\n    out: {{o{number}: {path}}}", inputs.join(", "));
        let _ = writeln!(text, "    run: cat {words}/dev/null > {{o{number}}}");
    }
}

/// `name="value"` of `VARS`, as DAGMan reads it.
fn variables(line: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut rest = line;
    while let Some((name, after)) = rest.split_once("=\"") {
        let mut value = String::new();
        let mut letters = after.char_indices();
        let end = loop {
            match letters.next().expect("a closing quote") {
                (at, '"') => break at,
                (_, '\\') => value.extend(letters.next().map(|(_, letter)| letter)),
                (_, letter) => value.push(letter),
            }
        };
        found.insert(name.trim().to_owned(), value);
        rest = &after[end + 1..];
    }
    found
}

#[test]
fn htcondor_reads_in_random_exported_workflows_what_was_meant() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("handed-random");
    let mut jobs = 0;
    for case in 0..cases() {
        let mut dice = Dice(case + 77);
        let sets: Vec<Meant> = (0..2 + dice.below(3)).map(|number| Meant::random(&mut dice, number)).collect();
        let mut text = format!("workflow: random-{case}\ntasks:\n");
        sets.iter().enumerate().for_each(|(number, set)| set.write(number, &mut text));
        let (read_again, findings) = workflow::read(&text, &BTreeMap::new());
        assert!(findings.iter().all(|finding| !finding.is_error()), "{findings:?}\n{text}");
        let plan = Plan::new(read_again.expect("a workflow"), Vec::new(), Default::default());
        let graph = Graph::new(Arc::new(plan)).expect("no circle");
        let bundle = export::dagman(&graph).unwrap_or_else(|error| panic!("case {case}: {error}\n{text}"));
        jobs += check(&project, case, &sets, &bundle, &text);
    }
    assert!(jobs as u64 >= cases(), "only {jobs} jobs");
}

fn check(project: &Project<'_>, case: u64, sets: &[Meant], bundle: &export::Bundle, text: &str) -> usize {
    let home = format!("case-{case}");
    let mut script = format!("#!/bin/sh\ncd {home} || exit 1\nmkdir -p files logs ads\n");
    let dag = bundle.files.iter().find(|file| file.path == "workflow.dag").expect("a DAG");
    bundle.files.iter().for_each(|file| project.write(&format!("{home}/{}", file.path), &file.text));
    let shell = |word: &str| format!("'{}'", word.replace('\'', "'\\''"));
    let mut nodes: BTreeMap<&str, &str> = BTreeMap::new();
    for line in dag.text.lines() {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        match words[..] {
            ["JOB", node, description] => drop(nodes.insert(node, description)),
            ["VARS", node, list] => {
                let given: Vec<String> =
                    variables(list).iter().map(|(name, value)| shell(&format!("{name}={value}"))).collect();
                let _ = writeln!(
                    script,
                    "condor_submit -dry-run ads/{node} {} JOB={node} {} >ads/{node}.said 2>&1 || {{ cat ads/{node}.said; exit 1; }}",
                    nodes[node],
                    given.join(" ")
                );
            }
            _ => {}
        }
    }
    project.write("case.sh", &script);
    let said = project.run(&["sh", "case.sh"]);
    assert_eq!(said.code, Some(0), "case {case}: {}{}\n{text}\n{}", said.stdout, said.stderr, dag.text);
    let mut jobs = 0;
    for (number, set) in sets.iter().enumerate() {
        for index in 0..set.count {
            let node = if set.scattered { format!("t{number}_{index}") } else { format!("t{number}") };
            let file = project.folder.join(&home).join("ads").join(&node);
            let ads = read(&std::fs::read_to_string(&file).expect("an ad"));
            let ad = &ads[0];
            let context = format!("case {case}, {node}\n{text}\n{}", dag.text);
            assert_eq!(ad["RequestCpus"], set.cpus.to_string(), "{context}");
            assert_eq!(ad["RequestMemory"], set.memory.unwrap_or(1024).to_string(), "{context}");
            assert_eq!(ad["RequestDisk"], (1 << 20).to_string(), "{context}");
            let gpus = ad.get("RequestGPUs").map_or("0", String::as_str);
            assert_eq!(gpus, set.gpus.to_string(), "{context}");
            let capability = ad.get("GPUsMinCapability").map(String::as_str);
            assert_eq!(capability, set.capability.filter(|_| set.gpus > 0), "{context}");
            let list = |name: &str| -> Vec<String> {
                let text = ad.get(name).map(|_| string(ad, name)).unwrap_or_default();
                text.split(',').filter(|file| !file.is_empty()).map(|file| file.trim().to_owned()).collect()
            };
            let mut inputs: Vec<String> = set.reads.iter().flat_map(|other| sets[*other].files(*other)).collect();
            inputs.sort();
            assert_eq!(list("TransferInput"), inputs, "{context}");
            assert_eq!(list("TransferOutput"), [set.files(number)[index].clone()], "{context}");
            assert_eq!(ad["WhenToTransferOutput"], "\"ON_SUCCESS\"", "{context}");
            assert!(Path::new(&string(ad, "Iwd")).ends_with("files"), "{context}");
            let program =
                if set.scattered { format!("jobs/t{number}/{index}.sh") } else { format!("jobs/t{number}.sh") };
            assert!(Path::new(&string(ad, "Cmd")).ends_with(&program), "{} {context}", ad["Cmd"]);
            let checkpoint = ad.get("TransferCheckpoint").map(String::as_str);
            assert_eq!(checkpoint, set.checkpoint.then_some("\"state one.pt\""), "{context}");
            jobs += 1;
        }
    }
    jobs
}
