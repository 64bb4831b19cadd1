//! Live processes, cores and ELF files, all real: compiled, run, stopped, dumped and damaged here.

mod core;
mod debugger;
mod debuginfod;
mod elf;
mod hostile;
mod jit;
mod live;
mod moment;
mod needed;
mod pthread;
mod still;
mod support;
mod synthetic;
