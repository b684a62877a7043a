//! A table of results for other tools: columns of one kind each, as CSV, JSON or Parquet.
//!
//! What is in it is for others to say.

mod parquet;

use crate::csv::Csv;
use serde_json::Value;

/// Which file a table becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    Csv,
    /// One array of objects.
    Json,
    Parquet,
}

impl TableFormat {
    /// By the end of the name of a file.
    pub fn of(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "csv" => Some(Self::Csv),
            "json" => Some(Self::Json),
            "parquet" | "pq" => Some(Self::Parquet),
            _ => None,
        }
    }
}

/// Rows of named cells; a cell is nothing, a truth value, a number or text.
#[derive(Clone, Debug, Default)]
pub struct ResultTable {
    names: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl ResultTable {
    /// Cells of names that are new make a new column; what is neither number, text nor truth value is left out.
    pub fn add(&mut self, cells: impl IntoIterator<Item = (String, Value)>) {
        let mut row = vec![Value::Null; self.names.len()];
        for (name, value) in cells {
            if matches!(value, Value::Array(_) | Value::Object(_)) {
                continue;
            }
            let at = self.names.iter().position(|known| *known == name).unwrap_or_else(|| {
                self.names.push(name);
                row.push(Value::Null);
                self.names.len() - 1
            });
            row[at] = value;
        }
        self.rows.push(row);
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    fn cell(&self, row: usize, column: usize) -> &Value {
        self.rows[row].get(column).unwrap_or(&Value::Null)
    }

    pub fn write(&self, format: TableFormat) -> Vec<u8> {
        match format {
            TableFormat::Csv => self.csv().into_bytes(),
            TableFormat::Json => self.json().into_bytes(),
            TableFormat::Parquet => self.parquet(),
        }
    }

    fn csv(&self) -> String {
        let mut csv = Csv::with(self.names.iter().cloned());
        for row in 0..self.rows.len() {
            csv.line((0..self.names.len()).map(|column| text(self.cell(row, column))));
        }
        csv.text()
    }

    fn json(&self) -> String {
        let row = |row: usize| {
            let cells = self.names.iter().enumerate();
            let cells = cells.map(|(column, name)| (name.clone(), self.cell(row, column).clone()));
            Value::Object(cells.collect()).to_string()
        };
        let rows: Vec<String> = (0..self.rows.len()).map(row).collect();
        format!("[{}]\n", rows.join(",\n"))
    }

    fn parquet(&self) -> Vec<u8> {
        let columns = self.names.iter().enumerate().map(|(column, name)| {
            let cells: Vec<&Value> = (0..self.rows.len()).map(|row| self.cell(row, column)).collect();
            parquet::Column::new(name, &cells)
        });
        parquet::write(&columns.collect::<Vec<_>>(), self.rows.len())
    }
}

/// A cell as people write it.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
