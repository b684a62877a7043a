//! The scenarios side by side, for people.

use super::view::{bytes, seconds};
use crate::print;
use tulpar::plan_source::thousands;
use tulpar_lab::compare::{Comparison, Quantity, Row};
use tulpar_lab::published::Figures;

pub(super) fn print(comparison: &Comparison) {
    let study = comparison.study;
    match study {
        Some(study) => print::line(&format!(
            "{}: data placements side by side; in brackets what the published study has for its {study} workflow",
            comparison.workflow
        )),
        None => print::line(&format!("{}: data placements side by side", comparison.workflow)),
    }
    print::line("");
    let header = [
        "scenario",
        "jobs",
        "auxiliary",
        "threads",
        "files staged in",
        "bytes staged in",
        "files moved",
        "bytes moved",
        "predicted",
    ];
    let rows: Vec<Vec<String>> = comparison.rows.iter().map(|row| cells(row, study.is_some())).collect();
    print::table(&header, &rows);
    print::line("");
    for row in &comparison.rows {
        print::line(&format!("{}: {}", row.scenario.name(), row.about));
    }
    print_differences(comparison);
}

fn cells(row: &Row, with_study: bool) -> Vec<String> {
    let beside = |ours: u64, published: &dyn Fn(&Figures) -> u64| match &row.published {
        Some(figures) if published(figures) == ours => format!("{} (the same)", thousands(ours)),
        Some(figures) => format!("{} ({})", thousands(ours), thousands(published(figures))),
        None if with_study => format!("{} (none)", thousands(ours)),
        None => thousands(ours),
    };
    vec![
        row.scenario.name().to_owned(),
        beside(row.jobs, &|figures| figures.jobs),
        beside(row.auxiliary, &|figures| figures.auxiliary),
        beside(u64::from(row.threads), &|figures| u64::from(figures.threads)),
        beside(row.staged_in.files, &|figures| figures.staged_in),
        bytes(row.staged_in.bytes),
        thousands(row.moved.files),
        bytes(row.moved.bytes),
        seconds(row.makespan),
    ]
}

fn print_differences(comparison: &Comparison) {
    if comparison.study.is_none() {
        return;
    }
    print::line("");
    if comparison.rows.iter().all(|row| row.differences.is_empty()) {
        print::line("No figure differs from the published ones.");
        return;
    }
    print::line("Where figures differ from the published ones, and why:");
    for row in &comparison.rows {
        for of in [Quantity::Jobs, Quantity::Auxiliary, Quantity::StagedIn] {
            let reasons: Vec<_> = row.differences.iter().filter(|difference| difference.of == of).collect();
            if reasons.is_empty() {
                continue;
            }
            let total: i64 = reasons.iter().map(|difference| difference.count).sum();
            print::line(&format!("  {}, {}: {}", row.scenario.name(), of.name(), signed(total)));
            for reason in reasons {
                print::line(&format!("    {:>7} {}", signed(reason.count), reason.why));
            }
        }
    }
}

fn signed(count: i64) -> String {
    match count {
        0 => "±0".to_owned(),
        more if more > 0 => format!("+{}", thousands(more.unsigned_abs())),
        fewer => format!("−{}", thousands(fewer.unsigned_abs())),
    }
}
