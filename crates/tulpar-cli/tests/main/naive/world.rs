//! A small world: a workflow, its scripts and its files, as data that edits change and as the texts that are written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Everything that can change a result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct World {
    /// As the workflow says them.
    pub(crate) params: BTreeMap<&'static str, i64>,
    /// As the command line says them.
    pub(crate) given: BTreeMap<&'static str, i64>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) scripts: Vec<Script>,
    /// The version of each single data file.
    pub(crate) inputs: Vec<u32>,
    /// The files of the pattern `d/*.txt` by their stems, with their versions.
    pub(crate) list: BTreeMap<&'static str, u32>,
    /// The version of a file of more than a megabyte, where there is one.
    pub(crate) large: Option<u32>,
    /// The versions of the files of the pattern `m/*.txt`: none, or more than a task gets private copies of.
    pub(crate) many: BTreeMap<u32, u32>,
    /// A split that declares other files than it makes.
    pub(crate) misdeclared: Option<String>,
    /// One task more, which writes to this shared input in place.
    pub(crate) spoiled: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Script {
    pub(crate) trial: bool,
    pub(crate) version: u32,
    /// Changes the text and no result.
    pub(crate) comment: u32,
    pub(crate) broken: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Task {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) script: usize,
    pub(crate) inputs: Vec<Source>,
    /// The parameter that the command names.
    pub(crate) word: Option<&'static str>,
    /// The variable `E0`.
    pub(crate) variable: Option<i64>,
    /// Runs only where `p1` is as large as this.
    pub(crate) when: Option<i64>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Plain,
    /// Leaves a file of more than a megabyte.
    Large,
    /// One task for each file of the list.
    Files,
    /// One task for each of `1..n`.
    Values,
    /// Leaves `p1` files.
    Split,
    /// One task for each file of a split.
    Pieces(String),
    Search(Search),
    /// Takes what a search found.
    Keep(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Search {
    pub(crate) trials: u32,
    pub(crate) parallel: u32,
    pub(crate) seed: u32,
    pub(crate) sampler: &'static str,
    pub(crate) low: i64,
    pub(crate) high: i64,
    pub(crate) float: bool,
    /// The space has a parameter that is active only where another has some value.
    pub(crate) conditional: bool,
    /// The command names `x`; otherwise the program reads it by itself.
    pub(crate) named: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Source {
    Data(usize),
    List,
    Large,
    Many,
    Task(String),
}

/// The part of every script that waits where the test has put a FIFO.
const GATE: &str = r#"if [ -p "$gate" ]; then { read -r go < "$gate"; } 2> /dev/null || :; fi"#;
/// Of a large file, the lines before the padding and the last one.
const LINES: &str = r#"for file in "$@"; do while IFS= read -r line; do case $line in
xxx) echo "  $(tail -n 1 "$file")"; break ;;
*) echo "  $line" ;;
esac; done < "$file"; done"#;
/// The first line of a large text, and how much padding it has.
pub(crate) const LARGE: &str = "large\n";
const PADDING: usize = 1_500_000;

/// The text of a file. The naive engine leaves out the padding of large ones: they have what they say twice, around it.
pub(crate) fn written(text: &str) -> String {
    match text.starts_with(LARGE) {
        true => format!("{text}xxx\n{}\n{text}", "x".repeat(PADDING)),
        false => text.to_owned(),
    }
}

/// The text of the naive engine that was written so.
pub(crate) fn read_back(text: String) -> String {
    let short = text.split_inclusive("\nxxx\n").next().map_or(0, |first| first.len().saturating_sub(4));
    match text.get(..short) {
        Some(first) if text.starts_with(LARGE) && written(first) == text => first.to_owned(),
        Some(first) if text.len() > PADDING => format!("damaged: {first}"),
        _ => text,
    }
}

impl Script {
    /// The first line says all that is in it: the naive engine reads it back.
    pub(crate) fn text(&self, index: usize) -> String {
        let Self { trial, version, comment, broken } = self;
        let mut text = format!("# {trial} {version} {broken} {comment}\ngate=\"$HOME/gate-s{index}\"\n{GATE}\n");
        if *broken {
            text.push_str("exit 3\n");
        } else if *trial {
            write!(
                text,
                r#"out=$1 label=$2 x=$3
shift 3
if [ "$x" = - ]; then x=${{TULPAR_PARAMETERS#*'"x":'}}; x=${{x%%[,\}}]*}}; fi
{{ echo "$label s{index} v{version} ${{E0-unset}}"; echo "$TULPAR_PARAMETERS"; {LINES}; }} > "$out"
case $x in *[.e]*) loss=$x ;; *) loss=$(( (x - 3) * (x - 3) + {version} )) ;; esac
echo "{{\"loss\": $loss}}"
"#
            )
            .expect("text");
        } else {
            write!(
                text,
                r#"said() {{ echo "$1 $2 s{index} v{version} ${{E0-unset}}"; shift 2; {LINES}; }}
case $1 in
L*) text=$(echo large; said "$@"); echo "$text"; echo xxx; head -c {PADDING} /dev/zero | tr '\0' x; echo; echo "$text" ;;
*) said "$@" ;;
esac
"#
            )
            .expect("text");
        }
        text
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.lines().next()?.strip_prefix("# ")?.split(' ').collect();
        let [trial, version, broken, comment] = words[..] else { return None };
        Some(Self {
            trial: trial == "true",
            version: version.parse().ok()?,
            broken: broken == "true",
            comment: comment.parse().ok()?,
        })
    }
}

impl Search {
    fn text(&self) -> String {
        let Self { trials, parallel, seed, sampler, low, high, .. } = self;
        let domain = if self.float { "float" } else { "int" };
        let more = if self.conditional { ", mode: [a, b], y: 'int(0, 3) when mode=a'" } else { "" };
        format!(
            "{{trials: {trials}, parallel: {parallel}, seed: {seed}, sampler: {sampler}, minimize: loss, space: {{x: \
             '{domain}({low}, {high})'{more}}}}}"
        )
    }
}

impl Task {
    /// The variable that it runs over, with its values.
    fn axis(&self) -> Option<(String, String)> {
        match &self.kind {
            Kind::Files => Some(("f".into(), "list".into())),
            Kind::Values => Some(("i".into(), "1..n".into())),
            Kind::Pieces(split) => Some((format!("q{split}"), format!("{split}o"))),
            _ => None,
        }
    }

    /// The part of file names that tells its tasks apart.
    fn element(&self) -> String {
        match &self.kind {
            Kind::Files => "-{f.stem}".into(),
            Kind::Values => "-{i}".into(),
            Kind::Pieces(split) => format!("-{{q{split}.stem}}"),
            Kind::Search(_) => "-{trial}".into(),
            _ => String::new(),
        }
    }

    /// Its command, with the names of the language in braces.
    pub(crate) fn command(&self) -> String {
        let (name, script) = (&self.name, self.script);
        let large = if self.kind == Kind::Large { "L" } else { "" };
        let label = format!("{large}{name}{}", self.element());
        let word = self.word.map_or("-".into(), |word| format!("{{{word}}}"));
        let mut files: Vec<String> = self
            .inputs
            .iter()
            .map(|source| match source {
                Source::Data(index) => format!(" {{i{index}}}"),
                Source::List => " {list}".into(),
                Source::Large => " {large}".into(),
                Source::Many => " {many}".into(),
                Source::Task(task) => format!(" {{{task}o}}"),
            })
            .collect();
        match &self.kind {
            Kind::Files => files.push(" {f}".into()),
            Kind::Pieces(split) => files.push(format!(" {{q{split}}}")),
            Kind::Keep(search) => files.push(format!(" {{{search}o}}")),
            _ => {}
        }
        let files = files.concat();
        match &self.kind {
            Kind::Search(search) => {
                let x = if search.named { "{x}" } else { "-" };
                format!("sh {{s{script}}} {{{name}o}} {label} {x}{files}")
            }
            Kind::Split => format!(
                "mkdir -p {name}; for k in $(seq {{p1}}); do sh {{s{script}}} {name}-$k {word}{files} > {name}/$k.txt; done"
            ),
            Kind::Keep(_) => format!(
                "sh {{s{script}}} {label} {word}{files} > {{{name}o}}; cp {{best}} {{{name}b}}; cp {{trials}} {{{name}c}}"
            ),
            _ => format!("sh {{s{script}}} {label} {word}{files} > {{{name}o}}"),
        }
    }

    fn text(&self) -> String {
        let name = &self.name;
        let mut text = format!("  {name}:\n");
        if let Some((variable, values)) = self.axis() {
            writeln!(text, "    for: {{{variable}: {values}}}").expect("text");
        }
        let mut inputs = vec![format!("s{}", self.script)];
        inputs.extend(self.inputs.iter().map(|source| match source {
            Source::Data(index) => format!("i{index}"),
            Source::List => "list".into(),
            Source::Large => "large".into(),
            Source::Many => "many".into(),
            Source::Task(task) => format!("{task}o"),
        }));
        let mut outputs = format!("{name}o: '{name}{}.txt'", self.element());
        match &self.kind {
            Kind::Search(search) => writeln!(text, "    search: {}", search.text()).expect("text"),
            Kind::Split => outputs = format!("{name}o: '{name}/*.txt'"),
            Kind::Keep(search) => {
                inputs.extend([
                    format!("{search}.best"),
                    format!("{search}.trials"),
                    format!("{search}.best.{search}o"),
                ]);
                outputs.push_str(&format!(", {name}b: {name}-best.json, {name}c: {name}-trials.csv"));
            }
            _ => {}
        }
        writeln!(text, "    in: [{}]", inputs.join(", ")).expect("text");
        if let Some(value) = self.variable {
            writeln!(text, "    env: {{E0: {value}}}").expect("text");
        }
        if let Some(least) = self.when {
            writeln!(text, "    when: p1 >= {least}").expect("text");
        }
        writeln!(text, "    out: {{{outputs}}}\n    run: '{}'", self.command()).expect("text");
        text
    }

    /// The tasks whose results it takes.
    pub(crate) fn needs(&self) -> BTreeSet<&str> {
        let further = match &self.kind {
            Kind::Pieces(task) | Kind::Keep(task) => Some(task.as_str()),
            _ => None,
        };
        let tasks = self.inputs.iter().filter_map(|source| match source {
            Source::Task(task) => Some(task.as_str()),
            _ => None,
        });
        tasks.chain(further).collect()
    }
}

impl World {
    pub(crate) fn task(&self, name: &str) -> &Task {
        self.tasks.iter().find(|task| task.name == name).unwrap_or_else(|| panic!("no task {name}"))
    }

    pub(crate) fn param(&self, name: &str) -> i64 {
        self.given.get(name).copied().unwrap_or_else(|| self.params[name])
    }

    /// Of a task and all that it needs.
    pub(crate) fn above<'a>(&'a self, name: &'a str) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::from([name]);
        for task in self.tasks.iter().rev() {
            if found.contains(task.name.as_str()) {
                found.extend(task.needs());
            }
        }
        found
    }

    pub(crate) fn is_skipped(&self, name: &str) -> bool {
        self.above(name).iter().any(|name| self.task(name).when.is_some_and(|least| self.param("p1") < least))
    }

    pub(crate) fn workflow(&self) -> String {
        let params: Vec<String> = self.params.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let mut text = format!("workflow: case\nparams: {{{}}}\ndata:\n  list: d/*.txt\n", params.join(", "));
        for index in 0..self.scripts.len() {
            writeln!(text, "  s{index}: s{index}.sh").expect("text");
        }
        for index in 0..self.inputs.len() {
            writeln!(text, "  i{index}: i{index}.txt").expect("text");
        }
        if self.large.is_some() {
            text.push_str("  large: large.txt\n");
        }
        if !self.many.is_empty() {
            text.push_str("  many: m/*.txt\n");
        }
        text.push_str("tasks:\n");
        self.tasks.iter().for_each(|task| text.push_str(&task.text()));
        if let Some(input) = self.spoiled {
            writeln!(
                text,
                "  spoil:\n    in: [{input}]\n    priority: 100\n    out: {{spoilo: spoil.txt}}\n    run: 'for file in {{{input}}}; do \
                 chmod u+w $file; echo spoiled >> $file; done; cat {{{input}}} > {{spoilo}}; touch \"$HOME/spoiled\"'"
            )
            .expect("text");
        }
        if let Some(name) = &self.misdeclared {
            text = text.replace(&format!("'{name}/*.txt'"), &format!("'{name}/*.dat'"));
        }
        text
    }

    /// Every file that a person wrote, by path.
    pub(crate) fn files(&self) -> BTreeMap<String, String> {
        let scripts = self.scripts.iter().enumerate().map(|(at, script)| (format!("s{at}.sh"), script.text(at)));
        let inputs =
            self.inputs.iter().enumerate().map(|(at, version)| (format!("i{at}.txt"), format!("i{at} {version}\n")));
        let list = self.list.iter().map(|(stem, version)| (format!("d/{stem}.txt"), format!("{stem} {version}\n")));
        let large = self.large.map(|version| ("large.txt".to_owned(), format!("{LARGE}{version}\n")));
        let many = self.many.iter().map(|(at, version)| (format!("m/{at}.txt"), format!("{at} {version}\n")));
        scripts
            .chain(inputs)
            .chain(list)
            .chain(large)
            .chain(many)
            .chain([("workflow.yaml".into(), self.workflow())])
            .collect()
    }
}
