//! An [`Instance`] as WfFormat 1.5, the version that published instances have.
//!
//! Beyond the schema, which allows further keys: `gpuCount`; `coreShare` instead of a `coreCount` below 1, which it
//! refuses; `category`, as 1.6 has it, where names and programs would tell another kind.
//! Ids get only the characters that the schema allows; when two would become one, they are numbered.

use super::{Instance, Machine, Task, kind};
use rustc_hash::FxHashSet;
use serde::Serialize;
use serde_json::{Number, Value};

const TASK_LETTERS: &str = "-_.#";
const FILE_LETTERS: &str = "-_./:#";

/// The text ends with a line feed. `executedAt` and `makespanInSeconds`, which the schema wants, are empty and 0 when not
/// known. A file that no task has stays; a task that did not run has no execution.
pub fn write(instance: &Instance) -> String {
    let ids = allowed(instance.tasks.iter().map(|task| task.id.as_str()), TASK_LETTERS);
    let files = allowed(instance.files.iter().map(|file| file.id.as_str()), FILE_LETTERS);
    let named = |numbers: &[u32], names: &'_ [String]| -> Vec<String> {
        numbers.iter().map(|number| names[*number as usize].clone()).collect()
    };
    let tasks = instance.tasks.iter().zip(&ids).map(|(task, id)| SpecifiedTask {
        name: if task.name.is_empty() { id.clone() } else { task.name.clone() },
        id: id.clone(),
        parents: named(&task.parents, &ids),
        children: named(&task.children, &ids),
        input_files: named(&task.inputs, &files),
        output_files: named(&task.outputs, &files),
    });
    let sizes = instance.files.iter().zip(&files);
    let specification = Specification {
        tasks: tasks.collect(),
        files: sizes.map(|(file, id)| FileSize { id: id.clone(), size_in_bytes: file.size }).collect(),
    };
    let executed: Vec<Executed<'_>> = instance
        .tasks
        .iter()
        .zip(&ids)
        .filter(|(task, _)| task.runtime.is_some())
        .map(|(task, id)| executed(instance, task, id))
        .collect();
    let execution = (!executed.is_empty()).then(|| Execution {
        makespan_in_seconds: number(instance.makespan.unwrap_or(0.0)),
        executed_at: instance.executed_at.as_deref().unwrap_or(""),
        tasks: executed,
        machines: instance.machines.iter().map(machine).collect(),
    });
    let root = Root {
        name: if instance.name.is_empty() { "workflow" } else { &instance.name },
        description: instance.description.as_deref(),
        created_at: instance.created_at.as_deref(),
        schema_version: "1.5",
        runtime_system: instance.system.as_ref().map(|system| System {
            name: &system.name,
            version: system.version.as_deref().unwrap_or(""),
            url: system.url.as_deref(),
        }),
        workflow: Workflow { specification, execution },
    };
    let mut text = serde_json::to_string_pretty(&root).expect("texts and finite numbers only, which JSON can say");
    text.push('\n');
    text
}

fn executed<'i>(instance: &'i Instance, task: &'i Task, id: &str) -> Executed<'i> {
    let command = (task.program.is_some() || !task.arguments.is_empty())
        .then_some(Command { program: task.program.as_deref(), arguments: &task.arguments });
    Executed {
        id: id.to_owned(),
        runtime_in_seconds: number(task.seconds()),
        executed_at: task.started_at.as_deref(),
        command,
        core_count: Some(task.cores).filter(|cores| *cores >= 1.0).map(number),
        core_share: Some(task.cores).filter(|cores| *cores < 1.0).map(number),
        gpu_count: Some(task.gpus).filter(|gpus| *gpus > 0.0).map(number),
        average_cpu: task.average_cpu.map(number),
        read_bytes: task.read_bytes,
        written_bytes: task.written_bytes,
        memory_in_bytes: task.memory,
        energy: task.energy_kwh.map(number),
        power: task.average_watts.map(number),
        priority: task.priority.map(number),
        category: category(task, id),
        machines: task.machines.iter().map(|machine| instance.machines[*machine as usize].name.as_str()).collect(),
    }
}

/// The kind, where whoever reads the rest would take it for another.
fn category<'i>(task: &'i Task, id: &str) -> Option<&'i str> {
    let name = if task.name.is_empty() { id } else { &task.name };
    let told = kind::guess(id, name, task.program.as_deref());
    Some(task.kind.as_str()).filter(|kind| !kind.is_empty() && *kind != told)
}

fn machine(machine: &Machine) -> MachineView<'_> {
    let known = machine.cores.is_some() || machine.megahertz.is_some() || machine.vendor.is_some();
    MachineView {
        node_name: &machine.name,
        system: machine.system.as_deref(),
        architecture: machine.architecture.as_deref(),
        release: machine.release.as_deref(),
        memory_in_bytes: machine.memory,
        cpu: known.then_some(Processor {
            core_count: machine.cores,
            speed_in_megahertz: machine.megahertz,
            vendor: machine.vendor.as_deref(),
        }),
    }
}

/// Whole numbers without a decimal point; what is not finite becomes 0.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or_else(|| Value::from(0), Value::Number)
}

fn allowed<'i>(ids: impl Iterator<Item = &'i str>, letters: &str) -> Vec<String> {
    let mut given: FxHashSet<String> = FxHashSet::default();
    let letter = |letter: char| if letter.is_ascii_alphanumeric() || letters.contains(letter) { letter } else { '_' };
    ids.map(|id| {
        let plain: String = id.chars().map(letter).collect();
        let mut name = plain.clone();
        let mut number = 2;
        while !given.insert(name.clone()) {
            name = format!("{plain}_{number}");
            number += 1;
        }
        name
    })
    .collect()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Root<'i> {
    name: &'i str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'i str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<&'i str>,
    schema_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime_system: Option<System<'i>>,
    workflow: Workflow<'i>,
}

#[derive(Serialize)]
struct System<'i> {
    name: &'i str,
    version: &'i str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'i str>,
}

#[derive(Serialize)]
struct Workflow<'i> {
    specification: Specification,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution: Option<Execution<'i>>,
}

#[derive(Serialize)]
struct Specification {
    tasks: Vec<SpecifiedTask>,
    files: Vec<FileSize>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SpecifiedTask {
    name: String,
    id: String,
    parents: Vec<String>,
    children: Vec<String>,
    input_files: Vec<String>,
    output_files: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileSize {
    id: String,
    size_in_bytes: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Execution<'i> {
    makespan_in_seconds: Value,
    executed_at: &'i str,
    tasks: Vec<Executed<'i>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    machines: Vec<MachineView<'i>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Executed<'i> {
    id: String,
    runtime_in_seconds: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    executed_at: Option<&'i str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Command<'i>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    core_count: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    core_share: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_count: Option<Value>,
    #[serde(rename = "avgCPU", skip_serializing_if = "Option::is_none")]
    average_cpu: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    written_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_in_bytes: Option<u64>,
    #[serde(rename = "energyInKWh", skip_serializing_if = "Option::is_none")]
    energy: Option<Value>,
    #[serde(rename = "avgPowerInW", skip_serializing_if = "Option::is_none")]
    power: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<&'i str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    machines: Vec<&'i str>,
}

#[derive(Serialize)]
struct Command<'i> {
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<&'i str>,
    arguments: &'i [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MachineView<'i> {
    node_name: &'i str,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<&'i str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    architecture: Option<&'i str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    release: Option<&'i str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_in_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<Processor<'i>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Processor<'i> {
    #[serde(skip_serializing_if = "Option::is_none")]
    core_count: Option<u64>,
    #[serde(rename = "speedInMHz", skip_serializing_if = "Option::is_none")]
    speed_in_megahertz: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vendor: Option<&'i str>,
}
