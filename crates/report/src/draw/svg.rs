//! A layered drawing, made here: rows of boxes from what comes first to what comes last, lines between them.

use super::{Drawing, Node, escaped};
use std::fmt::Write;
use tulpar_core::planner::{Abstract, JobKind, Layout};
use tulpar_core::units::thousands;

/// More jobs than this are drawn with equal ones as one.
const MOST_JOBS: usize = 150;
/// So are more than this side by side.
const WIDEST: usize = 9;
const BOX: (f64, f64) = (192.0, 44.0);
const GAP: (f64, f64) = (18.0, 46.0);
const MARGIN: f64 = 28.0;
const HEAD: f64 = 56.0;
const LEGEND: f64 = 32.0;
/// Letters that fit into a box.
const LETTERS: usize = 27;
const SWEEPS: usize = 6;

/// Colours that can be read on white and on black; what a kind is also stands in its box or in the legend. Without
/// variables, which many programs that show SVG do not know.
const STYLE: &str = "\
text{font-family:system-ui,sans-serif;fill:#1c1e21}.t{font-size:12.5px;font-weight:600}.d{font-size:10.5px;fill:#5f6670}\
.h{font-size:17px;font-weight:600}path{fill:none;stroke:#9aa1aa;stroke-width:1.1;opacity:.75}rect{stroke:#9aa1aa}\
.paper{fill:#ffffff;stroke:none}.compute{fill:#cfe3f5}.stage-in{fill:#d6efc5}.stage-out{fill:#fde3b8}\
.inter-site{fill:#e3d6f0}.create-dir{fill:#e4e6e9}.registration{fill:#f6f2b3}.chmod{fill:#eceef0}.cleanup{fill:#f8d3d2}\
.leaf-cleanup{fill:#f0b9b7}\
@media (prefers-color-scheme:dark){text{fill:#eceef1}.d{fill:#aab1ba}path,rect{stroke:#6b727c}\
.paper{fill:#16181c;stroke:none}.compute{fill:#24435f}.stage-in{fill:#2f4d22}.stage-out{fill:#5c441a}\
.inter-site{fill:#443357}.create-dir{fill:#3a3e44}.registration{fill:#504d1c}.chmod{fill:#33373c}.cleanup{fill:#5a2b2a}\
.leaf-cleanup{fill:#6d3331}}";

/// The executable workflow as a picture of its own.
pub fn svg(graph: &Abstract, layout: &Layout) -> String {
    let drawing = Drawing::new(graph, layout, MOST_JOBS, WIDEST);
    let rows = rows(&drawing);
    let widest = rows.iter().map(Vec::len).max().unwrap_or(0).max(4) as f64;
    let kinds: Vec<JobKind> =
        JobKind::ALL.into_iter().filter(|kind| drawing.nodes.iter().any(|node| node.kind == *kind)).collect();
    let width = (2.0 * MARGIN + widest * (BOX.0 + GAP.0) - GAP.0).max(2.0 * MARGIN + kinds.len() as f64 * 118.0);
    let height = HEAD + rows.len() as f64 * (BOX.1 + GAP.1) + LEGEND + MARGIN;
    let mut place = vec![(0.0, 0.0); drawing.nodes.len()];
    for (row, nodes) in rows.iter().enumerate() {
        let across = nodes.len() as f64 * (BOX.0 + GAP.0) - GAP.0;
        for (column, node) in nodes.iter().enumerate() {
            let x = (width - across) / 2.0 + column as f64 * (BOX.0 + GAP.0);
            place[*node as usize] = (x, HEAD + row as f64 * (BOX.1 + GAP.1));
        }
    }
    let mut text = String::new();
    let _ = writeln!(
        text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\"><title>{}</title><style>{STYLE}</style>",
        escaped(&format!("The executable workflow of {}", graph.name)),
    );
    let _ = writeln!(text, "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>");
    let _ = writeln!(text, "<text class=\"h\" x=\"{MARGIN}\" y=\"26\">{}</text>", escaped(&graph.name));
    let _ = writeln!(
        text,
        "<text class=\"d\" x=\"{MARGIN}\" y=\"42\">{} tasks in {} jobs, and {} auxiliary jobs</text>",
        thousands(graph.tasks.len() as u64),
        thousands(layout.count(JobKind::Compute) as u64),
        thousands(layout.auxiliary() as u64),
    );
    for (from, to) in &shown(&drawing) {
        edge(&mut text, place[*from as usize], place[*to as usize]);
    }
    for (node, (x, y)) in drawing.nodes.iter().zip(&place) {
        boxed(&mut text, node, *x, *y);
    }
    let y = height - MARGIN - 8.0;
    let _ = writeln!(
        text,
        "<text class=\"d\" x=\"{MARGIN}\" y=\"{:.0}\">From top to bottom; lines that follow from others are left \
         out.</text>",
        y - 10.0
    );
    for (number, kind) in kinds.iter().enumerate() {
        let x = MARGIN + number as f64 * 118.0;
        let _ = writeln!(
            text,
            "<rect class=\"{}\" x=\"{x:.0}\" y=\"{y:.0}\" width=\"14\" height=\"14\" rx=\"3\"/>\
             <text class=\"d\" x=\"{:.0}\" y=\"{:.0}\">{}</text>",
            class(*kind),
            x + 20.0,
            y + 11.0,
            kind.name(),
        );
    }
    text.push_str("</svg>\n");
    text
}

fn boxed(text: &mut String, node: &Node, x: f64, y: f64) {
    // Computing stands out by its square corners, for those who see no colours.
    let round = if node.kind == JobKind::Compute { 3 } else { 14 };
    let (title, detail) = (node.title(), node.detail());
    let middle = x + BOX.0 / 2.0;
    let _ = writeln!(
        text,
        "<g><title>{}: {}, {}</title><rect class=\"{}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{}\" height=\"{}\" \
         rx=\"{round}\"/><text class=\"t\" text-anchor=\"middle\" x=\"{middle:.1}\" y=\"{:.1}\">{}</text>\
         <text class=\"d\" text-anchor=\"middle\" x=\"{middle:.1}\" y=\"{:.1}\">{}</text></g>",
        node.kind.name(),
        escaped(&title),
        escaped(&detail),
        class(node.kind),
        BOX.0,
        BOX.1,
        y + 19.0,
        escaped(&short(&title, LETTERS)),
        y + 34.0,
        escaped(&short(&detail, LETTERS + 5)),
    );
}

/// From the bottom of one box to the top of another; beside the boxes where it passes some.
fn edge(text: &mut String, from: (f64, f64), to: (f64, f64)) {
    let (x1, y1) = (from.0 + BOX.0 / 2.0, from.1 + BOX.1);
    let (x2, y2) = (to.0 + BOX.0 / 2.0, to.1);
    let bend = ((y2 - y1) / 2.0).clamp(GAP.1 / 2.0, 3.0 * GAP.1);
    let _ = writeln!(
        text,
        "<path d=\"M{x1:.1} {y1:.1}C{x1:.1} {:.1} {x2:.1} {:.1} {x2:.1} {y2:.1}\"/>",
        y1 + bend,
        y2 - bend
    );
}

/// Lines that do not follow from others; all of them where nodes stand for jobs of several depths.
fn shown(drawing: &Drawing) -> Vec<(u32, u32)> {
    let layer = |node: u32| drawing.nodes[node as usize].layer;
    if drawing.edges.iter().any(|(from, to)| layer(*from) >= layer(*to)) {
        return drawing.edges.clone();
    }
    let words = drawing.nodes.len().div_ceil(64);
    let mut below: Vec<Vec<u32>> = vec![Vec::new(); drawing.nodes.len()];
    drawing.edges.iter().for_each(|(from, to)| below[*from as usize].push(*to));
    let mut order: Vec<u32> = (0..drawing.nodes.len() as u32).collect();
    order.sort_by_key(|node| std::cmp::Reverse(layer(*node)));
    // Of each node, everything that comes after it, one bit each.
    let mut reach = vec![0u64; words * drawing.nodes.len()];
    let mut kept = Vec::new();
    for node in order {
        let children = &mut below[node as usize];
        // What is near first: a far one may follow from it.
        children.sort_by_key(|child| (layer(*child), *child));
        let row = node as usize * words;
        for child in children.iter() {
            let child = *child as usize;
            if reach[row + child / 64] >> (child % 64) & 1 == 1 {
                continue;
            }
            kept.push((node, child as u32));
            reach[row + child / 64] |= 1 << (child % 64);
            for word in 0..words {
                let theirs = reach[child * words + word];
                reach[row + word] |= theirs;
            }
        }
    }
    kept.sort_unstable();
    kept
}

/// Both ends of a long name say more than one.
fn short(text: &str, most: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= most {
        return text.to_owned();
    }
    let tail = most / 3;
    let head: String = letters[..most - tail - 1].iter().collect();
    let end: String = letters[letters.len() - tail..].iter().collect();
    format!("{head}…{end}")
}

/// Nodes by layer, each where its neighbours are.
fn rows(drawing: &Drawing) -> Vec<Vec<u32>> {
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); drawing.layers as usize];
    for (number, node) in drawing.nodes.iter().enumerate() {
        rows[node.layer as usize].push(number as u32);
    }
    let mut above: Vec<Vec<u32>> = vec![Vec::new(); drawing.nodes.len()];
    let mut below = above.clone();
    for (from, to) in &drawing.edges {
        above[*to as usize].push(*from);
        below[*from as usize].push(*to);
    }
    let mut place = vec![0.0f64; drawing.nodes.len()];
    let spread = |row: &[u32], place: &mut Vec<f64>| {
        for (column, node) in row.iter().enumerate() {
            place[*node as usize] = column as f64 - row.len() as f64 / 2.0;
        }
    };
    rows.iter().for_each(|row| spread(row, &mut place));
    for sweep in 0..SWEEPS {
        let down = sweep % 2 == 0;
        let order: Vec<usize> = if down { (0..rows.len()).collect() } else { (0..rows.len()).rev().collect() };
        for row in order {
            let neighbours = if down { &above } else { &below };
            let mut keyed: Vec<(f64, u32)> = rows[row]
                .iter()
                .map(|node| {
                    let near = &neighbours[*node as usize];
                    let sum: f64 = near.iter().map(|other| place[*other as usize]).sum();
                    (if near.is_empty() { place[*node as usize] } else { sum / near.len() as f64 }, *node)
                })
                .collect();
            keyed.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
            rows[row] = keyed.into_iter().map(|(_, node)| node).collect();
            spread(&rows[row], &mut place);
        }
    }
    rows
}

fn class(kind: JobKind) -> &'static str {
    match kind {
        JobKind::LeafCleanup => "leaf-cleanup",
        other => other.name(),
    }
}
