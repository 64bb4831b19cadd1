//! A device that the test plays: what it answers, what it was asked, and the records that it delivers.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::Mutex;

use ompt_record::device::{DeviceAt, DeviceRecord, ENTRY_POINTS, records};

use crate::runtime::{block, make};

type Opaque = *mut c_void;
type Request = unsafe extern "C" fn(c_int, *mut Opaque, *mut usize);
type Complete = unsafe extern "C" fn(c_int, Opaque, usize, u64, c_int);
type Function = unsafe extern "C" fn();
type LookUp = unsafe extern "C" fn(*const c_char) -> Option<Function>;

/// What the runtime passes for the device.
const HANDLE: usize = 0x1234;

/// A record: its form, and where it is.
#[derive(Clone, Copy)]
pub(crate) struct Delivered(pub(crate) c_int, pub(crate) *const c_void);

// SAFETY: a test delivers its own records, on one thread.
unsafe impl Send for Delivered {}

/// What it answers.
#[derive(Clone, Copy)]
pub(crate) struct Device {
    pub(crate) missing: &'static [&'static str],
    pub(crate) processors: c_int,
    pub(crate) seconds: f64,
    pub(crate) buffers: c_int,
    pub(crate) bytes: usize,
    /// To `ompt_set_trace_ompt`, for a kind.
    pub(crate) ompt: fn(c_uint) -> c_int,
    /// To `ompt_set_trace_native`, for flags.
    pub(crate) native: fn(c_int) -> c_int,
    /// To commands: start, pause, stop.
    pub(crate) commands: [c_int; 3],
}

/// One that does all that it can.
pub(crate) const ABLE: Device = Device {
    missing: &[],
    processors: 96,
    seconds: 2.5,
    buffers: 2,
    bytes: 0x1000,
    ompt: |_| 5,
    native: |_| 1,
    commands: [1; 3],
};

static PLAYED: Mutex<Device> = Mutex::new(ABLE);
static ASKED: Mutex<Vec<String>> = Mutex::new(Vec::new());
static RECORDS: Mutex<Vec<Delivered>> = Mutex::new(Vec::new());
static CALLED_BACK: Mutex<Option<(Request, Complete)>> = Mutex::new(None);

fn played() -> Device {
    *PLAYED.lock().expect("one thread")
}

fn asked(device: Opaque, what: String) {
    assert_eq!(device.addr(), HANDLE, "{what}: another device");
    ASKED.lock().expect("one thread").push(what);
}

/// What it was asked since the last call of this function.
pub(crate) fn was_asked() -> Vec<String> {
    std::mem::take(&mut *ASKED.lock().expect("one thread"))
}

unsafe extern "C" fn num_procs(_: Opaque) -> c_int {
    played().processors
}

unsafe extern "C" fn time(_: Opaque) -> u64 {
    77
}

unsafe extern "C" fn translate(_: Opaque, _: u64) -> f64 {
    played().seconds
}

unsafe extern "C" fn set_trace_ompt(device: Opaque, enable: c_uint, kind: c_uint) -> c_int {
    asked(device, format!("ompt {enable} {kind}"));
    (played().ompt)(kind)
}

unsafe extern "C" fn set_trace_native(device: Opaque, enable: c_int, flags: c_int) -> c_int {
    asked(device, format!("native {enable} {flags:#x}"));
    (played().native)(flags)
}

unsafe extern "C" fn buffer_limits(_: Opaque, buffers: *mut c_int, bytes: *mut usize) {
    // SAFETY: places for the answers.
    unsafe { (*buffers, *bytes) = (played().buffers, played().bytes) };
}

unsafe extern "C" fn start_trace(device: Opaque, request: Request, complete: Complete) -> c_int {
    asked(device, "start".to_owned());
    *CALLED_BACK.lock().expect("one thread") = Some((request, complete));
    played().commands[0]
}

unsafe extern "C" fn pause_trace(device: Opaque, begin: c_int) -> c_int {
    asked(device, format!("pause {begin}"));
    played().commands[1]
}

unsafe extern "C" fn flush_trace(device: Opaque) -> c_int {
    asked(device, "flush".to_owned());
    1
}

unsafe extern "C" fn stop_trace(device: Opaque) -> c_int {
    asked(device, "stop".to_owned());
    played().commands[2]
}

unsafe extern "C" fn advance(_: Opaque, _: Opaque, _: usize, cursor: u64, next: *mut u64) -> c_int {
    let more = cursor + 1 < RECORDS.lock().expect("one thread").len() as u64;
    if more {
        // SAFETY: a place for the answer.
        unsafe { *next = cursor + 1 };
    }
    more.into()
}

fn at(cursor: u64) -> Delivered {
    let index = usize::try_from(cursor).expect("a cursor of this device");
    RECORDS.lock().expect("one thread").get(index).copied().unwrap_or(Delivered(0, std::ptr::null()))
}

unsafe extern "C" fn record_type(_: Opaque, cursor: u64) -> c_int {
    at(cursor).0
}

unsafe extern "C" fn record_ompt(_: Opaque, cursor: u64) -> *const c_void {
    at(cursor).1
}

unsafe extern "C" fn record_native(_: Opaque, cursor: u64, host_op_id: *mut u64) -> Opaque {
    // SAFETY: a place for the answer.
    unsafe { *host_op_id = 500 + cursor };
    at(cursor).1.cast_mut()
}

unsafe extern "C" fn record_abstract(native: Opaque) -> *const c_void {
    native
}

unsafe extern "C" fn look_up(name: *const c_char) -> Option<Function> {
    // SAFETY: the companion asks for names that end with a zero.
    let name = unsafe { CStr::from_ptr(name) }.to_str().expect("a name");
    let all: [*const (); ENTRY_POINTS.len()] = [
        num_procs as *const (),
        time as *const (),
        translate as *const (),
        set_trace_ompt as *const (),
        set_trace_native as *const (),
        buffer_limits as *const (),
        start_trace as *const (),
        pause_trace as *const (),
        flush_trace as *const (),
        stop_trace as *const (),
        advance as *const (),
        record_type as *const (),
        record_ompt as *const (),
        record_native as *const (),
        record_abstract as *const (),
    ];
    let index = ENTRY_POINTS.iter().position(|known| *known == name)?;
    // SAFETY: a function. Who asks for its name takes it for one with its parameters.
    (!played().missing.contains(&name)).then(|| unsafe { std::mem::transmute::<*const (), Function>(all[index]) })
}

impl Device {
    /// The runtime introduces it under a number.
    pub(crate) fn introduce(self, number: c_int) -> DeviceAt {
        self.introduce_as(number, Some(look_up))
    }

    /// The same without a look-up function.
    pub(crate) fn introduce_unknown(number: c_int) -> DeviceAt {
        ABLE.introduce_as(number, None)
    }

    fn introduce_as(self, number: c_int, look_up: Option<LookUp>) -> DeviceAt {
        *PLAYED.lock().expect("one thread") = self;
        let handle: Opaque = std::ptr::without_provenance_mut(HANDLE);
        make!(
            12,
            (c_int, *const c_char, Opaque, Option<LookUp>, *const c_char),
            (number, c"a kind".as_ptr(), handle, look_up, std::ptr::null())
        );
        found(number)
    }

    /// It is played from now on.
    pub(crate) fn play(self) {
        *PLAYED.lock().expect("one thread") = self;
    }
}

/// What the block has of the device with this number.
pub(crate) fn found(number: c_int) -> DeviceAt {
    let (memory, block) = block();
    let devices = block.devices(&memory).expect("they can be read");
    devices.into_iter().find(|device| device.number() == number).expect("the device")
}

/// The records in the ring of the device, without what differs from run to run, and the state of the ring.
pub(crate) fn ring_of(number: c_int) -> (Vec<DeviceRecord>, u64) {
    let (memory, block) = block();
    let ring = block.device_ring(&memory, &found(number)).expect("it can be read").expect("a ring");
    let events = block.events(&memory, ring, u64::MAX).expect("they can be read");
    let all = records(&events.events);
    assert_eq!((events.torn, all.fragments), (0, 0));
    let timeless = |record: DeviceRecord| {
        assert!(record.delivered > 0 && record.device == number);
        let what = record.what.map(|what| ompt_record::event::Event { position: 0, time: 0, ..what });
        DeviceRecord { position: 0, delivered: 0, device: 0, what, ..record }
    };
    (all.records.into_iter().map(timeless).collect(), ring.values.state)
}

/// The device asks for a buffer.
pub(crate) fn request(number: c_int) -> Option<(Opaque, usize)> {
    let (request, _) = CALLED_BACK.lock().expect("one thread").expect("it was started");
    let (mut buffer, mut bytes) = (null_mut(), 1);
    // SAFETY: places for the answers.
    unsafe { request(number, &raw mut buffer, &raw mut bytes) };
    assert_eq!(buffer.is_null(), bytes == 0);
    (!buffer.is_null()).then_some((buffer, bytes))
}

/// The device delivers a buffer with records, so many bytes of it.
pub(crate) fn deliver(number: c_int, buffer: Opaque, bytes: usize, delivered: &[Delivered], owned: c_int) {
    let (_, complete) = CALLED_BACK.lock().expect("one thread").expect("it was started");
    *RECORDS.lock().expect("one thread") = delivered.to_vec();
    // SAFETY: the records are there as long as the call.
    unsafe { complete(number, buffer, bytes, 0, owned) };
}
