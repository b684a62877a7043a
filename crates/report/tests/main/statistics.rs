//! The tables that users of pegasus-statistics know.

use super::fixture::{SMALL, Told, small};
use tulpar_core::event::Outcome;
use tulpar_core::ids::{AttemptId, JobId};
use tulpar_core::job::Usage;
use tulpar_report::{Period, StatisticsFacts, statistics, statistics_tables};

fn facts() -> StatisticsFacts {
    let attempt = AttemptId { job: JobId(0), n: 1 };
    let mut facts = StatisticsFacts { run: "small-1".into(), wall_seconds: 11.0, ..StatisticsFacts::default() };
    facts.hosts.insert(attempt, "worker-7".into());
    facts
}

fn text(told: &Told, name: &str) -> String {
    let all = [statistics(&facts(), &told.graph, &told.ledger)];
    let tables = statistics_tables(&all);
    tables.iter().find(|table| table.name == name).expect("a table").text()
}

#[test]
fn the_summary_counts_tasks_jobs_and_what_was_tried_again() {
    let mut told = small();
    told.failed(11.0, "watch");
    insta::assert_snapshot!(text(&told, "summary"), @r"
    ## Summary

    | Type          | Succeeded | Failed | Incomplete | Total | Retries | Total+Retries |
    | ------------- | --------: | -----: | ---------: | ----: | ------: | ------------: |
    | Tasks         |         3 |      1 |          0 |     4 |       1 |             5 |
    | Jobs          |         3 |      1 |          0 |     4 |       1 |             5 |
    | Sub-Workflows |         0 |      0 |          0 |     0 |       0 |             0 |
    ");
    // 2 × (3 s + 4 s), 0.5 × 2 s, 4 × 3.499 s; and one second of four cores for nothing.
    insta::assert_snapshot!(text(&told, "times"), @r"
    ## Wall times

    |                                                          | seconds |
    | -------------------------------------------------------- | ------: |
    | Workflow wall time                                       |  11.000 |
    | Cumulative job wall time                                 |  28.996 |
    | Cumulative job wall time as seen from submit side        |  28.996 |
    | Cumulative job badput wall time                          |   4.000 |
    | Cumulative job badput wall time as seen from submit side |   4.000 |
    ");
}

#[test]
fn every_attempt_is_a_row_with_the_machine_that_it_really_ran_on() {
    insta::assert_snapshot!(text(&small(), "jobs"), @r"
    ## Jobs

    | Job           | Try |  Site | Kickstart | Mult | Kickstart-Mult | CPU-Time | Post | CondorQTime | Resource | Runtime | Seqexec | Seqexec-Delay | Exitcode | Hostname |
    | ------------- | --: | ----: | --------: | ---: | -------------: | -------: | ---: | ----------: | -------: | ------: | ------: | ------------: | -------: | -------: |
    | simulate[i=1] |   1 | small |     3.000 |    2 |          6.000 |    1.500 |    - |       0.002 |        - |   3.000 |       - |             - |        0 | worker-7 |
    | simulate[i=2] |   1 | small |     4.000 |    2 |          8.000 |    1.500 |    - |       0.002 |        - |   4.000 |       - |             - |        0 | small-02 |
    | watch         |   1 | small |     2.000 |  0.5 |          1.000 |    1.500 |    - |       0.002 |        - |   2.000 |       - |             - |        0 | small-01 |
    | train         |   1 | small |     1.000 |    4 |          4.000 |    1.500 |    - |       0.100 |        - |   1.000 |       - |             - |        1 | small-02 |
    | train         |   2 | small |     3.499 |    4 |         13.996 |    1.500 |    - |       0.100 |        - |   3.499 |       - |             - |        0 | small-02 |
    ");
}

#[test]
fn transformations_are_told_apart_by_how_they_ended() {
    insta::assert_snapshot!(text(&small(), "breakdown"), @r"
    ## Transformations

    | Transformation | Type       | Count | Min (runtime) | Max (runtime) | Mean (runtime) | Total (runtime) | Min (mem) | Max (mem) | Mean (mem) | Min (avg. cpu) | Max (avg. cpu) | Mean (avg. cpu) |
    | -------------- | ---------- | ----: | ------------: | ------------: | -------------: | --------------: | --------: | --------: | ---------: | -------------: | -------------: | --------------: |
    | simulate       | successful |     2 |         3.000 |         4.000 |          3.500 |           7.000 |     2.000 |     2.000 |      2.000 |          0.375 |          0.500 |           0.438 |
    | train          | failed     |     1 |         1.000 |         1.000 |          1.000 |           1.000 |     2.000 |     2.000 |      2.000 |          1.500 |          1.500 |           1.500 |
    | train          | successful |     1 |         3.499 |         3.499 |          3.499 |           3.499 |     2.000 |     2.000 |      2.000 |          0.429 |          0.429 |           0.429 |
    | watch          | successful |     1 |         2.000 |         2.000 |          2.000 |           2.000 |     2.000 |     2.000 |      2.000 |          0.750 |          0.750 |           0.750 |
    ");
}

#[test]
fn times_are_summed_by_hour_or_day_and_host() {
    let told = small();
    let day = StatisticsFacts { period: Period::Day, ..facts() };
    let rows: Vec<_> = statistics(&day, &told.graph, &told.ledger)
        .hours
        .into_iter()
        .map(|row| (row.date, row.host, row.count, row.runtime))
        .collect();
    let row = |host: &str, count, runtime| ("2024-11-15".to_owned(), host.to_owned(), count, runtime);
    assert_eq!(rows, [row("small-01", 1, 2.0), row("small-02", 3, 8.499), row("worker-7", 1, 3.0)]);
    assert!(text(&told, "time").contains("2024-11-15 20"));
}

#[test]
fn files_that_were_pulled_were_compared_with_what_their_maker_wrote() {
    let mut told = Told::new(SMALL);
    told.moved_and_ran("simulate[i=1]", 1.0, 4.0);
    told.over(5.0, Outcome::Cancelled);
    let all = statistics(&facts(), &told.graph, &told.ledger);
    assert_eq!((all.files_compared, all.tasks.incomplete), (3, 3));
    // The task without the files around it, and the job with them.
    assert_eq!((all.job_rows[0].kickstart, all.job_rows[0].runtime), (2.25, 3.0));
}

#[test]
fn figures_that_nobody_measured_are_no_zeros() {
    let mut told = Told::new("workflow: w\ntasks: {a: {for: {i: 1..2}, run: 'true'}, b: {run: 'true'}}\n");
    let measured = Usage { wall_us: 2_000_000, user_us: 1_000_000, peak_rss: 4_000_000, ..Usage::default() };
    let unseen = Usage { peak_rss: 0, ..measured };
    for (name, usage) in [("a[i=1]", measured), ("a[i=2]", unseen), ("b", Usage::default())] {
        told.submitted(0.5, name, 1);
        told.started(1.0, name, 1);
        told.ended_with_usage(name, (1.0, 3.0), usage);
    }
    let rows = statistics(&facts(), &told.graph, &told.ledger).transformations;
    let shown = rows.iter().map(|row| [row.memory, row.cpu].map(|range| range.map(|range| (range.min, range.mean))));
    assert_eq!(shown.collect::<Vec<_>>(), [[Some((4.0, 4.0)), Some((0.5, 0.5))], [None, None]]);
}
