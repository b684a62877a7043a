//! Which rule gives each figure, where publications follow another one, and what a user should know of one analysis.

use serde::Serialize;

/// How a figure is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    pub figure: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equation: Option<u8>,
    pub rule: &'static str,
    /// Where the published figures are not what this rule gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<&'static str>,
}

pub const RULES: [Rule; 9] = [
    Rule {
        figure: "rank",
        equation: None,
        rule: "0 for a task set that needs nothing, else one more than the highest rank of what it needs",
        published: None,
    },
    Rule {
        figure: "DOA_dep",
        equation: None,
        rule: "the number of task sets that nobody needs, less one; branches that join count once",
        published: None,
    },
    Rule {
        figure: "DOA_res",
        equation: None,
        rule: "over all ranks, the largest number of branches whose complete task sets of that rank fit into the total \
               cores, GPUs and memory together, less one; task sets that lead to the same ends are one branch",
        published: None,
    },
    Rule { figure: "WLA", equation: Some(1), rule: "the lesser of DOA_dep and DOA_res", published: None },
    Rule {
        figure: "t_seq",
        equation: Some(2),
        rule: "the iterations one after another, and in each its ranks one after another, each as long as its longest \
               task set; on given resources a task set takes its waves, and what a rank cannot run at once is added up",
        published: Some(
            "for c-DG1 and c-DG2 2000 s is printed, the sum of all task sets, two of which share a rank; Eq. 2 by ranks \
             gives 1860 s and 1760 s",
        ),
    },
    Rule {
        figure: "t_async",
        equation: Some(3),
        rule: "the longest path through the graph, with stagger edges where there are iterations, and of each rank the \
               task sets that do not fit beside the others, longest way to the end first; never less than the work \
               takes, never more than t_seq",
        published: Some(
            "for DeepDriveMD 1320 s is printed, which is 2 t_sim + 3 t_infer + t_iter; this rule gives 1345 s, as does \
             Eq. 6. Printed predictions are 1.06 times Eq. 3, for overheads; none is added here",
        ),
    },
    Rule {
        figure: "tt_H",
        equation: Some(4),
        rule: "of each branch, the longest way through the task sets that do not lead to every end",
        published: None,
    },
    Rule { figure: "I", equation: Some(5), rule: "1 - t_async / t_seq", published: None },
    Rule {
        figure: "staggered iterations",
        equation: Some(6),
        rule: "n t_iter less (n - k) times the k-th masked stage; a stage is masked when the first stage outlasts all \
               masked ones together and at most a twentieth of it must wait for them",
        published: Some("Eq. 7 gives the same for three iterations only"),
    },
];

/// Something about one analysis that its figures do not show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// Stable, for programs: `unknown_duration`.
    pub code: &'static str,
    pub text: String,
}

impl Remark {
    pub(super) fn new(code: &'static str, text: String) -> Self {
        Self { code, text }
    }
}

/// `a`, `a and b`, `a, b and 7 more`, in backquotes.
pub(super) fn some_of(names: &[&str]) -> String {
    let quoted = |name: &&str| format!("`{name}`");
    match names {
        [] => String::new(),
        [one] => quoted(one),
        [one, two] => format!("{} and {}", quoted(one), quoted(two)),
        [one, two, more @ ..] => format!("{}, {} and {} more", quoted(one), quoted(two), more.len()),
    }
}
