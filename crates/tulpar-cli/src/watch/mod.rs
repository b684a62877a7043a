//! `tulpar watch`: a run on the whole terminal, live or after it ended.
//!
//! It reads what others wrote: leaving it, or its death, changes nothing of the run. Keys are in [`app`], what is known
//! in [`model`] and [`samples`], tables in [`rows`], the screen in [`draw`] and [`task`].

mod app;
mod draw;
mod model;
mod rows;
mod samples;
mod task;

use crate::failure::Exit;
use crate::print;
use app::{App, Next};
use draw::Paint;
use model::Model;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::{DefaultTerminal, Terminal};
use signal_hook::consts::{SIGHUP, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tulpar::Failure;
use tulpar::replay::now;
use tulpar::replay::{self, Standing};

/// How often the run is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A whole terminal, for reading and for writing.
pub(crate) fn possible() -> Result<(), Failure> {
    match std::io::stdout().is_terminal() && std::io::stdin().is_terminal() {
        true => Ok(()),
        false => Err(Failure::usage_with(
            "this is no terminal to watch a run on",
            "`tulpar watch --once` prints one screen, `tulpar status` how the run stands",
        )),
    }
}

/// Shows a run until the user leaves; gives how it stood then.
pub(crate) fn watch(folder: Option<&Path>, run: Option<&str>) -> Result<Standing, Failure> {
    possible()?;
    let project = replay::project(folder)?;
    let run = project.run(run)?;
    let mut app = App::new(Model::open(project, run, now())?);
    restored_when_told_to_end()?;
    let mut terminal = ratatui::try_init().map_err(Failure::Launch)?;
    let shown = show(&mut terminal, &mut app);
    ratatui::restore();
    shown?;
    let standing = app.model.run.standing();
    let name = &app.model.run.folder.name;
    match standing {
        Standing::Running => print::note(&format!(
            "{name} goes on. `tulpar watch {name}` opens this again, `tulpar cancel --run {name}` ends it."
        )),
        _ => print::note(&format!("{name}: {}", standing.word())),
    }
    Ok(standing)
}

/// Somebody who is told to end leaves a terminal that can be used. In a thread of its own: reading keys never comes back
/// from a terminal that is gone.
fn restored_when_told_to_end() -> Result<(), Failure> {
    let mut signals = Signals::new([SIGTERM, SIGHUP]).map_err(Failure::Launch)?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            ratatui::restore();
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
    Ok(())
}

fn show(terminal: &mut DefaultTerminal, app: &mut App) -> Result<(), Failure> {
    let paint = Paint(print::colour_on_stdout());
    let mut looked = Instant::now();
    loop {
        terminal.draw(|frame| draw::draw(frame, app, &paint)).map_err(Failure::Launch)?;
        let wait = LOOK_EVERY.saturating_sub(looked.elapsed());
        match event::poll(wait) {
            Ok(true) => {
                if let Event::Key(key) = event::read().map_err(Failure::Launch)?
                    && key.kind != KeyEventKind::Release
                    && app.key(key) == Next::Quit
                {
                    return Ok(());
                }
            }
            Ok(false) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::Launch(error)),
        }
        if looked.elapsed() >= LOOK_EVERY {
            looked = Instant::now();
            app.model.advance(now())?;
            app.refresh();
        }
    }
}

/// One screen as text.
pub(crate) fn once(folder: Option<&Path>, run: Option<&str>) -> Result<ExitCode, Failure> {
    let (width, height) = ratatui::crossterm::terminal::size().unwrap_or((100, 30));
    let project = replay::project(folder)?;
    let run = project.run(run)?;
    let mut app = App::new(Model::open(project, run, now())?);
    print::line(&screen(&mut app, width, height));
    Ok(Exit::Done.into())
}

fn screen(app: &mut App, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("memory is always there");
    terminal.draw(|frame| draw::draw(frame, app, &Paint(false))).expect("memory is always there");
    let buffer = terminal.backend().buffer();
    let rows = buffer.content().chunks(usize::from(width));
    let lines: Vec<String> =
        rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned()).collect();
    lines.join("\n").trim_end().to_owned()
}

/// What `run --watch` ends with.
pub(crate) fn exit(standing: Standing) -> Exit {
    match standing {
        Standing::Failed => Exit::WorkflowFailed,
        Standing::Cancelled | Standing::Interrupted | Standing::Stopped => Exit::Cancelled,
        Standing::Done | Standing::Running | Standing::Starting => Exit::Done,
    }
}
