//! What `lint` finds, rule by rule: the lines of a text, and the line and code of every finding.

use crate::dagman::Files;
use tulpar_core::diagnostic::{Diagnostic, line_column};
use tulpar_formats::htcondor::lint::{CODES, lint};

/// A description that nothing is wrong with, up to what the test adds before `queue`.
const GOOD: &str = "executable = run.sh\nrequest_cpus = 1\nrequest_memory = 1GB\nrequest_disk = 1GB\n";
const FILES: &[(&str, &str)] = &[("run.sh", "#!/bin/sh\n"), ("data.csv", ""), ("logs/x", "")];

/// `file:line code`, for every finding; line 0 is the text as a whole.
fn found(name: &str, text: &str, files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<(&str, &str)> = FILES.iter().chain(files).copied().collect();
    let mut all = Vec::new();
    for linted in lint(name, "/home/someone", text, &Files::of(&files)) {
        let line = |finding: &Diagnostic| finding.span.map_or(0, |span| line_column(&linted.text, &span).0);
        for finding in &linted.findings {
            assert!(CODES.iter().any(|(code, _)| *code == finding.code), "{finding:?}");
            let own = if linted.file == name { String::new() } else { format!("{}:", linted.file) };
            all.push(format!("{own}{} {}", line(finding), finding.code));
        }
    }
    all
}

/// Findings about a good description with these lines before `queue`; they begin at line 5.
fn with(lines: &str) -> Vec<String> {
    found("job.sub", &format!("{GOOD}{lines}\nqueue\n"), &[])
}

#[test]
fn a_good_description_has_no_findings() {
    assert_eq!(with(""), Vec::<String>::new());
    let whole = "\
universe = container
container_image = docker://pytorch/pytorch:2.4.1-cuda12.4
arguments = \"--lr $(lr) --out 'model $(name).pt'\"
environment = \"OMP_NUM_THREADS=1 HF_TOKEN_PATH=token\"
transfer_input_files = data.csv, osdf:///ospool/x?recursive
transfer_output_files = model.pt
transfer_output_remaps = \"model.pt=model-$(name).pt\"
checkpoint_exit_code = 85
transfer_checkpoint_files = checkpoint.pt
log = logs/$(ClusterId).log
output = logs/$(name).out
request_gpus = 1
gpus_minimum_capability = 8.0
+WantGPULab = true
+is_resumable = true
requirements = (HasCHTCStaging == true)
JobBatchName = \"a # b\"
mine = 3
max_retries = $(mine)
queue name, lr from (
  a, 0.1
  b, 0.01
)";
    assert_eq!(found("job.sub", &format!("{GOOD}{whole}\n"), &[]), Vec::<String>::new());
}

#[test]
fn every_rule_about_commands_and_values_finds_its_mistake() {
    for (lines, expected) in [
        ("requests_cpus = 1", "5 H001"),
        ("cpu = 1", "5 H001"),
        ("request_cpu = 1", "5 H001"),
        ("frobnicate = 1", "5 H001"),
        ("request_cpus = 2", "5 H002"),
        ("Request_CPUs = 1", "5 H002"),
        ("transfer_output_files = out\nwhen_to_transfer_output = ON_EXIT_OR_EVICT", "6 H003"),
        ("transfer_input_files = data.csv, in/*.dat", "5 H004"),
        ("transfer_output_files = metrics-*.json", "5 H004"),
        ("transfer_input_files = none.csv", "5 H005"),
        ("input = none.txt", "5 H005"),
        ("log = none/job.log", "5 H005"),
        ("output = none/out", "5 H005"),
        ("+JobDurationCategory = \u{201c}Long\u{201d}", "5 H006"),
        ("periodic_release = NumHolds < 5", "5 H007"),
        ("environment = \"WANDB_API_KEY=0123456789\"", "5 H008"),
        ("environment = HF_TOKEN=$ENV(HF_TOKEN);A=1", "5 H008"),
        ("arguments = --api-key=012345", "5 H008"),
        ("arguments = --token 012345", "5 H008"),
        ("arguments = run hf_abcdefghijklmnopqrst", "5 H008"),
        ("getenv = PATH, WANDB_API_KEY", "5 H008"),
        ("getenv = True", "5 H009"),
        ("docker_image = python", "5 H010"),
        ("container_image = docker://python:latest", "5 H010"),
        ("docker_image = docker://python:3.12", "5 H010"),
        ("requirements = (CUDACapability >= 8)", "5 H011"),
        ("requirements = OpSysMajorVer == 7", "5 H011"),
        ("rank = CUDADriverVersion", "5 H011"),
        ("transfer_input_remaps = \"a=b\"", "5 H012"),
        ("queue", "6 H013"),
        ("output_destination = osdf:///x\ntransfer_output_remaps = \"a=b\"", "5 H014"),
        ("checkpoint_exit_code = 85", "5 H017"),
        ("transfer_checkpoint_files = a", "5 H017"),
        ("requirements = TARGET.GPUs >= 1", "5 H018"),
        ("environment = \"CUDA_VISIBLE_DEVICES=0\"", "5 H018"),
        ("gpus_minimum_memory = 8GB", "5 H018"),
        ("+WantGPULab = true", "5 H018"),
        ("+IsResumable = true", "5 H020"),
        ("gpus_minimum_capability = abc\nrequest_gpus = 1", "5 H025"),
        ("should_transfer_files = YE", "5 H025"),
        ("when_to_transfer_output = AT_EXIT", "5 H025"),
        ("arguments = \"a 'b\"", "5 H026"),
        ("environment = \"A\"", "5 H026"),
        ("just words", "5 H029"),
        ("requirements = Memory > 1000", "5 H030"),
        ("max_retries = 2 # twice", "5 H032"),
        ("transfer_output_files = a, b # both", "5 H032"),
        ("transfer_input_files = data.csv, osdf:///home/me/.env", "5 H033"),
        ("transfer_input_files = https://example.org/.netrc", "5 H033"),
        ("transfer_input_files = file:///home/me/.ssh/id_rsa", "5 H033"),
        ("transfer_input_files = file:///home/me/.aws/credentials", "5 H033"),
        ("transfer_input_files = file:///home/me/.kaggle/kaggle.json", "5 H033"),
    ] {
        assert_eq!(with(lines), [expected], "{lines}");
    }
}

#[test]
fn sizes_without_a_unit_are_megabytes_and_kilobytes() {
    let text = "executable = run.sh\nrequest_cpus = 1\nrequest_memory = 8\nrequest_disk = 20\nqueue\n";
    assert_eq!(found("job.sub", text, &[]), ["3 H024", "4 H024"]);
    assert_eq!(found("job.sub", &text.replace("= 8", "= 2048").replace("= 20\n", "= 2000000\n"), &[]), [""; 0]);
}

#[test]
fn missing_requests_and_a_missing_queue_are_said() {
    assert_eq!(found("job.sub", "executable = run.sh\nrequest_disk = 1GB\nqueue\n", &[]), ["3 H019"]);
    assert_eq!(found("job.sub", GOOD, &[]), ["0 H028"]);
    assert_eq!(found("job.sub", &format!("{GOOD}queue 1 # one\n"), &[])[0], "5 H032");
    assert_eq!(found("job.sub", &format!("{GOOD}queue\n").replace("request_cpus", "RequestCpus"), &[]), [""; 0]);
    assert_eq!(found("job.sub", "executable = none.sh\ninclude : more.sub\nqueue\n", &[]), ["1 H005"]);
    assert_eq!(
        found("job.sub", &format!("transfer_executable = false\n{GOOD}queue\n").replace("run.sh", "none"), &[]),
        [""; 0]
    );
}

#[test]
fn a_command_may_be_given_again_where_that_means_something() {
    assert_eq!(with("environment = A=1\nenvironment = $(environment);B=2"), [""; 0]);
    assert_eq!(with("if defined x\nmax_retries = 1\nelse\nmax_retries = 2\nendif"), [""; 0]);
    let again = format!("{GOOD}arguments = a\nqueue\narguments = b\nqueue\n");
    assert_eq!(found("job.sub", &again, &[]), ["8 H013"]);
}

#[test]
fn the_message_about_two_requirements_shows_both_and_how_to_join_them() {
    let text = format!("{GOOD}requirements = HasCHTCStaging\nRequirements = HasSIF\nqueue\n");
    let linted = lint("job.sub", "", &text, &Files::of(FILES));
    let finding = &linted[0].findings[0];
    assert_eq!(finding.message, "`Requirements` is given twice: this one silently replaces the first");
    assert_eq!(finding.help, ["join them: `requirements = (first) && (second)`"]);
    assert_eq!(line_column(&text, &finding.related[0].0).0, 5);
    assert!(finding.is_error());
}

#[test]
fn items_are_looked_up_and_so_is_what_they_name() {
    let queue =
        |statement: &str| format!("{GOOD}transfer_input_files = $(file)\narguments = $(x:)\nqueue {statement}\n");
    assert_eq!(found("job.sub", &queue("file from items.txt"), &[]), ["7 H005"]);
    let items = ("items.txt", "data.csv\nnone.csv\n");
    assert_eq!(found("job.sub", &queue("file from items.txt"), &[items]), ["5 H005"]);
    let items = ("items.txt", "data.csv, 1\ndata.csv\n");
    assert_eq!(found("job.sub", &queue("file, x from items.txt"), &[items]), ["7 H027"]);
    let items = ("items.txt", "data.csv\n\ndata.csv\n");
    assert_eq!(found("job.sub", &queue("file from items.txt"), &[items]), ["7 H027"]);
}

#[test]
fn many_jobs_need_a_limit_and_should_not_be_short() {
    assert_eq!(found("job.sub", &format!("{GOOD}queue 20000\n"), &[]), ["5 H016"]);
    assert_eq!(found("job.sub", &format!("{GOOD}max_idle = 1000\nqueue 20000\n"), &[]), [""; 0]);
    assert_eq!(found("job.sub", &format!("{GOOD}allowed_execute_duration = 60\nqueue 1000\n"), &[]), ["6 H015"]);
}

#[test]
fn scripts_are_looked_at_too() {
    let job = |extra: &str, script: &str| {
        let text = format!("{GOOD}{extra}queue\n").replace("run.sh", "own.sh");
        found("job.sub", &text, &[("own.sh", script)])
    };
    assert_eq!(job("", "#!/bin/bash\npython train.py \\ \n  --epochs 5\n"), ["own.sh:2 H023"]);
    assert_eq!(job("", "#!/bin/bash\r\ntrue\r\n"), ["own.sh:1 H023"]);
    assert_eq!(job("", "python train.py\n"), ["own.sh:1 H023"]);
    assert_eq!(job("", "#!/bin/bash\nexport CUDA_VISIBLE_DEVICES=0\n"), ["own.sh:2 H018"]);
    assert_eq!(job("", "#!/bin/bash\nexport WANDB_API_KEY=0123456\n"), ["own.sh:2 H008"]);
    assert_eq!(job("", "#!/bin/bash\nexport WANDB_API_KEY=$(cat key)\nmkdir out\n# \\ \n"), [""; 0]);
    let checkpoints = "checkpoint_exit_code = 85\ntransfer_checkpoint_files = a\n";
    assert_eq!(job(checkpoints, "#!/bin/bash\nmkdir out\n"), ["own.sh:2 H023"]);
    let sent = GOOD.replace("run.sh", "/bin/bash\ntransfer_executable = false\narguments = own.sh 5");
    assert_eq!(found("job.sub", &format!("{sent}queue\n"), &[("own.sh", "#!/bin/sh\na \\ \n")]), ["own.sh:2 H023"]);
    assert_eq!(job("", "#!/usr/bin/env python3\nx = 'a \\ '\n"), [""; 0]);
}

#[test]
fn files_that_only_look_like_secrets_may_be_sent() {
    let files =
        "osdf:///x/.env.example, osdf:///x/env, osdf:///x/credentials, osdf:///x/kaggle.csv, osdf:///x/id_rsa.pub";
    assert_eq!(with(&format!("transfer_input_files = {files}")), [""; 0]);
}

/// Findings about a script of a job that leaves with 85 and starts again in the same folder.
fn restarted(script: &str) -> Vec<String> {
    let more = "transfer_input_files = osdf:///x/train.zip?pack=no, data.csv\ncheckpoint_exit_code = 85\n";
    let text = format!("{GOOD}{more}transfer_checkpoint_files = a\nqueue\n").replace("run.sh", "own.sh");
    found("job.sub", &text, &[("own.sh", script)])
}

#[test]
fn a_second_start_misses_what_the_first_has_removed() {
    assert_eq!(restarted("#!/bin/bash\nunzip train.zip\nrm train.zip\npython train.py\n"), ["own.sh:2 H023"]);
    assert_eq!(restarted("#!/bin/bash\nunzip -q ./train.zip && rm -f train.zip\n"), ["own.sh:2 H023"]);
    assert_eq!(restarted("#!/bin/bash\npython split.py --from 'data.csv'\nrm data.csv\n"), ["own.sh:2 H023"]);
    assert_eq!(restarted("#!/bin/bash\nunzip train.zip\npython train.py\n"), ["own.sh:2 H023"]);
    let all = "#!/bin/bash\nfolder=$(pwd)\nmkdir $folder/output\nunzip train.zip -d data/\nrm train.zip\ncd /app/\npython train.py \\\n  --every 5\n  --epochs 20\nexit $?\n";
    assert_eq!(restarted(all), ["own.sh:3 H023", "own.sh:4 H023", "own.sh:9 H023"]);
    let text = format!("{GOOD}transfer_input_files = data.csv\nqueue\n").replace("run.sh", "own.sh");
    let once = "#!/bin/bash\nunzip data.csv\nrm data.csv\n";
    assert_eq!(found("job.sub", &text, &[("own.sh", once)]), [""; 0], "without checkpoints there is one start");
}

#[test]
fn a_script_that_can_start_again_has_no_findings() {
    for script in [
        "unzip -n train.zip\npython train.py",
        "unzip -oq train.zip",
        "unzip -l train.zip",
        "[ -d train ] || unzip train.zip",
        "[ -f train.zip ] && unzip train.zip && rm train.zip",
        "if [ -f train.zip ]; then\n  unzip train.zip\n  rm train.zip\nfi",
        "if [ -f train.zip ]; then unzip train.zip; rm train.zip; fi",
        "if [ -f state.pt ]; then\n  exec python train.py --resume\nfi\nunzip train.zip\nrm train.zip",
        "unpack() {\n  unzip train.zip\n  rm train.zip\n}\n[ -d train ] || unpack",
        "rm -rf train\nunzip train.zip",
        "rm -rf output/\nmkdir output",
        "mkdir -p output",
        "if [ ! -d \"$folder\" ]\nthen\n  mkdir $folder\n  tar -xzf tools.tar.gz -C $folder\nfi",
        "cd $(mktemp -d)\nunzip ../train.zip",
        "unzip -n train.zip\npython train.py\nrm -f log.txt",
        "cp /staging/me/other.zip .\nunzip -o other.zip\nrm other.zip",
        "curl -o data.csv https://example.org/data.csv\ncat data.csv\nrm -f \"$old\"",
        "cat <<EOF\nunzip train.zip\nrm train.zip\nEOF",
        "echo 'unzip train.zip\nrm train.zip'",
        "# unzip train.zip\n# rm train.zip, it's gone then",
    ] {
        assert_eq!(restarted(&format!("#!/bin/bash\n{script}\n")), [""; 0], "{script}");
    }
}

#[test]
fn an_option_at_the_beginning_of_a_line_lacks_the_backslash_before_it() {
    let job = |script: &str| {
        let text = format!("{GOOD}queue\n").replace("run.sh", "own.sh");
        found("job.sub", &text, &[("own.sh", &format!("#!/bin/bash\n{script}\n"))])
    };
    assert_eq!(job("python train.py \\\n  --epochs 5\n  --rate 0.1"), ["own.sh:4 H023"]);
    assert_eq!(job("python train.py\n  -e 5"), ["own.sh:3 H023"]);
    for script in [
        "python train.py \\\n  --epochs 5 \\\n  --rate 0.1",
        "options=(\n  --epochs 5\n  --rate 0.1\n)\npython train.py \"${options[@]}\"",
        "case \"$1\" in\n  -h | --help) usage ;;\n  --epochs)\n    shift ;;\nesac",
        "cat > readme <<'EOF'\noptions:\n  --epochs\nEOF",
        "cat > readme <<-EOF\n\toptions:\n\t--epochs\n\tEOF",
        "echo \"options:\n  --epochs\"",
        "x=$(grep \\\n  -e 5 data.csv)",
        "# it's a comment\n# --epochs",
        "test ${#x} -gt 3 \\\n  -a 1 = 1",
        "echo a\\\\\necho b",
        "python train.py |\n  grep -v warning",
    ] {
        assert_eq!(job(script), [""; 0], "{script}");
    }
}

#[test]
fn a_job_without_the_gpu_lab_is_found_beside_one_that_has_it() {
    let description = |lines: &str| format!("{GOOD}transfer_output_files =\n{lines}\nqueue\n");
    let lab = description("request_gpus = 1\n+WantGPULab = true");
    let lost = description("request_gpus = 1");
    let dag = "JOB A train.sub\nJOB B again.sub\nJOB C again.sub\n";
    assert_eq!(found("t.dag", dag, &[("train.sub", &lab), ("again.sub", &lost)]), ["again.sub:6 H034"]);
    assert_eq!(found("t.dag", dag, &[("train.sub", &lost), ("again.sub", &lost)]), [""; 0]);
    assert_eq!(found("t.dag", dag, &[("train.sub", &lab), ("again.sub", &lab)]), [""; 0]);
    assert_eq!(found("t.dag", dag, &[("train.sub", &lab), ("again.sub", &description(""))]), [""; 0]);
    let elsewhere = description("request_gpus = 1\n+WantGPULab = false");
    assert_eq!(found("t.dag", dag, &[("train.sub", &lab), ("again.sub", &elsewhere)]), [""; 0]);
    assert_eq!(found("again.sub", &lost, &[]), [""; 0]);
}

#[test]
fn a_dag_is_followed_into_its_descriptions() {
    let make = format!("{GOOD}transfer_output_files = $(name).txt\nqueue\n");
    let read = format!("{GOOD}transfer_input_files = a.txt, b.txt\ntransfer_output_files =\nlog = /tmp/x.log\nqueue\n");
    let dag = "\
JOB A make.sub
VARS A name=\"a\"
JOB B read.sub
JOB C { 
  executable = none.sh
  requests_cpus = 1
  transfer_output_files =
}
FINAL F make.sub
PARENT A CHILD B
PARENT A CHILD D
JOB E gone.sub
";
    assert_eq!(
        found("train.dag", dag, &[("make.sub", &make), ("read.sub", &read)]),
        ["5 H019", "5 H005", "6 H001", "9 H022", "11 H031", "12 H005", "read.sub:7 H021",]
    );
    // Where one job is silent about its outputs, any file may be made by it.
    let files = [("make.sub", make.as_str()), ("read.sub", &read.replace("log = /tmp/x.log\n", ""))];
    let dag = "JOB A make.sub\nVARS A name=\"a\"\nJOB B read.sub\nPARENT A CHILD B\n";
    assert_eq!(found("train.dag", dag, &files), ["read.sub:5 H005"]);
    let silent = make.replace("transfer_output_files = $(name).txt\n", "");
    assert_eq!(found("train.dag", dag, &[("make.sub", &silent), files[1]]), [""; 0]);
    // And so may be what its items name.
    let named = make.replace("queue", "transfer_output_remaps = \"x=$(item).txt\"\nqueue item in (a b)");
    assert_eq!(found("train.dag", dag, &[("make.sub", &named), files[1]]), ["make.sub:5 H035"]);
    let tmp = lint("train.dag", "/tmp/work", "JOB A make.sub\n", &Files::of(&[("make.sub", &silent), FILES[0]]));
    assert_eq!(tmp[0].findings[0].code, "H021");
}

#[test]
fn nodes_that_wait_for_each_other_are_found() {
    let silent = format!("{GOOD}transfer_output_files =\nqueue\n");
    let files = [("t.sub", silent.as_str())];
    let jobs = "JOB A t.sub\nJOB B t.sub\nJOB C t.sub\nJOB D t.sub\n";
    let dag = format!("{jobs}PARENT A CHILD B\nPARENT B CHILD C D\nPARENT C CHILD B\n");
    let linted = lint("t.dag", "", &dag, &Files::of(&files));
    let said: Vec<&str> = linted[0].findings.iter().map(|finding| finding.message.as_str()).collect();
    assert_eq!(said, ["these nodes wait for each other: B → C → B"]);
    assert_eq!(found("t.dag", &dag, &files), ["2 H031"]);
    assert_eq!(found("t.dag", &format!("{jobs}PARENT A CHILD A\n"), &files), ["1 H031"]);
    assert_eq!(found("t.dag", &format!("{dag}DONE C\n"), &files), [""; 0], "what is done is not waited for");
    assert_eq!(found("t.dag", "JOB A t.sub\nREJECT\n", &files), ["2 H031"]);
}

#[test]
fn hostile_texts_end() {
    for text in
        ["", "=", "queue\u{0}", "queue (", "a @=b", "if\nif\nif", "\u{201c}", "JOB", "JOB A {", "x = $(x)\nqueue $(x)"]
    {
        lint("x", "", text, &Files::of(&[]));
    }
    let long: String = (0..20_000).map(|number| format!("v{number} = $(v{})\n", number + 1)).collect();
    lint("x", "", &long, &Files::of(&[]));
}

#[test]
fn jobs_that_bring_back_one_file_are_found_and_so_are_renames_of_nothing() {
    let sweep = |lines: &str, queue: &str| found("job.sub", &format!("{GOOD}{lines}\n{queue}\n"), &[]);
    assert_eq!(sweep("transfer_output_files = output/model.pth", "queue 2"), ["5 H035"]);
    assert_eq!(sweep("transfer_output_files = model.pth", "queue lr in (1, 2)"), ["5 H035"]);
    let renamed = "transfer_output_files = output/model.pth\ntransfer_output_remaps = \"model.pth=m-$(lr).pth\"";
    assert_eq!(sweep(renamed, "queue lr in (1, 2)"), Vec::<String>::new());
    assert_eq!(sweep(renamed, "queue lr in (1, 1)"), ["6 H035"]);
    let wrong = "transfer_output_files = output/model.pth\ntransfer_output_remaps = \"output/model.pth=m-$(lr).pth\"";
    assert_eq!(sweep(wrong, "queue lr in (1, 2)"), ["5 H035", "6 H036"]);
    assert_eq!(sweep("output = logs/out.$(Cluster)", "queue 2"), ["5 H035"]);
    assert_eq!(sweep("output = logs/out.$(Process)\nerror = logs/out.$(Process)", "queue 2"), Vec::<String>::new());
    assert_eq!(sweep("transfer_output_files = x\ninitialdir = $(d)", "queue d in (a, b)"), Vec::<String>::new());
    assert_eq!(sweep("transfer_output_files = x", "queue initialdir in (a, b)"), Vec::<String>::new());
}
