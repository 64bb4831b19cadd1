//! Live processes, cores and ELF files, all real: compiled, run, stopped, dumped and damaged here.

mod core;
mod elf;
mod hostile;
mod live;
mod support;
mod synthetic;
