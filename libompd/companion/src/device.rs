//! Devices: what they offer, and the traces that they write (OpenMP 5.2, 19.2.5).
//!
//! The companion asks each device that the runtime introduces (`device_initialize`) for its entry points. Each may be missing: a
//! runtime that traces nothing may still give a look-up function, which knows none of them. Everything that the device can trace
//! is switched on. It writes records into buffers that it asks for and gives back, on threads outside OpenMP. Each device has a
//! ring of its own for them.
//!
//! Commands to a device (start, pause, flush, stop) exclude one another by its state: a command that comes during another does
//! nothing. What a device calls in the meantime takes no part in that.

mod buffers;
mod callbacks;
mod deliver;
mod entries;
mod layout;

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize};

use ompt_record::block::{DEVICE_RING, Ring, State};
use ompt_record::device::{
    Answer, DEVICES, Device, DeviceState, ENTRY_SIZE, HAS_DOCUMENTATION, HAS_HOST_TIME, HAS_LIMITS, HAS_LOOKUP,
    HAS_PROCESSORS, HAS_TIME, TABLE_AT, TYPE_NAME,
};
use ompt_record::ompt::LAST_CALLBACK;

use self::entries::Entries;
use crate::block::{self, Recorder, header, is_recording, now};
use crate::ompt::Lookup;
use crate::part::Part;

/// What the companion knows of devices.
pub const PART: Part = Part { callbacks: callbacks::all, follow, flush: flush_all, forked };

/// Buffers that a device gets at most where it recommends nothing.
const BUFFERS: usize = 8;

/// All flags of `ompt_native_mon_flag_t`.
const NATIVE_FLAGS: c_int = 0xff;

/// Newer forms of kinds, and the older ones that are asked for where the newer are refused.
const OLDER: [(u8, u8); 4] = [(33, 8), (34, 9), (35, 10), (36, 22)];

/// What is needed to call a device. Its state is in the block, in the entry of the same index.
struct Slot {
    number: AtomicI32,
    handle: AtomicPtr<c_void>,
    entries: Entries,
    ring: AtomicPtr<Ring>,
    /// Bytes of its buffers.
    size: AtomicUsize,
    /// How many it may have.
    most: AtomicUsize,
    /// It did not get one that it wanted: it may have stopped to write records, until tracing is started again.
    dry: AtomicBool,
}

static SLOTS: [Slot; DEVICES] = [const {
    Slot {
        number: AtomicI32::new(0),
        handle: AtomicPtr::new(null_mut()),
        entries: Entries::new(),
        ring: AtomicPtr::new(null_mut()),
        size: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
        dry: AtomicBool::new(false),
    }
}; DEVICES];

/// A device: the place of what is needed to call it, and its entry in the block.
#[derive(Clone, Copy)]
struct One {
    index: usize,
    slot: &'static Slot,
    told: &'static Device,
}

impl One {
    fn at(index: usize) -> Option<One> {
        let slot = SLOTS.get(index)?;
        // SAFETY: an entry begins with it; the words are aligned, and stay mapped.
        let told = unsafe { &*One::entry(index)?.cast::<Device>() };
        Some(One { index, slot, told })
    }

    /// Where its entry begins.
    fn entry(index: usize) -> Option<*const u8> {
        let at = usize::try_from(TABLE_AT + index as u64 * ENTRY_SIZE).ok()?;
        header()?;
        // SAFETY: the table lies in the first page of the block (asserted in `ompt_record::device`).
        (index < DEVICES).then(|| unsafe { block::base().add(at) })
    }

    /// Writes down what the runtime calls it.
    ///
    /// # Safety
    /// It is null or ends with a zero.
    unsafe fn set_type(self, kind: *const c_char) {
        let mut name = [0; TYPE_NAME];
        if !kind.is_null() {
            // SAFETY: as the caller says.
            unsafe { layout::copy_text(kind, TYPE_NAME, &mut name) };
        }
        if let Some(entry) = One::entry(self.index) {
            // SAFETY: its place is behind the words of the entry, and whoever introduces the device is the only one to
            // write there.
            unsafe {
                std::ptr::copy_nonoverlapping(name.as_ptr(), entry.add(size_of::<Device>()).cast_mut(), TYPE_NAME)
            };
        }
    }

    fn all() -> impl Iterator<Item = One> {
        (0..DEVICES).filter_map(One::at)
    }

    /// The device with this number that is there.
    fn with_number(number: c_int) -> Option<One> {
        One::all().find(|one| one.is_there() && one.slot.number.load(Relaxed) == number)
    }

    fn state(self) -> Option<DeviceState> {
        DeviceState::from_number(self.told.state.load(Acquire))
    }

    fn is_there(self) -> bool {
        use DeviceState::{Changing, Paused, Stopped, Tracing, Untraceable};
        self.state().is_some_and(|state| [Untraceable, Stopped, Tracing, Paused, Changing].contains(&state))
    }

    fn change(self, from: DeviceState, to: DeviceState) -> bool {
        self.told.state.compare_exchange(from as u64, to as u64, AcqRel, Relaxed).is_ok()
    }

    fn set(self, state: DeviceState) {
        self.told.state.store(state as u64, Release);
    }

    /// A command is over. If the device was finalised all the same, it stays so.
    fn done(self, state: DeviceState) {
        self.change(DeviceState::Changing, state);
    }

    fn handle(self) -> *mut c_void {
        self.slot.handle.load(Relaxed)
    }

    fn answer(self, call: Answer, answer: c_int) -> c_int {
        set_nibble(&self.told.answers, call as usize, answer);
        answer
    }

    /// The device's ring, if it has one.
    fn place(self) -> Option<Recorder> {
        let ring = self.slot.ring.load(Acquire);
        // SAFETY: null, or a ring of the block, which stays mapped.
        unsafe { ring.as_ref() }.map(Recorder::of)
    }
}

fn set_nibble(word: &AtomicU64, n: usize, answer: c_int) {
    // 14 stands for what is no answer that there is.
    let answer = u64::try_from(answer).map_or(14, |answer| answer.min(14));
    let shift = 4 * n;
    let set = |word: u64| Some(word & !(15 << shift) | answer << shift);
    // It is never refused.
    let _ = word.fetch_update(Relaxed, Relaxed, set);
}

/// An entry that is nobody's, or that of a device that is gone: that of an earlier device of the same number first.
fn take_entry(number: c_int) -> Option<One> {
    let over = |one: &One| matches!(one.state(), Some(DeviceState::Gone | DeviceState::LeftBehind));
    let own = One::all().filter(over).filter(|one| one.slot.number.load(Relaxed) == number);
    let free = One::all().filter(|one| one.state() == Some(DeviceState::Free));
    let mut all = own.chain(free).chain(One::all().filter(over));
    let before = [DeviceState::Gone, DeviceState::LeftBehind, DeviceState::Free];
    all.find(|one| before.into_iter().any(|state| one.change(state, DeviceState::Coming)))
}

/// The runtime introduces a device.
///
/// # Safety
/// The strings are null or end with a zero, and what the look-up function gives has the types that its names stand for.
unsafe fn introduce(
    number: c_int,
    kind: *const c_char,
    handle: *mut c_void,
    lookup: Option<Lookup>,
    documentation: *const c_char,
) {
    let Some(header) = header() else { return };
    if One::with_number(number).is_some() {
        // It was not finalised; whoever calls from that device cannot be told from this one.
        gone(number);
    }
    let Some(one) = take_entry(number) else {
        header.devices_beyond.fetch_add(1, Relaxed);
        return;
    };
    let One { slot, told, .. } = one;
    forget(told);
    told.number.store(u64::from(number.cast_unsigned()), Relaxed);
    told.began.store(now(), Relaxed);
    // SAFETY: a string, as the caller says.
    unsafe { one.set_type(kind) };
    slot.dry.store(false, Relaxed);
    slot.number.store(number, Relaxed);
    slot.handle.store(handle, Relaxed);
    let mut capabilities = slot.entries.look_up(lookup);
    for (there, bit) in [(lookup.is_some(), HAS_LOOKUP), (!documentation.is_null(), HAS_DOCUMENTATION)] {
        capabilities |= if there { bit } else { 0 };
    }
    capabilities |= ask(one);
    told.capabilities.store(capabilities, Relaxed);

    // A device whose records cannot be read is not asked to write any.
    let entries = &slot.entries;
    let walks = entries.advance_buffer_cursor().is_some() && entries.get_record_type().is_some();
    let writes = entries.start_trace().is_some() && entries.stop_trace().is_some();
    let accepts = walks && writes && {
        let ompt = entries.get_record_ompt().is_some() && choose(one);
        let native = entries.get_record_native().is_some() && choose_native(one);
        ompt || native
    };
    // Records that nobody can keep need not be written either.
    let Some((place, index)) = accepts.then(|| claim_ring(number)).flatten() else {
        one.set(DeviceState::Untraceable);
        return;
    };
    slot.ring.store((&raw const *place.ring()).cast_mut(), Release);
    told.ring.store(index + 1, Relaxed);
    one.set(DeviceState::Stopped);
    if is_recording() {
        start(one);
    }
}

/// Claims a ring for a device and returns it with its number. No thread owns it: the one that delivers the device's records
/// writes to it.
fn claim_ring(number: c_int) -> Option<(Recorder, u64)> {
    Recorder::claim(DEVICE_RING | u64::from(number.cast_unsigned()), 0, 0)
}

/// An entry as that of a device of which nothing is known yet, but for its state.
fn forget(told: &Device) {
    const NONE: u64 = u64::MAX;
    let words = [
        (&told.capabilities, 0),
        (&told.answers, NONE),
        (&told.results_first, NONE),
        (&told.results_second, NONE),
        (&told.results_third, NONE),
        (&told.results_native, NONE),
        (&told.ring, 0),
        (&told.ended, 0),
        (&told.processors, 0),
        (&told.device_time, 0),
        (&told.host_time, 0),
        (&told.limit_buffers, 0),
        (&told.limit_bytes, 0),
        (&told.buffers_given, 0),
        (&told.buffers_refused, 0),
        (&told.buffers_back, 0),
        (&told.deliveries, 0),
        (&told.records, 0),
        (&told.invalid, 0),
        (&told.cut, 0),
        (&told.delivered_by, 0),
    ];
    for (word, value) in words {
        word.store(value, Relaxed);
    }
}

/// Asks a device what it says of itself; returns what is known now.
fn ask(one: One) -> u64 {
    let One { slot, told, .. } = one;
    let handle = one.handle();
    let mut known = 0;
    if let Some(get_device_num_procs) = slot.entries.get_device_num_procs() {
        // SAFETY: the device's entry point and its handle.
        let processors = unsafe { get_device_num_procs(handle) };
        told.processors.store(u64::try_from(processors).unwrap_or(0), Relaxed);
        known |= if processors >= 0 { HAS_PROCESSORS } else { 0 };
    }
    if let Some(get_device_time) = slot.entries.get_device_time() {
        // SAFETY: the same.
        let time = unsafe { get_device_time(handle) };
        told.device_time.store(time, Relaxed);
        known |= HAS_TIME;
        if let Some(host) = translate(one, time) {
            told.host_time.store(host.to_bits(), Relaxed);
            known |= HAS_HOST_TIME;
        }
    }
    let (mut most, mut size) = (BUFFERS, 0);
    if let Some(get_buffer_limits) = slot.entries.get_buffer_limits() {
        let mut buffers = 0;
        // SAFETY: the same, and places for the answers.
        unsafe { get_buffer_limits(handle, &raw mut buffers, &raw mut size) };
        told.limit_buffers.store(u64::from(buffers.cast_unsigned()), Relaxed);
        told.limit_bytes.store(size as u64, Relaxed);
        known |= HAS_LIMITS;
        most = usize::try_from(buffers).map_or(BUFFERS, |buffers| buffers.clamp(1, BUFFERS));
    }
    slot.most.store(most, Relaxed);
    slot.size.store(buffers::size_for(size), Relaxed);
    known
}

/// A time of the device as seconds of the host, if it can say.
fn translate(one: One, time: u64) -> Option<f64> {
    let translate_time = one.slot.entries.translate_time()?;
    // SAFETY: the device's entry point and its handle.
    let seconds = unsafe { translate_time(one.handle(), time) };
    // 0 is the answer of a runtime that has the entry point, and does nothing in it.
    (seconds.is_finite() && seconds != 0.0).then_some(seconds)
}

/// Switches on all kinds of OMPT's records: at once, or one by one where that is refused. Returns whether there is any.
fn choose(one: One) -> bool {
    let Some(set_trace_ompt) = one.slot.entries.set_trace_ompt() else { return false };
    // SAFETY: the device's entry point and its handle.
    let ask = |kind: u8| unsafe { set_trace_ompt(one.handle(), 1, kind.into()) };
    // 3 and above: at least some are traced (OpenMP 5.2, 19.4.4.2).
    if one.answer(Answer::TraceOmpt, ask(0)) >= 3 {
        return true;
    }
    let words = [&one.told.results_first, &one.told.results_second, &one.told.results_third];
    let ask = |kind: u8| {
        let answer = ask(kind);
        let n = usize::from(kind) - 1;
        if let Some(word) = words.get(n / 16) {
            set_nibble(word, n % 16, answer);
        }
        answer >= 3
    };
    let mut any = false;
    for kind in 1..=LAST_CALLBACK {
        let (older, newer) =
            (OLDER.iter().any(|(_, older)| *older == kind), OLDER.iter().find(|(new, _)| *new == kind));
        if older {
            continue;
        }
        let accepted = ask(kind) || newer.is_some_and(|(_, older)| ask(*older));
        any |= accepted;
    }
    any
}

/// Switches on native records, of all kinds at once or one by one. Returns whether there are any.
fn choose_native(one: One) -> bool {
    let Some(set_trace_native) = one.slot.entries.set_trace_native() else { return false };
    // SAFETY: the device's entry point and its handle.
    let ask = |flags| unsafe { set_trace_native(one.handle(), 1, flags) };
    if one.answer(Answer::TraceNative, ask(NATIVE_FLAGS)) >= 3 {
        return true;
    }
    let mut any = false;
    for n in 0..8 {
        let answer = ask(1 << n);
        set_nibble(&one.told.results_native, n, answer);
        any |= answer >= 3;
    }
    any
}

fn start(one: One) -> bool {
    let Some(start_trace) = one.slot.entries.start_trace() else { return false };
    if !one.change(DeviceState::Stopped, DeviceState::Changing) {
        return false;
    }
    one.slot.dry.store(false, Relaxed);
    // SAFETY: the device's entry point and its handle; the callbacks have the types that they are to have.
    let answer = unsafe { start_trace(one.handle(), deliver::request, deliver::complete) };
    let started = one.answer(Answer::Start, answer) == 1;
    one.done(if started { DeviceState::Tracing } else { DeviceState::Stopped });
    started
}

/// Pauses a device's tracing, or lets it go on.
fn pause(one: One, begin: bool) -> bool {
    let (from, to) =
        if begin { (DeviceState::Tracing, DeviceState::Paused) } else { (DeviceState::Paused, DeviceState::Tracing) };
    let Some(pause_trace) = one.slot.entries.pause_trace() else { return false };
    if !one.change(from, DeviceState::Changing) {
        return false;
    }
    // SAFETY: the device's entry point and its handle.
    let answer = unsafe { pause_trace(one.handle(), begin.into()) };
    let done = one.answer(Answer::Pause, answer) == 1;
    one.done(if done { to } else { from });
    done
}

fn stop(one: One) -> bool {
    let (Some(from), Some(stop_trace)) = (one.state(), one.slot.entries.stop_trace()) else { return false };
    if ![DeviceState::Tracing, DeviceState::Paused].contains(&from) || !one.change(from, DeviceState::Changing) {
        return false;
    }
    // To stop also flushes, but for a device that forgets.
    flush(one);
    // SAFETY: the device's entry point and its handle.
    let answer = unsafe { stop_trace(one.handle()) };
    let stopped = one.answer(Answer::Stop, answer) == 1;
    one.done(if stopped { DeviceState::Stopped } else { from });
    stopped
}

fn flush(one: One) {
    if let Some(flush_trace) = one.slot.entries.flush_trace() {
        // SAFETY: the device's entry point and its handle.
        one.answer(Answer::Flush, unsafe { flush_trace(one.handle()) });
    }
}

/// All devices that can be traced are, from now on.
fn start_all() {
    for one in One::all() {
        if one.slot.dry.load(Relaxed) {
            stop(one);
        }
        match one.state() {
            Some(DeviceState::Stopped) => start(one),
            Some(DeviceState::Paused) => pause(one, false),
            _ => false,
        };
    }
}

/// No device writes records, for now. One that cannot pause is stopped.
fn pause_all() {
    for one in One::all() {
        if one.state() == Some(DeviceState::Tracing) && !pause(one, true) {
            stop(one);
        }
    }
}

/// All devices deliver what they have.
fn flush_all() {
    for one in One::all() {
        if let Some(from @ (DeviceState::Tracing | DeviceState::Paused)) = one.state()
            && one.change(from, DeviceState::Changing)
        {
            flush(one);
            one.done(from);
        }
    }
}

/// No device writes records any more, and all deliver what they have.
fn stop_all() {
    for one in One::all() {
        stop(one);
    }
}

/// How often it is looked whether a command that another thread has begun is over, when the device is finalised.
const PATIENCE: u32 = 10_000;

/// The runtime finalises a device. It has stopped its tracing and flushed it (OpenMP 5.2, 19.5.2.20).
fn gone(number: c_int) {
    let Some(one) = One::with_number(number) else { return };
    for _ in 0..PATIENCE {
        if one.state() != Some(DeviceState::Changing) {
            break;
        }
        std::thread::yield_now();
    }
    one.set(DeviceState::Gone);
    one.told.ended.store(now(), Relaxed);
    if let Some(place) = one.place() {
        one.slot.ring.store(null_mut(), Release);
        place.give_up();
    }
    if !One::all().any(One::is_there) {
        buffers::release();
    }
}

/// In the child of a fork: no device is there, whatever the copy of the block says.
fn forked() {
    for one in One::all().filter(|one| one.is_there()) {
        one.set(DeviceState::LeftBehind);
        one.slot.ring.store(null_mut(), Relaxed);
    }
}

/// Does with the devices what the companion is about to do, or has done.
fn follow(state: State) {
    match state {
        State::Recording => start_all(),
        State::Paused => pause_all(),
        State::Ended => stop_all(),
    }
}
