//! The name of the decoder, by which records of another one are ignored.

use std::fs;
use std::path::Path;

#[path = "../decoder_name.rs"]
mod decoder_name;

#[test]
fn every_source_of_the_decoder_is_in_its_name() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let name = decoder_name::decoder(package).expect("the sources");
    assert_eq!(ompd_runtime::DECODER, name);
    for source in decoder_name::SOURCES {
        assert!(package.join(source).exists(), "{source}");
    }
    let copy = tempfile::tempdir().expect("a directory");
    let package = copy.path().join("libompd/runtime");
    let recipe = package.join("src/family/recover.rs");
    let decoder = copy.path().join("libompd/layout/src/code.rs");
    let lock = copy.path().join("Cargo.lock");
    let mut names = Vec::new();
    for file in [&recipe, &decoder, &lock, &recipe] {
        fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        let before = fs::read(file).unwrap_or_default();
        fs::write(file, [&before[..], b"\n"].concat()).expect("a source");
        names.push(decoder_name::decoder(&package).expect("the sources"));
        assert_eq!(decoder_name::decoder(&package).ok().as_ref(), names.last());
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 4, "each change gives another name");
}
