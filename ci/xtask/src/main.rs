//! `xtask`.
fn main() {}
