//! The table with which Intel's builds describe themselves: `__kmp_omp_debug_struct_info`, a
//! `kmp_omp_struct_info_t` (`openmp/runtime/src/kmp_omp.h`; LLVM's builds leave it out unless configured with
//! `LIBOMP_USE_DEBUGGER`). It is initialised data, and made for a debugger to read.

use ompd_layout::Facts;
use ompd_process::ByteOrder;

use super::schema::{SCHEMA, THREADS, THREADS_CAPACITY};

/// Name of the table.
pub(super) const SYMBOL: &str = "__kmp_omp_debug_struct_info";
/// Smaller than any real table, larger than the four bytes other builds export under the same name.
pub(super) const MIN_SIZE: u64 = 100;
/// `KMP_OMP_VERSION`: the only one there has been.
const VERSION: u32 = 9;

/// One member of the table.
enum Entry {
    /// A number that is of no use here.
    Number,
    /// `sizeof` of the struct the following members are of.
    Struct(&'static str),
    /// Offset and size of the member called so; an empty name for one that is not wanted.
    Member(&'static str),
    /// Address and size of the global called so, likewise.
    Global(&'static str),
}
use Entry::{Global, Member, Number, Struct};

/// The table's members, in its order.
const ENTRIES: &[Entry] = &[
    // major, minor, build, openmp_version, banner
    Global(""),
    Global(""),
    Global(""),
    Global(""),
    Global(""),
    Global(THREADS),
    // roots
    Global(""),
    Global(THREADS_CAPACITY),
    // func_microtask, func_fork, func_fork_teams, team_counter, task_counter, nthr_info
    Global(""),
    Global(""),
    Global(""),
    Global(""),
    Global(""),
    Global(""),
    // address_width, indexed_locks, last_barrier, deque_size
    Number,
    Number,
    Number,
    Number,
    Struct("kmp_base_info"),
    Member("th_info"),
    Member("th_team"),
    Member("th_root"),
    Member("th_serial_team"),
    Member("th_ident"),
    Member("th_spin_here"),
    Member("th_next_waiting"),
    Member("th_task_team"),
    Member("th_current_task"),
    Member("th_task_state"),
    Member("th_bar"),
    // th_b_worker_arrived is relative to th_bar, the members of teams are of no use here
    Member(""),
    Member(""),
    Member(""),
    Member(""),
    Member(""),
    Struct("kmp_desc"),
    Member("ds_tid"),
    Member("ds_gtid"),
    Member("ds_thread"),
    Struct("kmp_base_team"),
    Member("t_master_tid"),
    Member("t_ident"),
    Member("t_parent"),
    Member("t_nproc"),
    Member("t_threads"),
    Member("t_serialized"),
    Member("t_id"),
    Member("t_pkfn"),
    Member("t_task_team"),
    Member("t_implicit_task_taskdata"),
    Member("t_cancel_request"),
    Member("t_bar"),
    // t_b_master_arrived and t_b_team_arrived are relative to t_bar
    Member(""),
    Member(""),
    Struct("kmp_base_root"),
    Member("r_root_team"),
    Member("r_hot_team"),
    Member("r_uber_thread"),
    Member(""),
    Struct("ident"),
    Member("psource"),
    Member(""),
    Struct("kmp_base_queuing_lock"),
    Member("initialized"),
    Member("location"),
    Member("tail_id"),
    Member("head_id"),
    Member(""),
    Member(""),
    Member("owner_id"),
    Member("depth_locked"),
    Member("flags"),
    Struct("kmp_base_task_team"),
    Member("tt_threads_data"),
    Member("tt_found_tasks"),
    Member("tt_nproc"),
    Member("tt_unfinished_threads"),
    Member("tt_active"),
    Struct("kmp_taskdata"),
    Member("td_task_id"),
    Member("td_flags"),
    Member("td_team"),
    Member("td_parent"),
    Member("td_level"),
    Member("td_ident"),
    Member("td_allocated_child_tasks"),
    Member("td_incomplete_child_tasks"),
    Member("td_taskwait_ident"),
    Member("td_taskwait_counter"),
    Member("td_taskwait_thread"),
    Member("td_taskgroup"),
    // td_task_count and td_cancel are members of the taskgroup
    Member(""),
    Member(""),
    Member("td_depnode"),
    // dn_node, dn_next, dn_successors, dn_task, dn_npredecessors, dn_nrefs, dn_routine: members of other structs
    Member(""),
    Member(""),
    Member(""),
    Member(""),
    Member(""),
    Member(""),
    Member(""),
    Struct("kmp_base_thread_data"),
    Member("td_deque"),
    Member("td_deque_size"),
    Member("td_deque_head"),
    Member("td_deque_tail"),
    Member("td_deque_ntasks"),
    Member(""),
];

/// Sizes the table gives for a struct together with the padding around it: `sizeof` of the union, not of the member
/// the fields are in.
const PADDED: &[&str] =
    &["kmp_base_info", "kmp_base_team", "kmp_base_root", "kmp_base_task_team", "kmp_base_thread_data"];

/// What the table says. `address` turns the word at an offset of the table, an address of the target, into one of the
/// file.
///
/// # Errors
/// Why the bytes are no table that can be read, in words.
pub(super) fn read(bytes: &[u8], order: ByteOrder, address: &dyn Fn(u64, u64) -> Option<u64>) -> Result<Facts, String> {
    let mut cursor = Cursor { bytes, order, at: 0 };
    let (version, size) = (cursor.u32()?, cursor.u32()?);
    if version != VERSION {
        return Err(format!("its version is {version}, only {VERSION} is known"));
    }
    if size as usize != bytes.len() {
        return Err(format!("it claims {size} bytes and has {}", bytes.len()));
    }
    let mut facts = Facts::default();
    let mut of = "";
    let mut info = None;
    for entry in ENTRIES {
        match entry {
            Number => {
                cursor.u32()?;
            }
            Struct(name) => {
                let size = cursor.u32()?;
                of = name;
                if SCHEMA.find(name).is_some() && !PADDED.contains(name) {
                    facts.sizes.insert((*name).to_owned(), size.into());
                }
            }
            Global(name) => {
                let (at, value) = cursor.address()?;
                if SCHEMA.globals.iter().any(|g| g.name == *name)
                    && let Some(addr) = address(at, value)
                {
                    facts.globals.insert((*name).to_owned(), addr);
                }
            }
            Member(name) => {
                let (offset, size) = (cursor.u32()?, cursor.u32()?);
                if *name == "th_info" {
                    info = Some(offset);
                }
                // All ones: this build does not have the member.
                if name.is_empty() || offset == u32::MAX {
                    continue;
                }
                let (of, name, offset) = match (of, info) {
                    // The descriptor is embedded in the thread.
                    ("kmp_desc", Some(info)) => {
                        ("kmp_base_info", format!("th_info.ds.{name}"), u64::from(info) + u64::from(offset))
                    }
                    _ => (of, (*name).to_owned(), u64::from(offset)),
                };
                let wanted = SCHEMA.find(of).is_some_and(|s| s.fields.iter().any(|f| f.name == name));
                if wanted && (1..=MAX_MEMBER).contains(&size) && offset < MAX_MEMBER.into() {
                    facts.set_field(of, &name, ompd_layout::Field { offset, size: size.into(), bits: None });
                }
            }
        }
    }
    // One 64-bit word ends the table: if it is not the only thing left, this is another table.
    cursor.align(8);
    if bytes.len() as u64 != cursor.at + 8 {
        return Err(format!("it has {} bytes, a table as known has {}", bytes.len(), cursor.at + 8));
    }
    Ok(facts)
}

/// No member, and no offset of one, is larger.
const MAX_MEMBER: u32 = 0x4000;

struct Cursor<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
    at: u64,
}

impl Cursor<'_> {
    fn align(&mut self, to: u64) {
        self.at = self.at.next_multiple_of(to);
    }

    fn take(&mut self, count: u64) -> Result<&[u8], String> {
        let start = self.at as usize;
        self.at += count;
        self.bytes.get(start..self.at as usize).ok_or_else(|| format!("it ends after {} bytes", self.bytes.len()))
    }

    fn u32(&mut self) -> Result<u32, String> {
        let order = self.order;
        Ok(order.uint(self.take(4)?) as u32)
    }

    /// `addr_and_size_t`: an aligned 64-bit address, its offset in the table first, then the object's size and padding.
    fn address(&mut self) -> Result<(u64, u64), String> {
        self.align(8);
        let (order, at) = (self.order, self.at);
        let value = order.uint(self.take(8)?);
        self.take(8)?;
        Ok((at, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_table_is_refused() {
        let read = |bytes: &[u8]| read(bytes, ByteOrder::Little, &|_, value| Some(value));
        assert!(read(&[]).is_err());
        assert!(read(&[0; 4]).is_err());
        let mut bytes = vec![0; 944];
        bytes[0] = 9;
        assert!(read(&bytes).is_err_and(|why| why.contains("claims 0 bytes")));
        bytes[4..8].copy_from_slice(&944u32.to_le_bytes());
        let facts = read(&bytes).expect("a table full of zeros");
        assert!(facts.fields.is_empty(), "members of no size are none: {facts:?}");
        for length in [100, 936, 943] {
            let mut short = bytes[..length].to_vec();
            short[4..8].copy_from_slice(&(length as u32).to_le_bytes());
            assert!(read(&short).is_err(), "{length}");
        }
        bytes.extend([0; 16]);
        bytes[4..8].copy_from_slice(&960u32.to_le_bytes());
        assert!(read(&bytes).is_err(), "longer than any known");
    }
}
