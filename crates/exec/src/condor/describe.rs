//! The submit description of jobs that ask for the same.

use crate::remote::Files;
use std::path::Path;
use std::time::Duration;
use tulpar_core::parcel;
use tulpar_core::resources::Request;
use tulpar_core::site::Queue;
use tulpar_formats::htcondor::items::Items;
use tulpar_formats::htcondor::submit::{Description, Value};

/// What jobs of one cluster have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    pub request: Request,
    pub container: Option<String>,
    /// `launch` starts containers there itself.
    pub starts_containers: bool,
    /// The task saves its state: what it has goes with it when it is evicted.
    pub saves: bool,
    /// Having saved its state it is started again by the site itself.
    pub continues: bool,
    /// What a task gets to save its state before it is killed.
    pub grace: Duration,
}

/// Memory for tasks that do not say how much they need.
const USUAL_MEMORY_MB: u64 = 1024;
/// Disk beside the inputs, for those that do not say.
const USUAL_DISK_KB: u64 = 1 << 20;
/// Apptainer is there, or Singularity.
const CONTAINERS: &str = "TARGET.HasSingularity";
const MEBIBYTE: u64 = 1 << 20;
/// `launch` itself needs a moment after the task.
const LAUNCH_GRACE: Duration = Duration::from_secs(10);

/// The variables of an item: the attempt, its folder below the folder of all jobs, and what is sent.
pub(super) const VARIABLES: [&str; 3] = ["attempt", "place", "inputs"];

pub struct Paths<'a> {
    /// The folder that the folders of attempts lie in.
    pub jobs: &'a Path,
    pub log: &'a Path,
    pub launch: &'a Path,
    pub items: &'a Items,
    pub items_file: &'a Path,
    /// The folder of the run, which names it among all runs.
    pub run: &'a Path,
}

pub fn describe(shape: &Shape, queue: &Queue, files: Files, input_bytes: u64, paths: &Paths<'_>) -> Description {
    let text = |path: &Path| Value::plain(&path.display().to_string());
    let below = |jobs: Value| jobs.then(Value::plain("/")).then(Value::reference("place"));
    let place = || below(text(paths.jobs));
    // Inside of the quotes of `arguments` a quote of either kind stands for itself when it stands there twice.
    let quoted_place =
        || below(Value::plain(&paths.jobs.display().to_string().replace('\'', "''").replace('"', "\"\"")));
    let run_name = paths.run.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut description = Description::new()
        .comment("Written by Tulpar; one job is one attempt of one task.")
        .set("executable", text(paths.launch))
        .set("initialdir", place())
        .set("log", text(paths.log))
        .set("error", "launch.err")
        .set("submit_event_notes", Value::plain("tulpar:").then(Value::reference("attempt")))
        .set("batch_name", Value::plain(&run_name))
        // Jobs tell through it how they do while they run.
        .custom("WantIOProxy", true)
        .custom("TulparRun", Value::string(&paths.run.display().to_string()))
        .custom("TulparAttempt", Value::plain("\"").then(Value::reference("attempt")).then(Value::plain("\"")));
    description = match files {
        Files::Sent => sent(description, shape),
        Files::Shared => description
            .set("should_transfer_files", "NO")
            .set("transfer_executable", false)
            .set("arguments", Value::plain("\"work '").then(quoted_place()).then(Value::plain("'\""))),
    };
    description = requests(description, &shape.request, input_bytes);
    if let Some(container) = &shape.container {
        description = description.set("container_image", Value::plain(container));
    }
    let vacate = (shape.grace + LAUNCH_GRACE).as_secs();
    description = description.set("job_max_vacate_time", vacate);
    description = lines_of_the_site(description, queue, &shape.request, shape.starts_containers);
    let class = queue.class(&shape.request);
    if shape.saves && class.is_some_and(|class| class.lines.iter().any(|(key, _)| key == "+WantGPULab")) {
        // Whoever can be evicted without loss may use what is free for a while.
        description = description.custom("is_resumable", true);
    }
    description.queue_from(paths.items, &paths.items_file.display().to_string())
}

/// What the site and the class of the request say. Of requirements all must hold; other lines of the class replace the site's.
pub(super) fn lines_of_the_site(
    mut description: Description,
    queue: &Queue,
    request: &Request,
    starts_containers: bool,
) -> Description {
    let class = queue.class(request);
    let mut requirements: Vec<String> = Vec::new();
    for (key, value) in queue.lines.iter().chain(class.into_iter().flat_map(|class| &class.lines)) {
        description = match key.strip_prefix('+') {
            Some(attribute) => description.custom(attribute, Value::plain(value)),
            None if key.eq_ignore_ascii_case("requirements") => {
                requirements.push(value.clone());
                description
            }
            None => description.set(key, Value::plain(value)),
        };
    }
    requirements.extend(starts_containers.then(|| CONTAINERS.to_owned()));
    match &requirements[..] {
        [] => description,
        [one] => description.set("requirements", Value::plain(one)),
        all => {
            let all: Vec<String> = all.iter().map(|one| format!("({one})")).collect();
            description.set("requirements", Value::plain(&all.join(" && ")))
        }
    }
}

fn sent(description: Description, shape: &Shape) -> Description {
    let description = description
        .arguments(["work", "."])
        .set("should_transfer_files", "YES")
        .set("transfer_input_files", Value::reference("inputs"))
        .set("transfer_output_files", parcel::OUT);
    // The folder is there from the start, so that an eviction always finds it.
    let when = if shape.saves { "ON_EXIT_OR_EVICT" } else { "ON_EXIT" };
    let description = description.set("when_to_transfer_output", when);
    match shape.continues {
        false => description,
        true => description.set("checkpoint_exit_code", 85).set("transfer_checkpoint_files", parcel::OUT),
    }
}

pub(super) fn requests(description: Description, request: &Request, input_bytes: u64) -> Description {
    let memory = match request.memory.0 {
        0 => USUAL_MEMORY_MB,
        bytes => bytes.div_ceil(MEBIBYTE),
    };
    let disk = match request.disk.0 {
        0 => USUAL_DISK_KB + 2 * input_bytes.div_ceil(1024),
        bytes => bytes.div_ceil(1024),
    };
    let mut description = description
        .set("request_cpus", u64::from(request.milli_cpus.div_ceil(1000)).max(1))
        .set("request_memory", memory)
        .set("request_disk", disk);
    if request.gpus > 0 {
        description = description.set("request_gpus", u64::from(request.gpus));
        if request.gpu_memory.0 > 0 {
            description = description.set("gpus_minimum_memory", request.gpu_memory.0.div_ceil(MEBIBYTE));
        }
        if request.gpu_capability > 0 {
            let capability = format!("{}.{}", request.gpu_capability / 10, request.gpu_capability % 10);
            description = description.set("gpus_minimum_capability", capability);
        }
    }
    for (name, amount) in &request.named {
        description = description.set(&format!("request_{name}"), u64::from(amount.div_ceil(1000)));
    }
    description
}

#[cfg(test)]
mod tests {
    use super::*;
    use tulpar_core::site::{Class, System};

    #[test]
    fn requirements_of_site_class_and_containers_must_all_hold() {
        let line = |text: &str| ("requirements".to_owned(), text.to_owned());
        let class = Class { name: "all".into(), gpus: None, up_to: None, usual: true, lines: vec![line("B || C")] };
        let site = Queue { lines: vec![line("A")], classes: vec![class], ..Queue::new(System::Htcondor) };
        let text = |queue: &Queue, starts_containers| {
            lines_of_the_site(Description::new(), queue, &Request::default(), starts_containers).to_text().unwrap()
        };
        assert!(text(&site, true).contains("requirements = (A) && (B || C) && (TARGET.HasSingularity)\n"));
        assert!(text(&site, false).contains("requirements = (A) && (B || C)\n"));
        let plain = Queue::new(System::Htcondor);
        assert!(text(&plain, true).contains("requirements = TARGET.HasSingularity\n"));
        assert!(!text(&plain, false).contains("requirements"));
    }
}
