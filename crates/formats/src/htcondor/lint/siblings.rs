//! What some descriptions of a DAG say and others of the same DAG have lost. It knows one such line: `+WantGPULab`.

use super::codes::SIBLING;
use super::files::Use;
use super::statements::Statements;
use tulpar_core::diagnostic::Diagnostic;

/// The line without which a job gets none of the GPUs that its facility keeps for such jobs.
const LAB: &str = "my.wantgpulab";

/// Whether a description asks for GPUs, and for those of the GPU Lab.
pub(super) fn wants_lab(found: &Statements) -> bool {
    let wanted = found.value(LAB).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"));
    wanted && found.get("request_gpus").is_some()
}

/// `sibling` is another description of the DAG, one that has the line.
pub(super) fn check(found: &Statements, uses: &[Use], sibling: &str) -> Option<Diagnostic> {
    let asked = found.get("request_gpus").filter(|asked| asked.value.trim() != "0")?;
    let given = |name: &str| ["+wantgpulab", LAB].contains(&name.to_ascii_lowercase().as_str());
    let by_the_dag = uses.iter().any(|used| used.variables.iter().any(|(name, _)| given(name)));
    if found.get(LAB).is_some() || found.open || by_the_dag {
        return None;
    }
    let message =
        format!("no `+WantGPULab` here, as `{sibling}` of the same DAG has it: these jobs get other GPUs, or none");
    let help = "add `+WantGPULab = true`, with `+GPUJobLength` where the others say it, or take it from all";
    Some(Diagnostic::warning(SIBLING, asked.span, message).help(help))
}
