//! What a debugger knows of the library it has loaded: what was given out, and what that must be good for.

use std::collections::BTreeSet;
use std::ffi::c_char;
use std::ptr;
use std::rc::Rc as Shared;

use ompd::api::*;
use ompd::types::{AddressSpaceHandle, Rc, Word};

use super::debugger::{self, CALLBACKS, Plan, Subject};
use super::interface::FUNCTIONS;
use super::{Header, Report, Words, panics};

/// Kinds of handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Space,
    Thread,
    Region,
    Task,
}

/// A handle that was given out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given {
    pub(super) handle: usize,
    pub(super) kind: Kind,
    /// The address space it is of.
    pub(super) space: usize,
}

/// What a handle that is passed is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passed {
    /// Of the kind that is wanted, of this address space.
    Right { space: usize },
    /// Of another kind.
    Other,
    /// None, or none any more.
    Dead,
}

pub(super) struct Session {
    /// The version of the interface, while the library is initialised.
    pub(super) version: Option<Word>,
    pub(super) subjects: Vec<Shared<Subject>>,
    pub(super) subject: usize,
    /// What a debugger offers is asked for once.
    generous: bool,
    /// The address space that is kept from one input to the next.
    first: usize,
    pub(super) live: Vec<Given>,
    dead: Vec<usize>,
    ever: BTreeSet<usize>,
    /// Vectors of control variables.
    pub(super) vectors: Vec<*const *const c_char>,
    report: Report,
}

impl Session {
    pub(super) fn new(version: Word, subject: usize, generous: bool, subjects: Vec<Shared<Subject>>) -> Session {
        debugger::plan(Plan::NONE, generous);
        debugger::begin();
        let mut session = Session {
            version: Some(version),
            subjects,
            subject,
            generous,
            first: 0,
            live: Vec::new(),
            dead: Vec::new(),
            ever: BTreeSet::new(),
            vectors: Vec::new(),
            report: Report::default(),
        };
        let mut space: *mut AddressSpaceHandle = ptr::null_mut();
        unsafe {
            assert_eq!(ompd_initialize(version, &raw const CALLBACKS), Rc::OK);
            assert_eq!(ompd_process_initialize(debugger::context(subject), &raw mut space), Rc::OK);
        }
        session.first = space.addr();
        session.given(Kind::Space, session.first, session.first);
        session
    }

    /// Whether it can go on with an input that begins so.
    pub(super) fn fits(&self, version: Word, subject: usize, generous: bool) -> bool {
        let first = self.live.iter().any(|given| given.handle == self.first);
        self.version == Some(version) && (self.subject, self.generous) == (subject, generous) && first
    }

    pub(super) fn begin(&mut self, header: Header) {
        self.report = Report { calls: vec![(0, 0); FUNCTIONS.len()], callbacks: 0, lies: 0 };
        debugger::plan(header.plan, header.generous);
    }

    /// Gives everything back but the first address space.
    pub(super) fn end(&mut self) -> Report {
        self.report.callbacks = debugger::since_plan();
        let (_, lies) = debugger::faults();
        self.report.lies = lies;
        debugger::plan(Plan::NONE, self.generous);
        self.release_vectors();
        // From both ends by turns: inner and outer ones, members and their address spaces, in any order.
        for turn in 0.. {
            let others: Vec<Given> = self.live.iter().filter(|given| given.handle != self.first).copied().collect();
            let Some(given) = (if turn % 2 == 0 { others.first() } else { others.last() }) else { break };
            let handle = given.handle;
            let rc = unsafe { release(given.kind, handle) };
            assert_eq!(rc, Rc::OK, "{given:?}");
            self.gone(handle);
            assert_eq!(unsafe { release(given.kind, handle) }, Rc::STALE_HANDLE, "{given:?} for the second time");
        }
        self.dead.clear();
        assert_eq!(debugger::allocated(), 0, "memory of the debugger that was not given back");
        std::mem::take(&mut self.report)
    }

    pub(super) fn release_vectors(&mut self) {
        for mut vector in self.vectors.drain(..) {
            assert_eq!(unsafe { ompd_rel_display_control_vars(&raw mut vector) }, Rc::OK);
        }
    }

    /// A handle was given out.
    pub(super) fn given(&mut self, kind: Kind, handle: usize, space: usize) {
        assert!(handle != 0 && self.ever.insert(handle), "{handle:#x} was given out before");
        self.live.push(Given { handle, kind, space });
    }

    /// A handle was given back, and with an address space what is in it.
    pub(super) fn gone(&mut self, handle: usize) {
        let (dead, live) = self.live.iter().copied().partition(|given| given.handle == handle || given.space == handle);
        self.live = live;
        self.dead.extend(Vec::<Given>::into_iter(dead).map(|given| given.handle));
    }

    /// All is forgotten.
    pub(super) fn finalized(&mut self) {
        self.version = None;
        self.dead.extend(self.live.drain(..).map(|given| given.handle));
    }

    /// A handle to pass where one of `kind` is wanted, of any kind if that is `None`.
    pub(super) fn handle(&self, kind: Option<Kind>, words: &mut Words<'_>) -> (usize, Passed) {
        let (how, which) = (words.next(), usize::from(words.next()));
        let nth = |given: &[Given]| given.get(which % given.len().max(1)).map(|given| given.handle);
        let right: Vec<Given> =
            self.live.iter().copied().filter(|given| kind.is_none_or(|kind| given.kind == kind)).collect();
        let handle = match how {
            0..=199 => nth(&right),
            200..=215 => nth(&self.live),
            216..=231 => self.dead.get(which % self.dead.len().max(1)).copied(),
            _ => {
                let near = nth(&self.live).unwrap_or(0);
                let foreign = [1, 8, near + 1, near ^ 8, 1 << 40, usize::MAX, usize::MAX - 15, usize::MAX / 16 * 16];
                Some(foreign[usize::from(how) % foreign.len()])
            }
        };
        let handle = handle.unwrap_or(0);
        let passed = match self.live.iter().find(|given| given.handle == handle) {
            Some(given) if kind.is_none_or(|kind| given.kind == kind) => Passed::Right { space: given.space },
            Some(_) => Passed::Other,
            None => Passed::Dead,
        };
        (handle, passed)
    }

    /// Calls a function, by its index, with these handles among its arguments, and checks what it returns.
    pub(super) fn call(&mut self, function: usize, handles: &[Passed], act: impl FnOnce() -> Rc) -> Rc {
        let (name, specific) = FUNCTIONS[function];
        let before = debugger::allocated();
        debugger::begin();
        let rc = act();
        let (faults, _) = debugger::faults();
        let wrong = debugger::wrong();
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
        let panics = panics();
        assert!(panics.is_empty(), "{name}: {panics:?}");
        let done = rc == Rc::OK || rc == Rc::INCOMPLETE;
        // What takes memory back has done so whatever it returns.
        assert!(done || debugger::allocated() == before, "{name}: {rc:?}, and memory was not given back");
        let (calls, ok) = &mut self.report.calls[function];
        *calls += 1;
        *ok += u64::from(rc == Rc::OK);

        let version = self.version.unwrap_or(0);
        let fits = match rc {
            Rc::OK | Rc::STALE_HANDLE | Rc::BAD_INPUT | Rc::ERROR | Rc::NOMEM => true,
            Rc::CALLBACK_ERROR => version >= 202_011,
            Rc::INCOMPATIBLE_HANDLE => version >= 202_411,
            Rc::INCOMPLETE => version >= 202_011 && specific.contains(&rc),
            _ => specific.contains(&rc),
        };
        assert!(fits, "{name} returned {rc:?}, which OpenMP {version} does not list");
        let life = ["ompd_initialize", "ompd_finalize", "ompd_get_api_version", "ompd_get_version_string"];
        if life.contains(&name) {
            return rc;
        }
        if self.version.is_none() {
            assert_eq!(rc, Rc::ERROR, "{name} without ompd_initialize");
            return rc;
        }
        match handles.iter().find(|passed| !matches!(passed, Passed::Right { .. })) {
            Some(Passed::Dead) => assert_eq!(rc, Rc::STALE_HANDLE, "{name} with no handle"),
            Some(_) => {
                let expected = if version >= 202_411 { Rc::INCOMPATIBLE_HANDLE } else { Rc::STALE_HANDLE };
                assert_eq!(rc, expected, "{name} with a handle of another kind");
            }
            // The process is a core and nothing in it ends.
            None if faults == 0 => {
                let bad = [Rc::STALE_HANDLE, Rc::ERROR, Rc::NOMEM, Rc::CALLBACK_ERROR, Rc::INCOMPATIBLE_HANDLE];
                assert!(!bad.contains(&rc), "{name}: {rc:?}, and nothing went wrong");
            }
            None => {}
        }
        rc
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.version.is_some() && !std::thread::panicking() {
            debugger::plan(Plan::NONE, self.generous);
            self.release_vectors();
        }
        if self.version.is_some() {
            unsafe { ompd_finalize() };
        }
    }
}

/// # Safety
/// None: handles are numbers.
unsafe fn release(kind: Kind, handle: usize) -> Rc {
    unsafe {
        match kind {
            Kind::Space => ompd_rel_address_space_handle(ptr::without_provenance_mut(handle)),
            Kind::Thread => ompd_rel_thread_handle(ptr::without_provenance_mut(handle)),
            Kind::Region => ompd_rel_parallel_handle(ptr::without_provenance_mut(handle)),
            Kind::Task => ompd_rel_task_handle(ptr::without_provenance_mut(handle)),
        }
    }
}
