//! What all pages share: their frame with its styles, tables, legends, and text that has no meaning in HTML.

mod style;
mod textures;

use crate::words::Table;
use std::fmt::Write;

/// A page around its content; `style` is what it needs beyond that of all pages.
pub(crate) fn document(title: &str, style: &str, content: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<title>{} – Tulpar</title>\n<style>\n{}{style}</style>\n\
         </head>\n<body>\n{}<main>\n{content}</main>\n</body>\n</html>\n",
        escape(title),
        style::STYLE,
        textures::definitions()
    )
}

/// `shape` is what the chart draws: bars or bands.
pub(crate) fn legend<'n>(html: &mut String, shape: &str, names: impl Iterator<Item = &'n str>) {
    html.push_str("<ul class=\"legend\">\n");
    for (kind, name) in names.enumerate() {
        let _ = writeln!(html, "<li>{}{}</li>", textures::swatch(shape, kind), escape(name));
    }
    html.push_str("</ul>\n");
}

pub(crate) fn table(html: &mut String, table: &Table) {
    let class = |column: usize| if table.numeric[column] { " class=\"n\"" } else { "" };
    let narrow = if table.header.len() == 2 { " class=\"narrow\"" } else { "" };
    let _ = write!(html, "<div class=\"wide\"><table{narrow}>\n<thead><tr>");
    for (column, cell) in table.header.iter().enumerate() {
        let _ = write!(html, "<th{}>{}</th>", class(column), escape(cell));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        html.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let tag = if column == 0 { "th" } else { "td" };
            let _ = write!(html, "<{tag}{}>{}</{tag}>", class(column), escape(cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
}

/// Text that has no meaning in HTML, neither between tags nor inside quotes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}
