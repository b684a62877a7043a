//! What a system that queues jobs will make of a workflow, said before anything is submitted.

use crate::executors;
use crate::failure::Failure;
use crate::progress::duration;
use std::collections::BTreeSet;
use tulpar_core::diagnostic::{Diagnostic, IMPOSSIBLE_REQUEST};
use tulpar_core::htcondor::pool::Pool;
use tulpar_core::resources::Request;
use tulpar_core::site::{Class, Queue, Site, System};
use tulpar_core::workflow::{Task, Workflow};

/// What can never run there, beside what no node is large enough for. Pilots of HTCondor have one machine too.
pub(crate) fn findings(workflow: &Workflow, site: &Site) -> Result<Vec<Diagnostic>, Failure> {
    let Some(queue) = &site.queue else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let boxed = |task: &&Task| task.settings.environment.container.is_some();
    let pool = match workflow.tasks.iter().any(|task| boxed(&task)) {
        true => executors::pool(queue)?,
        false => None,
    };
    for task in &workflow.tasks {
        if let (Some(pool), Some(image)) = (&pool, &task.settings.environment.container) {
            found.extend(container(task, image, site, pool));
        }
        found.extend(gang(task, queue, site));
        found.extend(too_long(task, queue, site));
    }
    Ok(found)
}

/// What one job of the task asks for.
fn asked(task: &Task) -> Request {
    let settings = &task.settings;
    let every = settings.checkpoint.as_ref().and_then(|checkpoint| checkpoint.every);
    settings.request.of_one_part(every, settings.grace)
}

/// A job of HTCondor has one machine, and what asks for several would run on one alone.
fn gang(task: &Task, queue: &Queue, site: &Site) -> Option<Diagnostic> {
    let requests = std::iter::once(&task.settings.request).chain(task.variants.iter().map(|variant| &variant.request));
    let nodes = requests.map(|request| request.nodes).max().filter(|nodes| *nodes > 1)?;
    if queue.system != System::Htcondor {
        return None;
    }
    let problem =
        format!("`{}` asks for {nodes} nodes at once, and a job of HTCondor (`{}`) has one", task.name, site.name);
    let finding = Diagnostic::error(IMPOSSIBLE_REQUEST, task.span, problem);
    Some(finding.help("ask for one node with more cores or GPUs, or run it on a Slurm site"))
}

fn container(task: &Task, image: &str, site: &Site, pool: &Pool) -> Option<Diagnostic> {
    let problem = if pool.containers == 0 {
        format!("`{}` runs in a container, and no machine of `{}` can run containers", task.name, site.name)
    } else if image.ends_with(".sif") && pool.images == 0 {
        format!("`{}` runs in the image {image}, and no machine of `{}` can run images", task.name, site.name)
    } else {
        let scheme = image.split_once("://").map(|(scheme, _)| scheme).filter(|scheme| *scheme != "docker")?;
        if pool.schemes.contains_key(scheme) {
            return None;
        }
        let known: Vec<&str> = pool.schemes.keys().map(String::as_str).collect();
        let problem =
            format!("no machine of `{}` can fetch `{scheme}://`, where `{}` has its image", site.name, task.name);
        let finding = Diagnostic::error(IMPOSSIBLE_REQUEST, task.span, problem);
        return Some(finding.help(format!("they can fetch {}", known.join(", "))));
    };
    let finding = Diagnostic::error(IMPOSSIBLE_REQUEST, task.span, problem);
    Some(finding.help("leave `container` out, or ask whoever runs the pool for Apptainer"))
}

/// A declared time that no class of the site takes.
fn too_long(task: &Task, queue: &Queue, site: &Site) -> Option<Diagnostic> {
    let request = asked(task);
    let time = request.time?;
    if queue.classes.is_empty() || queue.class(&request).is_some() {
        return None;
    }
    let gpus = request.gpus > 0;
    let fitting = queue.classes.iter().filter(|class| class.gpus.is_none_or(|wanted| wanted == gpus));
    let longest = fitting.filter_map(|class| class.up_to).max()?;
    let problem = format!(
        "`{}` says it takes {}, and `{}` takes nothing longer than {}",
        task.name,
        duration(time),
        site.name,
        duration(longest)
    );
    let finding = Diagnostic::error(IMPOSSIBLE_REQUEST, task.span, problem);
    Some(finding.help(
        "let it save its state, and say how long one job of it may take: `checkpoint: {files: state.pt, every: 4 h}`",
    ))
}

/// What was chosen for the user, one line for each kind of job: the class, and why.
pub(crate) fn choices(workflow: &Workflow, site: &Site) -> Vec<String> {
    let Some(queue) = &site.queue else { return Vec::new() };
    let mut words = BTreeSet::new();
    for task in &workflow.tasks {
        let request = &asked(task);
        if let Some(class) = queue.class(request).filter(|class| !class.lines.is_empty()) {
            let lines: Vec<String> = class.lines.iter().map(|(key, value)| format!("{key} = {value}")).collect();
            words.insert(format!(
                "`{}`: class `{}` ({}), because {}",
                task.name,
                class.name,
                lines.join(", "),
                why(request, class)
            ));
        }
    }
    words.into_iter().collect()
}

fn why(request: &Request, class: &Class) -> String {
    match (request.time, class.up_to) {
        (Some(time), Some(up_to)) => {
            format!("it says it takes {} and the class takes up to {}", duration(time), duration(up_to))
        }
        (None, _) if class.usual => "it does not say how long it takes".to_owned(),
        _ => "it fits no other".to_owned(),
    }
}
