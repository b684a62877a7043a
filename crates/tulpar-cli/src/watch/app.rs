//! What the keys do: which tab, row, order and filter are chosen, and which task is open. It draws nothing.

use super::model::Model;
use super::rows::{self, MOST_ROWS, Order, Row, TABS, Tab, What};
use crate::arguments::Stream;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tulpar_core::ids::{JobId, SetId};

/// What is shown over the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Nothing,
    Help,
    Task(JobId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Go,
    Quit,
}

pub(super) struct App {
    pub(super) model: Model,
    pub(super) tab: usize,
    /// Of the first tab, the task set that is open.
    pub(super) set: Option<SetId>,
    pub(super) over: Over,
    pub(super) filter: String,
    pub(super) typing: bool,
    pub(super) orders: [Order; TABS.len()],
    pub(super) selected: [usize; TABS.len()],
    /// What of a task's logs is shown; stderr unless it is empty.
    pub(super) stream: Option<Stream>,
    /// Lines of the open task that are scrolled away.
    pub(super) scroll: u16,
    /// What was shown last, so that keys and screen mean the same rows.
    pub(super) rows: Vec<Row>,
    /// How many rows fit.
    pub(super) page: usize,
}

impl App {
    pub(super) fn new(model: Model) -> Self {
        let mut app = Self {
            model,
            tab: 0,
            set: None,
            over: Over::Nothing,
            filter: String::new(),
            typing: false,
            orders: Default::default(),
            selected: Default::default(),
            stream: None,
            scroll: 0,
            rows: Vec::new(),
            page: 10,
        };
        app.refresh();
        app
    }

    pub(super) fn tab(&self) -> Tab {
        TABS[self.tab]
    }

    /// Makes the rows anew, after time has passed or a key was pressed.
    pub(super) fn refresh(&mut self) {
        let was = self.chosen();
        self.rows = rows::rows(&self.model, self.tab(), self.set, &self.filter, self.orders[self.tab]);
        // The row that was chosen stays so when others come and go.
        let found = was.and_then(|what| self.rows.iter().position(|row| row.what == what));
        let last = self.rows.len().saturating_sub(1);
        let place = &mut self.selected[self.tab];
        *place = found.unwrap_or(*place).min(last);
    }

    pub(super) fn chosen(&self) -> Option<What> {
        self.rows.get(self.selected[self.tab]).map(|row| row.what)
    }

    pub(super) fn chosen_job(&self) -> Option<JobId> {
        match self.chosen()? {
            What::Job(job) => Some(job),
            What::Set(_) => None,
        }
    }

    /// Not all rows are listed.
    pub(super) fn cut(&self) -> bool {
        self.rows.len() >= MOST_ROWS
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Next {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Next::Quit;
        }
        // Esc and a key right after it reach us as one.
        if key.modifiers.contains(KeyModifiers::ALT) && key.code != KeyCode::Esc {
            self.key(KeyEvent::from(KeyCode::Esc));
            return self.key(KeyEvent::from(key.code));
        }
        if self.typing {
            self.typed(key.code);
            return Next::Go;
        }
        let quit = key.code == KeyCode::Char('q') && self.over == Over::Nothing;
        match self.over {
            _ if quit => return Next::Quit,
            Over::Nothing => self.in_table(key.code),
            Over::Help => self.over = Over::Nothing,
            Over::Task(job) => self.in_task(key.code, job),
        }
        Next::Go
    }

    fn typed(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(letter) => self.filter.push(letter),
            _ => {}
        }
        self.refresh();
    }

    fn in_table(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char('?') | KeyCode::F(1) => self.over = Over::Help,
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Tab | KeyCode::Right => self.turn((self.tab + 1) % TABS.len()),
            KeyCode::BackTab | KeyCode::Left => self.turn((self.tab + TABS.len() - 1) % TABS.len()),
            KeyCode::Char(digit @ '1'..='6') => self.turn(digit as usize - '1' as usize),
            KeyCode::Char('s') => self.sort_by_next(),
            KeyCode::Char('r') => {
                let order = &mut self.orders[self.tab];
                order.descending = !order.descending;
                self.refresh();
            }
            KeyCode::Esc if !self.filter.is_empty() => {
                self.filter.clear();
                self.refresh();
            }
            KeyCode::Esc | KeyCode::Backspace => {
                if let Some(set) = self.set.take() {
                    self.refresh();
                    self.choose(What::Set(set));
                }
            }
            KeyCode::Enter => self.open(),
            other => self.move_by(other),
        }
    }

    fn in_task(&mut self, code: KeyCode, job: JobId) {
        match code {
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Char('q') => self.over = Over::Nothing,
            KeyCode::Char('o') => self.stream = Some(Stream::Stdout),
            KeyCode::Char('e') => self.stream = Some(Stream::Stderr),
            KeyCode::Down | KeyCode::Char('j') => self.scroll = self.scroll.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll = self.scroll.saturating_add(10),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(10),
            KeyCode::Home | KeyCode::Char('g') => self.scroll = 0,
            // The task before and after it in the table.
            KeyCode::Char('n') | KeyCode::Char('p') => {
                self.over = Over::Nothing;
                self.move_by(if code == KeyCode::Char('n') { KeyCode::Down } else { KeyCode::Up });
                self.scroll = 0;
                self.over = Over::Task(self.chosen_job().unwrap_or(job));
            }
            KeyCode::Char('?') => self.over = Over::Help,
            _ => {}
        }
    }

    fn turn(&mut self, tab: usize) {
        self.tab = tab;
        self.refresh();
    }

    fn sort_by_next(&mut self) {
        let columns = self.tab().columns(self.set.is_some()).len();
        let order = &mut self.orders[self.tab];
        let next = order.column.map_or(0, |column| column + 1);
        // What is large is what one looks for; names are read from A to Z.
        *order = Order { column: (next < columns).then_some(next), descending: next > 0 };
        self.refresh();
    }

    fn open(&mut self) {
        match self.chosen() {
            Some(What::Job(job)) => {
                self.scroll = 0;
                self.stream = None;
                self.over = Over::Task(job);
            }
            Some(What::Set(set)) => {
                let mut jobs = self.model.engine().graph().jobs_of(set).into_iter().flatten();
                match (jobs.next(), jobs.next()) {
                    (Some(job), None) => {
                        self.scroll = 0;
                        self.stream = None;
                        self.over = Over::Task(job);
                    }
                    (Some(_), Some(_)) => {
                        // It was for finding the set.
                        self.filter.clear();
                        self.set = Some(set);
                        self.orders[self.tab] = Order::default();
                        self.selected[self.tab] = 0;
                        self.refresh();
                    }
                    _ => {}
                }
            }
            None => {}
        }
    }

    fn choose(&mut self, what: What) {
        if let Some(place) = self.rows.iter().position(|row| row.what == what) {
            self.selected[self.tab] = place;
        }
    }

    fn move_by(&mut self, code: KeyCode) {
        let last = self.rows.len().saturating_sub(1);
        let place = &mut self.selected[self.tab];
        *place = match code {
            KeyCode::Down | KeyCode::Char('j') => *place + 1,
            KeyCode::Up | KeyCode::Char('k') => place.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => *place + self.page,
            KeyCode::PageUp => place.saturating_sub(self.page),
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => last,
            _ => *place,
        }
        .min(last);
    }
}
