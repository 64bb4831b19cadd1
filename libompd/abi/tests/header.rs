//! The header of the extension is what cbindgen makes of its source, and a compiler takes it.

use std::path::Path;

fn made() -> String {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(home.join("cbindgen.toml")).expect("a configuration");
    let builder = cbindgen::Builder::new().with_config(config).with_src(home.join("src/extension.rs"));
    let mut made = Vec::new();
    builder.generate().expect("cbindgen reads the source").write(&mut made);
    let mut made = String::from_utf8(made).expect("UTF-8");
    // It puts the whole name of the type in front of constants.
    for name in ["event", "origin", "item"] {
        made = made.replace(&format!("ompdx_{name}_t_"), &format!("ompdx_{name}_"));
    }
    made
}

/// With `OMPD_WRITE_HEADER` in the environment it is written instead.
#[test]
fn the_header_is_what_cbindgen_makes_of_the_source() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/ompd-ext.h");
    let made = made();
    if std::env::var_os("OMPD_WRITE_HEADER").is_some() {
        std::fs::create_dir_all(header.parent().expect("a directory")).expect("a directory");
        std::fs::write(&header, &made).expect("the header");
    }
    let committed = std::fs::read_to_string(&header).expect("the header");
    assert!(committed == made, "run this test with OMPD_WRITE_HEADER=1 and commit include/ompd-ext.h");
}
