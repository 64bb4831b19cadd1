//! The decoder of instructions: bytes as two functions of an image.

use std::fmt::Write as _;
use std::ops::Range;

use ompd_layout::code::{self, CodeImage, Event, Limits, Slot, Whose};
use ompd_process::Machine;

/// Where the image lies.
const BASE: u64 = 0x1000;
/// More code than a function has that anything is recovered from.
const MAX_CODE: usize = 4096;
/// Lower than the program's own, so that many inputs can be tried.
const LIMITS: Limits =
    Limits { paths: 48, instructions: 4000, visits: 2, inline_depth: 2, inline_bytes: 4096, beyond: false };

/// The first byte of an input for each instruction set.
pub const MACHINES: [(u8, Machine); 2] = [(0, Machine::X86_64), (1, Machine::AARCH64)];

/// Runs the input as code. Its first byte says for which of the [`MACHINES`] (by its lowest bit), the second where the
/// second of the two functions begins, in 256ths.
pub fn check(data: &[u8]) {
    let [machine, cut, code @ ..] = data else { return };
    let (_, machine) = MACHINES[usize::from(machine & 1)];
    let code = &code[..code.len().min(MAX_CODE)];
    // Instructions of aarch64 lie at multiples of four.
    let align = if machine == Machine::AARCH64 { !3 } else { !0 };
    let second = BASE + ((code.len() * usize::from(*cut) / 256) & align) as u64;
    let image = Image { machine, code, second, constants: std::array::from_fn(|n| n as u8) };
    check_run(&image, BASE);
    check_run(&image, second);
    for range in code::functions(&image) {
        for store in code::immediate_stores(&image, range.clone()) {
            assert!((1..=8).contains(&store.size) && range.contains(&store.at), "{store:?} is not of {range:?}");
            let unused = 64 - 8 * u32::from(store.size);
            assert!(store.value << unused >> unused == store.value, "{store:?} does not fit its size");
        }
        let whose = |addr| if range.contains(&addr) { Whose::Function } else { Whose::Another };
        let targets = code::table_targets(&image, range.clone(), &whose).unwrap_or_default();
        assert!(targets.iter().all(|to| range.contains(to)), "{targets:x?} are not all in {range:x?}");
    }
}

fn check_run(image: &Image<'_>, entry: u64) {
    let Ok(run) = code::run(image, entry, &LIMITS) else { return };
    assert!(run.instructions() <= LIMITS.instructions + 1, "{} instructions", run.instructions());
    assert!(run.paths().count() <= LIMITS.paths, "{} paths", run.paths().count());
    let mut text = String::new();
    for event in run.events() {
        text.clear();
        // Writing to a String cannot fail.
        let _ = write!(text, "{event:?}");
        if let Event::Load(load) = event {
            let value = load.value();
            assert!(value.contains(&value));
        }
    }
    for stop in run.stops() {
        text.clear();
        let _ = write!(text, "{stop}");
    }
    for value in run.returned() {
        let (base, offset) = value.split();
        assert!(
            value.offset_from(&base) == Some(offset) || value.as_const().is_some(),
            "{value} is not {base} + {offset}"
        );
        if let Some(chain) = value.chain() {
            assert!(!chain.steps.is_empty());
        }
        let _ = (value.as_indexed(), value.as_member());
    }
    for store in run.stores() {
        let _ = (store.increment(), store.addr.as_indexed());
    }
}

/// Code, and around it constants and words for the loader to fill in.
struct Image<'d> {
    machine: Machine,
    code: &'d [u8],
    second: u64,
    constants: [u8; 256],
}

impl Image<'_> {
    fn end(&self) -> u64 {
        BASE + self.code.len() as u64
    }

    /// Bytes of the code from `addr` on.
    fn rest(&self, addr: u64) -> Option<&[u8]> {
        let at = usize::try_from(addr.checked_sub(BASE)?).ok()?;
        self.code.get(at..).filter(|rest| !rest.is_empty())
    }
}

impl CodeImage for Image<'_> {
    fn machine(&self) -> Machine {
        self.machine
    }

    fn code_at(&self, addr: u64, len: usize) -> Option<&[u8]> {
        self.rest(addr).map(|rest| &rest[..rest.len().min(len)])
    }

    fn data_at(&self, addr: u64, len: usize) -> Option<&[u8]> {
        match self.rest(addr) {
            Some(rest) => rest.get(..len),
            None => self.constants[(addr % 128) as usize..].get(..len),
        }
    }

    /// All kinds, all over the place: wherever an instruction points, something may be.
    fn slot(&self, addr: u64) -> Option<Slot> {
        if self.rest(addr).is_some() || !addr.is_multiple_of(8) {
            return None;
        }
        let symbol = |name: &str, address| Some(Slot::Symbol { name: name.into(), address });
        match (addr >> 3) % 8 {
            0 => Some(Slot::Address(self.second)),
            1 => Some(Slot::Address(addr)),
            2 => Some(Slot::TlsOffset),
            3 => Some(Slot::TlsModule),
            4 => Some(Slot::TlsDescriptor),
            5 => symbol("__tls_get_addr", None),
            6 => symbol("second", Some(self.second)),
            _ => None,
        }
    }

    fn function(&self, addr: u64) -> Option<Range<u64>> {
        [BASE..self.second, self.second..self.end()].into_iter().find(|range| range.contains(&addr))
    }

    fn symbol(&self, name: &str) -> Option<u64> {
        (name == "second").then_some(self.second)
    }

    fn executable(&self) -> Vec<Range<u64>> {
        std::iter::once(BASE..self.end()).collect()
    }
}
