//! From the command in a spec to the words that are executed: shell or no shell, virtual and conda environments.
//!
//! Containers are in `container`. Knows nothing of processes; finding programs is asked of the caller.

use crate::environment::{self, Variables};
use crate::refusal::Refusal;
use std::path::{Path, PathBuf};
use tulpar_core::job::{CommandLine, JobSpec};

/// Words that mean something to a shell when they come first. `true` and `false` are missing on purpose:
/// the programs do the same. `echo`, `printf`, `kill`, `pwd`, `test` are here because programs and builtins differ.
const SHELL_WORDS: [&str; 79] = [
    ".",
    ":",
    "[",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "case",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "coproc",
    "declare",
    "dirs",
    "disown",
    "do",
    "done",
    "echo",
    "elif",
    "else",
    "enable",
    "esac",
    "eval",
    "exec",
    "exit",
    "export",
    "fc",
    "fg",
    "fi",
    "for",
    "function",
    "getopts",
    "hash",
    "help",
    "history",
    "if",
    "in",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "select",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "then",
    "time",
    "times",
    "trap",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "until",
    "wait",
    "while",
    "newgrp",
    "login",
    "repeat",
];

/// The words of a line that a shell would only split and execute, so that no shell is needed: what make does.
fn plain_words(shell: &str, line: &str) -> Option<Vec<String>> {
    let shell = shell.rsplit('/').next().unwrap_or(shell);
    if !matches!(shell, "sh" | "dash" | "bash" | "ksh" | "zsh") {
        return None;
    }
    let harmless = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b' ' | b'\t' | b'_' | b'@' | b'%' | b'+' | b':' | b',' | b'.' | b'/' | b'-' | b'=')
    };
    if !line.bytes().all(harmless) {
        return None;
    }
    let words: Vec<String> = line.split_ascii_whitespace().map(str::to_owned).collect();
    let first = words.first()?;
    if first.contains('=') || SHELL_WORDS.contains(&first.as_str()) {
        return None;
    }
    // zsh expands `=name` to the path of a program.
    if shell == "zsh" && line.contains('=') {
        return None;
    }
    Some(words)
}

/// Linux refuses a single word above 128 KiB; all words together may take about 2 MB.
const LONGEST_WORD: usize = 120_000;

/// A line that is too long for one word goes as several, which the shell puts together again.
fn through_shell(shell: &str, line: &str) -> Vec<String> {
    let mut words: Vec<String> = shell.split_ascii_whitespace().map(str::to_owned).collect();
    if words.is_empty() {
        words.push("sh".into());
    }
    words.extend(["-e".into(), "-c".into()]);
    if line.len() <= LONGEST_WORD {
        words.push(line.to_owned());
        return words;
    }
    let pieces = pieces(line);
    let all: String = (1..=pieces.len()).map(|number| format!("${{{number}}}")).collect();
    words.push(format!("tulpar_line=\"{all}\"; shift {}; eval \"$tulpar_line\"", pieces.len()));
    words.push(words[0].clone());
    words.extend(pieces);
    words
}

/// A text in parts that the kernel takes as words, cut between characters.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for character in text.chars() {
        if pieces.last().is_some_and(|last| last.len() + character.len_utf8() > LONGEST_WORD) {
            pieces.push(String::new());
        }
        pieces.last_mut().expect("there is one").push(character);
    }
    pieces
}

/// The words to execute. `found` tells whether a program exists: when it does not, the shell gets the
/// line after all and says so itself, with its own message and exit code 127.
pub(crate) fn words(command: &CommandLine, found: impl Fn(&str) -> bool) -> Result<Vec<String>, Refusal> {
    match command {
        CommandLine::Arguments(words) if words.is_empty() => Err(Refusal::NothingToRun),
        CommandLine::Arguments(words) => Ok(words.clone()),
        CommandLine::Shell { shell, line } => Ok(match plain_words(shell, line) {
            Some(words) if found(&words[0]) => words,
            _ => through_shell(shell, line),
        }),
    }
}

/// Makes a virtual environment's programs the first to be found.
pub(crate) fn enter_venv(venv: &str, project: &Path, variables: &mut Variables) -> Result<(), Refusal> {
    let folder = project.join(venv);
    let programs = folder.join("bin");
    if !programs.is_dir() {
        return Err(Refusal::NoVenv(folder.display().to_string()));
    }
    environment::put_first(variables, &programs);
    variables.insert("VIRTUAL_ENV".into(), folder.display().to_string());
    variables.remove("PYTHONHOME");
    Ok(())
}

/// A conda environment: a folder is entered through PATH, which is quick; a name needs conda to find it.
/// Gives the words to put before the command.
pub(crate) fn enter_conda(
    conda: &str,
    project: &Path,
    variables: &mut Variables,
    find: impl Fn(&str) -> Option<PathBuf>,
) -> Result<Vec<String>, Refusal> {
    if conda.contains('/') {
        let folder = project.join(conda);
        let programs = folder.join("bin");
        if !programs.is_dir() {
            return Err(Refusal::NoCondaFolder(folder.display().to_string()));
        }
        environment::put_first(variables, &programs);
        for name in ["CONDA_PREFIX", "CONDA_DEFAULT_ENV"] {
            variables.insert(name.into(), folder.display().to_string());
        }
        return Ok(Vec::new());
    }
    for name in ["conda", "mamba", "micromamba"] {
        if let Some(program) = find(name) {
            let mut words = vec![program.display().to_string(), "run".into(), "-n".into(), conda.into()];
            if name != "micromamba" {
                // Without it conda keeps the output to itself until the end.
                words.push("--no-capture-output".into());
            }
            return Ok(words);
        }
    }
    Err(Refusal::NoConda(conda.into()))
}

/// At most one kind of environment beside a container makes no sense: its folder is not the image's.
pub(crate) fn check_one_environment(spec: &JobSpec) -> Result<(), Refusal> {
    if spec.container.is_some() {
        if spec.venv.is_some() {
            return Err(Refusal::TwoEnvironments("venv"));
        }
        if spec.conda.is_some() {
            return Err(Refusal::TwoEnvironments("conda"));
        }
    }
    Ok(())
}

/// Whether a shell with this PATH looks for programs in the folder of the task too, which only it knows to do.
pub(crate) fn looks_here(path: &str) -> bool {
    path.split(':').any(|folder| !folder.starts_with('/'))
}

/// Where a program is, as a shell with this PATH would find it. Relative entries of PATH are skipped.
pub(crate) fn find_program(name: &str, path: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name));
    }
    path.split(':')
        .filter(|folder| folder.starts_with('/'))
        .map(|folder| Path::new(folder).join(name))
        .find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(shell: &str, line: &str) -> Vec<String> {
        words(&CommandLine::Shell { shell: shell.into(), line: line.into() }, |_| true).unwrap()
    }

    #[test]
    fn a_line_without_shell_grammar_is_split_and_executed_directly() {
        assert_eq!(line("sh", "galaxy train --lr=0.1  data/x.npy"), ["galaxy", "train", "--lr=0.1", "data/x.npy"]);
        assert_eq!(line("/bin/bash", "true"), ["true"]);
    }

    #[test]
    fn a_line_that_is_longer_than_a_word_may_be_reaches_the_shell_whole() {
        let long = format!("set -- {}; echo $# ${{40000}} 'ü'; false; echo not here", "wörd ".repeat(40_000));
        let words = line("sh", &long);
        assert!(words.len() > 4 && words.iter().all(|word| word.len() < 128 << 10), "{}", words.len());
        let output = std::process::Command::new(&words[0]).args(&words[1..]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "40000 wörd ü\n");
        assert_eq!(output.status.code(), Some(1));
    }

    #[test]
    fn anything_that_a_shell_might_read_otherwise_goes_through_the_shell() {
        for text in [
            "a | b", "a > b", "a; b", "a && b", "echo hi", "X=1 a", "a $B", "a *.txt", "a 'b'", "a \"b\"", "a\nb",
            "~/a", "a {b,c}", "a # b", "cd x", "exit 3", "! a", "", "a \\b", "a ü",
        ] {
            assert_eq!(line("sh", text), ["sh", "-e", "-c", text], "{text}");
        }
        assert_eq!(line("fish", "a b"), ["fish", "-e", "-c", "a b"]);
        assert_eq!(line("zsh", "a =b"), ["zsh", "-e", "-c", "a =b"]);
        assert_eq!(line("bash -o pipefail", "a | b"), ["bash", "-o", "pipefail", "-e", "-c", "a | b"]);
    }

    /// What came of a command: how it ended and all that it said.
    fn outcome(words: &[String], folder: &Path, path: &str) -> (Option<i32>, Vec<u8>, Vec<u8>) {
        // As the launcher does: the file that was found, and the first word as its name.
        use std::os::unix::process::CommandExt;
        let file = find_program(&words[0], path).unwrap();
        let mut command = std::process::Command::new(file);
        command.arg0(&words[0]).args(&words[1..]).current_dir(folder).env_clear().env("PATH", path);
        let output = command.output().unwrap();
        (output.status.code(), output.stdout, output.stderr)
    }

    #[test]
    fn whatever_is_executed_directly_does_what_a_shell_makes_of_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        std::fs::create_dir_all(here.join("bin/empty")).unwrap();
        let write = |name: &str, text: &str, mode: u32| {
            std::fs::write(here.join(name), text).unwrap();
            std::fs::set_permissions(here.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        // Says its arguments and their limits, and leaves with their number.
        write("bin/show", "#!/bin/sh\nfor word; do printf '<%s>' \"$word\"; done; exit $#\n", 0o755);
        write("bin/secret", "#!/bin/sh\necho never\n", 0o644);
        write("show", "#!/bin/sh\necho here\n", 0o755);
        let path = format!("{}:/usr/bin:/bin", here.join("bin").display());
        let firsts = [
            "show", "./show", "bin/show", "secret", "nosuch", "empty", "true", "false", "printf", "cd", "exit", "A=1",
            "expr",
        ];
        let letters = b"ab0 \t_@%+:,./-=~*$'\"\\;#{}!&|<>()?[]^`";
        // Always the same: a sequence that Knuth gives.
        let mut seed = 1u64;
        let mut random = move |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        let mut direct = 0;
        for _ in 0..1500 {
            // Mostly of the letters that mean nothing to a shell.
            let most = if random(3) == 0 { letters.len() } else { 16 };
            let rest: String = (0..random(12)).map(|_| char::from(letters[random(most)])).collect();
            let line = format!("{} {rest}", firsts[random(firsts.len())]);
            let command = CommandLine::Shell { shell: "sh".into(), line: line.clone() };
            let found = |program: &str| match program.contains('/') {
                true => here.join(program).exists(),
                false => find_program(program, &path).is_some(),
            };
            let words = words(&command, found).unwrap();
            if words[0] == "sh" {
                continue;
            }
            direct += 1;
            let by_shell = outcome(&through_shell("sh", &line), here, &path);
            let words: Vec<String> = words;
            if words[0].contains('/') {
                // Seen from the folder of the task.
                let absolute = here.join(&words[0]).display().to_string();
                let own: Vec<String> = std::iter::once(absolute).chain(words[1..].iter().cloned()).collect();
                assert_eq!(outcome(&own, here, &path), by_shell, "{line}");
            } else {
                assert_eq!(outcome(&words, here, &path), by_shell, "{line}");
            }
        }
        assert!(direct > 300, "only {direct} lines needed no shell");
    }

    #[test]
    fn a_path_that_names_the_folder_of_the_task_is_the_business_of_a_shell() {
        for (path, here) in [("/usr/bin:/bin", false), ("/usr/bin:.", true), ("/usr/bin:", true), (":/bin", true)] {
            assert_eq!(looks_here(path), here, "{path:?}");
        }
    }

    #[test]
    fn an_unknown_program_is_left_for_the_shell_to_report() {
        let words = words(&CommandLine::Shell { shell: "sh".into(), line: "nosuch x".into() }, |_| false).unwrap();
        assert_eq!(words, ["sh", "-e", "-c", "nosuch x"]);
    }

    #[test]
    fn a_named_conda_environment_is_run_through_conda_or_its_relatives() {
        let project = Path::new("/p");
        let enter = |have: &str| {
            enter_conda("torch", project, &mut Variables::new(), |name| {
                (name == have).then(|| PathBuf::from(format!("/opt/{name}")))
            })
        };
        assert_eq!(enter("conda").unwrap(), ["/opt/conda", "run", "-n", "torch", "--no-capture-output"]);
        assert_eq!(enter("micromamba").unwrap(), ["/opt/micromamba", "run", "-n", "torch"]);
        assert_eq!(
            enter("none").unwrap_err().to_string(),
            "conda is not installed here, and the environment `torch` is given by name: install conda, mamba or micromamba, or give the environment's folder"
        );
    }

    #[test]
    fn folders_of_environments_come_first_in_the_search_path() {
        let project = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(project.path().join("env/bin")).unwrap();
        let mut variables = Variables::from([("PATH".into(), "/bin".into())]);
        enter_venv("env", project.path(), &mut variables).unwrap();
        let folder = project.path().join("env").display().to_string();
        assert_eq!(variables["PATH"], format!("{folder}/bin:/bin"));
        assert_eq!(variables["VIRTUAL_ENV"], folder);
        assert_eq!(enter_conda("./env", project.path(), &mut variables, |_| None).unwrap(), Vec::<String>::new());
        assert!(enter_venv("other", project.path(), &mut variables).is_err());
    }
}
