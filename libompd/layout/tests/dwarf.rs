//! Extraction from DWARF that real compilers write, compared with what the compiled program says of itself.

#![allow(clippy::print_stderr, reason = "skips say why")]

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use ompd_layout::dwarf::{self, DwarfError};
use ompd_layout::{BitRange, Facts, FieldSchema, GlobalSchema, Schema, StructSchema};
use ompd_process::ByteOrder;
use ompd_process::elf::ElfFile;
use test_programs::succeeds;

const fn field(name: &'static str) -> FieldSchema {
    FieldSchema { name, meaning: "" }
}

const SCHEMA: Schema = Schema {
    family: "test",
    structs: &[
        StructSchema {
            name: "shapes",
            dwarf_names: &["no_such_name", "shapes"],
            meaning: "",
            fields: &[
                field("counter"),
                field("left"),
                field("parts.high"),
                field("nameless_pointer"),
                field("atomic_int"),
                field("atomic_pointer"),
                field("task"),
                field("nested.in.deep"),
                field("tied"),
                field("final"),
                field("kind"),
                field("last"),
                field("wide"),
                field("matrix"),
                field("cell"),
                field("opaque"),
                field("tail"),
                field("not_a_member"),
                field("no_such_member"),
                field("opaque.through_a_pointer"),
            ],
        },
        StructSchema {
            name: "the_flag_t",
            dwarf_names: &["flag<unsigned long, true>", "flag<long unsigned int, true>"],
            meaning: "",
            fields: &[field("base_field"), field("loc"), field("word")],
        },
        StructSchema { name: "plain_t", dwarf_names: &[], meaning: "", fields: &[field("in.deep")] },
        StructSchema { name: "padded", dwarf_names: &[], meaning: "", fields: &[field("view.in.deep")] },
        StructSchema { name: "number_t", dwarf_names: &[], meaning: "", fields: &[] },
        StructSchema { name: "declared_only", dwarf_names: &[], meaning: "", fields: &[field("x")] },
    ],
    globals: &[
        GlobalSchema { name: "global_table", meaning: "" },
        GlobalSchema { name: "local_global", meaning: "" },
        GlobalSchema { name: "per_thread", meaning: "" },
        GlobalSchema { name: "no_such_global", meaning: "" },
    ],
};

/// Compiles the fixture; `None` (with a printed reason) if the compiler cannot.
fn compile(dir: &Path, compiler: &str, flags: &[&str]) -> Option<std::path::PathBuf> {
    let out = dir.join(format!("{compiler}{}", flags.concat()));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/shapes.cpp");
    let mut command = Command::new(compiler);
    command.args(["-w", "-Wno-invalid-offsetof", "-std=c++17", source, "-o"]).arg(&out).args(flags);
    succeeds(&mut command).then_some(out)
}

fn check(program: &Path, facts: &Facts) {
    let said = Command::new(program).output().expect("the fixture runs");
    let said = String::from_utf8(said.stdout).expect("the fixture prints ASCII");
    let mut compared = 0;
    for line in said.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["=", name, size] => assert_eq!(facts.sizes[name].to_string(), size, "sizeof({name})"),
            [of, path, offset, size] => {
                let found = facts.field(of, path).unwrap_or_else(|| panic!("{of}.{path} not found"));
                assert_eq!(
                    (found.offset.to_string().as_str(), found.size.to_string().as_str()),
                    (offset, size),
                    "{line}"
                );
                assert_eq!(found.bits, None);
            }
            _ => panic!("unexpected line {line}"),
        }
        compared += 1;
    }
    assert_eq!(compared, 22);

    // The compiler's bit layout on x86-64 and aarch64: upwards from the least significant bit of the unit.
    let bits = |name| {
        let found = facts.field("shapes", name).unwrap_or_else(|| panic!("{name} not found"));
        let Some(BitRange { shift, width }) = found.bits else { panic!("{name} is no bit-field") };
        (found.offset * 8 + u64::from(shift), width)
    };
    let nested = facts.field("shapes", "nested.in.deep").expect("checked above");
    let first = (nested.offset + 8) * 8;
    assert_eq!(bits("tied"), (first, 1));
    assert_eq!(bits("final"), (first + 1, 1));
    assert_eq!(bits("kind"), (first + 16, 3));
    assert_eq!(bits("last"), (first + 24, 8));
    assert_eq!(bits("wide").1, 40);
    for absent in ["not_a_member", "no_such_member", "opaque.through_a_pointer"] {
        assert_eq!(facts.field("shapes", absent), None, "{absent}");
    }
    assert!(!facts.sizes.contains_key("declared_only"));

    let file = ElfFile::open(program).expect("the fixture is an ELF file");
    for (name, mangled) in [("global_table", "global_table"), ("local_global", "_ZL12local_global")] {
        let symbol = file.symbol(mangled).expect("the fixture is not stripped");
        assert_eq!(facts.globals.get(name), Some(&symbol.addr.0), "{name}");
    }
    assert_eq!(facts.globals.len(), 2, "thread-local and missing variables have no address");
}

#[test]
fn every_flavour_of_dwarf_gives_what_the_program_says() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut done = 0;
    for compiler in ["c++", "clang++-14", "clang++"] {
        for flags in [
            &["-gdwarf-5"][..],
            &["-gdwarf-4"],
            &["-gdwarf-4", "-gstrict-dwarf"],
            &["-gdwarf-3", "-gstrict-dwarf"],
            &["-gdwarf-5", "-O2", "-fdebug-types-section"],
            &["-gdwarf-4", "-fdebug-types-section", "-gz"],
            &["-gdwarf-5", "-flto", "-O1"],
        ] {
            let Some(program) = compile(dir.path(), compiler, flags) else { continue };
            let file = ElfFile::open(&program).expect("the fixture is an ELF file");
            let facts = dwarf::extract_elf(&file, &SCHEMA).unwrap_or_else(|e| panic!("{compiler} {flags:?}: {e}"));
            eprintln!("{compiler} {flags:?}");
            check(&program, &facts);
            done += 1;
        }
    }
    assert!(done > 0, "no compiler worked");
}

/// Runs a tool on files; false (with a printed reason) if it is not there or refuses.
fn tool(program: &str, args: &[&str], files: &[&Path]) -> bool {
    succeeds(Command::new(program).args(args).args(files))
}

fn open(path: &Path) -> ElfFile {
    ElfFile::open(path).expect("an ELF file")
}

/// The ways distributions ship debug information: compressed, in a separate file, or both.
#[test]
fn every_form_of_debug_file_gives_the_same_facts() {
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let dir = temporary.path();
    let Some(program) = compile(dir, "c++", &["-gdwarf-5", "-Wl,--build-id"]) else { return };
    let facts = dwarf::extract_elf(&open(&program), &SCHEMA).expect("facts");
    check(&program, &facts);
    let same = |file: &ElfFile, form: &str| {
        assert_eq!(dwarf::extract_elf(file, &SCHEMA).as_ref(), Ok(&facts), "{form}: {:?}", file.debug_search());
        assert_eq!(file.missing_supplement(), None);
        eprintln!("{form}");
    };

    let id = open(&program).build_id().expect("the linker was told to make one").to_string();
    let store = dir.join("store/.build-id").join(&id[..2]);
    std::fs::create_dir_all(&store).expect("directory");
    let by_id = store.join(format!("{}.debug", &id[2..]));
    let stripped = dir.join("stripped");
    assert!(tool("objcopy", &["--strip-all"], &[&program, &stripped]));
    let is_compressed = |path: &Path| {
        use object::{Object, ObjectSection};
        let bytes = std::fs::read(path).expect("read");
        let file = object::File::parse(&*bytes).expect("an object file");
        file.sections().any(|s| s.compressed_file_range().is_ok_and(|r| r.format != object::CompressionFormat::None))
    };
    for method in ["none", "zlib", "zlib-gnu", "zstd"] {
        let compress = format!("--compress-debug-sections={method}");
        let whole = dir.join(format!("whole-{method}"));
        if !tool("objcopy", &[&compress], &[&program, &whole]) {
            continue;
        }
        assert_eq!(is_compressed(&whole), method != "none", "{method}");
        same(&open(&whole), &format!("sections compressed with {method}"));

        let separate = dir.join(format!("separate-{method}.debug"));
        assert!(tool("objcopy", &["--only-keep-debug", &compress], &[&program, &separate]));
        let linked = dir.join(format!("linked-{method}"));
        let link = format!("--add-gnu-debuglink={}", separate.display());
        assert!(tool("objcopy", &["--strip-all", &link], &[&program, &linked]));
        assert!(!open(&linked).has_dwarf());
        same(&open(&linked), &format!("debug link to a file compressed with {method}"));

        std::fs::copy(&separate, &by_id).expect("copy");
        let file = open(&stripped).with_debug_dirs(&[dir.join("store")]);
        same(&file, &format!("found by build-id, compressed with {method}"));
        assert_eq!(file.debug_companion().expect("companion").path(), by_id);
    }
    let alone = dwarf::extract_elf(&open(&stripped), &SCHEMA);
    assert_eq!(alone, Err(DwarfError::Absent), "without the directory nothing is found");
}

/// `dwz -m` moves what two files have in common into a third one.
#[test]
fn a_supplementary_file_is_followed_and_its_absence_is_noted() {
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let dir = temporary.path();
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let Some(program) = compile(dir, "c++", &[version, "-Wl,--build-id"]) else { return };
        let facts = dwarf::extract_elf(&open(&program), &SCHEMA).expect("facts");
        let Some(other) = compile(dir, "c++", &[version, "-O1", "-Wl,--build-id"]) else { return };
        let base = dir.join(format!("dwz{version}"));
        std::fs::create_dir_all(base.join("bin")).expect("directory");
        let (first, second) = (base.join("bin/first"), base.join("bin/second"));
        std::fs::copy(&program, &first).expect("copy");
        std::fs::copy(other, &second).expect("copy");
        // Two that share a type with each other which the first one only declares.
        let strangers = ["third", "fourth"].map(|name| base.join("bin").join(name));
        let source = base.join("stranger.c");
        let members: String = (0..40).map(|i| format!("long member_with_a_long_name_{i};")).collect();
        let text = format!("struct declared_only {{ int x; {members} }} it; int main(void) {{ return it.x; }}");
        std::fs::write(&source, text).expect("source");
        for stranger in &strangers {
            assert!(tool("cc", &["-g", version, "-Wl,--build-id", "-o"], &[stranger, &source]));
        }
        let common = base.join("common.debug");
        let common_name = common.to_str().expect("UTF-8");
        if !tool("dwz", &["-m", common_name, "-M", "../common.debug"], &[&first, &second, &strangers[0], &strangers[1]])
        {
            return;
        }
        let own = open(&first).section(".debug_info").expect("section").len();
        let whole = open(&program).section(".debug_info").expect("section").len();
        assert!(own < whole, "nothing was moved");

        let same = |file: &ElfFile, place: &Path| {
            assert_eq!(file.missing_supplement(), None);
            assert_eq!(file.debug_supplement().map(|s| s.path().to_owned()).as_deref(), Some(place));
            assert_eq!(dwarf::extract_elf(file, &SCHEMA).as_ref(), Ok(&facts), "{:?}", file.debug_search());
        };
        same(&open(&first), &common);
        // What the third file says of other programs is theirs alone: `facts` has nothing of it.
        let theirs = dwarf::extract_elf(&open(&strangers[0]), &SCHEMA).expect("facts");
        assert!(theirs.field("declared_only", "x").is_some() && !facts.sizes.contains_key("declared_only"));
        let moved = open(&common);
        let all = dwarf::extract(|name| moved.section(name), ByteOrder::Little, &SCHEMA).expect("facts");
        assert!(all.field("declared_only", "x").is_some(), "it was not moved");

        // In a debug directory, by build-id, compressed.
        let id = open(&common).build_id().expect("dwz gives it one").to_string();
        let store = base.join("store/.build-id").join(&id[..2]);
        std::fs::create_dir_all(&store).expect("directory");
        let by_id = store.join(format!("{}.debug", &id[2..]));
        assert!(tool("objcopy", &["--compress-debug-sections=zlib"], &[&common, &by_id]));
        std::fs::remove_file(&common).expect("remove");
        same(&open(&first).with_debug_dirs(&[base.join("store")]), &by_id);

        // Gone: less is known, and nothing else.
        let missing = |file: &ElfFile| {
            let note = file.missing_supplement().expect("a note");
            assert!(note.contains(&id) && note.contains("../common.debug"), "{note}");
            assert!(file.debug_supplement().is_none());
            let left = dwarf::extract_elf(file, &SCHEMA).expect("the file itself is whole");
            for (of, size) in &left.sizes {
                assert_eq!(facts.sizes.get(of), Some(size), "{of}");
            }
            for (of, fields) in &left.fields {
                for (name, field) in fields {
                    let known = facts.field(of, name).expect("no field that is not there");
                    assert_eq!((known.offset, known.bits), (field.offset, field.bits), "{of}.{name}");
                    assert!(field.size == known.size || field.size == 0, "{of}.{name}");
                }
            }
            for (name, addr) in &left.globals {
                assert_eq!(facts.globals.get(name), Some(addr), "{name}");
            }
            assert!(left != facts, "the supplementary file was not needed");
        };
        missing(&open(&first));
        assert!(open(&first).debug_search().iter().any(|l| l.contains("common.debug") && l.contains("No such file")));

        // Another file under its name.
        std::fs::copy(&program, &common).expect("copy");
        missing(&open(&first));
        let wrong = open(&program).build_id().expect("build-id").to_string();
        let both = |l: &String| l.contains(&wrong) && l.contains(&id);
        assert!(open(&first).debug_search().iter().any(both), "{:?}", open(&first).debug_search());
        // Not a file at all: it is not even opened.
        std::fs::remove_file(&common).expect("remove");
        assert!(tool("mkfifo", &[], &[&common]));
        missing(&open(&first));
        assert!(open(&first).debug_search().iter().any(|l| l.contains("not a regular file")));
    }
}

#[test]
fn a_file_without_debug_information_says_so() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let Some(program) = compile(dir.path(), "c++", &["-g0"]) else { return };
    let file = ElfFile::open(&program).expect("the fixture is an ELF file");
    let none = dwarf::extract(|_| None, ByteOrder::Little, &SCHEMA);
    assert_eq!(none, Err(DwarfError::Absent));
    // Start-up code may come with line tables of its own; types it has none.
    if let Ok(facts) = dwarf::extract_elf(&file, &SCHEMA) {
        assert_eq!(facts.fields.len(), 0);
    }
    let Some(program) = compile(dir.path(), "c++", &["-gdwarf-5", "-gsplit-dwarf"]) else { return };
    let file = ElfFile::open(&program).expect("the fixture is an ELF file");
    assert_eq!(dwarf::extract_elf(&file, &SCHEMA), Err(DwarfError::Split));
}

/// Bytes of a hostile file may give an error or nonsense, but neither a panic nor an endless walk.
#[test]
fn damaged_sections_never_panic() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let Some(program) = compile(dir.path(), "c++", &["-gdwarf-4"]) else { return };
    let file = ElfFile::open(&program).expect("the fixture is an ELF file");
    let names = [".debug_info", ".debug_abbrev", ".debug_str"];
    let whole: HashMap<&str, Vec<u8>> =
        names.iter().filter_map(|n| Some((*n, file.section(n)?.into_owned()))).collect();
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut failures = 0;
    for round in 0..1500 {
        let mut damaged = whole.clone();
        for _ in 0..1 + round % 4 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let name = names[(random >> 33) as usize % 2];
            let Some(bytes) = damaged.get_mut(name) else { continue };
            if round % 10 == 0 {
                bytes.truncate((random >> 20) as usize % bytes.len().max(1));
            } else if !bytes.is_empty() {
                let at = (random >> 20) as usize % bytes.len();
                bytes[at] = (random >> 12) as u8;
            }
        }
        let sections = |name: &str| damaged.get(name).map(|b| Cow::Borrowed(b.as_slice()));
        failures += usize::from(dwarf::extract(sections, ByteOrder::Little, &SCHEMA).is_err());
    }
    assert!(failures > 0, "damage was never noticed");
}

/// Sections made by hand: one unit of DWARF 5 or many.
struct Hostile {
    info: Vec<u8>,
    abbrev: Vec<u8>,
    line: Vec<u8>,
    str: Vec<u8>,
}

impl Hostile {
    /// A unit whose abbreviations begin at `abbrev`.
    fn unit(&mut self, abbrev: u32, entries: &[u8]) {
        self.info.extend((8 + entries.len() as u32).to_le_bytes());
        self.info.extend([5, 0, 1, 8]);
        self.info.extend(abbrev.to_le_bytes());
        self.info.extend(entries);
    }

    fn extract(&self) -> Result<Facts, DwarfError> {
        let section = |name: &str| match name {
            ".debug_info" => Some(Cow::Borrowed(&self.info[..])),
            ".debug_abbrev" => Some(Cow::Borrowed(&self.abbrev[..])),
            ".debug_line" => Some(Cow::Borrowed(&self.line[..])),
            ".debug_str" => Some(Cow::Borrowed(&self.str[..])),
            _ => None,
        };
        dwarf::extract(section, ByteOrder::Little, &SCHEMA)
    }
}

fn hostile() -> Hostile {
    Hostile { info: Vec::new(), abbrev: Vec::new(), line: Vec::new(), str: Vec::new() }
}

// Abbreviations: code, tag, children, pairs of attribute and form, two zeros.
const COMPILE_UNIT: u8 = 0x11;
const STRUCTURE: u8 = 0x13;
const NAME: u8 = 0x03;
const STRP: u8 = 0x0e;
const DECLARATION: u8 = 0x3c;
const FLAG_PRESENT: u8 = 0x19;

#[test]
fn line_tables_are_not_read() {
    let mut h = hostile();
    // DW_AT_stmt_list in DW_FORM_sec_offset: 10,000 units that share one table of 20,000 files.
    h.abbrev = vec![1, COMPILE_UNIT, 0, 0x10, 0x17, 0, 0, 0];
    for _ in 0..10_000 {
        h.unit(0, &[1, 0, 0, 0, 0]);
    }
    // What follows version and length: no opcodes, no directories, files with a name and three numbers.
    let mut header = vec![1, 1, 1, 0xfb, 14, 1, 0];
    header.extend([b'f', 0, 0, 0, 0].repeat(20_000));
    header.push(0);
    h.line.extend((header.len() as u32 + 6).to_le_bytes());
    h.line.extend([4, 0]);
    h.line.extend((header.len() as u32).to_le_bytes());
    h.line.extend(header);
    assert_eq!(h.extract(), Ok(Facts::default()));
}

#[test]
fn abbreviations_are_not_read_once_for_each_unit() {
    let mut h = hostile();
    // Every unit's table is the rest of everyone's: 20,000 times up to 20,000 abbreviations, each with its own code.
    for n in 1..=20_000u32 {
        let code = [0x80 | (n & 0x7f) as u8, 0x80 | (n >> 7 & 0x7f) as u8, (n >> 14) as u8];
        h.unit(h.abbrev.len() as u32, &code);
        h.abbrev.extend(code);
        h.abbrev.extend([COMPILE_UNIT, 0, 0, 0]);
    }
    assert_eq!(h.extract(), Ok(Facts::default()));
}

#[test]
fn attributes_that_take_no_bytes_are_counted() {
    let mut h = hostile();
    h.abbrev = vec![1, COMPILE_UNIT, 1, 0, 0, 2, STRUCTURE, 0];
    h.abbrev.extend([DECLARATION, FLAG_PRESENT].repeat(50_000));
    h.abbrev.extend([0, 0, 3, STRUCTURE, 1, 0, 0, 0]);
    // As children of the root, and as children of one child.
    for first in [&[1][..], &[1, 3]] {
        h.info.clear();
        let mut entries = first.to_vec();
        entries.resize(100_000, 2);
        h.unit(0, &entries);
        assert_eq!(h.extract(), Err(DwarfError::TooComplex));
    }
}

#[test]
fn names_that_all_are_one_long_name_are_counted() {
    let mut h = hostile();
    h.abbrev = vec![1, COMPILE_UNIT, 1, 0, 0, 2, STRUCTURE, 0, NAME, STRP, 0, 0, 0];
    let mut entries = vec![1];
    entries.extend([2, 0, 0, 0, 0].repeat(100_000));
    h.unit(0, &entries);
    h.str = vec![b'x'; 4 << 20];
    h.str.push(0);
    assert_eq!(h.extract(), Err(DwarfError::TooComplex));
}
