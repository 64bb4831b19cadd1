//! The view as plain lines: for a file, a pipe, or a program.

use std::fmt::Write as _;
use std::time::Duration;

use ompd_report::top::Refresh;

use crate::output::Failure;
use crate::top::rows::{self, Sort, UNLIMITED};

/// A refresh as a block of lines. None is cut.
pub fn block(refresh: &Refresh, sort: Sort) -> String {
    let mut out = format!("top  {}  refresh {}\n", clock(refresh.time), refresh.number);
    for (_, line) in rows::heads(refresh, UNLIMITED) {
        let _ = writeln!(out, "{line}");
    }
    let rows = rows::rows(refresh, sort, false);
    if !rows.is_empty() {
        let table = rows::table(refresh, &rows, UNLIMITED);
        for line in [table.heading].iter().chain(&table.lines) {
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }
    out.push('\n');
    out
}

/// A refresh as one line of JSON, safe to print.
///
/// # Errors
/// It cannot be made.
pub fn json(refresh: &Refresh) -> Result<String, Failure> {
    let text =
        serde_json::to_string(refresh).map_err(|error| Failure::new(format!("cannot write the refresh: {error}")))?;
    Ok(ompd_report::escape::json(&(text + "\n")).into_owned())
}

/// `14:02:31 UTC`: the time of day, of seconds since 1970.
pub fn clock(time: f64) -> String {
    // Times before 1970 and beyond the range of u64 do not occur; the cast saturates.
    let second = time as u64 % 86_400;
    format!("{:02}:{:02}:{:02} UTC", second / 3600, second / 60 % 60, second % 60)
}

/// `2 s`, `500 ms`.
pub fn seconds(time: Duration) -> String {
    match time.as_millis() {
        ms if ms % 1000 == 0 => format!("{} s", ms / 1000),
        ms if ms < 1000 => format!("{ms} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::samples;

    #[test]
    fn a_block_has_every_thread_whole() {
        insta::with_settings!({ omit_expression => true }, {
            insta::assert_snapshot!("block", block(&samples::refresh(), Sort::Cpu));
        });
    }

    #[test]
    fn json_is_one_line() {
        let text = json(&samples::refresh()).expect("a line");
        assert_eq!(text.matches('\n').count(), 1);
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((value["schema"].as_str(), value["number"].as_u64()), (Some("ompd-inspect-top/1"), Some(7)));
        assert_eq!(value["processes"][0]["threads"][0]["cpu_percent"], 48.25);
    }

    #[test]
    fn times() {
        assert_eq!(clock(0.0), "00:00:00 UTC");
        assert_eq!(clock(86_400.0 + 3661.9), "01:01:01 UTC");
        assert_eq!(seconds(Duration::from_millis(200)), "200 ms");
        assert_eq!(seconds(Duration::from_secs(2)), "2 s");
        assert_eq!(seconds(Duration::from_millis(2500)), "2.5 s");
    }
}
