//! Graphviz' language.

use super::{Drawing, MOST_JOBS};
use std::fmt::Write;
use tulpar_core::planner::{Abstract, JobKind, Layout};

/// The executable workflow for `dot`.
pub fn dot(graph: &Abstract, layout: &Layout) -> String {
    let drawing = Drawing::new(graph, layout, MOST_JOBS, usize::MAX);
    let mut text = format!("digraph {} {{\n", quoted(&graph.name));
    text.push_str("  rankdir=TB;\n  node [style=filled, fontname=\"sans-serif\", fontsize=11, color=\"#555555\"];\n");
    text.push_str("  edge [color=\"#888888\", arrowsize=0.6];\n");
    for (number, node) in drawing.nodes.iter().enumerate() {
        let (shape, fill) = look(node.kind);
        let label = quoted(&format!("{}\n{}", node.title(), node.detail()));
        let _ = writeln!(text, "  n{number} [shape={shape}, fillcolor=\"{fill}\", label={label}];");
    }
    for (from, to) in &drawing.edges {
        let _ = writeln!(text, "  n{from} -> n{to};");
    }
    text.push_str("}\n");
    text
}

fn look(kind: JobKind) -> (&'static str, &'static str) {
    match kind {
        JobKind::Compute => ("box", "#a6cee3"),
        JobKind::CreateDirectory => ("folder", "#dddddd"),
        JobKind::StageIn => ("invhouse", "#b2df8a"),
        JobKind::StageOut => ("house", "#fdbf6f"),
        JobKind::Transfer => ("cds", "#cab2d6"),
        JobKind::Register => ("note", "#ffff99"),
        JobKind::Chmod => ("component", "#eeeeee"),
        JobKind::Cleanup => ("ellipse", "#fb9a99"),
        JobKind::LeafCleanup => ("doubleoctagon", "#fb9a99"),
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
