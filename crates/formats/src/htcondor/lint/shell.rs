//! The lines of a shell script, as far as rules must know where commands begin and which of them always run.
//!
//! It understands quotes, comments, here-documents, brackets and blocks, and says so where it does not.

/// Words that open a block, that close one, and that a command may stand behind.
const OPENING: &[&str] = &["if", "for", "while", "until", "case", "select", "{"];
const CLOSING: &[&str] = &["fi", "done", "esac", "}"];
const BEFORE: &[&str] = &["then", "do", "else", "elif", "!", "time"];

pub(super) struct Line {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Without comments; what is special to the shell and stands in quotes is `_`.
    pub(super) bare: String,
    /// A command begins here: it goes on with no line before, and stands in no text and no list.
    pub(super) begins: bool,
    /// It is in no block and has none in it, so that it runs whenever the script runs so far.
    pub(super) always: bool,
}

/// A command of a line.
pub(super) struct Command<'t> {
    pub(super) words: Vec<&'t str>,
    /// Whether it runs, or whether it may fail, is decided beside it.
    pub(super) guarded: bool,
}

/// Nothing where the text was not understood to its end.
pub(super) fn lines(text: &str) -> Option<Vec<Line>> {
    let mut found: Vec<Line> = Vec::new();
    let (mut start, mut quote, mut brackets, mut blocks) = (0, None, 0_usize, 0_usize);
    let (mut document, mut continued): (Option<String>, bool) = (None, false);
    for raw in text.split('\n') {
        let line = raw.trim_end_matches('\r');
        let end = start + line.len();
        if let Some(mark) = &document {
            if line.trim_start_matches('\t') == mark {
                document = None;
            }
            found.push(Line { start, end, bare: String::new(), begins: false, always: false });
        } else {
            let inside = quote.is_some() || brackets > 0 || continued;
            let scanned = scan(line, &mut quote, &mut brackets);
            let before = blocks;
            let touched = turn(&scanned.bare, &mut blocks)?;
            document = scanned.document;
            continued = scanned.continued;
            let always = !inside && before == 0 && !touched;
            found.push(Line { start, end, bare: scanned.bare, begins: !inside, always });
        }
        start += raw.len() + 1;
    }
    (quote.is_none() && brackets == 0 && blocks == 0 && document.is_none()).then_some(found)
}

struct Scanned {
    bare: String,
    document: Option<String>,
    continued: bool,
}

fn scan(line: &str, quote: &mut Option<char>, brackets: &mut usize) -> Scanned {
    let mut bare = String::with_capacity(line.len());
    let mut letters = line.char_indices().peekable();
    let (mut before, mut document, mut continued) = (' ', None, false);
    while let Some((at, letter)) = letters.next() {
        match (*quote, letter) {
            (None | Some('"'), '\\') => match letters.next() {
                Some(_) => bare.push('_'),
                None => continued = quote.is_none(),
            },
            (None, '"' | '\'') => *quote = Some(letter),
            (Some(open), _) if open == letter => *quote = None,
            (Some(_), _) => {
                let special = letter.is_whitespace() || ";|&(){}<>#".contains(letter);
                bare.push(if special { '_' } else { letter });
            }
            (None, '#') if before.is_whitespace() || ";(".contains(before) => break,
            (None, '<') if line[at..].starts_with("<<") && !line[at..].starts_with("<<<") && before != '<' => {
                document = document.or_else(|| mark(&line[at + 2..]));
                bare.push(letter);
            }
            (None, _) => {
                match letter {
                    '(' => *brackets += 1,
                    ')' => *brackets = brackets.saturating_sub(1),
                    _ => {}
                }
                bare.push(letter);
            }
        }
        before = letter;
    }
    Scanned { bare, document, continued }
}

/// The word that ends a here-document, from what stands behind `<<`.
fn mark(text: &str) -> Option<String> {
    let text = text.strip_prefix('-').unwrap_or(text).trim_start();
    let word = text.split(|letter: char| letter.is_whitespace() || ";|&)<>".contains(letter)).next()?;
    let word = word.trim_start_matches('\\').trim_matches(['"', '\'']);
    word.starts_with(|letter: char| letter.is_alphabetic() || letter == '_').then(|| word.to_owned())
}

/// Follows a line into and out of blocks; whether it did either. Nothing where more is closed than was opened.
fn turn(bare: &str, blocks: &mut usize) -> Option<bool> {
    let mut touched = false;
    for piece in bare.split([';', '|', '&']) {
        let mut words = piece.split_whitespace();
        // A pattern of `case` stands before its command.
        let pattern = |word: &str| word.ends_with(')') && !word.contains('(');
        let first = words.find(|word| !BEFORE.contains(word) && !pattern(word));
        let Some(first) = first else {
            touched |= piece.split_whitespace().any(|word| BEFORE.contains(&word));
            continue;
        };
        if OPENING.contains(&first) {
            *blocks += 1;
            touched = true;
        } else if CLOSING.contains(&first) {
            *blocks = blocks.checked_sub(1)?;
            touched = true;
        } else if piece.trim_end().ends_with('{') && !piece.trim_end().ends_with("${") {
            // A function.
            *blocks += 1;
            touched = true;
        }
    }
    Some(touched)
}

/// The commands of a line, in their order.
pub(super) fn commands(bare: &str) -> Vec<Command<'_>> {
    let mut found = Vec::new();
    for chain in bare.split(';') {
        let alternatives = chain.contains("||");
        let mut tested = false;
        for piece in chain.split("&&").flat_map(|part| part.split(['|', '&'])) {
            let words: Vec<&str> = piece.split_whitespace().collect();
            let Some(first) = words.first() else { continue };
            let test = ["[", "[[", "test", "!"].contains(first);
            found.push(Command { guarded: alternatives || tested || test, words });
            tested |= test;
        }
    }
    found
}
