//! What a system that queues jobs will make of a workflow, said before anything is submitted.

use crate::executors;
use crate::failure::Failure;
use crate::view::duration;
use std::collections::BTreeSet;
use tulpar_core::diagnostic::{Diagnostic, IMPOSSIBLE_REQUEST};
use tulpar_core::resources::{Request, USUAL_GRACE};
use tulpar_core::site::{Class, Queue, Site, System};
use tulpar_core::workflow::{self, Task, Workflow};
use tulpar_exec::condor::text::pool::{Machine, Pool};
use tulpar_formats::htcondor::requirements::of_machines;

/// What can never run there, beside what no node is large enough for. Pilots of HTCondor have one machine too.
/// The pool is not asked about a site whose nodes were listed.
pub(crate) fn findings(workflow: &Workflow, site: &Site, listed: bool) -> Result<Vec<Diagnostic>, Failure> {
    let Some(queue) = &site.queue else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let asks =
        |task: &Task| task.settings.environment.container.is_some() || !lines(task, queue, "requirements").is_empty();
    let pool = match !listed && workflow.tasks.iter().any(asks) {
        true => executors::pool(queue)?,
        false => None,
    };
    let mut required = BTreeSet::new();
    for task in &workflow.tasks {
        if let (Some(pool), Some(image)) = (&pool, &task.settings.environment.container) {
            found.extend(container(task, image, site, pool));
        }
        if let Some(pool) = &pool {
            found.extend(requirements(task, queue, site, pool, &mut required));
        }
        found.extend(gang(task, queue, site));
        found.extend(too_long(task, queue, site));
    }
    Ok(found)
}

/// The values that the site and the class of the task give to a line.
fn lines<'q>(task: &Task, queue: &'q Queue, key: &str) -> Vec<&'q str> {
    let class = queue.class(&asked(task)).into_iter().flat_map(|class| &class.lines);
    let lines = queue.lines.iter().chain(class).filter(|(name, _)| name.eq_ignore_ascii_case(key));
    lines.map(|(_, value)| value.as_str()).collect()
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

/// Images that whoever runs the container fetches: HTCondor needs no way of its own to get them.
const FETCHED_BY_THE_RUNTIME: [&str; 2] = ["docker", "oras"];

/// What a machine lacks for an image.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Miss {
    Containers,
    Images,
    Scheme,
}

fn container(task: &Task, image: &str, site: &Site, pool: &Pool) -> Option<Diagnostic> {
    let scheme = image.split_once("://").map(|(scheme, _)| scheme);
    let scheme = scheme.filter(|scheme| !FETCHED_BY_THE_RUNTIME.contains(scheme));
    let misses = |machine: &Machine| -> Vec<Miss> {
        let wanted = [
            (Miss::Containers, machine.containers),
            (Miss::Images, machine.images || !image.ends_with(".sif")),
            (Miss::Scheme, scheme.is_none_or(|scheme| machine.schemes.contains(scheme))),
        ];
        wanted.into_iter().filter(|(_, has)| !has).map(|(miss, _)| miss).collect()
    };
    let (name, place) = (&task.name, &site.name);
    let error = |problem: String| Diagnostic::error(IMPOSSIBLE_REQUEST, task.span, problem);
    let never = |miss: Miss| pool.machines.iter().all(|machine| misses(machine).contains(&miss));
    const LEAVE_OUT: &str = "leave `container` out, or ask whoever runs the pool for Apptainer";
    if never(Miss::Containers) {
        let problem = format!("`{name}` runs in a container, and no machine of `{place}` can run containers");
        return Some(error(problem).help(LEAVE_OUT));
    }
    if never(Miss::Images) {
        let problem = format!("`{name}` runs in the image {image}, and no machine of `{place}` can run images");
        return Some(error(problem).help(LEAVE_OUT));
    }
    if let Some(scheme) = scheme.filter(|_| never(Miss::Scheme)) {
        let known: Vec<&str> = pool.schemes().into_iter().collect();
        let problem = format!("no machine of `{place}` can fetch `{scheme}://`, where `{name}` has its image");
        return Some(error(problem).help(format!("they can fetch {}", known.join(", "))));
    }
    // Each is somewhere: whether it is anywhere together with the rest.
    let requests =
        || std::iter::once(&task.settings.request).chain(task.variants.iter().map(|variant| &variant.request));
    let fits = |machine: &&Machine| requests().any(|request| workflow::misses(request, &machine.node, site).is_empty());
    let (able, unable): (Vec<&Machine>, Vec<&Machine>) =
        pool.machines.iter().partition(|machine| misses(machine).is_empty());
    if able.iter().any(fits) {
        return None;
    }
    // What no machine is large enough for is said without its container.
    let nearest = unable.iter().copied().filter(|machine| fits(machine)).min_by_key(|machine| misses(machine).len())?;
    let words = misses(nearest).into_iter().map(|miss| match miss {
        Miss::Containers => "run containers".to_owned(),
        Miss::Images => "run images that are files".to_owned(),
        Miss::Scheme => format!("fetch `{}://`", scheme.unwrap_or_default()),
    });
    let words = words.collect::<Vec<_>>().join(" or ");
    let problem = format!("no machine of `{place}` that has what `{name}` asks for can run its container, {image}");
    let mut finding = error(problem).help(format!("nearest is `{}`, which cannot {words}", nearest.node.name));
    let lacking = able.iter().map(|machine| (workflow::misses(&task.settings.request, &machine.node, site), machine));
    if let Some((has, machine)) = lacking.min_by_key(|(has, _)| has.len()) {
        finding = finding.help(format!("`{}` can, with {}", machine.node.name, has.join(" and ")));
    }
    Some(finding)
}

/// Requirements of the site that no machine meets now: HTCondor would let such jobs wait without a word. Those that
/// depend on the job cannot be asked about.
fn requirements(
    task: &Task,
    queue: &Queue,
    site: &Site,
    pool: &Pool,
    said: &mut BTreeSet<String>,
) -> Option<Diagnostic> {
    let class = queue.class(&asked(task)).into_iter().flat_map(|class| &class.lines);
    let own = queue.lines.iter().chain(class).filter_map(|(name, _)| name.strip_prefix('+'));
    let own: BTreeSet<String> = own.map(str::to_ascii_lowercase).collect();
    // All must hold, and one that nobody meets is enough.
    let asked = lines(task, queue, "requirements").into_iter();
    let asked: Vec<String> = asked.filter_map(|line| of_machines(line, &pool.attributes, &own)).collect();
    let all = match &asked[..] {
        [] => return None,
        [one] => one.clone(),
        several => several.iter().map(|one| format!("({one})")).collect::<Vec<_>>().join(" && "),
    };
    // What cannot be asked is left to `condor_submit`, which reads it too.
    if !said.insert(all.clone()) || executors::any_machine(&all).unwrap_or(true) {
        return None;
    }
    let problem = format!("no machine of `{}` meets the `requirements` of `{}` now: {all}", site.name, task.name);
    let finding = Diagnostic::warning(IMPOSSIBLE_REQUEST, task.span, problem);
    Some(finding.help("until one does the job waits; the line is in `submit` of the site or of one of its classes"))
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
                "`{}`: class `{}` ({}), because {}{}",
                task.name,
                class.name,
                lines.join(", "),
                why(request, class),
                saved(task, request, queue)
            ));
        }
    }
    words.into_iter().collect()
}

/// What becomes of a task with checkpoints where its class ends.
fn saved(task: &Task, request: &Request, queue: &Queue) -> String {
    let grace = task.settings.grace.unwrap_or(USUAL_GRACE);
    let saves = task.settings.checkpoint.is_some() && queue.system == System::Htcondor;
    match queue.last_save(request, grace).filter(|_| saves) {
        Some(time) => format!("; its state is saved after {}, before the class ends, and it goes on", duration(time)),
        None => String::new(),
    }
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
