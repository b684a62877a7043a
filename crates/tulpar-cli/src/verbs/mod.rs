//! One file a verb.

mod audit;
mod cancel;
mod check;
mod clean;
mod demo;
mod drill;
mod drive;
mod dry_run;
mod exemplars;
mod experiment;
mod explain;
mod export;
mod gc;
mod hand_over;
mod import;
mod io;
mod lineage;
mod lint;
mod logs;
mod outputs;
mod plan;
mod predict;
mod record;
mod report;
mod results;
mod run;
mod runs;
mod serve;
mod share;
mod showing;
mod simulate;
mod sites;
mod stats;
mod status;
mod story;
mod subworkflow;
mod transfer;
mod tune;
mod verify;

pub(crate) use audit::AuditArguments;
pub(crate) use demo::DemoArguments;
pub(crate) use drill::DrillArguments;
pub(crate) use experiment::Experiment;
pub(crate) use io::Io;
pub(crate) use verify::VerifyArguments;

use crate::arguments::{Arguments, Verb};
use crate::print;
use clap::CommandFactory;
use std::process::ExitCode;
use tulpar::Failure;

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let folder = arguments.folder.as_deref();
    match arguments.verb {
        Verb::Demo(demo) => demo::demo(folder, &demo),
        Verb::Check(check) => check::check(folder, &check),
        Verb::Lint(lint) => lint::lint(folder, &lint),
        Verb::Drill(drill) => drill::drill(folder, &drill),
        Verb::Plan(plan) => plan::plan(folder, &plan),
        Verb::Simulate(simulate) => simulate::simulate(folder, &simulate),
        Verb::Predict(predict) => predict::predict(folder, &predict),
        Verb::Import(import) => import::import(folder, &import),
        Verb::Run(run) => run::run(folder, &run),
        Verb::Tune(tune) => tune::tune(folder, *tune),
        Verb::Resume(resume) => run::resume(folder, &resume),
        Verb::Status(status) => status::status(folder, &status),
        Verb::Watch(watch) if watch.once => crate::watch::once(folder, watch.run.run.as_deref()),
        Verb::Watch(watch) => crate::watch::watch(folder, watch.run.run.as_deref()).map(|_| ExitCode::SUCCESS),
        Verb::Explain(task) => explain::explain(folder, &task),
        Verb::Story(task) => story::story(folder, &task),
        Verb::Logs(logs) => logs::logs(folder, &logs),
        Verb::Report(report) => report::report(folder, &report),
        Verb::Stats(stats) => stats::stats(folder, &stats),
        Verb::Export(export) => export::export(folder, &export),
        Verb::Outputs(run) => outputs::outputs(folder, &run),
        Verb::Lineage(lineage) => lineage::lineage(folder, &lineage),
        Verb::Verify(verify) => verify::verify(folder, &verify),
        Verb::Audit(audit) => audit::audit(folder, &audit),
        Verb::Cancel(cancel) => cancel::cancel(folder, &cancel),
        Verb::Runs(runs) => runs::runs(folder, &runs),
        Verb::Clean(clean) => clean::clean(folder, &clean),
        Verb::Gc(gc) => gc::gc(folder, &gc),
        Verb::Sites(sites) => sites::sites(folder, &sites),
        Verb::Transfer(transfer) => transfer::transfer(folder, &transfer),
        Verb::Io(verb) => io::io(folder, &verb),
        Verb::Experiment(verb) => experiment::experiment(folder, &verb),
        Verb::Serve(serve) => serve::serve(folder, &serve),
        Verb::Share(share) => share::share(folder, &share),
        Verb::Drive { run, launch } => run::drive_detached(folder, &run, &launch),
        Verb::SubWorkflow(arguments) => subworkflow::run(&arguments),
        Verb::Guard { run } => {
            tulpar_launch::guard_main(&run);
            Ok(ExitCode::SUCCESS)
        }
        Verb::Script => {
            let code = tulpar_launch::script_main(Box::new(tulpar::settings::secret));
            Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
        }
        Verb::Schema { catalogue } => {
            let schema = match catalogue {
                true => include_str!("../../../../docs/catalogue.schema.json"),
                false => include_str!("../../../../docs/workflow.schema.json"),
            };
            print::line(schema.trim_end());
            Ok(ExitCode::SUCCESS)
        }
        Verb::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "tulpar", &mut script);
            print::bytes(&script);
            Ok(ExitCode::SUCCESS)
        }
    }
}
