//! Scenarios that were computed without runs, as one page that needs nothing else: bars side by side, tables, words.
//!
//! What the numbers are is said by whoever computed them; nothing is computed here.

use crate::bars::{Bar, Bars};
use crate::html::aside;
use crate::markup::{document, escape, legend};
use crate::scenario::Aside;
use std::fmt::Write;

/// The whole page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overview {
    pub title: String,
    /// What stands below the title, a paragraph each.
    pub lines: Vec<String>,
    /// What the bars of each group are, in their order.
    pub scenarios: Vec<String>,
    pub figures: Vec<SideBySide>,
    pub asides: Vec<Aside>,
}

/// One figure: groups of bars on one axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SideBySide {
    /// The title of the axis, with its unit.
    pub what: String,
    /// What it shows, for its heading and for those who cannot see it.
    pub said: String,
    /// By group, a value for each scenario; `None` leaves a gap.
    pub groups: Vec<(String, Vec<Option<f64>>)>,
}

pub fn overview(overview: &Overview) -> String {
    let mut html = format!("<section>\n<h1>{}</h1>\n", escape(&overview.title));
    for line in &overview.lines {
        let _ = writeln!(html, "<p>{}</p>", escape(line));
    }
    legend(&mut html, "bar", overview.scenarios.iter().map(String::as_str));
    for figure in &overview.figures {
        let bar = |value: &Option<f64>| value.map(|mean| Bar { mean, deviation: None });
        let group = |(name, values): &(String, Vec<Option<f64>>)| (name.clone(), values.iter().map(bar).collect());
        let bars = Bars { what: &figure.what, said: &figure.said, groups: figure.groups.iter().map(group).collect() };
        let _ = writeln!(html, "<h3>{}</h3>", escape(&figure.said));
        html.push_str(&bars.svg());
    }
    overview.asides.iter().for_each(|one| aside(&mut html, one));
    html.push_str("</section>\n");
    document(&overview.title, "", &html)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_tables_and_words_stand_on_one_page() {
        let figure = SideBySide {
            what: "makespan (s)".into(),
            said: "Makespan".into(),
            groups: vec![("galaxy".into(), vec![Some(50.0), None, Some(70.0)])],
        };
        let table = Aside {
            title: "Beside the <study>".into(),
            header: vec!["scenario".into(), "jobs".into()],
            rows: vec![vec!["nfs".into(), "11 (11)".into()]],
            lines: vec!["yes NFS is the slowest".into()],
        };
        let page = overview(&Overview {
            title: "Scenarios".into(),
            lines: vec!["In virtual time.".into()],
            scenarios: ["baseline", "clustering", "nfs"].map(str::to_owned).to_vec(),
            figures: vec![figure],
            asides: vec![table],
        });
        for part in
            ["<p>In virtual time.</p>", "makespan (s)", "Beside the &lt;study&gt;", "11 (11)", "NFS is the slowest"]
        {
            assert!(page.contains(part), "{part}: {page}");
        }
        let drawn = |series: u32| page.contains(&format!("class=\"bar k{series}\" x="));
        assert_eq!([0, 1, 2].map(drawn), [true, false, true], "{page}");
        assert!(!page.contains("<script") && !page.contains("src="), "it needs nothing else");
    }
}
