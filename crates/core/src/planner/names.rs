//! What the jobs of a layout are called: as Pegasus calls them, so that its users find them.

use super::abstraction::Abstract;
use super::layout::{JobId, JobKind, Layout, SiteId};

impl Layout {
    /// The name of a job.
    pub fn name(&self, graph: &Abstract, job: JobId) -> String {
        let facts = self.job(job);
        let (level, number) = (facts.level, facts.number);
        let site = self.site(facts.staging);
        // Where a transfer runs, as seen from here.
        let side = if facts.site == SiteId::LOCAL { "local" } else { "remote" };
        match facts.kind {
            JobKind::Compute => match (self.cluster_names.get(&job), self.tasks_of(job)) {
                (Some(name), _) => name.clone(),
                (None, [task, ..]) => graph.tasks[task.index()].name.to_string(),
                (None, []) => String::new(),
            },
            JobKind::CreateDirectory => format!("create_dir_{}_0_{site}", graph.name),
            JobKind::StageIn => format!("stage_in_{side}_{site}_{level}_{number}"),
            JobKind::StageOut => format!("stage_out_{side}_{site}_{level}_{number}"),
            JobKind::Transfer => format!("stage_inter_{side}_{site}_{level}_{number}"),
            JobKind::Register => format!("register_{site}_{level}_{number}"),
            JobKind::Chmod => format!("chmod_{}_0", self.name(graph, JobId(number))),
            JobKind::Cleanup => format!("clean_up_{site}_level_{level}_{number}"),
            JobKind::LeafCleanup => format!("cleanup_{}_0_{site}", graph.name),
        }
    }

    /// The most bytes that lie on each staging site at once, when jobs run level by level: all of a level together,
    /// each as soon as those it waits for are through, and what clean-ups remove gone only after their level. A layout
    /// made under a limit of space keeps to it in this order as in any other.
    pub fn peak(&self) -> Vec<(SiteId, u64)> {
        let mut edges = Vec::with_capacity(self.edges());
        for job in self.ids() {
            edges.extend(self.parents(job).iter().map(|parent| (job.0, *parent)));
        }
        let (levels, order) = super::draft::levels(self.jobs.len(), &edges);
        let mut order: Vec<(u32, JobId)> = order.into_iter().map(|job| (levels[job.index()], job)).collect();
        order.sort_unstable();
        let mut held = vec![0u64; self.sites.len()];
        let mut peak = vec![0u64; self.sites.len()];
        for level in order.chunk_by(|left, right| left.0 == right.0) {
            let jobs = || level.iter().map(|(_, job)| self.job(*job));
            for job in jobs().filter(|job| job.kind != JobKind::Cleanup) {
                held[job.staging.index()] += job.holds;
                peak[job.staging.index()] = peak[job.staging.index()].max(held[job.staging.index()]);
            }
            jobs().filter(|job| job.kind == JobKind::Cleanup).for_each(|job| held[job.staging.index()] -= job.holds);
        }
        let sites = peak.into_iter().enumerate().map(|(site, bytes)| (SiteId(site as u16), bytes));
        sites.filter(|(_, bytes)| *bytes > 0).collect()
    }
}
