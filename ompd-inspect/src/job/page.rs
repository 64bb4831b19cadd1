//! The report of a job on a terminal, which keys scroll.

use std::time::Duration;

use ompd_jobs::{Merged, is_hang, text};
use ompd_report::text::plain;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use crate::top::seconds;

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const ALARM: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);

/// What a key asks of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressed {
    /// Nothing but to show the page again.
    Show,
    /// The end.
    Quit,
    /// To stop as other programs do at Ctrl-Z.
    Suspend,
}

/// What is shown, and how.
#[derive(Debug)]
pub struct Page {
    every: Duration,
    color: bool,
    paused: bool,
    /// When the report was there, and its lines.
    shown: Option<(String, Vec<String>)>,
    /// The width that they were made for.
    width: u16,
    /// The first line that is shown.
    first: usize,
    /// Lines that the terminal has room for.
    room: usize,
}

impl Page {
    /// Before the first report.
    pub fn new(every: Duration, color: bool) -> Page {
        Page { every, color, paused: false, shown: None, width: 0, first: 0, room: 1 }
    }

    /// Shows a report unless the page is paused.
    pub fn show(&mut self, time: String, merged: &Merged, width: u16) {
        if !self.paused {
            self.shown = Some((time, lines(merged, width)));
            self.width = width;
        }
    }

    /// Lays the lines of the last report out again if the terminal has another width.
    pub fn fit(&mut self, merged: Option<&Merged>, width: u16) {
        if let (Some(merged), Some((_, shown))) = (merged, &mut self.shown)
            && width != self.width
            && !self.paused
        {
            *shown = lines(merged, width);
            self.width = width;
        }
    }

    /// Takes a key.
    pub fn press(&mut self, key: KeyEvent) -> Pressed {
        if key.kind == KeyEventKind::Release {
            return Pressed::Show;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return Pressed::Quit,
            KeyCode::Char('z') if control => return Pressed::Suspend,
            KeyCode::Char('q') | KeyCode::Esc => return Pressed::Quit,
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Up | KeyCode::Char('k') => self.first = self.first.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.first += 1,
            KeyCode::PageUp => self.first = self.first.saturating_sub(self.room),
            KeyCode::PageDown => self.first += self.room,
            KeyCode::Home | KeyCode::Char('g') => self.first = 0,
            KeyCode::End | KeyCode::Char('G') => self.first = usize::MAX,
            _ => {}
        }
        let count = self.shown.as_ref().map_or(0, |(_, lines)| lines.len());
        self.first = self.first.min(count.saturating_sub(self.room));
        Pressed::Show
    }

    /// Draws it.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        self.room = usize::from(area.height.saturating_sub(2)).max(1);
        let time = self.shown.as_ref().map(|(time, _)| format!("  {time}")).unwrap_or_default();
        let paused = if self.paused { "  PAUSED" } else { "" };
        let mut all =
            vec![Line::styled(format!("ompd-inspect job{time}  every {}{paused}", seconds(self.every)), BOLD)];
        let mut footer = "q: quit  p: pause".to_owned();
        match &self.shown {
            None => all.push(Line::raw("Waiting for the hosts")),
            Some((_, lines)) => {
                self.first = self.first.min(lines.len().saturating_sub(self.room));
                let end = (self.first + self.room).min(lines.len());
                all.extend(lines[self.first..end].iter().map(|line| Line::styled(line.clone(), self.style(line))));
                if lines.len() > self.room {
                    footer = format!("{footer}  arrows: scroll  lines {}-{end} of {}", self.first + 1, lines.len());
                }
            }
        }
        frame.render_widget(Paragraph::new(all), area);
        let bottom = Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area };
        frame.render_widget(ratatui::widgets::Clear, bottom);
        frame.render_widget(Paragraph::new(Line::styled(footer, DIM)), bottom);
    }

    fn style(&self, line: &str) -> Style {
        match line.split(' ').next() {
            Some(word) if self.color && is_hang(word) => ALARM,
            Some(word) if !word.is_empty() => BOLD,
            _ => Style::new(),
        }
    }
}

fn lines(merged: &Merged, width: u16) -> Vec<String> {
    plain(&text::page(merged, Some(width))).lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn drawn(page: &mut Page, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal.draw(|frame| page.draw(frame)).expect("it is drawn");
        terminal.backend().to_string().replace('"', "")
    }

    fn press(page: &mut Page, code: KeyCode) -> Pressed {
        page.press(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn report(failures: usize) -> Merged {
        let mut merged = Merged::default();
        (0..failures).for_each(|n| merged.add_failure(&format!("host n{n}"), &format!("reason {n}")));
        merged
    }

    #[test]
    fn it_scrolls_between_its_first_and_last_line() {
        let mut page = Page::new(Duration::from_secs(2), false);
        assert!(drawn(&mut page, 60, 5).contains("Waiting for the hosts"));
        page.show("10:00:00 UTC".to_owned(), &report(4), 60);
        let top = drawn(&mut page, 60, 5);
        assert!(top.contains("10:00:00 UTC  every 2 s") && top.contains("lines 1-3 of 5"), "{top}");
        for _ in 0..9 {
            assert_eq!(press(&mut page, KeyCode::Down), Pressed::Show);
        }
        let bottom = drawn(&mut page, 60, 5);
        assert!(bottom.contains("lines 3-5 of 5") && bottom.contains("reason 3"), "{bottom}");
        press(&mut page, KeyCode::Home);
        assert_eq!(drawn(&mut page, 60, 5), top);
        assert!(!drawn(&mut page, 60, 20).contains("scroll"));
    }

    #[test]
    fn a_paused_page_stays() {
        let mut page = Page::new(Duration::from_secs(2), false);
        page.show("10:00:00 UTC".to_owned(), &report(1), 60);
        press(&mut page, KeyCode::Char('p'));
        page.show("10:00:02 UTC".to_owned(), &report(2), 60);
        let text = drawn(&mut page, 60, 9);
        assert!(text.contains("10:00:00 UTC") && text.contains("PAUSED"), "{text}");
        press(&mut page, KeyCode::Char('p'));
        page.show("10:00:04 UTC".to_owned(), &report(2), 60);
        assert!(drawn(&mut page, 60, 9).contains("10:00:04 UTC"));
        assert_eq!(press(&mut page, KeyCode::Char('q')), Pressed::Quit);
    }

    #[test]
    fn any_size_can_be_drawn() {
        let mut page = Page::new(Duration::from_secs(2), true);
        page.show("10:00:00 UTC".to_owned(), &report(4), 60);
        for (width, height) in [(1, 1), (3, 2), (200, 1), (1, 60)] {
            drawn(&mut page, width, height);
            press(&mut page, KeyCode::PageDown);
        }
    }
}
