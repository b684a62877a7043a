//! The jobs of a run: one screen of them, or all of them as columns for what is drawn.

use super::runs::complete;
use super::{Given, Page, Trouble, json};
use serde::Serialize;
use tulpar_core::ids::JobId;
use tulpar_store::{JobFilter, JobLine, JobSort};
use tulpar_transfer::Asked;

const LONGEST_PAGE: u64 = 500;

#[derive(Serialize)]
struct JobsView {
    total: u64,
    offset: u64,
    jobs: Vec<JobLine>,
}

/// Columns: the position of a job in each of them is the same.
#[derive(Serialize)]
struct CellsView {
    seq: u64,
    /// Absent when all jobs are there, from 0 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs: Option<Vec<u32>>,
    states: String,
    /// Kinds, and how many jobs in a row have them; -1 where the plan does not say.
    kinds: Vec<(i64, u32)>,
}

pub(super) fn number<T: std::str::FromStr>(asked: &Asked, name: &str) -> Result<Option<T>, Trouble> {
    let wrong = |text: &str| Trouble::BadQuestion(format!("`{name}={text}` is no number"));
    asked.query(name).map(|text| text.parse().map_err(|_| wrong(text))).transpose()
}

fn sort_of(word: &str) -> Result<JobSort, Trouble> {
    Ok(match word {
        "job" => JobSort::Job,
        "name" => JobSort::Name,
        "state" => JobSort::State,
        "since" => JobSort::Since,
        "attempts" => JobSort::Attempts,
        "started" => JobSort::Started,
        "wall" => JobSort::Wall,
        "cpu" => JobSort::Cpu,
        "memory" => JobSort::Memory,
        _ => return Err(Trouble::BadQuestion(format!("jobs cannot be sorted by `{word}`"))),
    })
}

impl Page {
    /// `?state=failed&set=train&text=lr&sort=wall&down&offset=0&limit=50`
    pub(super) fn jobs(&self, run: &str, asked: &Asked) -> Given {
        let facts = self.run_facts(run)?;
        let sort = sort_of(asked.query("sort").unwrap_or("job"))?;
        let offset = number(asked, "offset")?.unwrap_or(0);
        let filter = JobFilter {
            states: asked.queries("state").map(str::to_owned).collect(),
            sets: asked.query("set").map(|kind| facts.sets_of(kind)),
            contains: asked.query("text").map(str::to_owned),
            sort,
            descending: asked.query("down").is_some(),
            offset,
            limit: Some(number(asked, "limit")?.unwrap_or(50).min(LONGEST_PAGE)),
            ..JobFilter::default()
        };
        let (mut jobs, total) = self.stores.ask(|store| {
            let shown: Vec<JobId> = store.jobs(run, &filter)?.iter().map(|job| job.job).collect();
            Ok((store.job_lines(run, &shown, false)?, store.count_jobs(run, &filter)?))
        })?;
        jobs.iter_mut().for_each(|line| complete(line, &facts));
        json(&JobsView { total, offset, jobs })
    }

    /// `?after=SEQ&known=COUNT`: only what changed since.
    pub(super) fn cells(&self, run: &str, asked: &Asked) -> Given {
        let facts = self.run_facts(run)?;
        let (after, known) = (number(asked, "after")?, number(asked, "known")?.unwrap_or(0));
        let cells = self.stores.ask(|store| store.cells(run, after, known))?;
        let mut kinds: Vec<(i64, u32)> = Vec::new();
        let of: Vec<i64> = cells.names.iter().map(|set| facts.kind(set.as_deref()).map_or(-1, i64::from)).collect();
        for set in &cells.sets {
            let kind = of[*set as usize];
            match kinds.last_mut() {
                Some((last, count)) if *last == kind => *count += 1,
                _ => kinds.push((kind, 1)),
            }
        }
        let whole = cells.jobs.iter().enumerate().all(|(place, job)| place == *job as usize);
        let jobs = if whole && after.is_none() { None } else { Some(cells.jobs) };
        json(&CellsView { seq: cells.seq, jobs, states: cells.states, kinds })
    }
}
