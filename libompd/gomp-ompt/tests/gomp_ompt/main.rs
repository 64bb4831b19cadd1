//! The library in front of libgomp: what it covers, what tools are told, and what is seen from outside.

mod archive;
mod choice;
mod common;
mod coverage;
mod hangs;
mod hostile;
mod programs;
mod witness;
