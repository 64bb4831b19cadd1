//! A runtime that the test plays in its own process, and what the companion remembers of it.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

use ompt_record::event::Event;
use ompt_record::read::{Block, Memory, RingAt};

/// Any function of C's.
type Function = unsafe extern "C" fn();

/// The runtime: its version of OpenMP, the entry points that it has, and callbacks that it never makes.
#[derive(Clone, Copy)]
pub struct Runtime {
    pub omp_version: u32,
    pub name: &'static CStr,
    pub entry_points: &'static [&'static str],
    pub never: &'static [c_int],
}

/// A runtime of today that makes all callbacks.
pub const TODAY: Runtime = Runtime {
    omp_version: 202_111,
    name: c"a runtime that is played",
    entry_points: &["ompt_set_callback", "ompt_finalize_tool"],
    never: &[],
};

static PLAYED: Mutex<Runtime> = Mutex::new(TODAY);

/// What the companion has registered, by number.
static REGISTERED: Mutex<BTreeMap<c_int, Function>> = Mutex::new(BTreeMap::new());

/// Runs a test in a process of its own, since there is one block in a process. Returns whether it has run there, and not here.
pub fn alone(test: &str, variables: &[(&str, &str)], act: impl FnOnce()) -> bool {
    alone_as(&std::env::current_exe().expect("this test"), test, variables, act)
}

/// The same with another name of the test's file.
pub fn alone_as(file: &Path, test: &str, variables: &[(&str, &str)], act: impl FnOnce()) -> bool {
    const INSIDE: &str = "COMPANION_TEST_IS_ALONE";
    if std::env::var_os(INSIDE).is_some() {
        act();
        return false;
    }
    let mut command = Command::new(file);
    command.args(["--exact", test, "--nocapture"]).env(INSIDE, "1").envs(variables.iter().copied());
    let output = command.output().expect("it starts");
    let told = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success() && told.contains("1 passed"), "{test}: {}\n{told}", output.status);
    true
}

unsafe extern "C" fn set_callback(number: c_int, callback: Option<Function>) -> c_int {
    let callback = callback.expect("a callback");
    let before = REGISTERED.lock().expect("one thread").insert(number, callback);
    assert!(before.is_none(), "callback {number} is registered twice");
    if PLAYED.lock().expect("one thread").never.contains(&number) { 1 } else { 5 }
}

unsafe extern "C" fn look_up(name: *const c_char) -> Option<Function> {
    unsafe extern "C" fn another() {}
    // SAFETY: the companion asks for names that end with a zero.
    let name = unsafe { CStr::from_ptr(name) }.to_str().expect("a name");
    let there = PLAYED.lock().expect("one thread").entry_points.contains(&name);
    there.then_some(match name {
        // SAFETY: who asks for this name takes the function for one with these parameters.
        "ompt_set_callback" => unsafe {
            std::mem::transmute::<unsafe extern "C" fn(c_int, Option<Function>) -> c_int, Function>(set_callback)
        },
        _ => another,
    })
}

/// The same for another runtime of the process.
unsafe extern "C" fn look_up_of_another(name: *const c_char) -> Option<Function> {
    // SAFETY: as for the other function. It is called through a copy of the name, so that both stay functions of their own.
    let name = CString::from(unsafe { CStr::from_ptr(name) });
    // SAFETY: the same.
    unsafe { look_up(std::hint::black_box(&name).as_ptr()) }
}

impl Runtime {
    /// Starts the companion. Returns whether it stays.
    pub fn start(self) -> bool {
        self.start_with(Some(look_up))
    }

    /// Starts the companion as a runtime that is not the first of the process.
    pub fn start_as_another(self) -> bool {
        self.start_with(Some(look_up_of_another))
    }

    /// Starts the companion, and tells it of no look-up function.
    pub fn start_without_entry_points(self) -> bool {
        self.start_with(None)
    }

    fn start_with(self, look_up: Option<ompt_companion::Lookup>) -> bool {
        self.play();
        // SAFETY: a string of C's.
        let tool = unsafe { &*ompt_companion::ompt_start_tool(self.omp_version, self.name.as_ptr()) };
        let answer = (tool.initialize)(look_up, 0, null_mut());
        assert!([0, 1].contains(&answer));
        answer == 1
    }

    /// Starts the companion as a runtime of Technical Report 2 does, which says that it has this version.
    pub fn start_of_2014(self, version: c_uint) -> bool {
        self.play();
        // SAFETY: a look-up function, and a string of C's.
        unsafe { ompt_companion::tr2_initialize(Some(look_up), self.name.as_ptr(), version) == 1 }
    }

    fn play(self) {
        *PLAYED.lock().expect("one thread") = self;
        REGISTERED.lock().expect("one thread").clear();
    }

    /// Tells the companion that it ends.
    pub fn end(self) {
        // SAFETY: a string of C's.
        let tool = unsafe { &*ompt_companion::ompt_start_tool(self.omp_version, self.name.as_ptr()) };
        (tool.finalize)(null_mut());
    }
}

/// Which callbacks the companion has registered.
pub fn registered() -> Vec<c_int> {
    REGISTERED.lock().expect("one thread").keys().copied().collect()
}

/// The callback with this number.
pub fn registered_as(number: c_int) -> Function {
    *REGISTERED
        .lock()
        .expect("one thread")
        .get(&number)
        .unwrap_or_else(|| panic!("callback {number} is not registered"))
}

/// Makes a callback, of parameters of these types.
macro_rules! make {
    ($number:literal, ($($type:ty),*), ($($argument:expr),*)) => {
        crate::runtime::make!($number, ($($type),*) -> (), ($($argument),*))
    };
    ($number:literal, ($($type:ty),*) -> $result:ty, ($($argument:expr),*)) => {{
        let function = crate::runtime::registered_as($number);
        // SAFETY: what is registered under this number has these parameters (OpenMP 5.2, 19.5.2).
        unsafe {
            let function =
                std::mem::transmute::<unsafe extern "C" fn(), unsafe extern "C" fn($($type),*) -> $result>(function);
            function($($argument),*)
        }
    }};
}
pub(crate) use make;

/// The memory of this process.
pub struct Own(File);

impl Memory for Own {
    type Error = std::io::Error;

    fn words(&self, at: u64, count: usize) -> std::io::Result<Vec<u64>> {
        let mut bytes = vec![0; count * size_of::<u64>()];
        self.0.read_exact_at(&mut bytes, at)?;
        Ok(bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect())
    }
}

/// The block as it is now, and where it is read.
pub fn block() -> (Own, Block) {
    let memory = Own(File::open("/proc/self/mem").expect("own memory"));
    let at = ompt_companion::ompt_companion_block.load(Relaxed);
    let block = Block::open(&memory, at).expect("a block");
    (memory, block)
}

/// The ring of the calling thread.
pub fn ring() -> RingAt {
    let (memory, block) = block();
    let own = nix::unistd::gettid().as_raw().cast_unsigned();
    let (rings, _) = block.rings(&memory);
    *rings.iter().find(|ring| ring.values.lwp == u64::from(own)).expect("a ring of this thread")
}

/// The events of the calling thread. Their times are checked, and left out.
pub fn events() -> Vec<Event> {
    let (memory, block) = block();
    let events = block.events(&memory, ring(), u64::MAX).expect("they can be read");
    assert_eq!((events.torn, events.overwritten), (0, 0));
    assert!(events.events.is_sorted_by_key(|event| event.time) && events.events.iter().all(|event| event.time > 0));
    events.events.into_iter().map(|event| Event { time: 0, position: 0, ..event }).collect()
}
