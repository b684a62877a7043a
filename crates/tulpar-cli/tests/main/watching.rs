//! The terminal view, on a real terminal: tmux holds it, keys are pressed, the screen is read.

use super::harness::{Scene, skipped, wait_for};
use std::io::Write;
use std::process::Command;

/// Two that work, one that fails, and two that wait: for a failure, and for a file.
const MIXED: &str = "workflow: mixed
tasks:
  fine:
    for: {i: [1, 2]}
    out: {o: 'o{i}.txt'}
    run: 'echo fine > {o}'
  broken:
    out: {b: b.txt}
    run: 'echo the pixel is missing >&2; exit 3'
  after: {in: [b], out: {c: c.txt}, run: 'cp {b} {c}'}
  slow: {out: {s: s.txt}, run: 'echo working on it; while [ ! -f $HOME/go ]; do sleep 0.05; done; echo > {s}'}
  last: {in: [slow.s], out: {l: l.txt}, run: 'cp {s} {l}'}
";

/// A terminal with a program on it; both end with this.
struct Screen {
    socket: String,
}

impl Screen {
    fn open(scene: &Scene, arguments: &[&str]) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            skipped("tmux is not installed: the terminal view was not looked at");
            return None;
        }
        let socket = scene.home("tmux").display().to_string();
        let command = scene.command(arguments);
        let mut tmux = Command::new("tmux");
        tmux.args(["-S", &socket, "-f", "/dev/null", "new-session", "-d", "-x", "110", "-y", "32"]);
        // tmux gives a new session the environment of its server, which is started here.
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => tmux.env(name, value),
                None => tmux.env_remove(name),
            };
        }
        // What is printed last is read after the program has ended.
        const STAY: &str = "\"$0\" \"$@\"; echo ended with $?; read forever";
        tmux.arg("-c").arg(scene.path(".")).args(["--", "sh", "-c", STAY]);
        tmux.arg(command.get_program()).args(command.get_args());
        assert!(tmux.status().unwrap().success());
        Some(Self { socket })
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let said = Command::new("tmux").args(["-S", &self.socket]).args(arguments).output().unwrap();
        String::from_utf8_lossy(&said.stdout).into_owned()
    }

    fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    fn text(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    fn shows(&self, what: &str) {
        wait_for(&format!("the screen shows `{what}`"), || self.text().contains(what));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = writeln!(std::io::stderr(), "{}", self.text());
        }
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn a_run_is_watched_while_it_goes_on_task_by_task() {
    let scene = Scene::new(MIXED);
    let Some(screen) = Screen::open(&scene, &["run", "--watch"]) else { return };
    screen.shows("mixed-1  running");
    screen.shows("1 failed");
    screen.press("4");
    screen.shows("exit code 3: the pixel is missing");
    screen.press("Enter");
    screen.shows("To blame is the task itself");
    screen.shows("stderr of broken");
    screen.press("Escape");
    screen.shows("Enter open");
    screen.press("2");
    screen.shows("stdout of slow");
    screen.shows("working on it");
    screen.press("3");
    screen.shows("waits for slow (running)");
    screen.shows("why last has not run");
    screen.press("1");
    screen.press("/");
    screen.tmux(&["send-keys", "-l", "fine"]);
    screen.press("Enter");
    wait_for("only one set is listed", || !screen.text().contains("slow"));
    screen.press("Enter");
    screen.shows("› fine");
    screen.shows("fine[i=2]");
    screen.press("Escape");
    wait_for("the set is closed", || !screen.text().contains("› fine"));
    screen.press("?");
    screen.shows("leave; the run goes on");
    screen.press("Escape");
    std::fs::write(scene.home("go"), "").unwrap();
    screen.shows("mixed-1  failed");
    screen.press("q");
    screen.shows("mixed-1: failed");
    screen.shows("ended with 1");
}

#[test]
fn leaving_the_view_leaves_the_run_alone() {
    let scene = Scene::new(MIXED);
    let Some(screen) = Screen::open(&scene, &["run", "--watch"]) else { return };
    screen.shows("mixed-1  running");
    screen.press("C-c");
    screen.shows("mixed-1 goes on.");
    assert_eq!(scene.tulpar("status --json").json()["standing"], "running");
    std::fs::write(scene.home("go"), "").unwrap();
    wait_for("it ends", || scene.tulpar("status --json").json()["standing"] == "failed");
}

#[test]
fn one_screen_is_printed_where_there_is_no_terminal() {
    let scene = Scene::new(
        "workflow: two\ntasks:\n  a: {for: {i: 1..4}, out: {o: 'o{i}.txt'}, run: 'echo > {o}'}\n  b: {in: [a.o], out: {p: p.txt}, run: 'cat {o} > {p}'}\n",
    );
    scene.tulpar("run").done();
    let said = scene.tulpar("watch --once").done();
    for part in ["two-1  done", "█ 5 done", "1 Task sets", "task set", "a        ", "b        "] {
        assert!(said.out.contains(part), "{part}: {said}");
    }
    let refused = scene.tulpar("watch").expect(2);
    assert!(refused.err.contains("`tulpar watch --once` prints one screen"), "{refused}");
}
