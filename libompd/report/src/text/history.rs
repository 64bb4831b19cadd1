//! What threads did last.

use ompt_record::block::State;
use ompt_record::event::Event;
use ompt_record::ompt;

use super::{FAINT, HEADING, Page, devices};
use crate::escape::escape;
use crate::events::{kind, place, span, words};
use crate::words::count;
use ompd_inspection::history::{History, NoHistory, ThreadHistory};

/// How to show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryView {
    /// Thread by thread.
    ByThread,
    /// All threads together, in the order of time.
    ByTime,
}

/// How many events of each thread are shown if no number is given: as many as one can look through.
pub const FEW: u64 = 20;

/// A history as the words of a command ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// How to show it.
    pub view: HistoryView,
    /// How many events of each thread.
    pub most: u64,
}

impl Wanted {
    /// Takes `history`, with the options `--by-time` and `--last N` behind it; `None` for other words.
    pub fn of_words(words: &str) -> Option<Wanted> {
        let mut words = words.split_ascii_whitespace();
        let mut wanted =
            (words.next() == Some("history")).then_some(Wanted { view: HistoryView::ByThread, most: FEW })?;
        while let Some(word) = words.next() {
            match word {
                "--by-time" => wanted.view = HistoryView::ByTime,
                "--last" => wanted.most = words.next()?.parse().ok().filter(|most| *most > 0)?,
                _ => return None,
            }
        }
        Some(wanted)
    }
}

/// What is shown in place of a history that is not there.
pub fn absent(why: &NoHistory) -> String {
    let remedy = why.remedy().map_or_else(String::new, |remedy| format!("Fix: {}\n", escape(&remedy)));
    format!("There is no history: {}.\n{remedy}", escape(&why.to_string()))
}

/// Renders a history, for a terminal of this width, with colours as terminals take them.
pub fn render(history: &History, view: HistoryView, width: Option<u16>) -> String {
    let mut page = Page::empty(width);
    head(&mut page, history);
    let newest = history.newest().unwrap_or(0);
    // On a terminal the events have at least half of each line.
    let most = width.map_or(usize::MAX, |width| usize::from(width / 2));
    match view {
        HistoryView::ByThread => {
            for thread in &history.threads {
                page.blank();
                title(&mut page, thread);
                let rows = thread.events.iter().map(|event| row(history, newest, most, None, event)).collect();
                page.table(&["ago", "event", "where"], rows);
            }
        }
        HistoryView::ByTime => {
            page.blank();
            let all = history.by_time();
            let rows = all.iter().map(|(thread, event)| row(history, newest, most, Some(thread), event)).collect();
            page.table(&["ago", "thread", "event", "where"], rows);
        }
    }
    for device in &history.devices {
        page.blank();
        devices::write(&mut page, history, device);
    }
    for issue in &history.issues {
        page.blank();
        page.wrapped("Incomplete: ", HEADING, issue, 4);
    }
    page.out
}

fn head(page: &mut Page, history: &History) {
    let threads = count(history.threads.len(), "thread");
    let state = match history.state {
        State::Recording => "it continues to record",
        State::Paused => "it was paused",
        State::Ended => "it has ended",
    };
    let forked = if history.forks > 0 { ", a child of the process that began it" } else { "" };
    let text = format!(
        "history of {threads} by the OMPT companion; {state}{forked}. Runtime: {}",
        escape(if history.runtime.is_empty() { "not named" } else { &history.runtime })
    );
    page.wrapped(&format!("Process {}: ", history.pid), HEADING, &text, 4);
    if let Some((command, count)) = history.command {
        let name = ompt::command(command).map_or_else(|| format!("command {}", command.cast_signed()), str::to_owned);
        let times = if count > 1 { format!(", the last of {count} commands") } else { String::new() };
        page.line(format_args!("The program told it: {name}{times}."));
    }
    let Some(newest) = history.newest() else {
        page.line("There are no events.");
        return;
    };
    let ago = history.now.zip(history.time_of_day(newest)).and_then(|(now, then)| now.duration_since(then).ok());
    match ago {
        Some(ago) => {
            page.line(format_args!("The last event was {} ago; times below count back from it.", span(ago.as_nanos())))
        }
        None => page.line("Times count back from the last event."),
    }
}

fn title(page: &mut Page, thread: &ThreadHistory) {
    let mut text = format!("Thread {} (LWP {}, {})", thread.id, thread.lwp, kind(thread.kind));
    if thread.ended.is_some() {
        text.push_str(", ended");
    }
    page.styled(HEADING, text);
    let mut parts = vec![format!("{} of {}", thread.events.len(), count_of_events(thread.total))];
    let mut part = |n: u64, one: &str, more: &str| {
        if n > 0 {
            parts.push(format!("{n} {}", if n == 1 { one } else { more }));
        }
    };
    part(thread.not_shown, "older one is not shown", "older ones are not shown");
    part(thread.overwritten, "has been overwritten", "have been overwritten");
    part(thread.torn, "was being written", "were being written");
    page.wrapped("  ", FAINT, &parts.join(", "), 2);
}

fn count_of_events(n: u64) -> String {
    format!("{n} event{}", if n == 1 { "" } else { "s" })
}

fn row(history: &History, newest: u64, most: usize, thread: Option<&ThreadHistory>, event: &Event) -> Vec<String> {
    let mut row = vec![span(u128::from(newest.saturating_sub(event.time)))];
    row.extend(thread.map(|thread| thread.id.to_string()));
    row.push(words(event, &history.names));
    let place = place(history, event.codeptr_ra);
    row.push(place.split(' ').map(|word| shortened(word, most)).collect::<Vec<_>>().join(" "));
    row
}

/// A word with its middle left out if it has more than `most` characters: of a file and an offset both ends tell.
fn shortened(word: &str, most: usize) -> String {
    let count = word.chars().count();
    if count <= most {
        return word.to_owned();
    }
    let end = most.saturating_sub(1) / 2;
    let begin = most.saturating_sub(1 + end);
    word.chars().take(begin).chain(['…']).chain(word.chars().skip(count - end)).collect()
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn the_middle_of_a_long_word_is_left_out() {
        assert_eq!(shortened("libgomp.so.1+0x1234", 19), "libgomp.so.1+0x1234");
        assert_eq!(shortened("_swigfaiss_avx2.cpython-311.so+0x8a858e", 20), "_swigfaiss…+0x8a858e");
        assert_eq!(shortened("ab", 1), "…");
    }
}
