//! What lies in data files, in words and as tables. Does not read files.

use std::fmt::Write;

use tulpar_trace::structure::{Kind, Object, Structure};

use super::words::{bytes, count};
use crate::markup::{escape, table};
use crate::words::{NONE, Table};

/// Files of a format, and objects of each, that the terminal lists.
const FILES: usize = 2;
const OBJECTS: usize = 5;
/// Objects of a file that the page lists.
const ROWS: usize = 50;

/// A few lines a file: the objects with most bytes.
pub(super) fn text(out: &mut String, structures: &[Structure]) {
    if structures.is_empty() {
        return;
    }
    out.push_str("\nwhat lies in data files\n");
    for (index, structure) in structures.iter().enumerate() {
        let before = structures[..index].iter().filter(|other| other.format == structure.format).count();
        if before >= FILES {
            continue;
        }
        let _ = writeln!(out, "  {}: {}", structure.name, summary(structure));
        let mut objects: Vec<&Object> = structure.objects.iter().filter(|object| is_data(object)).collect();
        objects.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
        for object in objects.iter().take(OBJECTS) {
            let size = object.bytes.map_or_else(|| NONE.to_owned(), |size| bytes(size as f64));
            let name = if object.name.is_empty() { String::new() } else { format!("{}  ", object.name) };
            let _ = writeln!(out, "    {size:>9}  {name}{}", words(object));
        }
        if objects.len() > OBJECTS {
            let _ = writeln!(out, "    {:>9}  and {} more", "", count((objects.len() - OBJECTS) as u64));
        }
        for why in missing(structure) {
            let _ = writeln!(out, "    not read: {why}");
        }
    }
}

fn is_data(object: &Object) -> bool {
    matches!(object.kind, Kind::Dataset | Kind::Array | Kind::Feature)
}

/// `HDF5, 12.3 MB, 60 samples: 4 groups, 14 datasets`
fn summary(structure: &Structure) -> String {
    let mut text = format!("{}, {}", structure.format.name(), bytes(structure.bytes as f64));
    if let Some(samples) = structure.samples {
        let _ = write!(text, ", {} samples", count(samples));
    }
    let kinds =
        [(Kind::Group, "group"), (Kind::Dataset, "dataset"), (Kind::Array, "array"), (Kind::Feature, "feature")];
    let parts: Vec<String> = kinds
        .iter()
        .filter_map(|(kind, name)| {
            let many = structure.objects.iter().filter(|object| object.kind == *kind).count();
            let plural = if many == 1 { "" } else { "s" };
            (many > 0).then(|| format!("{} {name}{plural}", count(many as u64)))
        })
        .collect();
    if !parts.is_empty() {
        let _ = write!(text, ": {}", parts.join(", "));
    }
    if let Some(seen) = structure.records_seen.filter(|seen| *seen > 0) {
        let _ = write!(text, " in the first {} records", count(seen));
    }
    text
}

/// What the reader did not read, of the file and of objects in it, a few.
fn missing(structure: &Structure) -> Vec<String> {
    let of_objects = structure.objects.iter().filter_map(|object| {
        let why = object.not_read.as_ref()?;
        Some(format!("{}: {why}", object.name))
    });
    structure.not_read.iter().cloned().chain(of_objects).take(3).collect()
}

fn times(lengths: &[u64]) -> String {
    let lengths: Vec<String> = lengths.iter().map(u64::to_string).collect();
    lengths.join("×")
}

fn extent(object: &Object) -> String {
    match (&object.shape, object.values) {
        (Some(shape), _) if shape.is_empty() => "a single value".to_owned(),
        (Some(shape), _) => times(shape),
        (None, Some((least, most))) if least == most => {
            format!("{} {} a record", count(most), if most == 1 { "value" } else { "values" })
        }
        (None, Some((least, most))) => format!("{} to {} values a record", count(least), count(most)),
        (None, None) if object.kind == Kind::Dataset && object.bytes == Some(0) => "empty".to_owned(),
        (None, None) => String::new(),
    }
}

fn layout(object: &Object) -> String {
    let mut text = object.layout.unwrap_or_default().to_owned();
    if let Some(chunk) = &object.chunk {
        let _ = write!(text, " {}", times(chunk));
    }
    if let Some(index) = object.index {
        let _ = write!(text, " ({index})");
    }
    text
}

fn words(object: &Object) -> String {
    let kind = object.data_type.clone().unwrap_or_default();
    let first = [kind, extent(object)].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let all = [first, layout(object)].into_iter().chain(object.filters.iter().cloned());
    all.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// A table a file.
pub(super) fn page(html: &mut String, structures: &[Structure]) {
    if structures.is_empty() {
        return;
    }
    html.push_str("<h2>What lies in data files</h2>\n");
    for structure in structures {
        let _ = writeln!(
            html,
            "<h3>{}</h3>\n<p class=\"notes\">{}</p>",
            escape(structure.name.rsplit('/').next().unwrap_or(&structure.name)),
            escape(&format!("{}: {}", structure.name, summary(structure)))
        );
        let mut all = Table::new(&["name", "type", "extent", "layout", "filters", "bytes"], 5);
        for object in structure.objects.iter().take(ROWS) {
            let kind = match (object.kind, &object.target, &object.not_read) {
                (_, _, Some(why)) => format!("not read: {why}"),
                (Kind::Link, Some(target), _) => format!("→ {target}"),
                (Kind::Group, _, _) => "group".to_owned(),
                _ => object.data_type.clone().unwrap_or_default(),
            };
            let size = object.bytes.map_or_else(|| NONE.to_owned(), |size| bytes(size as f64));
            let name = if object.name.is_empty() { NONE.to_owned() } else { object.name.clone() };
            all.rows.push(vec![name, kind, extent(object), layout(object), object.filters.join(", "), size]);
        }
        table(html, &all);
        if structure.objects.len() > ROWS {
            let more = count((structure.objects.len() - ROWS) as u64);
            let _ = writeln!(html, "<p class=\"notes\">and {more} more</p>");
        }
        if !structure.not_read.is_empty() {
            let _ = writeln!(html, "<p class=\"notes\">Not read: {}.</p>", escape(&structure.not_read.join("; ")));
        }
    }
}
