//! The screen of the terminal view. It decides nothing: what is chosen is in [`App`], what is known in its model.

use super::app::{App, Over};
use super::rows::{TABS, Tab};
use super::task;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Table, TableState, Wrap};
use std::time::Duration;
use tulpar::replay::Standing;
use tulpar::view::Moment;
use tulpar::view::duration;
use tulpar_core::engine::{STATES, State};

/// Colours that people who see few of them tell apart; each goes with a word or a sign.
pub(super) struct Paint(pub(super) bool);

impl Paint {
    pub(super) fn state(&self, state: State) -> Style {
        let colour = match state {
            State::Done => Color::Blue,
            State::Failed => Color::Red,
            State::Running | State::Submitted => Color::Cyan,
            State::Held | State::Backoff | State::Paused => Color::Yellow,
            State::Skipped | State::Cancelled => Color::Magenta,
            State::Waiting | State::Looking | State::Ready => return self.dim(),
        };
        self.colour(colour)
    }

    fn colour(&self, colour: Color) -> Style {
        if self.0 { Style::new().fg(colour) } else { Style::new() }
    }

    pub(super) fn dim(&self) -> Style {
        if self.0 { Style::new().add_modifier(Modifier::DIM) } else { Style::new() }
    }

    pub(super) fn bold(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn series(&self, number: usize) -> Style {
        const COLOURS: [Color; 6] =
            [Color::Cyan, Color::Yellow, Color::Blue, Color::Magenta, Color::Green, Color::LightRed];
        self.colour(COLOURS[number % COLOURS.len()])
    }
}

/// The sign of a state in the bar, so that it is readable without colour.
fn sign(state: State) -> &'static str {
    match state {
        State::Done => "█",
        State::Failed => "×",
        State::Running | State::Submitted => "▒",
        State::Held | State::Backoff | State::Paused => "!",
        State::Skipped | State::Cancelled => "-",
        State::Waiting | State::Looking | State::Ready => "·",
    }
}

pub(super) fn draw(frame: &mut Frame, app: &mut App, paint: &Paint) {
    let [head, tabs, body, below, foot] = Layout::vertical([
        Constraint::Length(3),
        Constraint::Length(1),
        Constraint::Min(5),
        Constraint::Length(if frame.area().height >= 24 { 8 } else { 0 }),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    draw_head(frame, head, app, paint);
    draw_tabs(frame, tabs, app, paint);
    match (app.over, app.tab()) {
        (Over::Task(job), _) => {
            let whole = Rect { height: body.height + below.height, ..body };
            task::draw(frame, whole, app, job, paint);
        }
        (_, Tab::Timeline) => {
            draw_timeline(frame, body, app, paint);
            draw_words(frame, below, app, paint);
        }
        _ => {
            draw_table(frame, body, app, paint);
            if below.height > 2 {
                match app.chosen_job() {
                    Some(job) if app.model.engine().attempts(job) == 0 => task::draw_why(frame, below, app, job, paint),
                    Some(job) => task::draw_log(frame, below, app, job, paint),
                    None => draw_words(frame, below, app, paint),
                }
            }
        }
    }
    draw_foot(frame, foot, app, paint);
    if app.over == Over::Help {
        draw_help(frame, paint);
    }
}

fn draw_head(frame: &mut Frame, area: Rect, app: &mut App, paint: &Paint) {
    let left = app.model.left();
    let model = &app.model;
    let standing = model.run.standing();
    let style = match standing {
        Standing::Failed => paint.state(State::Failed),
        Standing::Running => paint.state(State::Running),
        Standing::Done => paint.state(State::Done),
        _ => paint.state(State::Held),
    };
    let mut parts = vec![
        Span::styled(model.run.folder.name.clone(), paint.bold()),
        Span::raw("  "),
        Span::styled(standing.word(), style.add_modifier(Modifier::BOLD)),
        Span::raw(format!("  {}", duration(model.took()))),
    ];
    if let Some(left) = left.filter(|left| *left > Duration::ZERO) {
        parts.push(Span::raw(format!(", about {} left", duration(left))));
    }
    parts.push(Span::styled(format!("  on {}", model.engine().plan().site.name), paint.dim()));
    let counts = model.engine().counts();
    let mut words: Vec<Span> = Vec::new();
    for state in STATES.iter().filter(|state| counts.of(**state) > 0) {
        if !words.is_empty() {
            words.push(Span::raw("  "));
        }
        let word = tulpar::view::state_word(*state, model.driven());
        words.push(Span::styled(format!("{} {} {word}", sign(*state), counts.of(*state)), paint.state(*state)));
    }
    if let Some(line) = tulpar_report::search_lines(model.engine().graph()).first() {
        words.push(Span::styled(format!("  {line}"), paint.bold()));
    }
    let lines = vec![Line::from(parts), bar(app, area.width, paint), Line::from(words)];
    frame.render_widget(Paragraph::new(lines), area);
}

/// The tasks by state, as parts of a line.
fn bar(app: &App, width: u16, paint: &Paint) -> Line<'static> {
    let counts = app.model.engine().counts();
    let total = f64::from(counts.total().max(1));
    let order = [
        State::Done,
        State::Failed,
        State::Skipped,
        State::Cancelled,
        State::Running,
        State::Submitted,
        State::Held,
        State::Backoff,
        State::Paused,
    ];
    let mut spans = Vec::new();
    let (mut sum, mut drawn) = (0.0, 0usize);
    for state in order {
        let count = counts.of(state);
        sum += f64::from(count);
        let until = ((sum / total) * f64::from(width)).round() as usize;
        // What is there is seen, however little it is.
        let cells =
            if count > 0 { until.max(drawn + 1).min(usize::from(width)) - drawn.min(usize::from(width)) } else { 0 };
        spans.push(Span::styled(sign(state).repeat(cells), paint.state(state)));
        drawn += cells;
    }
    let rest = usize::from(width).saturating_sub(drawn);
    spans.push(Span::styled(sign(State::Waiting).repeat(rest), paint.dim()));
    Line::from(spans)
}

fn draw_tabs(frame: &mut Frame, area: Rect, app: &App, paint: &Paint) {
    let counts = app.model.engine().counts();
    let live = counts.of(State::Running) + counts.of(State::Submitted);
    let mut spans = Vec::new();
    for (place, tab) in TABS.iter().enumerate() {
        let number = match tab {
            Tab::Running if app.model.driven() => Some(live),
            Tab::Waiting => Some(counts.total() - counts.settled() - live),
            Tab::Failed => Some(counts.of(State::Failed)),
            _ => None,
        };
        let number = number.filter(|number| *number > 0).map(|number| format!(" {number}")).unwrap_or_default();
        let text = format!(" {} {}{number} ", place + 1, tab.title());
        let chosen = place == app.tab;
        spans
            .push(Span::styled(text, if chosen { paint.bold().add_modifier(Modifier::REVERSED) } else { paint.dim() }));
    }
    if let Some(set) = app.set.filter(|_| app.tab() == Tab::Sets) {
        spans.push(Span::raw(format!("  › {}", app.model.engine().plan().task(set).name)));
    }
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}

fn draw_table(frame: &mut Frame, area: Rect, app: &mut App, paint: &Paint) {
    app.page = usize::from(area.height.saturating_sub(2)).max(1);
    let columns = app.tab().columns(app.set.is_some());
    if app.rows.is_empty() {
        let words = match app.tab() {
            _ if !app.filter.is_empty() => "Nothing matches the filter. Esc takes it away.",
            Tab::Running => "Nothing runs.",
            Tab::Waiting => "Nothing waits.",
            Tab::Failed => "Nothing failed.",
            Tab::Slowest => "Nothing has ended yet.",
            Tab::Sets | Tab::Timeline => "",
        };
        return frame.render_widget(Paragraph::new(format!("\n  {words}")).style(paint.dim()), area);
    }
    // Columns at the end go first where there is no room; the first keeps enough for a name.
    let mut shown = columns.len();
    let fixed = |count: usize| columns[..count].iter().map(|(_, width)| width + 1).sum::<u16>();
    while shown > 1 && fixed(shown) + 16 > area.width {
        shown -= 1;
    }
    // The last column is text of any length and may be narrower than it wants.
    let flexible = columns.last().is_some_and(|(name, _)| *name == "why");
    if flexible && shown < columns.len() {
        shown = columns.len();
    }
    let widths: Vec<Constraint> = columns[..shown]
        .iter()
        .map(|(name, width)| match (*name, *width) {
            ("why", _) => Constraint::Fill(3),
            (_, 0) if flexible => Constraint::Fill(2),
            (_, 0) => Constraint::Fill(1),
            (_, width) => Constraint::Length(width),
        })
        .collect();
    let order = app.orders[app.tab];
    let header = columns[..shown].iter().enumerate().map(|(place, (name, _))| {
        let mark = match order.column {
            Some(column) if column == place => {
                if order.descending {
                    "▾"
                } else {
                    "▴"
                }
            }
            _ => "",
        };
        let number = app.rows.first().and_then(|row| row.cells.get(place)).is_some_and(|cell| cell.is_number());
        let text = Line::raw(format!("{name}{mark}"));
        Cell::from(if number { text.right_aligned() } else { text })
    });
    let rows = app.rows.iter().map(|row| {
        let style = row.state.map(|state| paint.state(state)).unwrap_or_default();
        Row::new(row.cells.iter().take(shown).enumerate().map(|(place, cell)| {
            let style = if place == 0 || columns[place].0 == "state" { style } else { Style::new() };
            let text = Line::raw(cell.text.clone());
            Cell::from(if cell.is_number() { text.right_aligned() } else { text }).style(style)
        }))
    });
    let table = Table::new(rows, widths)
        .header(Row::new(header).style(paint.dim().add_modifier(Modifier::UNDERLINED)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::default().with_selected(Some(app.selected[app.tab]));
    frame.render_stateful_widget(table, area, &mut state);
}

/// What happened last.
fn draw_words(frame: &mut Frame, area: Rect, app: &App, paint: &Paint) {
    if area.height < 2 {
        return;
    }
    let block = Block::new().borders(ratatui::widgets::Borders::TOP).title(" what happened ").border_style(paint.dim());
    let inside = usize::from(area.height.saturating_sub(1));
    let words = &app.model.gathered.words;
    let last = words.iter().skip(words.len().saturating_sub(inside));
    let simulated = app.model.run.folder.is_simulated();
    let lines: Vec<Line> = last
        .map(|(at, words)| {
            let moment = Moment(*at).to_string();
            // The day is the same for most; virtual time begins at 0.
            let time = if simulated {
                duration(Duration::from_micros(at.0))
            } else {
                moment.get(11..19).unwrap_or("").to_owned()
            };
            Line::from(vec![Span::styled(format!("{time}  "), paint.dim()), Span::raw(words.clone())])
        })
        .collect();
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn draw_timeline(frame: &mut Frame, area: Rect, app: &mut App, paint: &Paint) {
    let plan = app.model.engine().plan().clone();
    let cores: f64 = plan.site.nodes.iter().map(|node| f64::from(node.capacity.milli_cpus)).sum::<f64>() / 1000.0;
    let gpus: usize = plan.site.nodes.iter().map(|node| node.capacity.gpus.len()).sum();
    let name_width = 18u16.min(area.width / 3);
    let width = usize::from(area.width.saturating_sub(name_width + 1));
    if width < 10 {
        return;
    }
    let columns = app.model.columns(800);
    let end = columns.edges_us.last().copied().unwrap_or(0);
    if end == 0 {
        return frame.render_widget(Paragraph::new("\n  Nothing has started yet.").style(paint.dim()), area);
    }
    let mut lines = vec![Line::styled(
        format!("cores held, of {cores}, by kind of task; each row goes up to its own most"),
        paint.dim(),
    )];
    for (number, series) in columns.series.iter().enumerate() {
        let values = over_width(&columns.edges_us, &series.cpus, width);
        let most = values.iter().copied().fold(0.0, f64::max);
        let name: String = format!("{} ({most:.0})", series.kind);
        lines.push(Line::from(vec![
            Span::raw(format!("{name:<width$.width$} ", width = usize::from(name_width))),
            Span::styled(blocks(&values, most), paint.series(number)),
        ]));
    }
    if gpus > 0 {
        lines.push(Line::styled(format!("GPUs held, of {gpus}"), paint.dim()));
        for (number, series) in columns.series.iter().enumerate() {
            let values = over_width(&columns.edges_us, &series.gpus, width);
            let most = values.iter().copied().fold(0.0, f64::max);
            if most > 0.0 {
                let name = format!("{} ({most:.0})", series.kind);
                lines.push(Line::from(vec![
                    Span::raw(format!("{name:<width$.width$} ", width = usize::from(name_width))),
                    Span::styled(blocks(&values, most), paint.series(number)),
                ]));
            }
        }
    }
    let end = duration(Duration::from_micros(end));
    let half = duration(Duration::from_micros(columns.edges_us.last().copied().unwrap_or(0) / 2));
    let axis = format!("{:<half$}{half_word}", "0 s", half = width / 2, half_word = half);
    let axis = format!("{axis:<rest$}{end}", rest = width.saturating_sub(end.chars().count()));
    lines.push(Line::styled(format!("{:<width$} {axis}", "", width = usize::from(name_width)), paint.dim()));
    frame.render_widget(Paragraph::new(lines), area);
}

/// Means over columns of time as means over as many cells of the screen.
fn over_width(edges: &[u64], values: &[f64], width: usize) -> Vec<f64> {
    let end = edges.last().copied().unwrap_or(0) as f64;
    let mut sums = vec![0.0; width];
    let cell = end / width as f64;
    for (place, value) in values.iter().enumerate() {
        let (from, to) = (edges[place] as f64, edges[place + 1] as f64);
        let first = ((from / cell) as usize).min(width - 1);
        let last = ((to / cell) as usize).min(width - 1);
        for (at, sum) in sums.iter_mut().enumerate().take(last + 1).skip(first) {
            let (left, right) = (at as f64 * cell, (at + 1) as f64 * cell);
            *sum += value * (to.min(right) - from.max(left)).max(0.0) / cell;
        }
    }
    sums
}

/// A line of bars, each up to eight eighths high.
pub(super) fn blocks(values: &[f64], most: f64) -> String {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let height = |value: &f64| {
        let eighths = if most > 0.0 { (value / most * 8.0).ceil() } else { 0.0 };
        BARS[(eighths as usize).min(8)]
    };
    values.iter().map(height).collect()
}

fn draw_foot(frame: &mut Frame, area: Rect, app: &App, paint: &Paint) {
    let text = if app.typing {
        format!("filter: {}▏  (Enter keeps it, Esc takes it away)", app.filter)
    } else {
        let mut parts = match app.over {
            Over::Task(_) => "Esc back · n p next, previous · o e stdout, stderr · ↑ ↓ scroll · ? keys".to_owned(),
            _ => "↑ ↓ choose · Enter open · Tab 1-6 views · / filter · s r sort · ? keys · q quit".to_owned(),
        };
        if !app.filter.is_empty() {
            parts = format!("filter: {} · {parts}", app.filter);
        }
        if app.cut() {
            parts = format!("only the first {} are listed · {parts}", app.rows.len());
        }
        parts
    };
    frame.render_widget(Paragraph::new(text).style(paint.dim()), area);
}

fn draw_help(frame: &mut Frame, paint: &Paint) {
    const KEYS: [(&str, &str); 12] = [
        ("1 … 6, Tab, ← →", "views: task sets, running, waiting, failed, slowest, timeline"),
        ("↑ ↓, j k, PgUp PgDn, g G", "choose a row"),
        ("Enter", "open a task set, or a task: why, attempts, use, logs"),
        ("Esc, Backspace", "back"),
        ("/", "filter by any word in a row"),
        ("s", "sort by the next column"),
        ("r", "the other way round"),
        ("o, e", "in a task: stdout, stderr"),
        ("n, p", "in a task: the next and the one before"),
        ("?", "this"),
        ("q, Ctrl-C", "leave; the run goes on"),
        ("signs", "█ done  ▒ running  × failed  ! held, pausing or paused  - skipped  · waiting"),
    ];
    let area = frame.area();
    let (width, height) = (area.width.min(92), area.height.min(KEYS.len() as u16 + 2));
    let place = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    let lines: Vec<Line> = KEYS
        .iter()
        .map(|(keys, words)| Line::from(vec![Span::styled(format!(" {keys:<26}"), paint.bold()), Span::raw(*words)]))
        .collect();
    frame.render_widget(Clear, place);
    frame.render_widget(
        Paragraph::new(lines).wrap(Wrap { trim: false }).block(Block::bordered().title(" keys ")),
        place,
    );
}
