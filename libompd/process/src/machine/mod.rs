//! What is particular to a machine: a file for each, and one line in `MACHINES`.
//!
//! What its instructions mean is in `ompd_layout::code`, which has a folder for each machine and a table like this one.

mod aarch64;
mod facts;
mod x86_64;

use std::fmt;

pub use crate::arch::Machine;
pub(crate) use facts::{CallSite, Shown};
pub use facts::{Calls, Facts, KernelSet, Relocations, Roles, SignalReturn, ThreadLocal};

/// The smallest pages that Linux has on any machine, in bytes. Larger pages are multiples of it: what begins or ends with a page
/// does so with one of these, and what is on one of these is on one page.
pub(crate) const SMALLEST_PAGE: u64 = 4096;

/// All machines whose registers are decoded.
static MACHINES: [&Facts; 2] = [&x86_64::FACTS, &aarch64::FACTS];

// Reads the registers of a stopped thread of this host. It is not among the facts: what never stops a thread, as the library
// that debuggers load, must not be linked with ptrace.
#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::of_thread;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::of_thread;
#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
pub(crate) fn of_thread(_tid: i32) -> Result<crate::thread::Registers, String> {
    Err("registers of this machine are not decoded".to_owned())
}

impl Machine {
    /// The machine this program runs on; `None` if it is none of those that are known.
    pub fn host() -> Option<Machine> {
        MACHINES.iter().find(|facts| facts.is_host).map(|facts| facts.machine)
    }

    /// What is known of it; `None` if nothing is: memory can be read, registers cannot.
    pub fn facts(self) -> Option<&'static Facts> {
        MACHINES.iter().copied().find(|facts| facts.machine == self)
    }

    /// The word for it in data of this project; `other` if nothing is known of it.
    pub fn name(self) -> &'static str {
        self.facts().map_or("other", |facts| facts.name)
    }

    /// The name of a system call.
    pub fn call_name(self, number: u64) -> Option<&'static str> {
        (self.facts()?.calls.name)(usize::try_from(number).ok()?)
    }

    /// The number of a system call; `None` too where the machine has no such call.
    pub fn call_number(self, name: &str) -> Option<u64> {
        (self.facts()?.calls.number)(name)
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.facts() {
            Some(facts) => f.write_str(facts.name),
            None => write!(f, "machine {}", self.elf()),
        }
    }
}

/// The name of a signal of Linux; real-time signals have none. Numbers are the same on all machines in the table.
pub fn signal_name(number: u32) -> Option<&'static str> {
    let signal = nix::sys::signal::Signal::try_from(i32::try_from(number).ok()?).ok()?;
    Some(signal.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_found_by_its_elf_number() {
        for facts in MACHINES {
            assert_eq!(Machine::of_elf(facts.machine.elf()).name(), facts.name);
        }
        assert_eq!((Machine::X86_64.name(), Machine::AARCH64.name()), ("x86_64", "aarch64"));
        assert!(Machine::of_elf(20).facts().is_none());
        assert_eq!(format!("{:?}", Machine::of_elf(20)), "machine 20");
    }

    #[test]
    fn system_calls_have_the_numbers_of_the_machine() {
        assert_eq!(
            (Machine::X86_64.call_number("futex"), Machine::AARCH64.call_number("futex")),
            (Some(202), Some(98))
        );
        assert_eq!((Machine::X86_64.call_name(0), Machine::AARCH64.call_name(63)), (Some("read"), Some("read")));
        assert_eq!((Machine::X86_64.call_number("poll"), Machine::AARCH64.call_number("poll")), (Some(7), None));
        assert_eq!(Machine::of_elf(20).call_name(0), None);
    }

    #[test]
    fn roles_lie_within_the_general_registers() {
        for Roles { program_counter, stack_pointer, link, arguments, preserved } in
            MACHINES.map(|facts| &facts.registers)
        {
            let all = [program_counter, stack_pointer].into_iter().chain(link).chain(*arguments).chain(*preserved);
            assert!(all.into_iter().all(|n| usize::from(*n) < crate::thread::GENERAL));
        }
    }
}
