//! Figures, Markdown and the page.

use super::fixture::{SMALL, Told, small};
use std::collections::BTreeMap;
use tulpar_core::event::Outcome;
use tulpar_report::{Document, Figures, Forecast, ModeForecast, RunFacts, RunReport, compare};

fn page(runs: &[RunReport]) -> String {
    tulpar_report::page(&Document::new(runs.to_vec(), &[]))
}

fn markdown(runs: &[RunReport]) -> String {
    tulpar_report::markdown(&Document::new(runs.to_vec(), &[]))
}

fn report(facts: RunFacts, told: &Told, forecast: Option<Forecast>) -> RunReport {
    tulpar_report::report(facts, &told.graph, &told.timeline, &told.gathered, forecast, None)
}

fn facts(run: &str) -> RunFacts {
    RunFacts {
        run: run.into(),
        standing: "done".into(),
        workflow_file: "workflow.yaml".into(),
        version: "0.1.0".into(),
        simulated: false,
        mode: Some("adaptive".into()),
        ..RunFacts::default()
    }
}

fn of(told: &Told, forecast: Option<Forecast>) -> RunReport {
    report(facts("small-1"), told, forecast)
}

fn figures(makespan_seconds: f64) -> Figures {
    Figures { makespan_seconds, cpu_utilisation: Some(0.5), gpu_utilisation: Some(0.25), improvement: Some(0.125) }
}

fn forecast() -> Forecast {
    let sequential = ModeForecast { predicted: Some(figures(22.0)), simulated: None };
    let adaptive = ModeForecast { predicted: Some(figures(10.0)), simulated: Some(figures(12.1)) };
    Forecast {
        mode: Some("adaptive".into()),
        predicted: Some(figures(10.0)),
        simulated: Some(figures(12.1)),
        by_mode: BTreeMap::from([("sequential".into(), sequential), ("adaptive".into(), adaptive)]),
    }
}

#[test]
fn utilisation_is_the_exact_integral_over_capacity_and_time() {
    let measured = of(&small(), None).measured;
    assert_eq!((measured.makespan_seconds, measured.execution_seconds), (11.0, Some(8.999)));
    assert_eq!(measured.first_start_seconds, Some(1.0));
    // 2 cores for 3 s and for 4 s, half a core for 2 s, 4 cores for 1 s and for 3.499 s; of 8 cores for 11 s.
    assert_eq!(measured.cpu.held_seconds, 32.996);
    assert_eq!(measured.cpu.of_makespan, 32_996.0 / 88_000.0);
    assert_eq!(measured.cpu.of_execution, Some(32_996.0 / (8.0 * 8999.0)));
    let gpu = measured.gpu.expect("the site has GPUs");
    assert_eq!((gpu.held_seconds, gpu.capacity), (15.998, 4.0));
    assert_eq!(gpu.of_makespan, 15_998.0 / 44_000.0);
}

#[test]
fn the_markdown_of_a_run_without_a_forecast_says_so() {
    insta::assert_snapshot!(markdown(&[of(&small(), None)]), @r"
    # small-1

    - workflow: small (workflow.yaml)
    - state: done
    - tasks: 4
    - site: small: 2 nodes, 8 cores, 4 GPUs
    - mode: adaptive
    - started: 2024-11-15 20:57:03 UTC
    - makespan, start to end of the run: 11.0 s
    - execution, first start to last end: 9.00 s
    - made by: Tulpar 0.1.0

    ## Job level

    | task set | tasks | I/O read (MB) | I/O write (MB) | average CPU (%) | peak memory (GB) | average GPU (%) | peak GPU memory (GB) | average execution time (s) | total execution time (s) |
    | -------- | ----: | ------------: | -------------: | --------------: | ---------------: | --------------: | -------------------: | -------------------------: | -----------------------: |
    | simulate |     2 |        6.0e-5 |         8.0e-5 |           43.75 |            0.002 |               – |                    – |                       3.50 |                        7 |
    | train    |     1 |        3.0e-5 |         4.0e-5 |           42.87 |            0.002 |               – |                    – |                       3.50 |                     3.50 |
    | watch    |     1 |        3.0e-5 |         4.0e-5 |              75 |            0.002 |               – |                    – |                          2 |                        2 |

    ## Workflow level

    | figure                                                            |  value |
    | ----------------------------------------------------------------- | -----: |
    | jobs                                                              |      4 |
    | auxiliary jobs                                                    |      0 |
    | files staged in                                                   |      – |
    | input files                                                       |      0 |
    | input (GB)                                                        |      0 |
    | container (GB)                                                    |      – |
    | I/O read (GB)                                                     | 1.2e-7 |
    | I/O write (GB)                                                    | 1.6e-7 |
    | peak memory (GB)                                                  |  0.002 |
    | peak GPU memory (GB)                                              |      – |
    | CPU hours, held (h)                                               |  0.009 |
    | CPU hours, used (h)                                               |  0.002 |
    | GPU hours, held (h)                                               |  0.004 |
    | cumulative compute (s)                                            |  12.50 |
    | cumulative stage-in (s)                                           |      0 |
    | cumulative stage-out (s)                                          |      0 |
    | makespan (s)                                                      |     11 |
    | cumulative wait in queues (s)                                     |  0.206 |
    | lost to tries that did not end well (s)                           |      1 |
    | share of job time spent moving files (%)                          |      – |
    | share of the makespan with files moving and no task computing (%) |      – |

    ## Asked for and used

    | task set | cores used / asked      | memory used / asked | GPUs busy / asked | longest / limit   | next time              | frees        |
    | -------- | ----------------------- | ------------------- | ----------------- | ----------------- | ---------------------- | ------------ |
    | simulate | 0.429 / 2 (21.4 %)      | 2 MB / not said     | – / 1             | 4 s / no limit    | cpus: 1, memory: 10 MB | 0.002 core h |
    | train    | 0.429 / 4 (10.7 %)      | 2 MB / not said     | – / 2             | 3.50 s / no limit | cpus: 1, memory: 10 MB | 0.003 core h |
    | watch    | 0.750 / 0.500 (150.0 %) | 2 MB / not said     | –                 | 2 s / no limit    | cpus: 1, memory: 10 MB | –            |

    Next time: memory is the largest that was seen and a fifth more, rounded up to two digits; cores are those that were busy on average and a fifth more, rounded up to whole ones; time is the longest task and a fifth more, in whole minutes. Only what differs by more than a fifth is said. GPUs are left to you: a device that is half idle may still be needed whole.

    ## Cost and energy

    Energy: 1.35 Wh. A model, not a measurement: 10 W for each core while it was busy, 300 W for each GPU that was held, 0.370 W for each GB of the peak memory of tasks, times 1 for supply and cooling; nothing for what idles, for disks and for the network.

    ## Predicted, simulated, measured

    |                 |    predicted |    simulated | measured |
    | --------------- | -----------: | -----------: | -------: |
    | makespan        | not recorded | not recorded |   11.0 s |
    | execution       | not recorded | not recorded |   9.00 s |
    | CPU utilisation | not recorded | not recorded |   37.5 % |
    | GPU utilisation | not recorded | not recorded |   36.4 % |
    | improvement I   | not recorded | not recorded |        – |

    ## Task sets

    | task set | tasks | cores | GPUs | mean s | min s | max s | ran | reused | failed | retries |
    | -------- | ----: | ----: | ---: | -----: | ----: | ----: | --: | -----: | -----: | ------: |
    | simulate |     2 |     2 |    1 |   3.50 |  3.00 |  4.00 |   2 |      0 |      0 |       0 |
    | train    |     1 |     4 |    2 |   3.50 |  3.50 |  3.50 |   1 |      0 |      0 |       1 |
    | watch    |     1 |   0.5 |    0 |   2.00 |  2.00 |  2.00 |   1 |      0 |      0 |       0 |

    Utilisation is what tasks held while they ran (the cores and GPUs they had asked for), of all that the site has, over the whole makespan.
    From the first start to the last end alone it is 45.8 % of the cores and 44.4 % of the GPUs.
    No forecast was recorded when this run was started.

    I/O is what tasks moved through read and write calls, cache included, summed over the tasks of a set; average CPU is the mean over tasks of 100 × (user + system time) / wall time; peaks are those of the largest single task.
    Average GPU and peak GPU memory are of tasks that held GPUs and were sampled; – is what nobody recorded.
    CPU and GPU hours held are the cores and devices that tasks had asked for, while they ran; used is their CPU time.
    Cumulative compute is the time of tasks that ended well; stage-in and stage-out are the time of transfer jobs and of what jobs pulled and pushed around their tasks; all are sums over jobs that may run at once.
    Job time spent moving files is stage-in and stage-out, of these and compute together.
    Input files are those that were there before the run, each once; files staged in are those that came to tasks, as often as they came, images and programs included; 1 MB is 10⁶ bytes, 1 GB 10⁹.
    ");
}

#[test]
fn the_markdown_has_predicted_simulated_and_measured_side_by_side() {
    let text = markdown(&[of(&small(), Some(forecast()))]);
    let from = text.find("## Predicted").expect("a section");
    let to = text.find("## Task sets").expect("a section");
    insta::assert_snapshot!(&text[from..to], @r"
    ## Predicted, simulated, measured

    |                 |       predicted |        simulated | measured |
    | --------------- | --------------: | ---------------: | -------: |
    | makespan        | 10.0 s (-9.1 %) | 12.1 s (+10.0 %) |   11.0 s |
    | execution       |               – |                – |   9.00 s |
    | CPU utilisation |          50.0 % |           50.0 % |   37.5 % |
    | GPU utilisation |          25.0 % |           25.0 % |   36.4 % |
    | improvement I   |           0.125 |            0.125 |    0.500 |

    ## Modes

    | mode                | predicted | simulated |    CPU |    GPU |     I |
    | ------------------- | --------: | --------: | -----: | -----: | ----: |
    | sequential          |    22.0 s |         – | 50.0 % | 25.0 % | 0.125 |
    | adaptive (this run) |    10.0 s |    12.1 s | 50.0 % | 25.0 % | 0.125 |
    ");
    assert!(text.contains("measured against the sequential mode of the forecast"), "{text}");
}

#[test]
fn a_forecast_comes_back_from_its_file_as_it_was() {
    let text = serde_json::to_string(&forecast()).expect("JSON");
    assert_eq!(serde_json::from_str::<Forecast>(&text).expect("a forecast"), forecast());
    assert_eq!(serde_json::from_str::<Forecast>("{}").expect("a forecast"), Forecast::default());
}

#[test]
fn a_measured_sequential_run_is_what_others_are_measured_against() {
    let told = small();
    let mut slow = of(&told, None);
    slow.facts = RunFacts { mode: Some("sequential".into()), ..facts("small-1") };
    slow.measured.makespan_seconds = 22.0;
    let mut runs = [slow, report(facts("small-2"), &told, Some(forecast()))];
    compare(&mut runs);
    assert_eq!(runs[0].measured.improvement, None);
    assert_eq!(runs[1].measured.improvement, Some(0.5));
    assert_eq!(runs[1].measured.improvement_against.as_deref(), Some("the time of small-1"));
    insta::assert_snapshot!(markdown(&runs).lines().take(6).collect::<Vec<_>>().join("\n"), @r"
    # Runs

    | run     | state | mode       | makespan | execution |    CPU |    GPU |     I |
    | ------- | ----- | ---------- | -------: | --------: | -----: | -----: | ----: |
    | small-1 | done  | sequential |   22.0 s |    9.00 s | 37.5 % | 36.4 % |     – |
    | small-2 | done  | adaptive   |   11.0 s |    9.00 s | 37.5 % | 36.4 % | 0.500 |
    ");
}

#[test]
fn what_was_only_simulated_is_not_called_measured() {
    let told = small();
    let facts = RunFacts { simulated: true, ..facts("small-1") };
    let text = markdown(&[report(facts, &told, None)]);
    assert!(text.contains("- state: done, simulated\n"), "{text}");
    assert!(text.contains("| this simulation |") && !text.contains("- started"), "{text}");
}

#[test]
fn the_json_has_every_figure() {
    let json = serde_json::to_value(of(&small(), Some(forecast()))).expect("JSON");
    assert_eq!(json["run"], "small-1");
    assert_eq!(json["started"], "2024-11-15T20:57:03.000000Z");
    assert_eq!(json["measured"]["makespan_seconds"], 11.0);
    assert_eq!(json["measured"]["improvement"], 0.5);
    assert_eq!(json["forecast"]["simulated"]["makespan_seconds"], 12.1);
    assert_eq!(json["sets"][0]["name"], "simulate");
    assert_eq!(json["sets"][0]["mean_seconds"], 3.5);
    assert_eq!(json["sets"][1]["retries"], 1);
    assert_eq!(json["occupation"]["series"][0]["kind"], "simulate");
    assert_eq!(json["occupation"]["series"][0]["cpus"][1], 4.0);
}

/// Elements that are opened are closed, in order; nothing is loaded from anywhere.
fn sound(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    for tag in page.split('<').skip(1).map(|rest| rest.split('>').next().unwrap_or("")) {
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap_or("");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.starts_with('!') && !tag.ends_with('/') && !["meta"].contains(&name) {
            open.push(name);
        }
    }
    assert_eq!(open, Vec::<&str>::new());
    for foreign in ["http:", "https:", "src=", "href=", "url(h", "url(\"", "url(/", "@import", "<script"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
}

#[test]
fn a_run_that_used_little_of_its_site_can_still_be_seen() {
    let mut told = Told::new(SMALL);
    told.ran("watch", 1.0, 2.0);
    told.over(3.0, Outcome::Done);
    let page = page(&[of(&told, None)]);
    assert!(page.contains("capacity 8, beyond this chart") && !page.contains("class=\"capacity\""), "{page}");
    assert!(page.contains("No task held any of the 4 GPUs."), "{page}");
    // Half a core of 0.55: the band is ten elevenths of 186 high.
    assert!(page.contains("v-1691"), "{page}");
}

#[test]
fn the_page_stands_alone() {
    let page = page(&[of(&small(), Some(forecast())), of(&small(), None)]);
    sound(&page);
    // Cores and GPUs of two runs; compute, transfers and makespan of both.
    assert_eq!(page.matches("class=\"chart\"").count(), 7);
    assert!(page.contains("capacity 8<") && page.contains("capacity 4<"), "{page}");
    assert!(page.contains("prefers-color-scheme: dark"));
}

#[test]
fn names_of_users_mean_nothing_in_the_page() {
    let mut told = Told::new(SMALL);
    told.ran("watch", 1.0, 2.0);
    told.over(3.0, Outcome::Done);
    let mut run = of(&told, None);
    let hostile = "</style><script>alert('1')</script>\"|&";
    run.facts.run = hostile.into();
    run.workflow = hostile.into();
    run.facts.mode = Some(hostile.into());
    run.sets[0].name = hostile.into();
    run.occupation.columns.series[0].kind = hostile.into();
    sound(&page(&[run.clone(), run.clone()]));
    let text = markdown(&[run]);
    assert!(!text.contains("<script"), "{text}");
}

#[test]
fn a_run_in_which_nothing_ran_has_a_page_too() {
    let mut told = Told::new(SMALL);
    told.over(0.0, Outcome::Cancelled);
    let page = page(&[of(&told, None)]);
    sound(&page);
    assert!(page.contains("Nothing ran."));
}

#[test]
fn a_hundred_thousand_tasks_make_a_small_page() {
    let mut told = Told::new(&SMALL.replace("i: 1..2", "i: 1..100000"));
    let train = told.graph.jobs_of(tulpar_core::ids::SetId(1)).and_then(|mut jobs| jobs.next()).expect("a job");
    for number in 0..100_000u32 {
        let start = f64::from(number) / 10.0;
        told.ran_number(number, start, start + 1.0 + f64::from(number % 7) / 10.0);
    }
    told.ran_number(train.0, 10_010.0, 10_020.0);
    told.over(10_021.0, Outcome::Done);
    let run = of(&told, None);
    assert_eq!(run.occupation.columns.edges_us.len(), 801);
    let page = page(&[run]);
    sound(&page);
    assert!(page.len() < 60_000, "{} bytes", page.len());
}
