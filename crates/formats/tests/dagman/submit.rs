//! Submit descriptions: macros, quoting, requests, `queue`.

use super::{good, line, read, task};
use tulpar_core::resources::Request;
use tulpar_core::units::Bytes;
use tulpar_core::workflow::{AxisValues, RetryOn, Value};

const HEAD: &str = "executable = /bin/echo\ntransfer_output_files =\n";

/// The only task of a DAG with one node.
fn one(sub: &str) -> tulpar_core::workflow::Task {
    let sub = format!("{HEAD}{sub}");
    let workflow =
        good("JOB A t.sub", &[("t.sub", &sub), ("list.txt", "a, 1\nb, 2\n"), ("in/a.txt", ""), ("in/b.txt", "")]);
    assert_eq!(workflow.tasks.len(), 1);
    workflow.tasks[0].clone()
}

#[test]
fn arguments_and_environment_are_read_both_ways() {
    assert_eq!(line(&one("arguments = a 'b c' $HOME\nqueue")), "/bin/echo a ''\\''b' 'c'\\''' '$HOME'");
    assert_eq!(line(&one("arguments = \"a 'b c' {x} \"\"q\"\"\"\nqueue")), "/bin/echo a 'b c' '{{x}}' '\"q\"'");
    let variables = |sub: &str| -> Vec<String> {
        let task = one(sub);
        let all = task.settings.environment.variables.iter();
        all.map(|(name, value)| format!("{name}={}", value.0)).collect()
    };
    assert_eq!(variables("environment = A=1;B=x y\nqueue"), ["A=1", "B=x y"]);
    assert_eq!(variables("environment = \"A=1 B='x y' C={z}\"\nqueue"), ["A=1", "B=x y", "C={{z}}"]);
}

#[test]
fn requests_have_the_units_of_htcondor() {
    let task =
        one("request_cpus = 4\nrequest_memory = 2\nrequest_disk = 3\nrequest_gpus = 1\ngpus_minimum_memory = 8GB\n\
         gpus_minimum_capability = 7.5\nallowed_execute_duration = 90\nqueue");
    assert_eq!(
        task.settings.request,
        Request {
            milli_cpus: 4000,
            memory: Bytes(2 << 20),
            disk: Bytes(3 << 10),
            gpus: 1,
            gpu_memory: Bytes(8 << 30),
            gpu_capability: 75,
            time: Some(std::time::Duration::from_secs(90)),
            ..Request::default()
        }
    );
    let memory = |text: &str| one(&format!("request_memory = {text}\nqueue")).settings.request.memory;
    assert_eq!((memory("1GB"), memory("1.5 G"), memory("512K")), (Bytes(1 << 30), Bytes(3 << 29), Bytes(512 << 10)));
}

#[test]
fn images_and_retries_are_carried_over() {
    let task = one("universe = docker\ndocker_image = python:3.11\nmax_retries = 2\nqueue");
    assert_eq!(task.settings.environment.container.as_deref(), Some("docker://python:3.11"));
    assert_eq!(task.settings.retry.times, 2);
    assert!(task.settings.retry.on.contains(&RetryOn::Failure));
    let task = one("container_image = images/x.sif\nqueue");
    assert_eq!(task.settings.environment.container.as_deref(), Some("images/x.sif"));
    let workflow =
        good("JOB A t.sub\nRETRY A 1", &[("t.sub", "executable=/bin/true\ntransfer_output_files=\nmax_retries=2\n")]);
    assert_eq!(workflow.tasks[0].settings.retry.times, 5, "two rounds of three tries");
}

#[test]
fn numbers_of_jobs_become_one_task_set() {
    let task = one("arguments = part $(Process) of 1000000\noutput = out.$(Process)\nqueue 1000000");
    assert_eq!(task.scatter[0].values, AxisValues::Range { first: 0, last: 999_999, step: 1 });
    assert_eq!(line(&task), "/bin/echo part {Process} of 1000000 > out.{Process}");
    assert_eq!(&*task.outputs[0].path.0, "out.{Process}");
}

#[test]
fn lists_become_rows() {
    let rows = |sub: &str| {
        let task = one(sub);
        let AxisValues::Rows(rows) = task.scatter[0].values.clone() else { panic!("rows") };
        let text = |row: &Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join(" ");
        (line(&task).to_owned(), task.scatter[0].names.join(" "), rows.iter().map(text).collect::<Vec<_>>())
    };
    let lists = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        rows("arguments = $(x)\nqueue x in (red, green)"),
        ("/bin/echo {x}".to_owned(), "x Process".to_owned(), lists(&["red 0", "green 1"]))
    );
    assert_eq!(
        rows("arguments = $(x)-$(y)\nqueue x, y from list.txt"),
        ("/bin/echo {x}-{y}".to_owned(), "x y Process".to_owned(), lists(&["a 1 0", "b 2 1"]))
    );
    assert_eq!(
        rows("arguments = $(x) $(Step)\nqueue 2 x from (\n  a-b\n\n  c\n)"),
        (
            "/bin/echo {x} {Step}".to_owned(),
            "x Step Process".to_owned(),
            lists(&["a-b 0 0", "a-b 1 1", "c 0 2", "c 1 3"])
        )
    );
    assert_eq!(rows("arguments = $(Item)\nqueue matching in/*.txt").2, lists(&["in/a.txt 0", "in/b.txt 1"]));
}

#[test]
fn jobs_that_differ_in_their_inputs_become_tasks_of_their_own() {
    let sub = format!("{HEAD}transfer_input_files = in/$(f).txt\narguments = $(f).txt\nqueue f in (a b)");
    let workflow = good(
        "JOB A t.sub\nJOB B u.sub\nPARENT A CHILD B",
        &[("t.sub", &sub), ("u.sub", super::TRUE), ("in/a.txt", ""), ("in/b.txt", "")],
    );
    let names: Vec<&str> = workflow.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["A_0", "A_1", "B"]);
    assert_eq!(line(&workflow.tasks[1]), "ln -s in/b.txt b.txt\n/bin/echo b.txt");
    assert_eq!(task(&workflow, "B").after.len(), 2);
}

#[test]
fn conditions_and_includes_are_followed() {
    let sub = "include : common.inc\ninclude ifexist : none.inc\nif defined mode\n  if $(mode)\n    arguments = yes\n  else\n    \
        arguments = no\n  endif\nelif true\n  arguments = never\nelse\n  arguments = never\nendif\nnote @=end\nmany\nlines\n@end\n";
    let workflow = good("JOB A t.sub\nVARS A mode=\"false\"", &[("t.sub", sub), ("common.inc", HEAD)]);
    assert_eq!(line(&workflow.tasks[0]), "/bin/echo no");
}

#[test]
fn what_cannot_be_known_or_done_is_named() {
    let sub = "executable = /bin/echo\nuniverse = grid\narguments = $(nobody) $(Cluster) $RANDOM_CHOICE(1,2)\n\
        request_memory = ifthenelse(x, 1, 2)\nrequirements = (Memory > 1)\n+Project = \"x\"\nrank = Memory\n\
        output = out.$(Cluster)\ntransfer_output_files =\nif version >= 8\nendif\nqueue\n";
    let (workflow, found) = read("JOB A t.sub\nJOB B t.sub", &[("t.sub", sub)]);
    assert!(workflow.is_some());
    let mut found: Vec<&str> = found.iter().map(|text| text.split_once(' ').expect("a line").1).collect();
    found.sort();
    assert_eq!(
        found,
        [
            "D006 t.sub:12: `$(nobody)` is set nowhere; nothing takes its place (and 1 more like this)",
            "D006 t.sub:12: `$RANDOM_CHOICE(1,2)` cannot be known here (and 1 more like this)",
            "D008 t.sub:12: `request_memory = ifthenelse(x, 1, 2)` is no number; expressions are not evaluated, and it is \
             left out (and 1 more like this)",
            "D016 t.sub:12: there is no universe `grid` here; the job runs as any other (and 1 more like this)",
            "D017 t.sub:12: `rank = Memory` is not carried over (and 1 more like this)",
            "D017 t.sub:12: `requirements = (Memory > 1)` is not carried over (and 1 more like this)",
            "D017 t.sub:6: the attribute `Project` of the job is not carried over (and 1 more like this)",
            "D020 t.sub:10: `if version >= 8` cannot be decided here; its part is left out",
        ]
    );
}

#[test]
fn every_node_and_every_queue_has_a_number_of_its_own() {
    let sub = "executable = /bin/echo\narguments = $(ClusterId).$(Process)\ntransfer_output_files =\n\
        output = out.$(Cluster)\nqueue\nqueue\n";
    let workflow = good("JOB A t.sub\nJOB B t.sub", &[("t.sub", sub)]);
    let lines: Vec<&str> = workflow.tasks.iter().map(line).collect();
    let expected = [1, 2, 3, 4].map(|number| format!("/bin/echo {number}.0 > out.{number}"));
    assert_eq!(lines, expected);
}

#[test]
fn the_number_of_the_retry_is_filled_in_by_the_attempt() {
    assert_eq!(line(&one("arguments = --try $(RETRY)\nqueue")), "/bin/echo --try $((TULPAR_ATTEMPT - 1))");
}

/// The lines of all tasks of a description alone, with the rows of a task set filled in.
fn lines(sub: &str, files: &[(&str, &str)]) -> Vec<String> {
    let sub = format!("{HEAD}{sub}");
    let files: Vec<(&str, &str)> = files.iter().copied().chain([("t.sub", sub.as_str())]).collect();
    let workflow = good("JOB A t.sub", &files);
    let mut lines = Vec::new();
    for task in &workflow.tasks {
        match task.scatter.first().map(|axis| (&axis.names, &axis.values)) {
            None => lines.push(line(task).to_owned()),
            Some((names, AxisValues::Rows(rows))) => lines.extend(rows.iter().map(|row| {
                let fill = |text: String, (name, value): (&String, &Value)| {
                    text.replace(&format!("{{{name}}}"), &value.to_string())
                };
                names.iter().zip(row).fold(line(task).to_owned(), fill)
            })),
            Some(_) => panic!("rows"),
        }
    }
    lines
}

#[test]
fn a_variable_of_queue_that_is_a_submit_command_takes_effect() {
    assert_eq!(
        lines("queue arguments from (\n one two\n three\n)", &[]),
        ["/bin/echo one two", "/bin/echo three"],
        "as the second example of HTCondor's manual"
    );
    assert_eq!(lines("arguments = never\nqueue Arguments in (a, b)", &[]), ["/bin/echo a", "/bin/echo b"]);
    assert_eq!(
        lines("queue input in (a.txt, b.txt)", &[("a.txt", ""), ("b.txt", "")]),
        ["/bin/echo < a.txt", "/bin/echo < b.txt"]
    );
    assert_eq!(
        lines(
            "transfer_input_files = x.txt\nqueue initialdir matching dirs run*",
            &[("run1/x.txt", ""), ("run2/x.txt", ""), ("run.txt", "")]
        ),
        ["ln -s run1/x.txt x.txt\n/bin/echo", "ln -s run2/x.txt x.txt\n/bin/echo"]
    );
    let sub = format!("{HEAD}queue request_memory, arguments from (\n 1GB a b\n 2GB, c\n)");
    let workflow = good("JOB A t.sub", &[("t.sub", &sub)]);
    let asked: Vec<(Bytes, &str)> =
        workflow.tasks.iter().map(|task| (task.settings.request.memory, line(task))).collect();
    assert_eq!(asked, [(Bytes(1 << 30), "/bin/echo a b"), (Bytes(2 << 30), "/bin/echo c")]);
}

#[test]
fn a_value_with_blanks_or_quotes_becomes_as_many_words_as_for_htcondor() {
    assert_eq!(lines("arguments = -x $(x)\nqueue x from (\n a b\n c\n)", &[]), ["/bin/echo -x a b", "/bin/echo -x c"]);
    assert_eq!(lines("arguments = \"'$(x)'\"\nqueue x from (\n a b\n c\n)", &[]), ["/bin/echo 'a b'", "/bin/echo c"]);
    assert_eq!(lines("arguments = $(n) $(x)\nqueue n, x from (\n 1 a\n 2\n)", &[]), ["/bin/echo 1 a", "/bin/echo 2"]);
}

#[test]
fn requests_and_functions_of_a_variable_of_queue_are_those_of_each_job() {
    let sub = format!("{HEAD}request_memory = $(m)GB\nqueue m in (1, 2)");
    let workflow = good("JOB A t.sub", &[("t.sub", &sub)]);
    let asked: Vec<Bytes> = workflow.tasks.iter().map(|task| task.settings.request.memory).collect();
    assert_eq!(asked, [Bytes(1 << 30), Bytes(2 << 30)]);
    assert_eq!(
        lines("arguments = $Fn(f) $Fx(f)\nqueue f matching in/*.txt", &[("in/a.txt", ""), ("in/b.txt", "")]),
        ["/bin/echo a .txt", "/bin/echo b .txt"]
    );
}
