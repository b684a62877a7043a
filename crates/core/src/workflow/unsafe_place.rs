//! Places of a shell line where a value cannot be put, and what to write instead.

use thiserror::Error;

/// Why no quoting is safe at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UnsafePlace {
    #[error("a value inside backticks cannot be quoted safely")]
    Backticks,
    #[error("a value inside `${{…}}` cannot be quoted safely")]
    Parameter,
    #[error("a backslash directly before a value would undo its quoting")]
    Backslash,
    #[error("inside `((…))` only a plain number or word can be put")]
    Arithmetic,
    #[error("after quotes inside `((…))` it is not certain what is quoted")]
    ArithmeticQuotes,
    #[error("after `case` inside `$(…)` it is not certain where `$(…)` ends")]
    Case,
    #[error("after a backslash inside `$'…'` shells do not agree on where the quotes end")]
    AnsiQuotes,
    #[error("after quotes inside `\"${{…}}\"` it is not certain what is quoted")]
    ParameterQuotes,
    #[error("after a command inside a here-document it is not certain what is quoted")]
    HereDocumentCommand,
    #[error("after a backslash at the end of a line of a here-document shells do not agree on where it ends")]
    HereDocumentContinued,
    #[error("a here-document cannot end with a word that is a value")]
    HereDocumentWord,
    #[error("this value would end the here-document")]
    HereDocumentEnd,
    #[error("a value with a line break or a NUL cannot be put here")]
    LineBreak,
    #[error(
        "a second shell reads this value again and runs what is in it; only letters, digits and `_./:@%+,=-` are safe here"
    )]
    SecondShell,
}

impl UnsafePlace {
    /// What to write instead.
    pub fn help(self) -> &'static str {
        match self {
            UnsafePlace::Backticks => "write `$(…)` instead of backticks",
            UnsafePlace::Parameter | UnsafePlace::ParameterQuotes => {
                "put the value into a variable first, as in `x={name}`, and use `$x`"
            }
            UnsafePlace::Backslash => "remove the backslash; values are quoted for you",
            UnsafePlace::Arithmetic => "give it a plain number: some shells run what else stands there",
            UnsafePlace::ArithmeticQuotes => "put the value into a variable before it, as in `x={name}`",
            UnsafePlace::Case => "move the `case` out of `$(…)`, or put the value into a variable before it",
            UnsafePlace::AnsiQuotes => "use `printf` in place of `$'…'`, or put the value into a variable before it",
            UnsafePlace::HereDocumentCommand
            | UnsafePlace::HereDocumentContinued
            | UnsafePlace::HereDocumentWord
            | UnsafePlace::HereDocumentEnd => {
                "put the script into a file of its own, make it an input, and give it the value as an argument"
            }
            UnsafePlace::SecondShell => {
                "give the second shell the value as an argument: `sh -c 'echo \"$1\"' sh {name}`; or leave the second shell out"
            }
            UnsafePlace::LineBreak => "give the value through `env:` instead",
        }
    }
}
