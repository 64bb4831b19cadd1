//! One stop of a live process.

use std::time::Duration;

use ompd_process::{Live, OpenOptions};
use ompd_runtime::discover;
use ompd_runtime::evidence::Evidence;
use ompd_runtime::merge::merge;
use ompd_runtime::model::RuntimeSnapshot;
use ompd_runtime::names::FileNames;

/// What is read of the only runtime of a process in one stop.
pub fn snapshot(pid: i32, what: &str) -> RuntimeSnapshot {
    // Half a million tasks take their time beside other tests.
    let options = OpenOptions { max_pause: Duration::from_secs(60), ..OpenOptions::default() };
    let mut live = Live::open(pid, &options).expect("it can be opened");
    let runtimes = discover(&live, &[]);
    assert_eq!(runtimes.len(), 1, "{what}: {runtimes:?}");
    live.stop().expect("it can be stopped");
    let raw = runtimes[0].snapshot(&live);
    live.resume();
    let names = FileNames::of(&live, &runtimes, &|_| None);
    merge(vec![raw], &Evidence::of_names(&names)).remove(0)
}
