//! The executable workflow as a picture: Graphviz, or SVG that needs no other program.
//!
//! Small ones are drawn job by job, large ones with equal jobs as one node. It knows nothing of files and terminals.

mod dot;
mod svg;

use rustc_hash::FxHashMap;
use tulpar_core::planner::{Abstract, JobId, JobKind, Layout, Traffic};
use tulpar_core::units::{Bytes, thousands};

pub use dot::dot;
pub use svg::svg;

/// From here on Graphviz takes minutes and nobody sees anything.
const MOST_JOBS: usize = 2000;
/// A picture with more nodes than this is not looked at.
const MOST_NODES: usize = 400;

/// Jobs that are drawn as one.
struct Node {
    kind: JobKind,
    title: String,
    site: String,
    count: u64,
    tasks: u64,
    inward: Traffic,
    layer: u32,
}

impl Node {
    /// What it does, in few words.
    fn detail(&self) -> String {
        let mut words = Vec::new();
        if self.kind == JobKind::Compute && self.tasks > self.count {
            words.push(format!("{} tasks", thousands(self.tasks)));
        }
        if self.inward.files > 0 {
            let files = if self.inward.files == 1 { "file" } else { "files" };
            words.push(format!("{} {files}", thousands(self.inward.files)));
        }
        if self.inward.bytes > 0 {
            words.push(Bytes(self.inward.bytes).to_string());
        }
        words.push(format!("on {}", self.site));
        words.join(", ")
    }

    fn title(&self) -> String {
        if self.count == 1 { self.title.clone() } else { format!("{} × {}", thousands(self.count), self.title) }
    }
}

struct Drawing {
    nodes: Vec<Node>,
    /// From, to; each once, in order.
    edges: Vec<(u32, u32)>,
    layers: u32,
}

/// How much is put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    /// A node a job.
    Jobs,
    /// Equal jobs of one depth.
    Levels,
    /// Equal jobs, wherever they stand.
    Kinds,
}

impl Drawing {
    /// With as much detail as fits: nodes in all, and nodes side by side.
    fn new(graph: &Abstract, layout: &Layout, most_jobs: usize, widest: usize) -> Self {
        let layers = layers(layout);
        let mut widths: FxHashMap<u32, usize> = FxHashMap::default();
        layers.iter().for_each(|layer| *widths.entry(*layer).or_default() += 1);
        let wide = widths.values().copied().max().unwrap_or(0) > widest;
        let detail = if layout.jobs.len() > most_jobs || wide { Detail::Levels } else { Detail::Jobs };
        let drawing = Self::with(graph, layout, &layers, detail);
        if detail == Detail::Levels && drawing.nodes.len() > MOST_NODES {
            return Self::with(graph, layout, &layers, Detail::Kinds);
        }
        drawing
    }

    fn with(graph: &Abstract, layout: &Layout, layers: &[u32], detail: Detail) -> Self {
        let mut known: FxHashMap<(u32, JobKind, u32, u16), u32> = FxHashMap::default();
        let mut nodes: Vec<Node> = Vec::new();
        let mut node_of = vec![0u32; layout.jobs.len()];
        for id in layout.ids() {
            let job = layout.job(id);
            let tasks = layout.tasks_of(id);
            let program = tasks.first().map_or(u32::MAX, |task| graph.tasks[task.index()].kind);
            let layer = layers[id.index()];
            let key = match detail {
                Detail::Jobs => (id.0, job.kind, 0, 0),
                Detail::Levels => (layer, job.kind, program, job.site.0),
                Detail::Kinds => (0, job.kind, program, job.site.0),
            };
            let node = *known.entry(key).or_insert_with(|| {
                nodes.push(Node {
                    kind: job.kind,
                    title: title(graph, layout, id, detail),
                    site: layout.site(job.site).to_owned(),
                    count: 0,
                    tasks: 0,
                    inward: Traffic::default(),
                    layer,
                });
                nodes.len() as u32 - 1
            });
            node_of[id.index()] = node;
            let node = &mut nodes[node as usize];
            node.count += 1;
            node.tasks += tasks.len() as u64;
            node.inward += job.inward;
            node.layer = node.layer.min(layer);
        }
        let mut edges: Vec<(u32, u32)> = Vec::new();
        for id in layout.ids() {
            let to = node_of[id.index()];
            let parents = layout.parents(id).iter().map(|parent| node_of[parent.index()]);
            edges.extend(parents.filter(|from| *from != to).map(|from| (from, to)));
            if edges.len() > 1_000_000 {
                edges.sort_unstable();
                edges.dedup();
            }
        }
        edges.sort_unstable();
        edges.dedup();
        // Layers without nodes are left out.
        let mut used: Vec<u32> = nodes.iter().map(|node| node.layer).collect();
        used.sort_unstable();
        used.dedup();
        for node in &mut nodes {
            node.layer = used.partition_point(|layer| *layer < node.layer) as u32;
        }
        Self { nodes, edges, layers: used.len() as u32 }
    }
}

fn title(graph: &Abstract, layout: &Layout, job: JobId, detail: Detail) -> String {
    let facts = layout.job(job);
    match (detail, facts.kind, layout.tasks_of(job)) {
        (Detail::Jobs, ..) => layout.name(graph, job),
        (_, JobKind::Compute, [task]) => graph.kinds[graph.tasks[task.index()].kind as usize].clone(),
        (_, JobKind::Compute, _) => "cluster".to_owned(),
        (_, kind, _) => kind.name().to_owned(),
    }
}

/// The longest way from a job that waits for nothing.
fn layers(layout: &Layout) -> Vec<u32> {
    let count = layout.jobs.len();
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); count];
    let mut waits = vec![0u32; count];
    for id in layout.ids() {
        for parent in layout.parents(id) {
            children[parent.index()].push(id.0);
            waits[id.index()] += 1;
        }
    }
    let mut layers = vec![0u32; count];
    let mut ready: Vec<usize> = (0..count).filter(|job| waits[*job] == 0).collect();
    while let Some(job) = ready.pop() {
        for child in std::mem::take(&mut children[job]) {
            let child = child as usize;
            layers[child] = layers[child].max(layers[job] + 1);
            waits[child] -= 1;
            if waits[child] == 0 {
                ready.push(child);
            }
        }
    }
    layers
}

/// Text inside a tag or an attribute.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tulpar_core::catalogue::Catalogue;
    use tulpar_core::planner::{Builder, File, Options, Task, plan};

    fn fan(width: u32) -> (Abstract, Layout) {
        let mut builder = Builder::new("fan \"out\"");
        let kind = builder.kind("work<1>");
        let file = builder.file(File { name: "in".into(), size: 10, ..File::default() });
        let input = builder.group([file]);
        for number in 0..width {
            let task = builder.task(Task { name: format!("work{number}").into(), kind, ..Task::default() });
            builder.reads(task, input);
        }
        let graph = builder.finish().expect("no circle");
        let layout = plan(&graph, &Catalogue::default(), &Options::default(), &[]).expect("a plan");
        (graph, layout)
    }

    #[test]
    fn small_plans_are_drawn_job_by_job_and_names_are_quoted() {
        let (graph, layout) = fan(3);
        let text = dot(&graph, &layout);
        assert!(text.contains("label=\"work2\\n"), "{text}");
        assert!(text.starts_with("digraph \"fan \\\"out\\\"\" {"), "{text}");
        assert_eq!(text.matches("shape=box").count(), 3, "{text}");
        let text = svg(&graph, &layout);
        assert!(text.contains(">work2<") && text.ends_with("</svg>\n"), "{text}");
    }

    #[test]
    fn large_plans_are_drawn_with_equal_jobs_as_one() {
        let (graph, layout) = fan(5000);
        assert!(dot(&graph, &layout).contains("5,000 × work<1>"));
        assert!(svg(&graph, &layout).contains("5,000 × work&lt;1&gt;"));
        assert!(svg(&graph, &layout).len() < 20_000);
    }
}
