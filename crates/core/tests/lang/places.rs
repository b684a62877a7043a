//! How a value is written at each kind of place in a shell line, and where it is refused.

use tulpar_core::workflow::UnsafePlace;
use tulpar_core::workflow::template::{self, TemplateError, Values};

fn lookup<'a>(name: &str, _: &str) -> Option<Values<'a>> {
    Some(match name {
        "n" => Values::one("3"),
        "odd" => Values::one("it's $HOME"),
        "files" => Values::many(["a.csv", "b c.csv"]),
        "none" => Values::many(Vec::<&str>::new()),
        "empty" => Values::one(""),
        "eof" => Values::one("EOF"),
        "if" => Values::one("if"),
        _ => return None,
    })
}

#[test]
fn a_value_is_quoted_for_the_place_where_it_lands() {
    for (template, line) in [
        ("cp {odd} x", r"cp 'it'\''s $HOME' x"),
        ("cp '{odd}' x", r"cp 'it'\''s $HOME' x"),
        (r#"cp "{odd}" x"#, r#"cp "it's \$HOME" x"#),
        ("cat {files} {none} > out-{n}", "cat a.csv 'b c.csv'  > out-3"),
        ("echo \"{files}\"", "echo \"a.csv b c.csv\""),
        ("echo {n}>out", "echo '3'>out"),
        ("echo x{n}>out", "echo x3>out"),
        ("{if}", "'if'"),
        ("echo {empty}", "echo ''"),
        ("x=$(( {n} + 1 ))", "x=$(( 3 + 1 ))"),
        (r#"x="$(cat {odd})""#, r#"x="$(cat 'it'\''s $HOME')""#),
        (r#"x="$( (cd "{odd}"; ls) | cat)" {odd}"#, r#"x="$( (cd "it's \$HOME"; ls) | cat)" 'it'\''s $HOME'"#),
        ("# don't {odd}\necho {odd}", "# don't {odd}\necho 'it'\\''s $HOME'"),
        ("echo \\\n# it's\necho {odd}", "echo \\\n# it's\necho 'it'\\''s $HOME'"),
        ("echo a#'b' {odd}", r"echo a#'b' 'it'\''s $HOME'"),
        ("cat <<EOF\n'{odd}'\nEOF\necho {odd}", "cat <<EOF\n'it's \\$HOME'\nEOF\necho 'it'\\''s $HOME'"),
        ("cat <<'EOF'\n{odd}\nEOF\necho {odd}", "cat <<'EOF'\nit's $HOME\nEOF\necho 'it'\\''s $HOME'"),
        ("cat <<-E <<F\n\t'\n\tE\n'\nF\necho {odd}", "cat <<-E <<F\n\t'\n\tE\n'\nF\necho 'it'\\''s $HOME'"),
        ("cat <<< '{odd}'; echo {odd}", "cat <<< 'it'\\''s $HOME'; echo 'it'\\''s $HOME'"),
        ("for ((i=0;i<{n};i++)); do echo {odd}; done", "for ((i=0;i<3;i++)); do echo 'it'\\''s $HOME'; done"),
        ("case {n} in 3) echo '{odd}';; esac", "case 3 in 3) echo 'it'\\''s $HOME';; esac"),
        (r#"echo "${X:-a}" $$ {odd}"#, r#"echo "${X:-a}" $$ 'it'\''s $HOME'"#),
        ("sh -c 'cat \"$1\"' sh {odd}", r#"sh -c 'cat "$1"' sh 'it'\''s $HOME'"#),
        ("bash -c \"wc {n}\"; echo {odd}", "bash -c \"wc 3\"; echo 'it'\\''s $HOME'"),
        ("sh -c {odd}", r"sh -c 'it'\''s $HOME'"),
        ("bash {odd} -c \"{odd}\"", r#"bash 'it'\''s $HOME' -c "it's \$HOME""#),
        ("sh -c \"$(cat {odd})\"", r#"sh -c "$(cat 'it'\''s $HOME')""#),
        ("echo {odd} | sh -s {odd}", r"echo 'it'\''s $HOME' | sh -s 'it'\''s $HOME'"),
        (r"echo \' {odd} \\{odd}", r"echo \' 'it'\''s $HOME' \\'it'\''s $HOME'"),
    ] {
        assert_eq!(template::shell(template, &mut lookup).as_deref(), Ok(line), "{template}");
    }
}

#[test]
fn where_no_quoting_is_safe_the_value_is_refused() {
    for (template, expected) in [
        ("echo `cat {n}`", UnsafePlace::Backticks),
        ("echo ${X:-{n}}", UnsafePlace::Parameter),
        (r"echo \{n}", UnsafePlace::Backslash),
        (r#"echo "\{n}""#, UnsafePlace::Backslash),
        ("echo $(( {odd} ))", UnsafePlace::Arithmetic),
        ("x=$(case $y in a) echo 1;; esac) {n}", UnsafePlace::Case),
        (r"echo $'it\'s' {n}", UnsafePlace::AnsiQuotes),
        (r#"echo "${X:-'}" {n}"#, UnsafePlace::ParameterQuotes),
        ("cat <<EOF\n$(echo ')\nEOF\n{n}", UnsafePlace::HereDocumentCommand),
        ("cat <<E\nx\\\nE\n{n}", UnsafePlace::HereDocumentContinued),
        ("cat <<{n}\nx\n", UnsafePlace::HereDocumentWord),
        ("cat <<EOF\n{eof}\nrm x\nEOF", UnsafePlace::HereDocumentEnd),
        ("(( x = \"1\" )); echo {n}", UnsafePlace::ArithmeticQuotes),
        ("sh -c \"printf %s {odd}\"", UnsafePlace::SecondShell),
        ("sh -c 'printf %s \"{odd}\"'", UnsafePlace::SecondShell),
        ("sh -c 'printf %s '{odd}", UnsafePlace::SecondShell),
        ("cd x && env -i /bin/bash -o pipefail -ec \"ls | wc {odd}\"", UnsafePlace::SecondShell),
        ("eval \"ls {odd}\"", UnsafePlace::SecondShell),
        ("eval ls {odd}", UnsafePlace::SecondShell),
        ("ssh node ls {odd}", UnsafePlace::SecondShell),
        ("x=$(timeout 5 sh -c \"ls {odd}\")", UnsafePlace::SecondShell),
        ("bash -s <<EOF\nls '{odd}'\nEOF", UnsafePlace::SecondShell),
    ] {
        match template::shell(template, &mut lookup) {
            Err(TemplateError::Unsafe { place, .. }) => assert_eq!(place, expected, "{template}"),
            other => panic!("{template}: {other:?}"),
        }
    }
}
