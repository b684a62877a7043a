//! Steps in a folder of their own, as a workflow would start them.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use tulpar_exemplars::temporary::Temporary;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_tulpar-exemplars");

/// A folder in which steps run.
pub struct Place(Temporary);

impl Place {
    pub fn new() -> Self {
        Self(Temporary::folder().expect("a folder"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(words.split_whitespace()).current_dir(self.path());
        command
    }

    /// Runs a step that must end well, and gives what it said.
    pub fn step(&self, words: &str) -> String {
        let said = self.command(words).output().expect("the program starts");
        assert!(said.status.success(), "{words}\n{}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8(said.stdout).expect("text")
    }

    /// Runs a step that must fail, and gives why it did.
    pub fn refused(&self, words: &str) -> String {
        let said = self.command(words).output().expect("the program starts");
        assert!(!said.status.success(), "{words} succeeded");
        String::from_utf8(said.stderr).expect("text")
    }

    /// Starts a step and kills it as soon as it has said this many lines: it has no chance to do anything about it.
    pub fn killed_after(&self, lines: usize, words: &str) {
        let mut child = self.command(words).stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut said = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        for _ in 0..lines {
            said.next().expect("another line").expect("text");
        }
        child.kill().expect("it runs");
        assert!(!child.wait().expect("it ends").success(), "it was not killed");
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn json(&self, name: &str) -> serde_json::Value {
        serde_json::from_slice(&self.bytes(name)).expect("JSON")
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).expect("it can be written");
    }
}
