//! Follows a shell line as it is written out and quotes each value for the place where it lands.
//!
//! A value inside `'…'` or `"…"` needs other quoting than a bare one, and in some places none is safe.
//! This reads just enough of the POSIX grammar to know which; where it cannot be sure, it refuses rather
//! than guess. It knows nothing of templates beyond being fed literals and values in turn.

use super::quoting::{escape, is_plain, quote_bare};
use super::template::Values;
use super::unsafe_place::UnsafePlace;

/// Programs that read a line of shell after `-c`.
const SHELLS: &[&str] = &["ash", "bash", "dash", "ksh", "mksh", "sh", "zsh"];
/// Words after `-o`.
const OPTIONS: &[&str] = &["errexit", "nounset", "pipefail", "xtrace"];
/// More of a word is not looked at.
const LONGEST_WORD: usize = 40;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Context {
    /// Commands: the line itself, or the inside of `$(…)` with open parentheses counted.
    Command {
        substitution: bool,
        parentheses: u32,
    },
    Single,
    Double,
    /// `$'…'`, which only some shells know.
    Ansi,
    Parameter,
    Backticks,
    Arithmetic {
        parentheses: u32,
    },
    Comment,
    HereDocument,
}

#[derive(Clone, Debug)]
struct HereDocument {
    end: String,
    /// A quoted end word: nothing inside is expanded.
    literal: bool,
    strip_tabs: bool,
    /// A shell reads it as its script.
    for_shell: bool,
}

/// The word after `<<`, while it is being read.
#[derive(Debug)]
struct EndWord {
    text: String,
    quoted: bool,
    quote: Option<char>,
    escaped: bool,
    strip_tabs: bool,
    begun: bool,
    for_shell: bool,
}

/// How far the present command is on its way to a line that another shell reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Second {
    None,
    /// `sh` was named; `-c` may follow.
    Shell,
    /// The next word is a line for that shell.
    Line,
    /// After `eval`, the next word and all that follow are.
    Eval,
    /// All that follows is.
    Rest,
}

/// A shell line that is being written.
pub(super) struct Line {
    out: String,
    stack: Vec<Context>,
    /// The last character if it stood for itself in the present context.
    previous: char,
    /// The last character was a backslash that takes the next one's meaning; with what stood before it.
    escape: Option<(char, bool)>,
    /// A comment or a reserved word could begin here.
    word_start: bool,
    /// The bare word so far, to notice `case`.
    word: String,
    /// For each open `$(…)`, and the line itself.
    second: Vec<Second>,
    end_word: Option<EndWord>,
    waiting: Vec<HereDocument>,
    /// The line of the here-document so far.
    body_line: String,
    uncertain: Option<UnsafePlace>,
    /// Where a bare value of digits starts that is a word of its own so far: `3>file` would mean something else.
    digits: Option<usize>,
}

impl Line {
    pub(super) fn new(template: &str) -> Self {
        Self {
            out: String::with_capacity(template.len() + 64),
            stack: vec![Context::Command { substitution: false, parentheses: 0 }],
            previous: '\0',
            escape: None,
            word_start: true,
            word: String::new(),
            second: vec![Second::None],
            end_word: None,
            waiting: Vec::new(),
            body_line: String::new(),
            uncertain: None,
            digits: None,
        }
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    pub(super) fn is_comment(&self) -> bool {
        self.top() == &Context::Comment && self.uncertain.is_none()
    }

    /// Among commands and their words, outside of every kind of quotes.
    pub(super) fn is_bare(&self) -> bool {
        matches!(self.top(), Context::Command { .. }) && self.uncertain.is_none() && self.end_word.is_none()
    }

    pub(super) fn is_quoted(&self) -> bool {
        matches!(self.top(), Context::Single | Context::Double) && self.uncertain.is_none()
    }

    fn top(&self) -> &Context {
        self.stack.last().expect("the line itself is never popped")
    }

    fn push(&mut self, context: Context) {
        if matches!(context, Context::Command { .. }) {
            self.second.push(Second::None);
        }
        self.word_start = matches!(context, Context::Command { .. });
        self.stack.push(context);
        self.previous = '\0';
        self.word.clear();
    }

    fn pop(&mut self) {
        if self.stack.len() > 1 && matches!(self.stack.pop(), Some(Context::Command { .. })) {
            self.second.pop();
        }
        self.previous = '\0';
        self.word_start = false;
        self.word.clear();
    }

    fn doubt(&mut self, place: UnsafePlace) {
        self.uncertain.get_or_insert(place);
    }

    pub(super) fn literal(&mut self, text: &str) {
        if let Some(start) = self.digits.take()
            && text.starts_with(['<', '>'])
        {
            self.out.insert(start, '\'');
            self.out.push('\'');
        }
        self.out.push_str(text);
        for letter in text.chars() {
            self.follow(letter);
        }
    }

    fn follow(&mut self, letter: char) {
        if self.end_word.is_some() && self.follow_end_word(letter) {
            return;
        }
        if let Some((previous, word_start)) = self.escape.take() {
            if self.top() == &Context::HereDocument {
                match letter {
                    '\n' => self.doubt(UnsafePlace::HereDocumentContinued),
                    _ => self.body_line.push(letter),
                }
                self.previous = '\0';
            } else if letter == '\n' {
                // The line goes on as if neither were there.
                self.previous = previous;
                self.word_start = word_start;
            } else {
                self.previous = '\0';
                self.word_start = false;
                self.word.push('\\');
            }
            return;
        }
        match self.top().clone() {
            Context::Command { substitution, parentheses } => self.command(letter, substitution, parentheses),
            Context::Single if letter == '\'' => self.pop(),
            Context::Single => {}
            Context::Ansi => match letter {
                '\'' => self.pop(),
                '\\' => self.doubt(UnsafePlace::AnsiQuotes),
                _ => {}
            },
            Context::Double => match letter {
                '"' => self.pop(),
                _ => self.expansion(letter),
            },
            Context::Parameter => match letter {
                '}' => self.pop(),
                '\'' | '"' if self.inside_double() => self.doubt(UnsafePlace::ParameterQuotes),
                '\'' if self.previous == '$' => self.push(Context::Ansi),
                '\'' => self.push(Context::Single),
                '"' => self.push(Context::Double),
                _ => self.expansion(letter),
            },
            Context::Backticks => match letter {
                '`' => self.pop(),
                '\\' => self.escape = Some(('\0', false)),
                _ => {}
            },
            Context::Arithmetic { parentheses } => self.arithmetic(letter, parentheses),
            Context::Comment if letter == '\n' => {
                self.pop();
                self.command_break(letter);
            }
            Context::Comment => {}
            Context::HereDocument => self.body(letter),
        }
    }

    fn command(&mut self, letter: char, substitution: bool, parentheses: u32) {
        match letter {
            '\'' if self.previous == '$' => self.push(Context::Ansi),
            '\'' => self.push(Context::Single),
            '"' => self.push(Context::Double),
            '#' if self.word_start => self.push(Context::Comment),
            '(' if self.previous == '(' => {
                // Either arithmetic or two subshells; the same care serves both.
                self.stack.pop();
                self.second.pop();
                let parentheses_before = parentheses.saturating_sub(1);
                if self.stack.is_empty() || !substitution || parentheses > 0 {
                    self.second.push(Second::None);
                    self.stack.push(Context::Command { substitution, parentheses: parentheses_before });
                }
                self.push(Context::Arithmetic { parentheses: 2 });
                self.word_start = true;
            }
            '(' if self.previous != '$' => {
                self.set_parentheses(parentheses.saturating_add(1));
                self.command_break(letter);
            }
            ')' if substitution && parentheses == 0 => self.pop(),
            ')' => {
                self.set_parentheses(parentheses.saturating_sub(1));
                self.command_break(letter);
            }
            '<' if self.previous == '<' => {
                let for_shell = matches!(self.second(), Second::Shell | Second::Rest);
                self.end_word = Some(EndWord {
                    text: String::new(),
                    quoted: false,
                    quote: None,
                    escaped: false,
                    strip_tabs: false,
                    begun: false,
                    for_shell,
                });
                self.command_break('\0');
            }
            ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' => {
                if self.word == "case"
                    && self.stack.iter().any(|context| matches!(context, Context::Command { substitution: true, .. }))
                {
                    self.doubt(UnsafePlace::Case);
                }
                self.command_break(letter);
            }
            '\\' => self.expansion(letter),
            _ => {
                self.word_start = false;
                if self.word.len() < LONGEST_WORD {
                    self.word.push(letter);
                }
                self.expansion(letter);
            }
        }
    }

    fn set_parentheses(&mut self, count: u32) {
        if let Some(Context::Command { parentheses, .. }) = self.stack.last_mut() {
            *parentheses = count;
        }
    }

    /// After white space or an operator.
    fn command_break(&mut self, letter: char) {
        if !self.word_start {
            self.word_ended();
        }
        if matches!(letter, '\n' | ';' | '&' | '|' | '(' | ')') {
            self.set_second(Second::None);
        }
        self.word_start = true;
        self.word.clear();
        self.previous = letter;
        if letter == '\n' && !self.waiting.is_empty() && matches!(self.top(), Context::Command { .. }) {
            self.body_line.clear();
            self.push(Context::HereDocument);
        }
    }

    fn word_ended(&mut self) {
        let name = self.word.rsplit('/').next().unwrap_or_default();
        let is_flag = self.word.starts_with(['-', '+']);
        let next = match self.second() {
            Second::None if SHELLS.contains(&name) => Second::Shell,
            Second::None if name == "eval" => Second::Eval,
            Second::None if name == "ssh" => Second::Rest,
            Second::Shell if self.word.starts_with('-') && !self.word.starts_with("--") && self.word.contains('c') => {
                Second::Line
            }
            // `sh script` reads a file; `bash -o pipefail -c` reads a line.
            Second::Shell if is_flag || OPTIONS.contains(&name) => Second::Shell,
            Second::Shell | Second::Line | Second::None => Second::None,
            Second::Eval | Second::Rest => Second::Rest,
        };
        self.set_second(next);
    }

    fn second(&self) -> Second {
        self.second.last().copied().unwrap_or(Second::None)
    }

    fn set_second(&mut self, second: Second) {
        if let Some(last) = self.second.last_mut() {
            *last = second;
        }
    }

    /// Whether another shell reads what lands here as part of a line. A whole word in place of that line is meant to be run.
    fn is_read_twice(&self) -> bool {
        let is_whole_word = self.word_start && matches!(self.top(), Context::Command { .. });
        match (self.top(), self.second()) {
            (Context::HereDocument, _) => self.waiting.first().is_some_and(|document| document.for_shell),
            (_, Second::Line | Second::Eval) => !is_whole_word,
            (_, Second::Rest) => true,
            (_, Second::Shell | Second::None) => false,
        }
    }

    /// What `$`, backtick and backslash begin, inside and outside of double quotes.
    fn expansion(&mut self, letter: char) {
        match letter {
            '\\' => {
                self.escape = Some((self.previous, self.word_start));
                self.previous = '\0';
            }
            '`' => self.push(Context::Backticks),
            '(' if self.previous == '$' => {
                self.push(Context::Command { substitution: true, parentheses: 0 });
                // A second parenthesis directly after makes it arithmetic.
                self.previous = '(';
            }
            '{' if self.previous == '$' => self.push(Context::Parameter),
            // `$$` is the process: the second does not begin an expansion.
            '$' if self.previous == '$' => self.previous = '\0',
            _ => self.previous = letter,
        }
    }

    fn arithmetic(&mut self, letter: char, parentheses: u32) {
        let blank = letter == ' ' || letter == '\t';
        match letter {
            '(' if self.previous == '$' => self.expansion(letter),
            '(' => self.stack_arithmetic(parentheses + 1),
            ')' if parentheses <= 1 => self.pop(),
            ')' => self.stack_arithmetic(parentheses - 1),
            '\'' | '"' | '\\' | '`' | '\n' => self.doubt(UnsafePlace::ArithmeticQuotes),
            '#' if self.word_start => self.doubt(UnsafePlace::ArithmeticQuotes),
            '<' if self.previous == '<' => self.doubt(UnsafePlace::ArithmeticQuotes),
            _ => self.expansion(letter),
        }
        if matches!(self.top(), Context::Arithmetic { .. }) {
            self.word_start = blank;
        }
    }

    fn stack_arithmetic(&mut self, count: u32) {
        if let Some(Context::Arithmetic { parentheses }) = self.stack.last_mut() {
            *parentheses = count;
        }
        self.previous = '\0';
    }

    fn inside_double(&self) -> bool {
        self.stack
            .iter()
            .rev()
            .find_map(|context| match context {
                Context::Double | Context::HereDocument => Some(true),
                Context::Command { .. } | Context::Arithmetic { .. } => Some(false),
                _ => None,
            })
            .unwrap_or(false)
    }

    /// True while the letter belongs to the word after `<<`.
    fn follow_end_word(&mut self, letter: char) -> bool {
        let Some(word) = &mut self.end_word else { return false };
        if word.escaped {
            word.escaped = false;
            word.text.push(letter);
            return true;
        }
        if let Some(quote) = word.quote {
            if letter == quote {
                word.quote = None;
            } else {
                word.text.push(letter);
            }
            return true;
        }
        match letter {
            '<' if !word.begun && !word.strip_tabs => {
                // `<<<` gives one word; there is no document.
                self.end_word = None;
                true
            }
            '-' if !word.begun && !word.strip_tabs && word.text.is_empty() => {
                word.strip_tabs = true;
                true
            }
            ' ' | '\t' if !word.begun => true,
            '\'' | '"' => {
                word.quoted = true;
                word.begun = true;
                word.quote = Some(letter);
                true
            }
            '\\' => {
                word.quoted = true;
                word.begun = true;
                word.escaped = true;
                true
            }
            ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => {
                if let Some(word) = self.end_word.take() {
                    self.waiting.push(HereDocument {
                        end: word.text,
                        literal: word.quoted,
                        strip_tabs: word.strip_tabs,
                        for_shell: word.for_shell,
                    });
                }
                false
            }
            _ => {
                if matches!(letter, '$' | '`') {
                    self.uncertain.get_or_insert(UnsafePlace::HereDocumentWord);
                }
                word.begun = true;
                word.text.push(letter);
                true
            }
        }
    }

    /// Inside a here-document.
    fn body(&mut self, letter: char) {
        let Some(document) = self.waiting.first() else { return self.pop() };
        if letter == '\n' {
            let line = std::mem::take(&mut self.body_line);
            let line = if document.strip_tabs { line.trim_start_matches('\t') } else { &line };
            self.previous = '\0';
            if line == document.end {
                self.waiting.remove(0);
                if self.waiting.is_empty() {
                    self.pop();
                    self.word_start = true;
                }
            }
            return;
        }
        self.body_line.push(letter);
        if document.literal {
            return;
        }
        match letter {
            '`' => self.doubt(UnsafePlace::HereDocumentCommand),
            '(' if self.previous == '$' => self.doubt(UnsafePlace::HereDocumentCommand),
            _ => self.expansion(letter),
        }
    }

    /// Writes a value, quoted for the present place.
    pub(super) fn value(&mut self, values: &Values<'_>) -> Result<(), UnsafePlace> {
        self.digits = None;
        if let Some(place) = self.uncertain {
            return Err(place);
        }
        if self.escape.is_some() {
            return Err(UnsafePlace::Backslash);
        }
        if self.end_word.is_some() {
            return Err(UnsafePlace::HereDocumentWord);
        }
        let values = values.as_slice();
        if values.iter().any(|value| value.contains('\0')) {
            return Err(UnsafePlace::LineBreak);
        }
        if self.is_read_twice() && !values.iter().all(|value| is_plain(value)) {
            return Err(UnsafePlace::SecondShell);
        }
        let at = self.out.len();
        match self.top() {
            Context::Command { .. } => {
                let alone = self.word_start && values.len() == 1;
                for (number, value) in values.iter().enumerate() {
                    if number > 0 {
                        self.out.push(' ');
                    }
                    quote_bare(value, &mut self.out);
                }
                if alone && values[0].bytes().all(|byte| byte.is_ascii_digit()) {
                    self.digits = Some(at);
                }
            }
            Context::Single => self.join(values, |value, out| out.push_str(&value.replace('\'', "'\\''"))),
            Context::Double => self.join(values, |value, out| escape(value, "\\$`\"", out)),
            Context::HereDocument => {
                let Some(document) = self.waiting.first() else { return Err(UnsafePlace::HereDocumentEnd) };
                let text = values.join(" ");
                if text.contains('\n') {
                    return Err(UnsafePlace::LineBreak);
                }
                let line = format!("{}{text}", self.body_line);
                let line = if document.strip_tabs { line.trim_start_matches('\t') } else { &line };
                if !text.is_empty() && document.end.starts_with(line) {
                    return Err(UnsafePlace::HereDocumentEnd);
                }
                self.body_line.push_str(&text);
                if document.literal {
                    self.out.push_str(&text);
                } else {
                    escape(&text, "\\$`", &mut self.out);
                }
            }
            Context::Arithmetic { .. } => {
                let text = values.join(" ");
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'+' | b'-');
                if text.is_empty() || !text.bytes().all(plain) {
                    return Err(UnsafePlace::Arithmetic);
                }
                self.out.push_str(&text);
            }
            Context::Parameter => return Err(UnsafePlace::Parameter),
            Context::Backticks => return Err(UnsafePlace::Backticks),
            Context::Ansi => return Err(UnsafePlace::AnsiQuotes),
            // Whoever feeds values asks `is_comment` first; a value written here could end the comment.
            Context::Comment => return Err(UnsafePlace::LineBreak),
        }
        self.previous = '\0';
        self.word_start = false;
        self.word.clear();
        Ok(())
    }

    fn join(&mut self, values: &[std::borrow::Cow<'_, str>], write: impl Fn(&str, &mut String)) {
        for (number, value) in values.iter().enumerate() {
            if number > 0 {
                self.out.push(' ');
            }
            write(value, &mut self.out);
        }
    }
}
