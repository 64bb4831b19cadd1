//! Gives the library the name by which debuggers load it, and has it stay once it is loaded.

#![allow(clippy::print_stdout, reason = "that is how cargo is told")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The interface says which version of it is wanted (`ompd_initialize`), so the file's name has none.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libompd.so");
    // The layouts it brings are decoded once and kept. If dlclose unmapped it, they would be lost, and made anew at each dlopen.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
