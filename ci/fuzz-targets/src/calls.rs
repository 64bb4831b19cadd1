//! Sequences of calls of the OMPD library, right and wrong ones, by a debugger whose callbacks fail and lie.
//!
//! An input is a header of eight bytes ([`Header`]) and a list of calls. A call is the number of a function, and one or
//! more bytes for each argument, which choose its value.

#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc,
    reason = "every call of the interface is unsafe, and what callers owe it stands at the head of its crate"
)]

pub mod debugger;
mod functions;
pub mod inputs;
mod interface;
mod session;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc as Shared;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};

use ompd::types::Word;
use ompd_process::{Core, OpenOptions};
use test_programs::{Env, Launch, Opt, Runtime, Skip, Toolchain, build};

use debugger::{FAULTS, Plan, Subject};
pub use interface::FUNCTIONS;
use session::Session;

/// Calls of one input.
const MOST_CALLS: usize = 64;
/// Versions of the interface.
pub const VERSIONS: [Word; 4] = [201_811, 202_011, 202_111, 202_411];

/// How an input begins.
#[derive(Debug, Clone, Copy)]
pub struct Header {
    /// The version of the interface, as an index of [`VERSIONS`].
    pub version: u8,
    /// The process, by its index.
    pub subject: u8,
    /// Whether the debugger offers more than OMPD asks for.
    pub generous: bool,
    /// Whether the process is opened anew, and not only looked at anew.
    pub fresh: bool,
    /// What goes wrong.
    pub plan: Plan,
}

impl Header {
    /// As the first bytes of an input.
    pub fn bytes(&self) -> [u8; 8] {
        let flags = self.version | (self.subject & 1) << 2 | u8::from(self.generous) << 3 | u8::from(self.fresh) << 4;
        let fault = FAULTS.iter().position(|fault| *fault == self.plan.fault).unwrap_or(0) as u8;
        let [a, b, c, _] = (self.plan.first as u32).to_le_bytes();
        let [d, e] = (self.plan.every as u16).to_le_bytes();
        [flags, fault, a, b, c, d, e, 0]
    }

    fn parse(bytes: [u8; 8]) -> Header {
        let [flags, fault, a, b, c, d, e, _] = bytes;
        let fault = FAULTS[usize::from(fault) % FAULTS.len()];
        let first = u32::from_le_bytes([a, b, c, 0]).into();
        let plan = Plan { fault, first, every: u16::from_le_bytes([d, e]).into() };
        let bit = |n: u8| flags >> n & 1 == 1;
        Header { version: flags & 3, subject: flags >> 2 & 1, generous: bit(3), fresh: bit(4), plan }
    }
}

/// The bytes of an input, one after another; zeros behind its end.
pub(crate) struct Words<'d>(&'d [u8]);

impl Words<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }
}

/// What was said by panics inside of the library, which do not leave it.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn watch_for_panics() {
    let (before, own) = (std::panic::take_hook(), std::thread::current().id());
    std::panic::set_hook(Box::new(move |what| {
        // Tests panic as well, in their own threads.
        if std::thread::current().id() == own {
            PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(what.to_string());
        }
        before(what);
    }));
}

fn panics() -> Vec<String> {
    std::mem::take(&mut *PANICS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Processes on the runtimes of this machine that stay in nested regions and a barrier, as cores.
///
/// # Errors
/// Why there are none.
fn subjects() -> anyhow::Result<Result<Vec<Shared<Subject>>, Skip>> {
    let mut found = Vec::new();
    for (toolchain, runtime) in [(Toolchain::Gcc, Runtime::Libgomp), (Toolchain::Clang, Runtime::Libomp14)] {
        if let Err(skip) = toolchain.check().and_then(|()| runtime.library().map(drop)) {
            skip.show();
            continue;
        }
        let program = build("nested", toolchain, Opt::O0, &[])?;
        let running = Launch::new(&program, runtime, Env::Settled).start()?;
        let directory = tempfile::tempdir()?;
        match running.gcore(directory.path())? {
            // What is mapped of the core stays when its name goes.
            Ok(core) => found.push(Shared::new(Subject::new(Core::open(&core, &OpenOptions::default())?))),
            Err(skip) => return Ok(Err(skip)),
        }
    }
    Ok(Ok(found))
}

/// What came of an input: how often each function was called and returned `ompd_rc_ok`, and how many callbacks that
/// took.
#[derive(Debug, Default, Clone)]
pub struct Report {
    /// By the index of the function in [`FUNCTIONS`]: calls, and those that returned `ompd_rc_ok`.
    pub calls: Vec<(u64, u64)>,
    /// Callbacks.
    pub callbacks: u64,
    /// Callbacks that told something untrue of the process.
    pub lies: u64,
}

/// Calls the library as an input says.
pub fn check(data: &[u8]) {
    run(data);
}

/// The same, and tells what came of it; `None` where there is no process to be asked about.
///
/// There is one library, and it is called by one thread for all: what it has opened is kept for the next input.
pub fn run(data: &[u8]) -> Option<Report> {
    type Ends = (Sender<Vec<u8>>, Receiver<std::thread::Result<Option<Report>>>);
    static WORKER: OnceLock<Mutex<Ends>> = OnceLock::new();
    let start = || {
        let (input, inputs) = channel::<Vec<u8>>();
        let (report, reports) = channel();
        std::thread::spawn(move || {
            watch_for_panics();
            let mut worker = Worker::default();
            for input in inputs {
                let done = catch_unwind(AssertUnwindSafe(|| worker.run(&input)));
                if report.send(done).is_err() {
                    break;
                }
            }
        });
        Mutex::new((input, reports))
    };
    let ends = WORKER.get_or_init(start).lock().unwrap_or_else(PoisonError::into_inner);
    ends.0.send(data.to_vec()).expect("somebody who takes inputs");
    let done = ends.1.recv().expect("somebody who answers");
    done.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Who calls the library.
#[derive(Default)]
struct Worker {
    session: Option<Session>,
    subjects: Option<Vec<Shared<Subject>>>,
}

impl Worker {
    fn run(&mut self, data: &[u8]) -> Option<Report> {
        let (header, calls) = data.split_first_chunk::<8>()?;
        let header = Header::parse(*header);
        let subjects = self.subjects.get_or_insert_with(|| {
            subjects().expect("programs of the test kit, and cores of them").unwrap_or_else(|skip| {
                skip.show();
                Vec::new()
            })
        });
        if subjects.is_empty() {
            return None;
        }
        debugger::hold(subjects);
        // The panics of an input that was given up have been told of.
        drop((panics(), debugger::wrong()));
        let subject = usize::from(header.subject) % subjects.len();
        let (version, generous) = (VERSIONS[usize::from(header.version)], header.generous);
        // If a panic goes through here the library is given back.
        let kept = self.session.take().filter(|kept| !header.fresh && kept.fits(version, subject, generous));
        let mut session = kept.unwrap_or_else(|| Session::new(version, subject, generous, subjects.clone()));
        session.begin(header);
        let mut words = Words(calls);
        for _ in 0..MOST_CALLS {
            if words.0.is_empty() {
                break;
            }
            functions::call(&mut session, &mut words);
        }
        let report = session.end();
        // What was told untrue of the process may have been believed.
        self.session = Some(session).filter(|_| report.lies == 0);
        Some(report)
    }
}
