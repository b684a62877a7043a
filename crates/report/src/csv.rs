//! Lines of CSV (RFC 4180), and a mark at those of simulated runs.

use crate::scenario::Document;

/// A file: its name and its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvFile {
    pub name: &'static str,
    pub text: String,
}

/// Lines of cells, quoted where they have to be.
#[derive(Default)]
pub(crate) struct Csv {
    text: String,
    /// The simulated runs, where the first cell of a line is a run and one of them was simulated.
    simulated: Vec<String>,
}

impl Csv {
    pub(crate) fn with(header: impl IntoIterator<Item = String>) -> Self {
        let mut csv = Self::default();
        csv.line(header);
        csv
    }

    /// A table whose first column is the run. Where one was simulated, the last column says which.
    pub(crate) fn of_runs(document: &Document, header: impl IntoIterator<Item = String>) -> Self {
        let simulated = document.runs.iter().filter(|run| run.facts.simulated);
        let simulated: Vec<String> = simulated.map(|run| run.facts.run.clone()).collect();
        let mark = (!simulated.is_empty()).then(|| "simulated".to_owned());
        Self { simulated, ..Self::with(header.into_iter().chain(mark)) }
    }

    pub(crate) fn line(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut mark = None;
        for (place, cell) in cells.into_iter().enumerate() {
            if place == 0 && !self.simulated.is_empty() {
                mark = Some(self.simulated.contains(&cell));
            }
            if place > 0 {
                self.text.push(',');
            }
            if cell.contains(['"', ',', '\n', '\r']) {
                self.text.push('"');
                self.text.push_str(&cell.replace('"', "\"\""));
                self.text.push('"');
            } else {
                self.text.push_str(&cell);
            }
        }
        if let Some(simulated) = mark {
            self.text.push_str(if simulated { ",true" } else { ",false" });
        }
        self.text.push_str("\r\n");
    }

    pub(crate) fn text(self) -> String {
        self.text
    }

    pub(crate) fn finish(self, name: &'static str) -> CsvFile {
        CsvFile { name, text: self.text }
    }
}

pub(crate) fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_with_commas_quotes_and_lines_are_quoted() {
        let mut csv = Csv::with(["a", "b"].map(str::to_owned));
        csv.line(["x[lr=0.1,n=2]", "say \"no\"\nor"].map(str::to_owned));
        assert_eq!(csv.finish("t.csv").text, "a,b\r\n\"x[lr=0.1,n=2]\",\"say \"\"no\"\"\nor\"\r\n");
    }
}
