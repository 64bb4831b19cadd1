//! The view on a terminal.

use ompd_report::top::Refresh;
use ompd_report::words;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Clear, Paragraph};
use unicode_width::UnicodeWidthStr;

use crate::top::lines::{clock, seconds};
use crate::top::rows::{self, Tone, cut};
use crate::top::view::{KEYS, Overlay, View};

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);
const ALARM: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);

/// Teams of a process that are shown above the table at most.
const TEAMS: usize = 8;

/// Lines from the top of an area on.
struct Lines {
    area: Rect,
    y: u16,
}

impl Lines {
    /// The next line, if there is room.
    fn put(&mut self, frame: &mut Frame<'_>, style: Style, text: &str) {
        let Rect { x, y, width, height } = self.area;
        if self.y < height {
            let line = Paragraph::new(Line::styled(text.to_owned(), style));
            frame.render_widget(line, Rect { x, y: y + self.y, width, height: 1 });
            self.y += 1;
        }
    }
}

/// Draws the view.
pub fn draw(frame: &mut Frame<'_>, view: &mut View, color: bool) {
    let area = frame.area();
    let width = usize::from(area.width);
    let mut lines = Lines { area, y: 0 };
    lines.put(frame, BOLD, &title(view, width));
    let Some(refresh) = view.refresh.clone() else {
        lines.put(frame, Style::new(), "Opening the process and its debug information");
        return;
    };
    for (tone, text) in head(&refresh, width, usize::from(area.height)) {
        let style = match tone {
            Tone::Heading => BOLD,
            Tone::Alarm if color => ALARM,
            Tone::Alarm => BOLD,
            Tone::Plain => Style::new(),
        };
        lines.put(frame, style, &cut(&text, width));
    }
    let page = usize::from(area.height.saturating_sub(lines.y + 2));
    match view.overlay.clone() {
        Some(Overlay::Help) => {
            let keys = KEYS.iter().map(|(keys, what)| format!("  {keys:14}{what}"));
            let about = ["", "  CPU% is of one processor, since the refresh before."];
            let keys: Vec<String> = keys.chain(about.map(str::to_owned)).collect();
            overlay(frame, area, lines.y, "Keys (any key: back)", &keys);
        }
        Some(Overlay::Stack { lines: stack, first }) => {
            view.lay_out(page);
            overlay(frame, area, lines.y, "Stack at the last look (Esc: back)", &stack[first.min(stack.len())..]);
        }
        None => {
            let (first, selected) = view.lay_out(page);
            let rows = view.rows();
            let shown = &rows[first.min(rows.len())..(first + page).min(rows.len())];
            let table = rows::table(&refresh, shown, width);
            lines.put(frame, REVERSED, &filled(&table.heading, width));
            for (at, line) in (first..).zip(&table.lines) {
                let style = if at == selected { REVERSED } else { Style::new() };
                lines.put(frame, style, &if at == selected { filled(line, width) } else { line.clone() });
            }
        }
    }
    let bottom = Rect { x: area.x, y: area.bottom().saturating_sub(1), width: area.width, height: area.height.min(1) };
    frame.render_widget(Clear, bottom);
    let text = cut(&footer(view, &refresh), width);
    frame.render_widget(Paragraph::new(Line::styled(text, Style::new().add_modifier(Modifier::DIM))), bottom);
}

/// The lines above the table: they take half of the terminal at most.
fn head(refresh: &Refresh, width: usize, height: usize) -> Vec<(Tone, String)> {
    let most = (height / 2).saturating_sub(2).max(2);
    let heads = |teams| {
        let lines = rows::heads(refresh, teams).into_iter();
        let fitting = |(tone, text): (Tone, String)| match tone {
            Tone::Alarm => rows::wrapped(&text, width).into_iter().map(|line| (tone, line)).collect(),
            _ => vec![(tone, text)],
        };
        lines.flat_map(fitting).collect::<Vec<_>>()
    };
    let mut fewer = (0..=TEAMS).rev().map(heads);
    let mut lines = fewer.find(|lines| lines.len() <= most).unwrap_or_else(|| heads(0));
    // Of many processes only the names and the alarms are left.
    if lines.len() > most {
        lines.retain(|(tone, _)| *tone != Tone::Plain);
    }
    lines.truncate(most);
    lines
}

fn title(view: &View, width: usize) -> String {
    let time = view.refresh.as_ref().map(|refresh| format!("  {}", clock(refresh.time))).unwrap_or_default();
    let paused = if view.paused { "  PAUSED" } else { "" };
    let left = format!("ompd-inspect top{time}  every {}{paused}", seconds(view.interval));
    let right = "?: help  q: quit";
    match width.checked_sub(left.width() + right.width()) {
        Some(room) if room > 1 => format!("{left}{}{right}", " ".repeat(room)),
        _ => {
            // The state counts more than the name.
            let short = format!("every {}{paused}  {right}", seconds(view.interval));
            cut(&short, width)
        }
    }
}

fn footer(view: &View, refresh: &Refresh) -> String {
    let all: usize =
        refresh.processes.iter().filter(|process| !process.ended).map(|process| process.threads.len()).sum();
    let shown = view.rows().len();
    let hidden = if shown < all { format!(", {} idle hidden", all - shown) } else { String::new() };
    let idle = if view.hide_idle { "show" } else { "hide" };
    format!("{}{hidden}  s: sort ({})  i: {idle} idle  Enter: stack", words::count(all, "thread"), view.sort.word())
}

/// Lines in place of the table.
fn overlay(frame: &mut Frame<'_>, area: Rect, y: u16, heading: &str, lines: &[String]) {
    let width = usize::from(area.width);
    let below = Rect { y: area.y + y, height: area.height.saturating_sub(y), ..area };
    frame.render_widget(Clear, below);
    let mut all = vec![Line::styled(filled(&cut(heading, width), width), REVERSED)];
    all.extend(lines.iter().map(|line| Line::raw(cut(line, width))));
    frame.render_widget(Paragraph::new(all), below);
}

/// The text with blanks up to the width.
fn filled(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::*;
    use crate::top::samples;

    fn shown(view: &mut View, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal.draw(|frame| draw(frame, view, true)).expect("it is drawn");
        terminal.backend().to_string()
    }

    fn view(refresh: Refresh) -> View {
        let mut view = View::new(Duration::from_secs(2));
        view.show(refresh);
        view
    }

    fn press(view: &mut View, code: KeyCode) {
        view.press(KeyEvent::new(code, KeyModifiers::NONE));
    }

    #[test]
    fn widths() {
        insta::with_settings!({ omit_expression => true }, {
            for width in [40, 80, 200] {
                insta::assert_snapshot!(format!("width_{width}"), shown(&mut view(samples::refresh()), width, 20));
            }
            insta::assert_snapshot!("one_process", shown(&mut view(samples::single()), 80, 12));
        });
    }

    #[test]
    fn overlays() {
        insta::with_settings!({ omit_expression => true }, {
            let mut help = view(samples::single());
            press(&mut help, KeyCode::Char('?'));
            insta::assert_snapshot!("help", shown(&mut help, 60, 20));
            let mut stack = view(samples::single());
            press(&mut stack, KeyCode::Char('p'));
            stack.show_stack((0..30).map(|n| format!("    frame_{n}  relax.c:{n}")).collect());
            press(&mut stack, KeyCode::PageDown);
            insta::assert_snapshot!("stack", shown(&mut stack, 60, 10));
        });
    }

    #[test]
    fn before_the_first_refresh() {
        let text = shown(&mut View::new(Duration::from_millis(500)), 60, 3);
        assert!(text.contains("every 500 ms") && text.contains("Opening the process"), "{text}");
    }

    #[test]
    fn any_size_can_be_drawn() {
        for (width, height) in [(1, 1), (5, 2), (20, 3), (20, 5), (300, 4), (10, 60)] {
            for key in ['x', '?', 'i'] {
                let mut view = view(samples::refresh());
                press(&mut view, KeyCode::Char(key));
                shown(&mut view, width, height);
            }
        }
    }

    #[test]
    fn the_selected_row_is_seen_on_a_low_terminal() {
        let mut view = view(samples::refresh());
        press(&mut view, KeyCode::End);
        let text = shown(&mut view, 80, 10);
        assert!(text.contains("90210 rank 3 90210") && text.contains("waits for lock total_lock"), "{text}");
    }

    #[test]
    fn many_processes_leave_room_for_threads() {
        let mut refresh = samples::refresh();
        refresh.processes = std::iter::repeat_n(refresh.processes[0].clone(), 40).collect();
        let text = shown(&mut view(refresh), 80, 20);
        assert!(text.contains("running, relax.c:33"), "{text}");
    }
}
