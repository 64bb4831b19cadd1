//! The state of the view, and what keys change in it.

use std::time::Duration;

use ompd_report::top::Refresh;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::top::rows::{self, Row, Sort};

/// The intervals that keys choose from, in milliseconds.
const INTERVALS: [u64; 9] = [200, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000, 60_000];

/// The keys, and what each does.
pub const KEYS: [(&str, &str); 11] = [
    ("q Esc Ctrl-C", "quit"),
    ("p Space", "pause, and continue"),
    ("s", "sort: cpu, id, team, wait"),
    ("i", "hide idle threads, or show them"),
    ("+ -", "longer or shorter interval"),
    ("Up Down k j", "previous or next thread"),
    ("PgUp PgDn", "a page up or down"),
    ("Home End g G", "first or last thread"),
    ("Enter", "stack of the thread"),
    ("Ctrl-Z", "suspend"),
    ("? h", "help"),
];

/// What lies above the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Overlay {
    /// The keys.
    Help,
    /// The stack of a thread.
    Stack {
        /// Its lines.
        lines: Vec<String>,
        /// The first line that is shown.
        first: usize,
    },
}

/// What a key asks of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Nothing but to show the view again.
    Show,
    /// The end.
    Quit,
    /// To stop as other programs do at Ctrl-Z.
    Suspend,
    /// The stack of this thread.
    Stack {
        /// Its process.
        pid: i32,
        /// Its id.
        lwp: i32,
    },
}

/// What is shown, and how.
#[derive(Debug)]
pub struct View {
    /// The last refresh.
    pub refresh: Option<Refresh>,
    /// The order of threads.
    pub sort: Sort,
    /// Threads that wait for their next region are left out.
    pub hide_idle: bool,
    /// There are no refreshes for now.
    pub paused: bool,
    /// Time between two refreshes.
    pub interval: Duration,
    /// What lies above the table.
    pub overlay: Option<Overlay>,
    /// The selected thread: process id and thread id.
    selected: Option<(i32, i32)>,
    /// Where it was in the order: its successor is selected when it has ended.
    index: usize,
    /// The first row that is shown.
    first: usize,
    /// Rows that the terminal has room for.
    page: usize,
}

impl View {
    /// Before the first refresh.
    pub fn new(interval: Duration) -> View {
        View {
            refresh: None,
            sort: Sort::default(),
            hide_idle: false,
            paused: false,
            interval,
            overlay: None,
            selected: None,
            index: 0,
            first: 0,
            page: 1,
        }
    }

    /// The rows in order.
    pub fn rows(&self) -> Vec<Row<'_>> {
        self.refresh.as_ref().map(|refresh| rows::rows(refresh, self.sort, self.hide_idle)).unwrap_or_default()
    }

    /// Takes a refresh.
    pub fn show(&mut self, refresh: Refresh) {
        self.refresh = Some(refresh);
        self.settle();
    }

    /// Lays the rows out on pages of so many: gives the first row that is shown, and the selected one.
    pub fn lay_out(&mut self, page: usize) -> (usize, usize) {
        self.page = page.max(1);
        let count = self.rows().len();
        let visible = self.index.saturating_sub(self.page - 1)..=self.index;
        self.first = self.first.clamp(*visible.start(), *visible.end()).min(count.saturating_sub(self.page));
        (self.first, self.index)
    }

    /// Finds the selected thread again.
    fn settle(&mut self) {
        let keys: Vec<(i32, i32)> = self.rows().iter().map(Row::key).collect();
        let found = self.selected.and_then(|selected| keys.iter().position(|key| *key == selected));
        self.index = found.unwrap_or(self.index).min(keys.len().saturating_sub(1));
        self.selected = keys.get(self.index).copied();
    }

    fn select(&mut self, index: usize) {
        let keys: Vec<(i32, i32)> = self.rows().iter().map(Row::key).collect();
        self.index = index.min(keys.len().saturating_sub(1));
        self.selected = keys.get(self.index).copied();
    }

    /// Shows the stack of a thread.
    pub fn show_stack(&mut self, lines: Vec<String>) {
        self.overlay = Some(Overlay::Stack { lines, first: 0 });
    }

    /// Does what a key means.
    pub fn press(&mut self, key: KeyEvent) -> Action {
        if key.kind == KeyEventKind::Release {
            return Action::Show;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Action::Quit,
                KeyCode::Char('z') => Action::Suspend,
                _ => Action::Show,
            };
        }
        if self.overlay.is_some() {
            return self.press_above(key.code);
        }
        let (index, page) = (self.index, self.page);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Action::Quit,
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('s') => {
                self.sort = self.sort.next();
                self.settle();
            }
            KeyCode::Char('i') => {
                self.hide_idle = !self.hide_idle;
                self.settle();
            }
            KeyCode::Char('+') => self.interval = longer(self.interval),
            KeyCode::Char('-') => self.interval = shorter(self.interval),
            KeyCode::Up | KeyCode::Char('k') => self.select(index.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.select(index + 1),
            KeyCode::PageUp => self.select(index.saturating_sub(page)),
            KeyCode::PageDown => self.select(index + page),
            KeyCode::Home | KeyCode::Char('g') => self.select(0),
            KeyCode::End | KeyCode::Char('G') => self.select(usize::MAX),
            KeyCode::Char('?' | 'h') => self.overlay = Some(Overlay::Help),
            KeyCode::Enter => {
                if let Some((pid, lwp)) = self.selected {
                    return Action::Stack { pid, lwp };
                }
            }
            _ => {}
        }
        Action::Show
    }

    /// A key while something lies above the table.
    fn press_above(&mut self, code: KeyCode) -> Action {
        let page = self.page;
        if let Some(Overlay::Stack { lines, first }) = &mut self.overlay {
            let last = lines.len().saturating_sub(1);
            let moved = match code {
                KeyCode::Up | KeyCode::Char('k') => Some(first.saturating_sub(1)),
                KeyCode::Down | KeyCode::Char('j') => Some(*first + 1),
                KeyCode::PageUp => Some(first.saturating_sub(page)),
                KeyCode::PageDown => Some(*first + page),
                KeyCode::Home | KeyCode::Char('g') => Some(0),
                KeyCode::End | KeyCode::Char('G') => Some(last),
                _ => None,
            };
            if let Some(moved) = moved {
                *first = moved.min(last);
                return Action::Show;
            }
        }
        self.overlay = None;
        Action::Show
    }
}

fn longer(interval: Duration) -> Duration {
    let mut all = INTERVALS.iter().map(|ms| Duration::from_millis(*ms));
    all.find(|other| *other > interval).unwrap_or(interval)
}

fn shorter(interval: Duration) -> Duration {
    let mut all = INTERVALS.iter().rev().map(|ms| Duration::from_millis(*ms));
    all.find(|other| *other < interval).unwrap_or(interval)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::samples;

    fn view() -> View {
        let mut view = View::new(Duration::from_secs(2));
        view.show(samples::refresh());
        view.lay_out(2);
        view
    }

    fn press(view: &mut View, code: KeyCode) -> Action {
        let action = view.press(KeyEvent::new(code, KeyModifiers::NONE));
        view.lay_out(2);
        action
    }

    /// The thread that Enter would show.
    fn selected(view: &mut View) -> i32 {
        match press(view, KeyCode::Enter) {
            Action::Stack { lwp, .. } => lwp,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn keys_that_end() {
        let mut view = view();
        assert_eq!(press(&mut view, KeyCode::Char('q')), Action::Quit);
        assert_eq!(press(&mut view, KeyCode::Esc), Action::Quit);
        assert_eq!(view.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Action::Quit);
        assert_eq!(view.press(KeyEvent::new(KeyCode::Char('z'), KeyModifiers::CONTROL)), Action::Suspend);
        assert_eq!(press(&mut view, KeyCode::Char('c')), Action::Show);
    }

    #[test]
    fn the_selection_moves_within_the_rows_and_the_page_follows() {
        let mut view = view();
        assert_eq!(selected(&mut view), 4713);
        press(&mut view, KeyCode::Up);
        assert_eq!((selected(&mut view), view.lay_out(2)), (4713, (0, 0)));
        press(&mut view, KeyCode::Down);
        press(&mut view, KeyCode::Char('j'));
        assert_eq!((selected(&mut view), view.lay_out(2)), (4712, (1, 2)));
        press(&mut view, KeyCode::End);
        assert_eq!((selected(&mut view), view.lay_out(2)), (90_210, (3, 4)));
        press(&mut view, KeyCode::Down);
        assert_eq!(selected(&mut view), 90_210);
        press(&mut view, KeyCode::PageUp);
        assert_eq!((selected(&mut view), view.lay_out(2)), (4712, (2, 2)));
        press(&mut view, KeyCode::Char('k'));
        press(&mut view, KeyCode::PageDown);
        assert_eq!(selected(&mut view), 4714);
        press(&mut view, KeyCode::Home);
        assert_eq!((selected(&mut view), view.lay_out(2)), (4713, (0, 0)));
    }

    #[test]
    fn the_selected_thread_stays_when_the_order_changes() {
        let mut view = view();
        press(&mut view, KeyCode::End);
        press(&mut view, KeyCode::Char('s'));
        press(&mut view, KeyCode::Char('s'));
        press(&mut view, KeyCode::Char('s'));
        assert_eq!((view.sort, selected(&mut view), view.lay_out(9)), (Sort::Wait, 90_210, (0, 1)));
        // It has ended: the one in its place is selected.
        view.show(samples::single());
        assert_eq!(selected(&mut view), 4713);
    }

    #[test]
    fn hiding_idle_threads_keeps_the_selection_on_a_row() {
        let mut view = view();
        for _ in 0..3 {
            press(&mut view, KeyCode::Down);
        }
        assert_eq!(selected(&mut view), 4714);
        press(&mut view, KeyCode::Char('i'));
        assert!(view.hide_idle && view.rows().len() == 4);
        assert_eq!(selected(&mut view), 90_210);
    }

    #[test]
    fn a_view_without_threads_takes_all_keys() {
        let mut view = View::new(Duration::from_secs(2));
        for code in
            [KeyCode::Down, KeyCode::End, KeyCode::PageUp, KeyCode::Enter, KeyCode::Char('s'), KeyCode::Char('i')]
        {
            assert_eq!(press(&mut view, code), Action::Show);
        }
        assert_eq!(view.lay_out(5), (0, 0));
    }

    #[test]
    fn intervals_have_steps_and_ends() {
        let mut view = view();
        let mut seen = Vec::new();
        for key in ['-', '-', '-', '-', '-', '+', '+'] {
            press(&mut view, KeyCode::Char(key));
            seen.push(view.interval.as_millis());
        }
        assert_eq!(seen, [1000, 500, 200, 200, 200, 500, 1000]);
        view.interval = Duration::from_secs(100);
        press(&mut view, KeyCode::Char('+'));
        assert_eq!(view.interval, Duration::from_secs(100));
        press(&mut view, KeyCode::Char('-'));
        assert_eq!(view.interval, Duration::from_secs(60));
    }

    #[test]
    fn pause_and_help() {
        let mut view = view();
        press(&mut view, KeyCode::Char(' '));
        assert!(view.paused);
        press(&mut view, KeyCode::Char('p'));
        assert!(!view.paused);
        press(&mut view, KeyCode::Char('?'));
        assert_eq!(view.overlay, Some(Overlay::Help));
        // Escape leaves the help, not the program.
        assert_eq!(press(&mut view, KeyCode::Esc), Action::Show);
        assert_eq!(view.overlay, None);
    }

    #[test]
    fn a_stack_scrolls() {
        let mut view = view();
        view.show_stack(["a", "b", "c"].map(str::to_owned).to_vec());
        let first = |view: &View| match view.overlay {
            Some(Overlay::Stack { first, .. }) => Some(first),
            _ => None,
        };
        let mut seen = Vec::new();
        for code in [KeyCode::Down, KeyCode::PageDown, KeyCode::Up, KeyCode::Home, KeyCode::End, KeyCode::Enter] {
            press(&mut view, code);
            seen.push(first(&view));
        }
        assert_eq!(seen, [Some(1), Some(2), Some(1), Some(0), Some(2), None]);
    }
}
