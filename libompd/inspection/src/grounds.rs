//! What a value of a report rests on: the bytes and registers whose change changes the value or makes it unknown.
//!
//! Readers do not note what each value was read from. All bytes that a look reads are kept instead. The look is repeated on copies in
//! which some bytes are changed. If the value differs, it rests on some of these bytes, and halving finds which.
//!
//! A change of many bytes may hide what a change of one of them would show: without its team a thread contradicts nobody. So each word
//! is changed alone afterwards, the fields of runtimes first, as long as there is time.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::path::Path;

use ompd_process::core::Core;
use ompd_process::live::Live;
use ompd_process::moment::{Instead, Keeping, Moment, Otherwise};
use ompd_process::{Addr, OpenError, OpenOptions, ReadFault, Target, TargetExt as _, Thread};
use ompd_runtime::model::{Issue, Trouble};
use ompd_runtime::noted::{Noted, noting};
use ompd_runtime::{Runtime, discover_by};
use ompd_stack::{Cache, Stacks};

use crate::open::process_id;
use crate::{Inspection, Wanted, inspect_held, look};

/// What a value rests on.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Grounds {
    /// Addresses of bytes, in order. Some change of each range changes the value.
    pub bytes: Vec<Range<u64>>,
    /// Sets of redundant words. Only a change of all bytes of a set changes the value.
    pub together: Vec<Vec<Range<u64>>>,
    /// Threads (LWP) whose registers it needs.
    pub registers: Vec<i32>,
    /// Threads of which this was not tried. The search ended before.
    pub registers_left: usize,
    /// Addresses where some bytes matter. The search ended before it found which.
    pub undecided: Vec<Range<u64>>,
    /// How many words were read.
    pub words: usize,
    /// How many of these were changed alone. The others were changed together with others.
    pub alone: usize,
    /// How often the target was looked at for that.
    pub looks: usize,
}

/// What the memory at an address is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Memory {
    /// A mapped file.
    Module {
        /// Its name without directories (text of the target).
        name: String,
        /// Bytes from where it begins.
        offset: u64,
        /// The symbol there, and bytes from that.
        symbol: Option<(String, u64)>,
    },
    /// Thread-local memory of this thread (LWP), or the C library's record of it.
    ThreadLocal(i32),
    /// The stack of this thread (LWP).
    Stack(i32),
    /// Other memory, allocated by the program or its libraries.
    Other,
}

/// Thread-local memory and the C library's record of the thread lie at most so many bytes from the thread pointer.
const OF_THREAD: u64 = 0x900;

/// A target that was read once, for any number of looks at it.
pub struct Kept<'a> {
    target: &'a dyn Target,
    read: ReadOnce,
    /// Why it may not be of one moment, or is not whole.
    issues: Vec<Issue>,
    wanted: Wanted<'a>,
}

/// What was read of it, and by what.
struct ReadOnce {
    runtimes: Vec<Box<dyn Runtime>>,
    moment: Moment,
    noted: Vec<Noted>,
    cache: Cache,
}

impl ReadOnce {
    /// What of a target that stands still is read when it is opened, and then.
    fn of(target: &dyn Target, wanted: Wanted<'_>) -> ReadOnce {
        let (runtimes, places, noted) = opened(target, wanted);
        let first = first(target, &runtimes, &places);
        ReadOnce::finish(target, wanted, runtimes, noted, first)
    }

    /// The rest, for which a process may run again.
    fn finish(
        target: &dyn Target,
        wanted: Wanted<'_>,
        runtimes: Vec<Box<dyn Runtime>>,
        mut noted: Vec<Noted>,
        (read, of_read, moment): (look::Read, Vec<Noted>, Moment),
    ) -> ReadOnce {
        let cache = Cache::default();
        let keeping = Keeping::new(target);
        let (_, of_rest) = noting(|| look::finish(&keeping, &runtimes, read, wanted, &cache));
        noted.extend(of_read.into_iter().chain(of_rest));
        noted.sort_by_key(|noted| noted.of.0.wrapping_add(noted.offset));
        noted.dedup();
        ReadOnce { runtimes, moment: moment.and(keeping.into_moment()), noted, cache }
    }
}

/// What the files of a target show.
fn opened(target: &dyn Target, wanted: Wanted<'_>) -> (Vec<Box<dyn Runtime>>, look::Places, Vec<Noted>) {
    let (runtimes, noted) = noting(|| discover_by(target, wanted.layouts));
    (runtimes, look::Places::of(target), noted)
}

/// What has to be read while it stands still.
fn first(
    target: &dyn Target,
    runtimes: &[Box<dyn Runtime>],
    places: &look::Places,
) -> (look::Read, Vec<Noted>, Moment) {
    let keeping = Keeping::new(target);
    let (read, noted) = noting(|| look::read(&keeping, runtimes, places, Stacks::capture(&keeping)));
    (read, noted, keeping.into_moment())
}

/// A process is stopped at most so often.
const STOPS: usize = 4;

/// Fields whose bytes all count are shown as one. No field of a runtime is wider.
const WORD: u64 = 8;
/// Each change is tried in several ways. A flag may stay set in one, and a pointer may stay valid in another.
const WAYS: [Instead; 3] = [Instead::Noise, Instead::Zero, Instead::Flipped];

impl fmt::Debug for Kept<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("moment", &self.read.moment).finish_non_exhaustive()
    }
}

impl<'a> Kept<'a> {
    /// Reads a target that stands still.
    pub fn of(target: &'a dyn Target, wanted: Wanted<'a>) -> Kept<'a> {
        Kept { target, read: ReadOnce::of(target, wanted), issues: Vec::new(), wanted }
    }

    /// The inspection of what was read.
    pub fn inspection(&self) -> Inspection {
        self.otherwise(&[], Instead::Zero, &[])
    }

    /// The inspection with changed bytes in `changed`, and without the registers of the threads `without` (LWP).
    pub fn otherwise(&self, changed: &[Range<u64>], instead: Instead, without: &[i32]) -> Inspection {
        let target = Otherwise::new(self.target, &self.read.moment, changed, instead, without);
        let mut inspection = inspect_held(&target, &self.read.runtimes, self.wanted, &self.read.cache);
        inspection.issues.extend(self.issues.iter().cloned());
        inspection
    }

    /// All that was read.
    pub fn moment(&self) -> &Moment {
        &self.read.moment
    }

    /// The target.
    pub fn target(&self) -> &dyn Target {
        self.target
    }

    /// The field of a runtime, or its variable, that lies at these bytes.
    pub fn field(&self, at: &Range<u64>) -> Option<&Noted> {
        let begin = |noted: &Noted| noted.of.0.wrapping_add(noted.offset);
        let end = self.read.noted.partition_point(|noted| begin(noted) <= at.start);
        let covers = |noted: &&Noted| at.start - begin(noted) < if noted.size == 0 { WORD } else { noted.size };
        // Of a variable the size is not known: a field tells more.
        let before = self.read.noted[..end].iter().rev().take(WORD as usize);
        before.filter(covers).max_by_key(|noted| (noted.size > 0, begin(noted)))
    }

    /// What the memory at an address is for.
    pub fn memory(&self, at: u64) -> Memory {
        let addr = Addr(at);
        if let Some(module) = self.target.module_at(addr) {
            let symbol = module.symbol_at(addr).map(|(symbol, offset)| (symbol.name, offset));
            return Memory::Module { name: module.name().to_owned(), offset: at - module.base().0, symbol };
        }
        let threads = self.read.moment.threads();
        let near =
            |thread: &&Thread| thread.thread_pointer().is_some_and(|pointer| pointer.0.abs_diff(at) <= OF_THREAD);
        if let Some(thread) = threads.iter().find(near) {
            return Memory::ThreadLocal(thread.lwp);
        }
        let mapping = self.target.mapping(addr);
        let has_stack = |thread: &&Thread| {
            let sp = thread.registers.as_ref().ok().map(|registers| registers.sp.0);
            sp.is_some_and(|sp| sp <= at && mapping.as_ref().is_some_and(|mapping| mapping.contains(&sp)))
        };
        // Of several stacks in one mapping it is that which begins next below.
        let lowest = |thread: &&Thread| thread.registers.as_ref().map_or(0, |registers| registers.sp.0);
        match threads.iter().filter(has_stack).max_by_key(lowest) {
            Some(thread) => Memory::Stack(thread.lwp),
            None => Memory::Other,
        }
    }

    /// What `value` rests on. `continues` is told how often the search has looked, and ends it by `false`.
    pub fn grounds<T: PartialEq>(&self, value: impl Fn(Inspection) -> T, continues: &dyn Fn(usize) -> bool) -> Grounds {
        let expected = value(self.inspection());
        let is_other = |changed: &[Range<u64>], instead: Instead, without: &[i32]| {
            value(self.otherwise(changed, instead, without)) != expected
        };
        let moment = &self.read.moment;
        let mut search = Search { moment, is_other: &is_other, continues, found: Grounds::default() };
        search.registers();
        search.any(moment.ranges());
        search.alone(&|word| self.field(word).is_some());
        search.into_found()
    }
}

/// Reads a process or core once, and hands it to `then`: a number is a process, anything else a core file. A process is stopped for that,
/// and runs again before `then` is called.
///
/// # Errors
/// It cannot be opened or stopped.
pub fn of_named<T>(
    target: &str,
    options: &OpenOptions,
    wanted: Wanted<'_>,
    then: impl FnOnce(&Kept<'_>) -> T,
) -> Result<T, OpenError> {
    let Some(pid) = process_id(target) else {
        return Ok(then(&Kept::of(&Core::open(Path::new(target), options)?, wanted)));
    };
    let mut live = Live::open(pid?, options)?;
    // Files are read before the stop, and names are looked up after it.
    let (runtimes, places, noted) = opened(&live, wanted);
    let mut stopped = 0;
    let read = loop {
        live.stop()?;
        stopped += 1;
        let read = first(&live, &runtimes, &places);
        live.resume();
        // A thread that was left asleep, and woke, may have changed what was read.
        if live.woken().is_empty() || stopped == STOPS {
            break read;
        }
    };
    let woke = live.woken().iter().map(|lwp| Trouble::Woke { lwp: *lwp });
    let late = live.was_cut_short().then(|| Trouble::Target { what: ReadFault::Late.to_string() });
    let issues = woke.chain(late).map(|trouble| Issue::new("target", trouble)).collect();
    let read = ReadOnce::finish(&live, wanted, runtimes, noted, read);
    Ok(then(&Kept { target: &live, read, issues, wanted }))
}

/// Whether a value is another one with these bytes changed in this way, and without the registers of these threads.
type IsOther<'a> = &'a dyn Fn(&[Range<u64>], Instead, &[i32]) -> bool;

struct Search<'a> {
    moment: &'a Moment,
    is_other: IsOther<'a>,
    continues: &'a dyn Fn(usize) -> bool,
    found: Grounds,
}

impl Search<'_> {
    fn registers(&mut self) {
        let threads = self.moment.threads().iter().filter(|thread| thread.registers.is_ok());
        for lwp in threads.map(|thread| thread.lwp) {
            if self.is_over() {
                self.found.registers_left += 1;
                continue;
            }
            self.count();
            if (self.is_other)(&[], Instead::Zero, &[lwp]) {
                self.found.registers.push(lwp);
            }
        }
    }

    fn count(&mut self) {
        self.found.looks += 1;
    }

    fn is_over(&self) -> bool {
        !(self.continues)(self.found.looks)
    }

    /// Changes each word alone that is not known to matter, those first of which `is_first` says so.
    fn alone(&mut self, is_first: &dyn Fn(&Range<u64>) -> bool) {
        let mut words: Vec<Range<u64>> = self.moment.ranges().into_iter().flat_map(words_of).collect();
        words.sort_by_key(|word| !is_first(word));
        self.found.words = words.len();
        let known = words_at(&self.found.bytes);
        for word in words {
            if !known.contains(&(word.start / WORD)) {
                if self.is_over() {
                    return;
                }
                self.any(vec![word]);
            }
            // One that is known to matter was alone when that was found.
            self.found.alone += 1;
        }
    }

    fn into_found(self) -> Grounds {
        let mut found = self.found;
        found.bytes.sort_unstable_by_key(|range| range.start);
        found.bytes = in_words(found.bytes);
        // What matters alone is not redundant.
        let known = words_at(&found.bytes);
        found.together.retain(|set| !set.iter().any(|range| known.contains(&(range.start / WORD))));
        found
    }

    /// Whether some change of these bytes changes the value.
    fn counts(&mut self, ranges: &[Range<u64>]) -> bool {
        let all_zero = |range: &Range<u64>| {
            self.moment.bytes(range.clone()).is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
        };
        let is_zero = ranges.iter().all(all_zero);
        let ways = WAYS.into_iter().filter(|way| !(is_zero && *way == Instead::Zero));
        for way in ways {
            self.count();
            if (self.is_other)(ranges, way, &[]) {
                return true;
            }
        }
        false
    }

    /// Finds the bytes of `ranges` that matter, if there are any.
    fn any(&mut self, ranges: Vec<Range<u64>>) {
        if !ranges.is_empty() && self.counts(&ranges) {
            self.some(ranges);
        }
    }

    /// The same where some are known to matter.
    fn some(&mut self, ranges: Vec<Range<u64>>) {
        let size = length(&ranges);
        if size == 1 {
            self.found.bytes.extend(ranges);
            return;
        }
        if self.is_over() {
            self.found.undecided.extend(ranges);
            return;
        }
        let (first, second) = halves(&ranges);
        match (self.counts(&first), self.counts(&second)) {
            // No part of a word that is compared with zero matters alone.
            (true, true) | (false, false) if size <= WORD && ranges.len() == 1 => self.found.bytes.extend(ranges),
            (false, false) => {
                let mut set = self.least(&[], false, ranges);
                set.sort_unstable_by_key(|range| range.start);
                // A set that could not be made smaller in time is no smallest one.
                if self.is_over() {
                    self.found.undecided.extend(set);
                } else {
                    self.found.together.push(in_words(set));
                }
            }
            (one, other) => {
                if one {
                    self.some(first);
                }
                if other {
                    self.some(second);
                }
            }
        }
    }

    /// A smallest part of `ranges` whose change, together with that of `also`, changes the value (QuickXplain, Junker 2004). `is_new`:
    /// `also` has grown since it was known not to be enough.
    fn least(&mut self, also: &[Range<u64>], is_new: bool, ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
        if self.is_over() {
            return ranges;
        }
        if is_new && self.counts(also) {
            return Vec::new();
        }
        if length(&ranges) == 1 || ranges.len() == 1 && length(&ranges) <= WORD {
            return ranges;
        }
        let (first, second) = halves(&ranges);
        let of_second = self.least(&union(also, &first), true, second);
        let mut all = self.least(&union(also, &of_second), !of_second.is_empty(), first);
        all.extend(of_second);
        all
    }
}

/// The words, and parts of words, that make a range.
fn words_of(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let next = move |start: u64| (start / WORD * WORD).saturating_add(WORD).min(range.end);
    let first = (range.start < range.end).then(|| range.start..next(range.start));
    std::iter::successors(first, move |word| (word.end < range.end).then(|| word.end..next(word.end)))
}

/// The words that these ranges touch, by their numbers.
fn words_at(ranges: &[Range<u64>]) -> HashSet<u64> {
    ranges.iter().flat_map(|range| range.start / WORD..range.end.div_ceil(WORD)).collect()
}

fn length(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// Two parts of some ranges.
type Parts = (Vec<Range<u64>>, Vec<Range<u64>>);

/// Two parts, of about the same size where that cuts no word or half a word. The size is more than one byte.
fn halves(ranges: &[Range<u64>]) -> Parts {
    let middle = length(ranges) / 2;
    [WORD, WORD / 2, WORD / 4, 1].into_iter().find_map(|unit| cut(ranges, middle, unit)).unwrap_or_default()
}

/// Cuts behind about so many bytes, between two ranges or at a multiple of `unit`; `None` if one part would be empty.
fn cut(ranges: &[Range<u64>], behind: u64, unit: u64) -> Option<Parts> {
    let mut before = 0;
    let at = ranges.iter().position(|range| {
        before += range.end - range.start;
        before >= behind
    })?;
    let (first, rest) = ranges.split_at(at);
    let (range, second) = rest.split_first()?;
    let wanted = range.end - (before - behind);
    // The multiples around the one that is wanted.
    let low = wanted / unit * unit;
    let cuts = [low, low + unit].into_iter().filter(|cut| (range.start..=range.end).contains(cut));
    // Or where the range begins or ends.
    let cuts = cuts.chain([range.start, range.end]);
    let is_empty = |cut: u64| first.is_empty() && cut == range.start || second.is_empty() && cut == range.end;
    let cut = cuts.filter(|cut| !is_empty(*cut)).min_by_key(|cut| cut.abs_diff(wanted))?;
    let part = |part: Range<u64>| (!part.is_empty()).then_some(part);
    let one = first.iter().cloned().chain(part(range.start..cut)).collect();
    let other = part(cut..range.end).into_iter().chain(second.iter().cloned()).collect();
    Some((one, other))
}

/// All of both, in order.
fn union(one: &[Range<u64>], other: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut all = [one, other].concat();
    all.sort_unstable_by_key(|range| range.start);
    joined(all)
}

/// The same ranges, of which those that touch and lie in one word are one.
fn in_words(ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut all: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match all.last_mut() {
            Some(last) if last.end == range.start && last.start / WORD == (range.end - 1) / WORD => {
                last.end = range.end
            }
            _ => all.push(range),
        }
    }
    all
}

/// The same ranges, of which those that touch are one.
fn joined(ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut all: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match all.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => all.push(range),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use ompd_process::moment::{Keeping, Otherwise};
    use ompd_process::{Arch, ByteOrder, Machine, TargetKind};
    use test_programs::FakeTarget;

    use super::*;

    const BEGIN: u64 = 0x1000;

    /// What a value that follows from 256 bytes rests on: byte N is N, but for some zeroes.
    fn found(most: usize, value: impl Fn(&[u8]) -> u64) -> Grounds {
        let arch = Arch { machine: Machine::X86_64, pointer_bytes: 8, byte_order: ByteOrder::Little };
        let mut target = FakeTarget::new(TargetKind::Core, arch);
        let mut memory: Vec<u8> = (0..=255).collect();
        memory[200..].fill(0);
        target.memory.push((Addr(BEGIN), memory));
        let keeping = Keeping::new(&target);
        let expected = value(&keeping.read_vec(Addr(BEGIN), 256).expect("the memory"));
        let moment = keeping.into_moment();
        let is_other = |changed: &[Range<u64>], instead: Instead, without: &[i32]| {
            let otherwise = Otherwise::new(&target, &moment, changed, instead, without);
            value(&otherwise.read_vec(Addr(BEGIN), 256).expect("the memory")) != expected
        };
        let continues = |looks: usize| looks < most;
        let mut search =
            Search { moment: &moment, is_other: &is_other, continues: &continues, found: Grounds::default() };
        search.any(moment.ranges());
        search.alone(&|_| false);
        search.into_found()
    }

    fn word(bytes: &[u8], at: usize) -> u64 {
        bytes[at..at + 8].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }

    fn ranges(of: &[(u64, u64)]) -> Vec<Range<u64>> {
        of.iter().map(|(from, to)| BEGIN + from..BEGIN + to).collect()
    }

    #[test]
    fn words_that_matter_are_found_and_no_others() {
        assert_eq!(found(10_000, |_| 5).bytes, []);
        assert_eq!(found(10_000, |bytes| word(bytes, 64)).bytes, ranges(&[(64, 72)]));
        let several = |bytes: &[u8]| u64::from(bytes[3]) + word(bytes, 120).wrapping_mul(3) + u64::from(bytes[255]);
        assert_eq!(found(10_000, several).bytes, ranges(&[(3, 4), (120, 128), (255, 256)]));
        // A flag that is not set, and one that is.
        assert_eq!(found(10_000, |bytes| u64::from(bytes[230] != 0)).bytes, ranges(&[(230, 231)]));
        assert_eq!(found(10_000, |bytes| u64::from(bytes[17] != 0)).bytes, ranges(&[(17, 18)]));
        // Two words that are compared.
        let compared = |bytes: &[u8]| u64::from(word(bytes, 208) == word(bytes, 240));
        assert_eq!(found(10_000, compared).bytes, ranges(&[(208, 216), (240, 248)]));
        // A number of four bytes that is compared with zero.
        let is_set = |bytes: &[u8]| u64::from(bytes[52..56] != [0; 4]);
        assert_eq!(found(10_000, is_set).bytes, ranges(&[(52, 56)]));
    }

    /// A word that contradicts another one is believed if that one has changed too.
    #[test]
    fn what_a_larger_change_hides_is_found() {
        let hidden = |bytes: &[u8]| {
            let (one, other) = (word(bytes, 16), word(bytes, 24));
            u64::from(one.wrapping_add(0x0808_0808_0808_0808) == other || other != 0x1f1e_1d1c_1b1a_1918)
        };
        assert_eq!(found(10_000, hidden).bytes, ranges(&[(16, 24)]));
        let grounds = found(10_000, |bytes| word(bytes, 64));
        assert_eq!((grounds.words, grounds.alone), (32, 32));
        assert_eq!(words_of(3..17).collect::<Vec<_>>(), [3..8, 8..16, 16..17]);
        assert_eq!((words_of(8..16).count(), words_of(8..8).count()), (1, 0));
        assert_eq!(words_of(u64::MAX - 3..u64::MAX).count(), 1);
    }

    #[test]
    fn redundant_words_are_a_set() {
        // Either of two bytes is enough.
        let either = |bytes: &[u8]| u64::from(bytes[9] == 9 || bytes[150] == 150);
        let grounds = found(10_000, either);
        assert_eq!((grounds.bytes, grounds.together), (Vec::new(), vec![ranges(&[(8, 16), (144, 152)])]));
    }

    #[test]
    fn a_search_that_is_ended_says_where_it_was() {
        let grounds = found(3, |bytes| word(bytes, 64));
        assert_eq!(grounds.bytes, []);
        assert!(grounds.undecided.iter().any(|range| range.contains(&(BEGIN + 64))), "{grounds:?}");
        assert!(grounds.looks < 12 && grounds.alone < grounds.words, "{grounds:?}");
    }

    #[test]
    fn halves_keep_words_whole() {
        assert_eq!(halves(&ranges(&[(0, 24), (40, 48)])), (ranges(&[(0, 16)]), ranges(&[(16, 24), (40, 48)])));
        // Two numbers of four bytes side by side, of which another range lies in front.
        assert_eq!(halves(&ranges(&[(4, 8), (24, 32)])), (ranges(&[(4, 8)]), ranges(&[(24, 32)])));
        assert_eq!(halves(&ranges(&[(24, 32)])), (ranges(&[(24, 28)]), ranges(&[(28, 32)])));
        assert_eq!(halves(&ranges(&[(1, 3)])), (ranges(&[(1, 2)]), ranges(&[(2, 3)])));
        assert_eq!(halves(&ranges(&[(8, 16)])), (ranges(&[(8, 12)]), ranges(&[(12, 16)])));
        assert_eq!(halves(&ranges(&[(8, 9), (20, 21)])), (ranges(&[(8, 9)]), ranges(&[(20, 21)])));
        assert_eq!(union(&ranges(&[(8, 9)]), &ranges(&[(0, 8)])), ranges(&[(0, 9)]));
    }
}
