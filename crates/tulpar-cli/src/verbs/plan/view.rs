//! The executable workflow as tables and as JSON.

use crate::print;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use tulpar::plan_source::{Source, thousands};
use tulpar::planning;
use tulpar::view::duration;
use tulpar_core::catalogue::{Catalogue, DataConfiguration, LOCAL};
use tulpar_core::planner::{Decision, Estimate, Job, JobKind, Layout, Options, Pass, SiteId, Traffic};
use tulpar_core::units::Bytes;

/// Lines of a pass that are shown to people; JSON has all.
const MOST_LINES: usize = 40;

#[derive(Serialize)]
pub(super) struct PlanView {
    workflow: String,
    tasks: usize,
    files: usize,
    /// How often tasks read or write a file.
    uses: u64,
    dependencies: usize,
    sites: Vec<SiteRow>,
    options: Options,
    /// Jobs by kind, in the order in which they come.
    jobs: Vec<KindRow>,
    /// Who moves what from where to where.
    transfers: Vec<TransferRow>,
    staged_in: Traffic,
    moved: Traffic,
    predicted: Estimate,
    remarks: Vec<String>,
    decisions: Vec<Decision>,
}

#[derive(Serialize)]
struct SiteRow {
    site: String,
    data: DataConfiguration,
    /// By way of which site files come and go.
    staging: String,
    jobs: u64,
}

#[derive(Serialize)]
struct KindRow {
    kind: &'static str,
    jobs: u64,
    /// Jobs that are in the plan by Pegasus' rules and not needed on this machine.
    not_run: u64,
    files: u64,
    bytes: u64,
    sites: Vec<String>,
}

#[derive(PartialEq, Serialize)]
struct TransferRow {
    by: &'static str,
    from: String,
    to: String,
    jobs: u64,
    files: u64,
    bytes: u64,
}

impl PlanView {
    pub(super) fn new(source: &Source, layout: &Layout, predicted: Estimate) -> Self {
        let (graph, options) = (&source.graph, &source.options);
        let mut remarks = source.remarks.clone();
        let sites = sites(layout, &source.catalogue, options);
        let jobs = kinds(layout, &staging_sites(layout, &source.catalogue, options));
        let left_out: u64 = jobs.iter().map(|row| row.not_run).sum();
        if left_out > 0 {
            remarks.push(format!(
                "Tulpar runs {} fewer auxiliary jobs than Pegasus: it links files into place itself, unless jobs pull them \
                 (`--data nonsharedfs`)",
                thousands(left_out)
            ));
        }
        if predicted.impossible > 0 {
            remarks.push(format!(
                "jobs that ask for more than any node of their site has: {}; the prediction is as if they fitted",
                predicted.impossible
            ));
        }
        let unsized_images = graph.images.iter().filter(|image| image.size == 0).count();
        if unsized_images > 0 {
            remarks.push(format!(
                "the size of {} is not known: say `size` under `containers` of a catalogue",
                tulpar::view::count(unsized_images, "container image")
            ));
        }
        let unknown = graph.tasks.iter().filter(|task| task.runtime.is_none()).count();
        if unknown > 0 {
            remarks.push(format!(
                "nothing is known of the run time of {} of {} tasks: {} each is assumed; say `runtime`, or run it once",
                thousands(unknown as u64),
                thousands(graph.tasks.len() as u64),
                duration(options.default_runtime)
            ));
        }
        let mut decisions = source.assumed.clone();
        decisions.extend(layout.decisions.iter().cloned());
        Self {
            workflow: graph.name.clone(),
            tasks: graph.tasks.len(),
            files: graph.files.len(),
            uses: graph.uses(),
            dependencies: graph.edges(),
            sites,
            options: options.clone(),
            jobs,
            transfers: transfers(layout, options),
            staged_in: layout.staged_in(),
            moved: layout.moved(),
            predicted,
            remarks,
            decisions,
        }
    }

    pub(super) fn print(&self, explain: bool) {
        let colour = print::colour_on_stdout();
        print::line(&format!(
            "{}: {} tasks, {} files, {} uses of them, {} dependencies",
            print::Style::Bold.paint(&self.workflow, colour),
            thousands(self.tasks as u64),
            thousands(self.files as u64),
            thousands(self.uses),
            thousands(self.dependencies as u64),
        ));
        for row in &self.sites {
            print::line(&format!(
                "on {}: {} jobs, {}, files by way of {}",
                row.site,
                thousands(row.jobs),
                row.data.name(),
                row.staging
            ));
        }
        let results = match &self.options.output_site {
            Some(site) => format!("results to {site}"),
            None => "results stay where they are made".to_owned(),
        };
        print::line(&format!("{}; {results}", planning::words(&self.options).join(", ")));
        print::line("");
        self.print_jobs();
        print::line("");
        self.print_transfers();
        print::line(&self.prediction());
        if !self.remarks.is_empty() {
            print::line("");
            self.remarks.iter().for_each(|remark| print::line(&format!("note: {remark}")));
        }
        if explain {
            self.print_decisions();
        }
    }

    fn print_jobs(&self) {
        let some_not_run = self.jobs.iter().any(|row| row.not_run > 0);
        let mut header = vec!["jobs", "planned"];
        if some_not_run {
            header.push("not run");
        }
        header.extend(["files", "bytes", "where"]);
        let mut rows: Vec<Vec<String>> = self
            .jobs
            .iter()
            .map(|row| {
                let mut cells = vec![row.kind.to_owned(), thousands(row.jobs)];
                if some_not_run {
                    cells.push(thousands(row.not_run));
                }
                cells.extend([thousands(row.files), bytes(row.bytes), row.sites.join(", ")]);
                cells
            })
            .collect();
        let sum = |of: &dyn Fn(&KindRow) -> u64| thousands(self.jobs.iter().map(of).sum());
        let mut all = vec!["all".to_owned(), sum(&|row| row.jobs)];
        if some_not_run {
            all.push(sum(&|row| row.not_run));
        }
        all.extend([String::new(), String::new(), String::new()]);
        rows.push(all);
        print::table(&header, &rows);
    }

    fn print_transfers(&self) {
        if self.transfers.is_empty() {
            return;
        }
        let rows: Vec<Vec<String>> = self
            .transfers
            .iter()
            .map(|row| {
                let way = format!("{} → {}", row.from, row.to);
                vec![row.by.to_owned(), thousands(row.jobs), thousands(row.files), bytes(row.bytes), way]
            })
            .collect();
        print::table(&["moved by", "jobs", "files", "bytes", "from → to"], &rows);
        print::line("");
    }

    fn prediction(&self) -> String {
        let predicted = &self.predicted;
        let mut text = format!(
            "predicted: {} from start to end; {} of computing, {} of jobs waiting for files, {} moved",
            seconds(predicted.makespan),
            seconds(predicted.compute),
            seconds(predicted.fetching + predicted.sending),
            bytes(predicted.bytes_moved),
        );
        if let Some(share) = predicted.utilisation {
            text.push_str(&format!("; {:.0} % of the CPUs compute", share * 100.0));
        }
        text
    }

    fn print_decisions(&self) {
        print::line("");
        let passes = [Pass::Reduce, Pass::Place, Pass::Cluster, Pass::Stage, Pass::Cleanup];
        for pass in passes {
            let lines: Vec<&Decision> = self.decisions.iter().filter(|decision| decision.pass == pass).collect();
            if lines.is_empty() {
                continue;
            }
            print::line(&print::Style::Bold.paint(pass.name(), print::colour_on_stdout()));
            for line in lines.iter().take(MOST_LINES) {
                print::line(&format!("  {}: {}; {}", line.about, line.what, line.why));
            }
            if lines.len() > MOST_LINES {
                print::line(&format!("  and {} more: `--json` has all of them", lines.len() - MOST_LINES));
            }
        }
    }
}

fn configuration(catalogue: &Catalogue, options: &Options, site: &str) -> DataConfiguration {
    options.data.or_else(|| catalogue.site(site).and_then(|site| site.data)).unwrap_or_default()
}

fn compute(layout: &Layout) -> impl Iterator<Item = &Job> {
    layout.jobs.iter().filter(|job| job.kind == JobKind::Compute)
}

fn sites(layout: &Layout, catalogue: &Catalogue, options: &Options) -> Vec<SiteRow> {
    let mut counts: BTreeMap<(SiteId, SiteId), u64> = BTreeMap::new();
    compute(layout).for_each(|job| *counts.entry((job.site, job.staging)).or_default() += 1);
    counts
        .into_iter()
        .map(|((site, staging), jobs)| SiteRow {
            site: layout.site(site).to_owned(),
            data: configuration(catalogue, options, layout.site(site)),
            staging: layout.site(staging).to_owned(),
            jobs,
        })
        .collect()
}

/// Of each site, whether the driver makes a staging directory there: only for jobs that pull from it. Elsewhere tasks get
/// their files as links to where they lie.
fn staging_sites(layout: &Layout, catalogue: &Catalogue, options: &Options) -> Vec<bool> {
    let mut used = vec![false; layout.sites.len()];
    for job in compute(layout) {
        used[job.staging.index()] |=
            configuration(catalogue, options, layout.site(job.site)) == DataConfiguration::NonSharedFs;
    }
    used
}

fn kinds(layout: &Layout, staged: &[bool]) -> Vec<KindRow> {
    let mut rows: BTreeMap<JobKind, (KindRow, Vec<bool>)> = BTreeMap::new();
    for id in layout.ids() {
        let job = layout.job(id);
        let (row, seen) = rows.entry(job.kind).or_insert_with(|| {
            let kind = job.kind.name();
            let row = KindRow { kind, jobs: 0, not_run: 0, files: 0, bytes: 0, sites: Vec::new() };
            (row, vec![false; layout.sites.len()])
        });
        row.jobs += 1;
        if job.kind != JobKind::Compute && !staged[job.staging.index()] {
            row.not_run += 1;
        }
        let traffic = match job.kind {
            JobKind::Register | JobKind::Cleanup => {
                Traffic { files: layout.files_of(id).len() as u64, bytes: job.holds }
            }
            _ => job.inward,
        };
        row.files += traffic.files;
        row.bytes += traffic.bytes;
        if !std::mem::replace(&mut seen[job.site.index()], true) {
            row.sites.push(layout.site(job.site).to_owned());
        }
    }
    rows.into_values().map(|(row, _)| row).collect()
}

/// From where to where files go, and by whose work.
fn transfers(layout: &Layout, options: &Options) -> Vec<TransferRow> {
    let mut rows: BTreeMap<(&'static str, String, String), (u64, Traffic)> = BTreeMap::new();
    let mut add = |by, from: &str, to: &str, traffic: Traffic| {
        if traffic != Traffic::default() {
            let entry = rows.entry((by, from.to_owned(), to.to_owned())).or_default();
            entry.0 += 1;
            entry.1 += traffic;
        }
    };
    let results = options.output_site.as_deref().unwrap_or(LOCAL);
    for job in &layout.jobs {
        let (site, staging) = (layout.site(job.site), layout.site(job.staging));
        match job.kind {
            JobKind::Compute => {
                let staged = Traffic {
                    files: job.inward.files - job.bypassed.files,
                    bytes: job.inward.bytes - job.bypassed.bytes,
                };
                let (pull, push) = if job.links { ("links in", "writes") } else { ("pulls", "pushes") };
                add(pull, staging, site, staged);
                add("fetches", "their places", site, job.bypassed);
                add(push, site, staging, job.outward);
            }
            JobKind::StageIn => add(job.kind.name(), "their places", staging, job.inward),
            JobKind::StageOut => add(job.kind.name(), staging, results, [job.inward, job.outward].into_iter().sum()),
            JobKind::Transfer => add(job.kind.name(), "other sites", staging, job.inward),
            _ => {}
        }
    }
    let row = |((by, from, to), (jobs, traffic)): ((&'static str, String, String), (u64, Traffic))| TransferRow {
        by,
        from,
        to,
        jobs,
        files: traffic.files,
        bytes: traffic.bytes,
    };
    rows.into_iter().map(row).collect()
}

pub(super) fn bytes(bytes: u64) -> String {
    Bytes(bytes).to_string()
}

pub(super) fn seconds(seconds: f64) -> String {
    duration(Duration::from_secs_f64(seconds.clamp(0.0, 1e12)))
}
