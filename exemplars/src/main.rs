//! `tulpar-exemplars WORKFLOW STEP [options]`: one step of one of the exemplar workflows. It does not know Tulpar: any
//! workflow system, or a person, can call it.

fn main() -> std::process::ExitCode {
    tulpar_exemplars::run(std::env::args_os())
}
