//! The plugin for gdb, on programs that know the truth about themselves.

mod common;
mod errors;
<<<<<<< HEAD
mod loading;
=======
mod situations;
>>>>>>> 0fe2257 (gdb: every command in every situation, on runtimes as they are shipped; Fortran, cores and gdbserver)
mod stops;
mod threads;
mod truth;
