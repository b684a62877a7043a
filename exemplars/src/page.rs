//! A page of HTML that needs nothing beside it: charts and pictures are inside.

use crate::charts::escaped;
use crate::pictures::Picture;
use image::ImageFormat;

/// A page that grows downwards.
#[derive(Debug)]
pub struct Page {
    title: String,
    body: String,
}

impl Page {
    pub fn new(title: &str) -> Self {
        Self { title: title.to_owned(), body: String::new() }
    }

    pub fn heading(&mut self, text: &str) {
        self.body += &format!("<h2>{}</h2>\n", escaped(text));
    }

    pub fn text(&mut self, text: &str) {
        self.body += &format!("<p>{}</p>\n", escaped(text));
    }

    /// Charts, side by side where there is room.
    pub fn charts(&mut self, charts: &[String]) {
        self.body += &format!("<div class=row>\n{}</div>\n", charts.concat());
    }

    /// Numbers that stand out, with what they are.
    pub fn figures(&mut self, figures: &[(&str, String)]) {
        self.body += "<div class=row>\n";
        for (name, value) in figures {
            self.body += &format!("<div class=figure><b>{}</b>{}</div>\n", escaped(value), escaped(name));
        }
        self.body += "</div>\n";
    }

    pub fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        let cells = |tag: &str, cells: Vec<String>| {
            let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect();
            format!("<tr>{cells}</tr>\n")
        };
        self.body += "<table>\n";
        self.body += &cells("th", head.iter().map(ToString::to_string).collect());
        for row in rows {
            self.body += &cells("td", row.clone());
        }
        self.body += "</table>\n";
    }

    /// Pictures in a row, each with a line below it. One that cannot be shown is left out.
    pub fn pictures(&mut self, pictures: &[(Picture, String)]) {
        self.body += "<div class=row>\n";
        for (picture, below) in pictures {
            if let Ok(bytes) = picture.encode(ImageFormat::Png) {
                self.body += &format!(
                    "<figure><img alt=\"{0}\" src=\"data:image/png;base64,{1}\"><figcaption>{0}</figcaption></figure>\n",
                    escaped(below),
                    base64(&bytes)
                );
            }
        }
        self.body += "</div>\n";
    }

    /// The page.
    pub fn html(&self) -> String {
        let title = escaped(&self.title);
        format!(
            "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n\
             <meta name=viewport content=\"width=device-width\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n\
             <h1>{title}</h1>\n{}</html>\n",
            self.body
        )
    }
}

const STYLE: &str = "body { font: 15px/1.5 sans-serif; color: #111; background: #fff; max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
.row { display: flex; flex-wrap: wrap; gap: 1rem; align-items: flex-start }
.figure { border: 1px solid #ccc; border-radius: 6px; padding: .5rem 1rem }
.figure b { display: block; font-size: 1.6rem }
table { border-collapse: collapse } th, td { border-bottom: 1px solid #ddd; padding: .25rem .75rem; text-align: right }
th:first-child, td:first-child { text-align: left }
figure { margin: 0 } figure img { width: 112px; image-rendering: pixelated; display: block } figcaption { font-size: 12px; max-width: 112px; overflow-wrap: anywhere }
svg { max-width: 100%; height: auto }
";

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits = (0..3).fold(0_usize, |bits, at| bits << 8 | three.get(at).copied().map_or(0, usize::from));
        for letter in 0..4 {
            text.push(if letter <= three.len() { char::from(LETTERS[bits >> (18 - 6 * letter) & 63]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        let texts = ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes()));
        assert_eq!(texts, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
    }

    #[test]
    fn nothing_on_a_page_is_read_as_markup() {
        let mut page = Page::new("a <b>");
        page.table(&["<i>"], &[vec!["&".into()]]);
        assert!(page.html().contains("<h1>a &lt;b&gt;</h1>") && page.html().contains("<th>&lt;i&gt;</th>"));
    }
}
