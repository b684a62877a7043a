//! Which job waits for which: what the workflow says, and what follows from who makes a file and who reads it.
//!
//! Files that jobs change in place have versions: the order of the jobs that change them says who sees which.

use super::model::{FileId, InPlace, Job, Link, Model};

/// Fills [`Model::edges`] and [`Model::in_place`]. Checkpoint files carry no order.
pub(super) fn infer(model: &mut Model) {
    let mut makers: Vec<Vec<u32>> = vec![Vec::new(); model.files.len()];
    let mut changed: Vec<FileId> = Vec::new();
    for (number, job) in model.jobs.iter().enumerate() {
        for made in job.uses.iter().filter(|made| made.link.writes()) {
            makers[made.file.index()].push(number as u32);
            if made.link == Link::InOut {
                changed.push(made.file);
            }
        }
    }
    changed.sort_unstable();
    changed.dedup();
    let in_place = |file: usize| changed.binary_search(&FileId(file as u32)).is_ok();
    let mut edges = model.dependencies.clone();
    let mut parents: Vec<u32> = Vec::new();
    for (number, job) in model.jobs.iter().enumerate() {
        parents.clear();
        let read = read_by(job).filter(|file| !in_place(*file));
        parents.extend(read.flat_map(|file| makers[file].iter().copied()));
        parents.sort_unstable();
        parents.dedup();
        let child = number as u32;
        edges.extend(parents.iter().filter(|parent| **parent != child).map(|parent| (*parent, child)));
    }
    if !changed.is_empty() {
        let order = Order::new(model.jobs.len(), &edges);
        model.in_place = changed.iter().map(|file| versions(model, &order, *file)).collect();
        for found in &model.in_place {
            edges.extend(found.writers.windows(2).map(|pair| (pair[0], pair[1])));
            let makers = |version: u32| found.writers.get((version as usize).checked_sub(1)?).copied();
            edges.extend(found.seen.iter().filter_map(|(job, version)| Some((makers(*version)?, *job))));
        }
    }
    edges.sort_unstable();
    edges.dedup();
    model.edges = edges;
}

fn read_by(job: &Job) -> impl Iterator<Item = usize> {
    job.uses.iter().filter(|used| used.link.reads()).map(|used| used.file.index())
}

/// What can be reached from a job.
struct Order {
    children: Vec<Vec<u32>>,
}

impl Order {
    fn new(jobs: usize, edges: &[(u32, u32)]) -> Self {
        let mut children = vec![Vec::new(); jobs];
        edges.iter().for_each(|(parent, child)| children[*parent as usize].push(*child));
        Self { children }
    }

    /// Which of `wanted` come after `job`.
    fn after(&self, job: u32, wanted: &[u32]) -> Vec<u32> {
        let mut seen = vec![false; self.children.len()];
        let mut stack = vec![job];
        while let Some(next) = stack.pop() {
            for child in &self.children[next as usize] {
                if !std::mem::replace(&mut seen[*child as usize], true) {
                    stack.push(*child);
                }
            }
        }
        wanted.iter().copied().filter(|other| *other != job && seen[*other as usize]).collect()
    }
}

fn versions(model: &Model, order: &Order, file: FileId) -> InPlace {
    let link = |job: &Job| job.uses.iter().find(|used| used.file == file).map(|used| used.link);
    let numbered = || model.jobs.iter().enumerate().map(|(number, job)| (number as u32, job));
    let of = |wanted: Link| -> Vec<u32> {
        numbered().filter(|(_, job)| link(job) == Some(wanted)).map(|(number, _)| number).collect()
    };
    let (makers, mut changers) = (of(Link::Output), of(Link::InOut));
    let reached: Vec<(u32, usize)> = changers.iter().map(|job| (*job, order.after(*job, &changers).len())).collect();
    changers.sort_by_key(|job| {
        let later = reached.iter().find(|(other, _)| other == job).map_or(0, |(_, later)| *later);
        (std::cmp::Reverse(later), *job)
    });
    // Whoever makes the file comes before whoever changes it; the changes must say their order themselves.
    let ordered = makers.len() <= 1 && changers.windows(2).all(|pair| !order.after(pair[0], &pair[1..]).is_empty());
    let writers: Vec<u32> = makers.into_iter().chain(changers).collect();
    let readers = of(Link::Input).into_iter().map(|job| {
        let later = order.after(job, &writers);
        // Nothing says that it comes before a change: then it comes after all of them.
        let version = writers.iter().position(|writer| later.contains(writer)).unwrap_or(writers.len());
        (job, version as u32)
    });
    let seen = readers.collect();
    InPlace { file, writers, seen, ordered }
}

#[cfg(test)]
mod tests {
    use super::super::model::Use;
    use super::*;
    use tulpar_core::workflow::Span;

    fn job(link: Link) -> Job {
        let used = Use {
            file: FileId(0),
            link,
            stage_out: true,
            register_replica: false,
            bypass: false,
            for_planning: false,
            optional: false,
            size: None,
            span: Span::default(),
        };
        Job { uses: vec![used], ..Job::default() }
    }

    fn inferred(links: &[Link], dependencies: &[(u32, u32)]) -> Model {
        let mut model = Model { files: vec!["f".into()], dependencies: dependencies.to_vec(), ..Model::default() };
        model.jobs = links.iter().map(|link| job(*link)).collect();
        infer(&mut model);
        model
    }

    #[test]
    fn a_reader_sees_the_version_before_the_first_change_that_follows_it() {
        use Link::{InOut, Input, Output};
        // made, changed by 1 and then by 2; 3 reads between them, 4 says nothing, 5 reads before all changes.
        let model = inferred(&[Output, InOut, InOut, Input, Input, Input], &[(1, 2), (3, 2), (5, 1)]);
        let found = &model.in_place[0];
        assert_eq!((found.writers.as_slice(), found.ordered), ([0, 1, 2].as_slice(), true));
        assert_eq!(found.seen, [(3, 2), (4, 3), (5, 1)]);
        assert_eq!(model.edges, [(0, 1), (0, 5), (1, 2), (1, 3), (2, 4), (3, 2), (5, 1)]);
    }

    #[test]
    fn changes_without_an_order_are_known_as_such() {
        assert!(!inferred(&[Link::InOut, Link::InOut], &[]).in_place[0].ordered);
        assert!(!inferred(&[Link::Output, Link::Output, Link::InOut], &[]).in_place[0].ordered);
        assert!(inferred(&[Link::InOut, Link::InOut], &[(1, 0)]).in_place[0].ordered);
    }
}
