//! Stacks against those gdb finds, at their limits, and out of hostile files.

mod against_gdb;
mod bounds;
mod framehop;
mod hostile;
mod locals;
mod stubs;
mod support;
