//! Files: who makes them, where they are, and what they are called.

use super::{good, line, read, task, waits};
use tulpar_core::workflow::{DataSource, FileSource, OutputKind, write};

#[test]
fn files_connect_the_nodes_that_make_and_read_them() {
    let make = "executable = bin/make.sh\narguments = $(JOB).txt\ntransfer_output_files = $(JOB).txt\nqueue\n";
    let join = "executable = bin/join.sh\ntransfer_input_files = A.txt, B.txt, conf/settings.ini\n\
        output = result.txt\ntransfer_output_files =\nqueue\n";
    let dag = "JOB A make.sub\nJOB B make.sub\nJOB C join.sub\nPARENT A B CHILD C\n";
    let files =
        [("make.sub", make), ("join.sub", join), ("bin/make.sh", ""), ("bin/join.sh", ""), ("conf/settings.ini", "")];
    insta::assert_snapshot!(write(&good(dag, &files)), @r#"
    workflow: test
    data:
      bin_make_sh:
        files:
          ".staged/make.sh": bin/make.sh
      bin_join_sh:
        files:
          ".staged/join.sh": bin/join.sh
      conf_settings_ini:
        files:
          conf/settings.ini: conf/settings.ini
    groups:
      group_1:
        retry: {times: 0, on: [evicted]}
    tasks:
      A:
        in:
          bin_make_sh: {from: bin_make_sh, program: true}
        out:
          A_txt: A.txt
        group: group_1
        run: |-
          install -m 755 .staged/make.sh ./make.sh
          ./make.sh A.txt
      B:
        in:
          bin_make_sh: {from: bin_make_sh, program: true}
        out:
          B_txt: B.txt
        group: group_1
        run: |-
          install -m 755 .staged/make.sh ./make.sh
          ./make.sh B.txt
      C:
        in:
          A_txt: A.A_txt
          B_txt: B.B_txt
          bin_join_sh: {from: bin_join_sh, program: true}
          conf_settings_ini: conf_settings_ini
        out:
          result_txt: result.txt
        group: group_1
        run: |-
          install -m 755 .staged/join.sh ./join.sh
          ln -s conf/settings.ini settings.ini
          ./join.sh > result.txt
    "#);
}

#[test]
fn what_is_renamed_or_lies_in_a_folder_keeps_its_path_for_those_who_read_it() {
    let make = "executable = /bin/make\ninitialdir = run1\ntransfer_output_files = raw/data.csv, plain.txt\n\
        transfer_output_remaps = \"plain.txt = sub/renamed.txt\"\nqueue\n";
    let read = "executable = /bin/cat\narguments = data.csv renamed.txt\n\
        transfer_input_files = run1/data.csv, run1/sub/renamed.txt\ntransfer_output_files =\nqueue\n";
    let workflow = good("JOB M m.sub\nJOB R r.sub\nPARENT M CHILD R", &[("m.sub", make), ("r.sub", read)]);
    assert_eq!(
        line(task(&workflow, "M")),
        "/bin/make\nmkdir -p run1\n[ ! -e raw/data.csv ] || mv raw/data.csv run1/data.csv\nmkdir -p run1/sub\n\
         [ ! -e plain.txt ] || mv plain.txt run1/sub/renamed.txt"
    );
    assert_eq!(
        line(task(&workflow, "R")),
        "ln -s run1/data.csv data.csv\nln -s run1/sub/renamed.txt renamed.txt\n/bin/cat data.csv renamed.txt"
    );
    assert_eq!(task(&workflow, "R").after, [], "files say the order");
}

#[test]
fn standard_streams_are_files_when_their_names_are_their_own() {
    let sub = "executable = /bin/cat\ninput = in.txt\noutput = logs/$(JOB).out\nerror = logs/$(JOB).out\ntransfer_output_files =\nqueue\n";
    let workflow = good("JOB A t.sub", &[("t.sub", sub), ("in.txt", "")]);
    assert_eq!(line(task(&workflow, "A")), "mkdir -p logs\n/bin/cat < in.txt > logs/A.out 2>&1");
    let sub = "executable = /bin/date\noutput = same.out\ntransfer_output_files =\nqueue\n";
    let (workflow, found) = read("JOB A t.sub\nJOB B t.sub", &[("t.sub", sub)]);
    assert_eq!(found, ["1 D019 `same.out` stays in the log of its task (and 1 more like this)"]);
    assert!(workflow.expect("a workflow").tasks.iter().all(|task| task.outputs.is_empty()));
}

#[test]
fn jobs_without_declared_files_are_named_and_still_carried_over() {
    let (workflow, found) = read("JOB A t.sub\nJOB B t.sub", &[("t.sub", "executable = /bin/date\nqueue\n")]);
    assert_eq!(
        found,
        [
            "0 D013 t.sub:2: `A` works in a folder that it shares with others; which files it reads and writes there cannot \
          be known (and 1 more like this)"
        ]
    );
    assert_eq!(workflow.map(|workflow| workflow.tasks.len()), Some(2));
}

#[test]
fn a_file_that_only_one_silent_parent_can_have_made_is_taken_from_it() {
    let make = "executable = /bin/make\nshould_transfer_files = YES\nqueue\n";
    let read_it = "executable = /bin/cat\ntransfer_input_files = made.txt\ntransfer_output_files =\nqueue\n";
    let files = [("m.sub", make), ("r.sub", read_it)];
    let (workflow, found) = read("JOB M m.sub\nJOB R r.sub\nPARENT M CHILD R", &files);
    assert_eq!(found, ["2 D014 nothing says who makes `made.txt`; it is taken to be `M`"]);
    let workflow = workflow.expect("a workflow");
    assert_eq!(&*task(&workflow, "M").outputs[0].path.0, "made.txt");
    let (workflow, found) = read("JOB M m.sub\nJOB N m.sub\nJOB R r.sub\nPARENT M N CHILD R", &files);
    assert_eq!(found, Vec::<String>::new());
    let workflow = workflow.expect("a workflow");
    assert_eq!(workflow.data.len(), 1, "two can have made it: the user must have it, or is told that it is missing");
}

#[test]
fn a_file_that_several_nodes_write_is_kept_for_each() {
    let sub = "executable = /bin/step\ntransfer_input_files = state\ntransfer_output_files = state\nqueue\n";
    let (workflow, found) = read(
        "JOB A t.sub\nJOB B t.sub\nJOB C t.sub\nPARENT A CHILD B\nPARENT B CHILD C",
        &[("t.sub", sub), ("state", "0")],
    );
    assert_eq!(
        found,
        ["2 D015 `B` writes `state`, which `A` writes too; its file is kept as `B/state` (and 1 more like this)"]
    );
    let workflow = workflow.expect("a workflow");
    let c = task(&workflow, "C");
    assert_eq!(waits(&workflow)["C"], ["B"]);
    assert_eq!(line(c), "ln -s B/state state\n/bin/step\nmkdir -p C\n[ ! -e state ] || mv state C/state");
    assert!(matches!(task(&workflow, "A").inputs[0].source, FileSource::Data(_)));
}

#[test]
fn numbered_files_of_a_parent_are_all_there() {
    let make = "executable = /bin/make\ntransfer_output_files = part.$(Process).csv\nqueue 3\n";
    let join = "executable = /bin/cat\narguments = part.0.csv part.2.csv\n\
        transfer_input_files = part.0.csv, part.2.csv\ntransfer_output_files =\nqueue\n";
    let workflow = good("JOB M m.sub\nJOB J j.sub\nPARENT M CHILD J", &[("m.sub", make), ("j.sub", join)]);
    let j = task(&workflow, "J");
    assert_eq!((j.inputs.len(), j.after.len()), (1, 0));
    assert_eq!(line(j), "/bin/cat part.0.csv part.2.csv");
}

#[test]
fn directories_addresses_and_files_elsewhere_are_inputs() {
    let sub = "executable = /bin/ls\ntransfer_input_files = data/set, more/, https://host/x/model.bin, /abs/model.bin\n\
        transfer_output_files = made/\nqueue\n";
    let (workflow, found) = read("JOB A t.sub", &[("t.sub", sub), ("data/set/1", ""), ("more/2", "")]);
    assert_eq!(found, ["0 D010 t.sub:4: what is in `made` stays in a folder of that name; HTCondor would empty it"]);
    let workflow = workflow.expect("a workflow");
    let sources: Vec<&DataSource> = workflow.data.iter().map(|data| &data.source).collect();
    assert_eq!(sources[0], &DataSource::Directory("data/set/".to_owned()));
    let files = |shown: &str, from: &str| DataSource::Files([(shown.to_owned(), from.to_owned())].into());
    assert_eq!(sources[2], &files(".staged/model.bin", "https://host/x/model.bin"));
    assert_eq!(sources[3], &files(".staged/2/model.bin", "/abs/model.bin"));
    let line = line(task(&workflow, "A"));
    assert!(line.starts_with("ln -s data/set set\nln -s more/* .\nln -s .staged/model.bin model.bin\n"), "{line}");
    assert_eq!(&*task(&workflow, "A").outputs[0].path.0, "made/");
}

#[test]
fn programs_of_one_name_do_not_meet() {
    let sub = |path: &str| format!("executable = {path}\ntransfer_output_files =\nqueue\n");
    let (a, b) = (sub("one/run.sh"), sub("two/run.sh"));
    let workflow = good("JOB A a.sub\nJOB B b.sub", &[("a.sub", &a), ("b.sub", &b)]);
    assert_eq!(line(task(&workflow, "A")), "install -m 755 .staged/run.sh ./run.sh\n./run.sh");
    assert_eq!(line(task(&workflow, "B")), "install -m 755 .staged/2/run.sh ./run.sh\n./run.sh");
}

#[test]
fn a_name_that_comes_back_may_be_a_folder_whose_files_others_read() {
    let train = "executable = /bin/t\ntransfer_output_files = output\nqueue\n";
    let evaluate =
        "executable = /bin/e\ntransfer_input_files = output/model.pth, output\ntransfer_output_files =\nqueue\n";
    let workflow = good("JOB T t.sub\nJOB E e.sub\nPARENT T CHILD E", &[("t.sub", train), ("e.sub", evaluate)]);
    let output = &task(&workflow, "T").outputs[0];
    assert_eq!((&*output.path.0, output.kind), ("output", OutputKind::File));
    assert_eq!(line(task(&workflow, "E")), "ln -s output/model.pth model.pth\n/bin/e");
}

#[test]
fn renames_are_by_the_name_under_which_a_file_arrives() {
    let outputs = |lines: &str| {
        let sub = format!("executable = /bin/t\n{lines}\nqueue\n");
        let (workflow, found) = read("JOB T t.sub", &[("t.sub", &sub)]);
        let workflow = workflow.expect("a workflow");
        let paths: Vec<String> = workflow.tasks[0].outputs.iter().map(|output| output.path.0.to_string()).collect();
        (paths.join(" "), line(&workflow.tasks[0]).to_owned(), found)
    };
    let (paths, run, found) =
        outputs("transfer_output_files = output/model.pth\ntransfer_output_remaps = \"model.pth=m-1.pth\"");
    assert_eq!((paths.as_str(), found), ("m-1.pth", vec![]));
    assert_eq!(run, "/bin/t\n[ ! -e output/model.pth ] || mv output/model.pth m-1.pth");
    let (paths, _, found) =
        outputs("transfer_output_files = output/model.pth\ntransfer_output_remaps = \"output/model.pth=m-1.pth\"");
    assert_eq!(paths, "model.pth");
    assert_eq!(
        found,
        [
            "0 D017 t.sub:4: `output/model.pth=m-1.pth` renames nothing: no file arrives under the name `output/model.pth`"
        ]
    );
    let (paths, run, found) =
        outputs("transfer_output_files = output\ntransfer_output_remaps = \"output/model.pth=kept/m.pth; output=o1\"");
    assert_eq!((paths.as_str(), found), ("kept/m.pth o1", vec![]));
    assert_eq!(
        run,
        "/bin/t\nmkdir -p kept\n[ ! -e output/model.pth ] || mv output/model.pth kept/m.pth\n\
         [ ! -e output ] || mv output o1"
    );
}

#[test]
fn what_is_in_a_folder_can_come_back_without_it() {
    let train = "executable = /bin/t\ntransfer_output_files = output/\nqueue\n";
    let evaluate = "executable = /bin/e\ntransfer_input_files = model.pth\ntransfer_output_files =\nqueue\n";
    let (workflow, found) =
        read("JOB T t.sub\nJOB E e.sub\nPARENT T CHILD E", &[("t.sub", train), ("e.sub", evaluate)]);
    let workflow = workflow.expect("a workflow");
    assert_eq!(found, ["0 D010 t.sub:3: what is in `output` stays in a folder of that name; HTCondor would empty it"]);
    assert_eq!(line(task(&workflow, "E")), "ln -s output/model.pth model.pth\n/bin/e");
}

#[test]
fn jobs_of_one_queue_that_write_one_file_are_refused() {
    let sub = "executable = /bin/t\narguments = $(Process)\ntransfer_output_files = model.pth\nqueue 2\n";
    let (_, found) = read("JOB T t.sub", &[("t.sub", sub)]);
    assert_eq!(found, ["1 D015 every job of `T` writes `model.pth`, and one would be left"]);
}
