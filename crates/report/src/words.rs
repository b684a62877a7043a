//! Numbers as people read them, the same in the page and in Markdown, and the table that both can show.

/// What stands where nothing is known.
pub(crate) const NOT_RECORDED: &str = "not recorded";
pub(crate) const NONE: &str = "–";

/// `0.012 s`, `3.21 s`, `45.3 s`, `1323 s`
pub(crate) fn seconds(value: f64) -> String {
    match value {
        value if value < 0.0995 => format!("{value:.3} s"),
        value if value < 9.995 => format!("{value:.2} s"),
        value if value < 999.95 => format!("{value:.1} s"),
        value => format!("{value:.0} s"),
    }
}

/// For long times, what people call them too: `1323 s (22 min)`.
pub(crate) fn long_seconds(value: f64) -> String {
    let whole = value.round() as u64;
    let words = match whole {
        0..300 => return seconds(value),
        300..7200 => format!("{} min", (whole + 30) / 60),
        7200..172_800 => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{} d {} h", whole / 86_400, whole % 86_400 / 3600),
    };
    format!("{} ({words})", seconds(value))
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Up to three decimals, none that say nothing.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// About four digits: `0`, `0.037`, `2.35`, `123.4`, `28790`.
pub(crate) fn shown(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if value.fract() == 0.0 && size < 1e15 => format!("{value:.0}"),
        size if size >= 999.95 => format!("{value:.0}"),
        size if size >= 99.995 => format!("{value:.1}"),
        size if size >= 0.9995 => format!("{value:.2}"),
        size if size >= 0.0005 => format!("{value:.3}"),
        _ => format!("{value:.1e}"),
    }
}

/// A table: its header, whether a column holds numbers, its rows.
pub(crate) struct Table {
    pub(crate) header: Vec<String>,
    pub(crate) numeric: Vec<bool>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(header: &[&str], texts: usize) -> Self {
        Self::with(header.iter().map(|cell| (*cell).to_owned()).collect(), texts)
    }

    /// The first columns hold words, the others numbers.
    pub(crate) fn with(header: Vec<String>, texts: usize) -> Self {
        let numeric = (0..header.len()).map(|column| column >= texts).collect();
        Self { header, numeric, rows: Vec::new() }
    }
}
