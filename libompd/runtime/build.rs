//! Tells the library the name of its decoder.

#![allow(clippy::print_stdout, reason = "that is how cargo is told")]

use std::env;
use std::io;
use std::path::PathBuf;

mod decoder_name;

fn main() -> io::Result<()> {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    for source in decoder_name::SOURCES.into_iter().chain(["build.rs", "decoder_name.rs"]) {
        println!("cargo::rerun-if-changed={source}");
    }
    println!("cargo::rustc-env=OMPD_DECODER={}", decoder_name::decoder(&package)?);
    Ok(())
}
