//! The data placements of a published study (Krawczuk et al., WORKS 2021), as figures: simulated at its scale, or measured.

pub mod findings;
pub mod measured;
pub mod network;
pub mod simulated;

/// `12 (11)`: here, and in brackets what the study prints.
pub fn beside(here: Option<f64>, study: Option<f64>) -> String {
    let here = here.map_or_else(|| "–".to_owned(), number);
    match study {
        Some(study) => format!("{here} ({study})"),
        None => here,
    }
}

/// Four digits or so.
pub fn number(value: f64) -> String {
    match value.abs() {
        _ if value.fract() == 0.0 => format!("{value}"),
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// `−16 %`, with a sign that people read.
pub fn signed_percent(value: f64, digits: usize) -> String {
    format!("{value:+.digits$} %").replace('-', "−")
}
