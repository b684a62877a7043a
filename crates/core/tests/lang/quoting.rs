//! Substituted values against a real shell: whatever a file is called, the program gets exactly that.

use proptest::prelude::*;
use std::process::{Command, Stdio};
use tulpar_core::workflow::template::{self, Values};

/// Runs a line and gives back the arguments that `printf` got, one an entry.
fn run(shell: &str, line: &str) -> Vec<String> {
    let output =
        Command::new(shell).args(["-c", line]).env_clear().env("PATH", "/usr/bin:/bin").output().expect("a shell");
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("the shell gives back what it got");
    let mut parts: Vec<String> = text.split('\u{1}').map(str::to_owned).collect();
    assert_eq!(parts.pop().as_deref(), Some(""), "{line}");
    parts
}

/// Templates that print each argument with a mark behind it, and what they must give for values a and b.
type Expected = fn(&str, &str) -> Vec<String>;

const TEMPLATES: &[(&str, Expected)] = &[
    ("printf '%s\\001' {a}", |a, _| vec![a.into()]),
    ("printf '%s\\001' '{a}'", |a, _| vec![a.into()]),
    ("printf '%s\\001' \"{a}\"", |a, _| vec![a.into()]),
    ("printf '%s\\001' x{a}y", |a, _| vec![format!("x{a}y")]),
    ("printf '%s\\001' {a}{b}", |a, b| vec![format!("{a}{b}")]),
    ("printf '%s\\001' \"<{a}>\"'{b}'{a}", |a, b| vec![format!("<{a}>{b}{a}")]),
    ("printf '%s\\001' {both}", |a, b| vec![a.into(), b.into()]),
    ("printf '%s\\001' \"{both}\"", |a, b| vec![format!("{a} {b}")]),
    ("printf '%s\\001' -- {a}; printf '%s\\001' {b}", |a, b| vec!["--".into(), a.into(), b.into()]),
    ("x={a}; printf '%s\\001' \"$x\" # it's {b}\nprintf '%s\\001' {b}", |a, b| vec![a.into(), b.into()]),
    ("printf '%s\\001' \"$(printf '%s.' {a})\" {b}", |a, b| vec![format!("{a}."), b.into()]),
    ("printf '%s\\001' \"$(printf '%s' \"{a}\"; printf .)\"", |a, _| vec![format!("{a}.")]),
    ("f() { printf '%s\\001' \"$@\"; }; f {both} \"${X:-d}\" {a}", |a, b| {
        vec![a.into(), b.into(), "d".into(), a.into()]
    }),
    ("if [ {a} = {a} ]; then printf '%s\\001' {b}; fi", |_, b| vec![b.into()]),
    ("case {a} in *) printf '%s\\001' '{b}';; esac", |_, b| vec![b.into()]),
    ("printf '%s\\001' \\' {a} \\\"{b}", |a, b| vec!["'".into(), a.into(), format!("\"{b}")]),
];

const HERE_DOCUMENTS: &[(&str, Expected)] = &[
    ("cat <<EOF\n{a}' \"{b}\\$x\nEOF\nprintf '\\001%s\\001' {a}", |a, b| vec![format!("{a}' \"{b}$x\n"), a.into()]),
    ("cat <<'EOF'\n{a}' \"{b}$x\nEOF\nprintf '\\001%s\\001' {a}", |a, b| vec![format!("{a}' \"{b}$x\n"), a.into()]),
    ("cat <<-E; printf '\\001%s\\001' {b}\n\tx{a}\n\tE\n", |a, b| vec![format!("x{a}\n"), b.into()]),
];

fn check(shell: &str, templates: &[(&str, Expected)], a: &str, b: &str) {
    for (text, expected) in templates {
        let line = template::shell(text, &mut |name, _| {
            Some(match name {
                "a" => Values::one(a.to_owned()),
                "b" => Values::one(b.to_owned()),
                "both" => Values::many([a.to_owned(), b.to_owned()]),
                _ => return None,
            })
        });
        let line = line.unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(run(shell, &line), expected(a, b), "{shell}: {text:?} became {line:?}");
    }
}

#[test]
fn the_worst_file_names_reach_the_program_unchanged() {
    for shell in ["/bin/sh", "bash"] {
        for name in [
            "it's $HOME; rm -rf.csv",
            "`id`$(id)${HOME}",
            "\"quoted\" and 'quoted'",
            "back\\slash\\",
            "\\",
            "'",
            "\"",
            "$",
            "#comment",
            "* ? [a-z] ~",
            "-rf",
            "a\tb",
            "done",
            "}",
            "{a}",
            "!history!!",
            "é 日本",
            "a & b | c > d < e",
            "",
            " ",
        ] {
            check(shell, TEMPLATES, name, "b'\"$`\\ x");
            check(shell, TEMPLATES, "plain", name);
            check(shell, HERE_DOCUMENTS, name, "b'\"$`\\ x");
        }
    }
}

#[test]
fn line_breaks_in_values_are_kept_where_they_can_be() {
    check("/bin/sh", TEMPLATES, "two\nlines'\n", "x\n\n#y");
}

#[test]
fn numbers_can_be_calculated_with_and_redirected_after() {
    let one = |name: &str, _: &str| (name == "n").then(|| Values::one("3"));
    let line =
        template::shell("printf '%s\\001' $(( {n} * 2 )) $(({n}+1)) {n}>/dev/stdout", &mut { one }).expect("safe");
    assert_eq!(run("/bin/sh", &line), ["6", "4", "3"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_value_breaks_out(a in "[ -~é\t'\"\\\\$`{}#;&|<>()*?!~]{0,12}", b in "['\"\\\\$` \\n;()}{]{0,8}") {
        check("/bin/sh", TEMPLATES, &a, &b);
    }

    #[test]
    fn no_value_breaks_out_of_a_random_line(template in line()) {
        // If the value ever becomes code, the shell creates the file.
        let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("quoting");
        std::fs::create_dir_all(&folder).expect("a folder");
        let mark = folder.join("broken-out");
        for attack in ATTACKS {
            // The line itself may fail in any way; only the value must stay a value.
            let Ok(line) = template::shell(&template, &mut |_, _| Some(Values::one(*attack))) else { continue };
            for shell in ["/bin/sh", "bash"] {
                let mut child = Command::new(shell)
                    .args(["-c", &line])
                    .current_dir(&folder)
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()
                    .expect("a shell");
                child.wait().expect("the shell ends");
                prop_assert!(!mark.exists() || std::fs::remove_file(&mark).is_err(), "{shell}: {template:?} with {attack:?} became {line:?}");
            }
        }
    }
}

const ATTACKS: &[&str] = &[
    "x'; touch broken-out; '",
    "x\"; touch broken-out; \"",
    "$(touch broken-out)",
    "; touch broken-out #",
    "; touch broken-out; echo ",
    "`touch broken-out`",
    "\nE\ntouch broken-out\n",
    "a[$(touch broken-out)]",
];

/// Lines that a shell mostly accepts, with values in every kind of place.
fn line() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        6 => Just("{v}".to_owned()),
        1 => Just("\\".to_owned()),
        1 => Just("\\{v}".to_owned()),
        1 => Just("\\\n".to_owned()),
        1 => Just("a".to_owned()),
        1 => Just(" ".to_owned()),
        1 => Just("it's".to_owned()),
        1 => Just("\"".to_owned()),
        1 => Just("#".to_owned()),
        1 => Just("$X".to_owned()),
        1 => Just("$'it\\'s'".to_owned()),
    ];
    let nested = leaf.prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}{b}")),
            inner.clone().prop_map(|a| format!("'{a}'")),
            inner.clone().prop_map(|a| format!("\"{a}\"")),
            inner.clone().prop_map(|a| format!("$(echo {a})")),
            inner.clone().prop_map(|a| format!("$(case x in x) echo {a};; esac)")),
            inner.clone().prop_map(|a| format!("`echo {a}`")),
            inner.clone().prop_map(|a| format!("${{X:-{a}}}")),
            // Only the value itself: what a command inside `$((…))` prints is calculated with, whoever wrote it.
            inner.clone().prop_map(|a| format!("$(( {{v}} + 1 )){a}")),
            inner.clone().prop_map(|a| format!("$'{a}'")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}; echo {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} # {b}\necho ")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}\ncat <<E\n{b}\nE\necho ")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}\ncat <<'E'\n{b}\nE\necho ")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("{a}; case {b} in *) echo {a};; esac; echo ")),
        ]
    });
    (nested.clone(), nested).prop_map(|(a, b)| format!("echo {a}\necho {b} {{v}}\n"))
}
