//! Where the tables of a function lead that compilers make of `switch`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic as M, OpAccess, OpKind,
    Register as R,
};

use crate::code::flow::Whose;
use crate::code::image::CodeImage;

/// Entries of a table that are read, at most.
const MOST: u64 = 16 << 10;

/// What a register holds on the way to a jump through a table.
#[derive(Clone, Copy)]
enum Held {
    /// An address that the code forms.
    Address(u64),
    /// An entry of four bytes: how far from the table that leads. The table is what one of these registers holds, or one of these
    /// addresses.
    Distance([(R, Option<u64>); 2]),
    /// What such an entry leads to.
    Target,
    /// An entry of eight bytes, of the table at this address.
    Entry(u64),
}

/// See `crate::code::table_targets`. The function has this code, which lies at `start`.
pub(super) fn targets(
    image: &dyn CodeImage,
    code: &[u8],
    start: u64,
    whose: &dyn Fn(u64) -> Whose,
) -> Option<BTreeSet<u64>> {
    let instructions = || Decoder::with_ip(64, code, start, DecoderOptions::NONE).into_iter();
    let jumps = instructions().filter(|i| {
        use FlowControl::{ConditionalBranch, UnconditionalBranch, XbeginXabortXend};
        matches!(i.flow_control(), ConditionalBranch | UnconditionalBranch | XbeginXabortXend)
    });
    let joins: BTreeSet<u64> = jumps.map(|i| i.near_branch_target()).collect();
    let mut search = Search::new();
    for i in instructions() {
        if i.is_invalid() {
            return None;
        }
        // Another way may have put something else there.
        if joins.contains(&i.ip()) {
            search.forget();
        }
        search.starts.insert(i.ip());
        match i.flow_control() {
            FlowControl::IndirectBranch => search.jump(&i)?,
            FlowControl::Next => search.step(&i),
            FlowControl::ConditionalBranch => {}
            _ => search.forget(),
        }
    }
    search.read(image, whose)
}

struct Search {
    info: InstructionInfoFactory,
    /// By 64-bit general register.
    held: BTreeMap<R, Held>,
    /// Where instructions begin.
    starts: BTreeSet<u64>,
    /// Addresses that the code forms: some are of tables.
    addresses: BTreeSet<u64>,
    /// Whether there is a jump through a table of distances.
    distances: bool,
    /// Tables of addresses.
    tables: BTreeSet<u64>,
}

impl Search {
    fn new() -> Search {
        let (info, held, distances) = (InstructionInfoFactory::new(), BTreeMap::new(), false);
        let [starts, addresses, tables] = [const { BTreeSet::new() }; 3];
        Search { info, held, starts, addresses, distances, tables }
    }

    fn forget(&mut self) {
        self.held.clear();
    }

    fn of(&self, register: R) -> Option<Held> {
        self.held.get(&register.full_register()).copied()
    }

    fn address(&self, register: R) -> Option<u64> {
        match self.of(register)? {
            Held::Address(address) => Some(address),
            _ => None,
        }
    }

    /// `None` if it is not known where it leads.
    fn jump(&mut self, i: &Instruction) -> Option<()> {
        match i.op0_kind() {
            OpKind::Register => match self.of(i.op0_register())? {
                Held::Target => self.distances = true,
                Held::Entry(table) => _ = self.tables.insert(table),
                Held::Address(_) | Held::Distance(_) => return None,
            },
            // A linker's slot: to another function.
            OpKind::Memory if i.is_ip_rel_memory_operand() => {}
            OpKind::Memory => _ = self.tables.insert(table_of_addresses(i)?),
            _ => return None,
        }
        self.forget();
        Some(())
    }

    fn step(&mut self, i: &Instruction) {
        let mut computed = self.computed(i);
        let written: Vec<R> = (self.info.info(i).used_registers().iter())
            .filter(|used| !matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::None))
            .map(|used| used.register().full_register())
            .collect();
        for register in written {
            self.held.remove(&register);
            for held in self.held.values_mut().chain(&mut computed) {
                if let Held::Distance(from) = held {
                    from.iter_mut().filter(|(of, _)| *of == register).for_each(|(of, _)| *of = R::None);
                }
            }
        }
        if let Some(computed) = computed {
            let to = if i.mnemonic() == M::Cdqe { R::RAX } else { i.op0_register().full_register() };
            self.held.insert(to, computed);
        }
    }

    /// What the instruction leaves in its first operand.
    fn computed(&mut self, i: &Instruction) -> Option<Held> {
        let (to, from) = (i.op0_register(), i.op1_register());
        match (i.mnemonic(), i.op1_kind()) {
            (M::Lea, _) if i.is_ip_rel_memory_operand() => {
                self.addresses.insert(i.ip_rel_memory_address());
                Some(Held::Address(i.ip_rel_memory_address()))
            }
            (M::Movsxd | M::Mov, OpKind::Memory) if i.memory_size().size() == 4 && i.segment_prefix() == R::None => {
                let side = |register: R| (register.full_register(), self.address(register));
                let is_entry = i.memory_displacement64() == 0 && i.memory_index() != R::None;
                is_entry.then(|| Held::Distance([side(i.memory_base()), side(i.memory_index())]))
            }
            (M::Mov, OpKind::Memory) if i.op0_kind() == OpKind::Register => table_of_addresses(i).map(Held::Entry),
            (M::Movsxd, OpKind::Register) => self.of(from).filter(|held| matches!(held, Held::Distance(_))),
            (M::Cdqe, _) => self.of(R::RAX).filter(|held| matches!(held, Held::Distance(_))),
            (M::Mov, OpKind::Register) if from.size() == 8 => self.of(from),
            (M::Add, OpKind::Register) if to.size() == 8 => {
                let is_one = |distance: Option<Held>, other: R| {
                    let Some(Held::Distance(tables)) = distance else { return false };
                    tables.iter().any(|(of, table)| *of == other || table.is_some() && *table == self.address(other))
                };
                (is_one(self.of(to), from) || is_one(self.of(from), to)).then_some(Held::Target)
            }
            _ => None,
        }
    }

    /// The targets in all tables. A table ends where no code is meant, or another function's: compilers make no such entry.
    fn read(&self, image: &dyn CodeImage, whose: &dyn Fn(u64) -> Whose) -> Option<BTreeSet<u64>> {
        let mut targets = BTreeSet::new();
        let is_code = |addr| image.code_at(addr, 1).is_some();
        let mut entries = |table: u64, size: u64, entry: &dyn Fn(u64) -> Option<u64>| {
            let end =
                self.addresses.range((Bound::Excluded(table), Bound::Unbounded)).next().copied().unwrap_or(u64::MAX);
            let mut any = false;
            for n in 0..MOST {
                let at = table.checked_add(n * size)?;
                let Some(to) = entry(at).filter(|to| at < end && is_code(*to)) else { return Some(any) };
                match whose(to) {
                    Whose::Function => targets.extend(self.starts.contains(&to).then_some(to)),
                    Whose::Part => _ = targets.insert(to),
                    Whose::Another => return Some(any),
                    Whose::Unknown => return None,
                }
                any = true;
            }
            None
        };
        for &table in &self.tables {
            let entry = |at| Some(u64::from_le_bytes(image.data_at(at, 8)?.try_into().ok()?));
            if !entries(table, 8, &entry)? {
                return None;
            }
        }
        if self.distances {
            let mut any = false;
            for &table in self.addresses.iter().filter(|table| !is_code(**table)) {
                let distance = |at| Some(i32::from_le_bytes(image.data_at(at, 4)?.try_into().ok()?));
                any |= entries(table, 4, &|at| Some(table.wrapping_add_signed(distance(at)?.into())))?;
            }
            if !any {
                return None;
            }
        }
        Some(targets)
    }
}

/// The table of which an instruction reads an entry, by a number: an address that it names itself.
fn table_of_addresses(i: &Instruction) -> Option<u64> {
    let is = i.memory_base() == R::None
        && i.memory_index() != R::None
        && i.memory_index_scale() == 8
        && i.memory_size().size() == 8
        && !matches!(i.memory_segment(), R::FS | R::GS);
    is.then(|| i.memory_displacement64())
}
