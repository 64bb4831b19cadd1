//! ELF files: what the tools that wrote them say is what is read.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::support;
use ompd_process::elf::ElfFile;
use ompd_process::{Addr, BuildId, SymbolOrigin};

/// Builds the library once.
fn library() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let script = support::scratch().join("versions");
        let text = "OLD_1.0 { global: answer; };\nNEW_2.0 { global: answer; exported_data; caller; mark; table; local: *; } OLD_1.0;\n";
        std::fs::write(&script, text).expect("version script");
        let script = format!("-Wl,--version-script={}", script.display());
        let flags = ["-shared", "-fPIC", "-Wl,--build-id", "-Wl,-soname,libsubject.so.7", &script];
        support::compile("library.c", "library.so", &flags)
    })
}

fn open(path: &Path) -> ElfFile {
    ElfFile::open(path).unwrap_or_else(|e| panic!("{e}"))
}

/// A copy of the library in a directory of its own, put through `objcopy`.
fn copy(name: &str, objcopy: &[&str]) -> PathBuf {
    let dir = support::scratch().join(format!("{name}.dir"));
    std::fs::create_dir_all(&dir).expect("directory");
    let path = dir.join(name);
    support::run(Command::new("objcopy").args(objcopy).arg(library()).arg(&path));
    path
}

/// What `readelf` prints.
fn readelf(args: &[&str], path: &Path) -> String {
    let out = Command::new("readelf").args(args).arg(path).output().expect("readelf");
    String::from_utf8_lossy(&out.stdout).into_owned()
}

#[test]
fn dynamic_facts_are_those_of_the_linker() {
    let file = open(library());
    assert_eq!(file.soname().as_deref(), Some("libsubject.so.7"));
    assert!(file.needed().iter().any(|n| n.starts_with("libc.so")));
    assert_eq!(file.version_nodes(), ["OLD_1.0", "NEW_2.0"]);
    let mut names: Vec<&str> = file.exported_names().collect();
    names.sort_unstable();
    assert_eq!(names, ["answer", "answer", "caller", "exported_data", "mark", "table"]);
    assert!(file.exports("caller") && !file.exports("secret") && !file.exports("puts") && !file.exports("OLD_1.0"));
    let id = file.build_id().expect("build-id").to_string();
    assert!(readelf(&["-n"], library()).contains(&id));
    assert!(file.tls_segment().is_some_and(|(size, align)| size >= 4 && align >= 4));
}

#[test]
fn symbols_carry_version_origin_size_and_kind() {
    let file = open(library());
    let answer = file.symbol("answer").expect("answer");
    assert_eq!(answer.origin, SymbolOrigin::Dynsym);
    assert_eq!(Some(answer.addr), file.symbol("new_answer").map(|s| s.addr), "the default version");
    let secret = file.symbol("secret").expect("secret");
    assert_eq!((secret.origin, secret.tls), (SymbolOrigin::Symtab, false));
    assert_eq!(file.symbol("exported_data").map(|s| s.size), Some(24));
    assert!(file.symbol("mark").is_some_and(|s| s.tls && s.size == 4));
    assert!(file.symbol("puts").is_none(), "undefined here");
    assert!(file.symbol("").is_none());
    let (symbol, distance) = file.symbol_at(Addr(secret.addr.0 + 3)).expect("symbol");
    assert_eq!((symbol.name.as_str(), distance), ("secret", 3));
    assert!(file.symbol_at(Addr(u64::MAX)).is_none());
}

#[test]
fn code_ranges_and_relocations_serve_a_decoder() {
    let file = open(library());
    let caller = file.symbol("caller").expect("caller");
    let range = file.function_range(caller.addr.0 + 1).expect("range");
    assert_eq!((range.start, range.end - range.start), (caller.addr.0, caller.size));
    assert!(file.executable_ranges().iter().any(|r| r.contains(&range.start)));
    assert!(file.bytes_at(range.start, caller.size).is_some());
    let end = file.executable_ranges()[0].end;
    assert!(file.bytes_at(end - 4, 8).is_none() && file.bytes_at(u64::MAX, 1).is_none());
    // Without symbols the frame description gives the same extent.
    let stripped = open(&copy("nosyms.so", &["--strip-all"]));
    let secret = file.symbol("secret").expect("secret");
    assert!(stripped.symbol("secret").is_none());
    assert_eq!(stripped.function_range(secret.addr.0 + 2), Some(secret.addr.0..secret.addr.0 + secret.size));
    assert!(file.function_range(0).is_none());

    let relocations = file.relocations();
    assert!(relocations.values().any(|r| r.symbol.as_deref() == Some("puts") && r.symbol_value == 0));
    // `table` holds the address of `secret`: a relative relocation without a symbol.
    let table = file.symbol("table").expect("table").addr.0;
    let entry = relocations.get(&table).expect("relocation of the table");
    assert_eq!((entry.symbol.as_deref(), entry.addend as u64), (None, secret.addr.0));
}

#[test]
fn packed_relocations_are_those_the_linker_lists() {
    let path = support::scratch().join("packed.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/packed.c");
    let mut linker = Command::new("cc");
    linker.args(["-shared", "-fPIC", "-Wl,-z,pack-relative-relocs", "-o"]).arg(&path).arg(&source);
    let out = linker.output().expect("cc");
    // `readelf` prints one address per line below "Relocation section '.relr.dyn' ..." and "... offsets".
    let listed = readelf(&["--relocs", "--wide"], &path);
    let packed = listed.split("'.relr.dyn'").nth(1).unwrap_or_default();
    let places: Vec<u64> = packed.lines().skip(2).map_while(|line| u64::from_str_radix(line.trim(), 16).ok()).collect();
    if !out.status.success() || places.is_empty() {
        support::skip("this linker does not pack relocations");
        return;
    }
    let file = open(&path);
    for place in &places {
        assert!(file.relocations().contains_key(place), "{place:#x}");
    }
    // An array of pointers to the elements of another one, far longer than one map of bits.
    let (table, values) = (file.symbol("table").expect("table"), file.symbol("values").expect("values"));
    for n in 0..200 {
        let reloc = file.relocations().get(&(table.addr.0 + 8 * n)).expect("every element is relocated");
        assert_eq!((reloc.symbol.as_deref(), reloc.addend as u64), (None, values.addr.0 + 4 * n));
        assert!(reloc.kind == 8 || reloc.kind == 1027, "{reloc:?}");
    }
}

#[test]
fn compressed_debug_sections_are_unpacked() {
    assert!(open(library()).has_dwarf());
    let plain = open(library()).section(".debug_info").expect("plain").into_owned();
    for method in ["zlib", "zlib-gnu", "zstd"] {
        let path = support::scratch().join(format!("{method}.so"));
        let option = format!("--compress-debug-sections={method}");
        let out = Command::new("objcopy").arg(&option).arg(library()).arg(&path).output().expect("objcopy");
        if !out.status.success() {
            support::skip(&format!("objcopy cannot compress with {method}"));
            continue;
        }
        let file = open(&path);
        assert!(file.has_dwarf());
        assert_eq!(file.section(".debug_info").as_deref(), Some(&plain[..]), "{method}");
    }
    assert!(open(library()).section(".no_such_section").is_none());
    assert!(open(library()).section(".bss").is_none_or(|s| s.is_empty()));
}

/// Every look-up of a section goes through all headers: a file with too many is not used at all, and that is told.
#[test]
fn thousands_of_section_headers_are_refused() {
    const HEADER: usize = 64;
    let own = std::fs::read(support::subject()).expect("a program");
    // e_shoff and e_shnum (elf(5)); the table is repeated at the end, with more headers.
    let table = u64::from_le_bytes(own[0x28..0x30].try_into().expect("eight bytes")) as usize;
    let count = usize::from(u16::from_le_bytes([own[0x3c], own[0x3d]]));
    let with = |more: usize| {
        let mut bytes = own.clone();
        let at = bytes.len() as u64;
        bytes.extend_from_slice(&own[table..table + HEADER * count]);
        bytes.resize(bytes.len() + HEADER * more, 0);
        bytes[0x28..0x30].copy_from_slice(&at.to_le_bytes());
        bytes[0x3c..0x3e].copy_from_slice(&u16::try_from(count + more).expect("a number of sections").to_le_bytes());
        ElfFile::from_bytes("crowded", bytes)
    };
    assert!(with(100).is_ok());
    let error = with(20_000 - count).expect_err("too many").to_string();
    assert!(error.contains("20000 section headers are more than any program has"), "{error}");
}

/// Two hundred megabytes of zeros take a fifth of one: nothing of such a file is decompressed, and that is told.
#[test]
fn what_decompresses_to_too_much_is_left_alone() {
    let dir = support::scratch();
    let (source, large, packed) = (dir.join("large.s"), dir.join("large.o"), dir.join("large.so"));
    let sections = (0..10).map(|n| format!(".section .debug_x{n},\"\",@progbits\n.zero {}\n", 20 << 20));
    std::fs::write(&source, sections.collect::<String>()).expect("a source");
    support::run(Command::new("gcc").arg("-c").arg(&source).arg("-o").arg(&large));
    support::run(Command::new("objcopy").arg("--compress-debug-sections=zlib").arg(&large).arg(&packed));
    let file = open(&packed);
    let size = std::fs::metadata(&packed).expect("the file").len();
    assert!(size < 1 << 20, "{size} bytes");
    assert!(file.section(".debug_x1").is_none());
    let told = file.refused_sections().expect("it is told");
    assert!(told.contains("its compressed sections are not used: they would take 200 MiB"), "{told}");
    assert_eq!(open(library()).refused_sections(), None);
    assert!(open(&large).section(".debug_x1").is_some_and(|bytes| bytes.len() == 20 << 20));
}

#[test]
fn mini_debug_info_names_functions_after_strip() {
    if !support::have("xz") {
        return support::skip("xz is not installed");
    }
    let dir = support::scratch();
    let (mini, packed) = (dir.join("mini"), dir.join("mini.xz"));
    support::run(
        Command::new("objcopy")
            .args(["-S", "--remove-section=.comment", "--keep-symbol=secret"])
            .arg(library())
            .arg(&mini),
    );
    let _ = std::fs::remove_file(&packed);
    support::run(Command::new("xz").arg("-k").arg(&mini));
    let add = format!(".gnu_debugdata={}", packed.display());
    let file = open(&copy("minidebug.so", &["--strip-all", "--add-section", &add]));
    let secret = file.symbol("secret").expect("secret");
    assert_eq!(
        (secret.origin, Some(secret.addr)),
        (SymbolOrigin::MiniDebugInfo, open(library()).symbol("secret").map(|s| s.addr))
    );
    // A bomb: more than is allowed, in little space.
    let bomb = dir.join("bomb");
    std::fs::write(&bomb, vec![0; 80 << 20]).expect("bomb");
    support::run(Command::new("xz").args(["-f", "-0"]).arg(&bomb));
    let add = format!(".gnu_debugdata={}.xz", bomb.display());
    assert!(open(&copy("bomb.so", &["--strip-all", "--add-section", &add])).symbol("secret").is_none());
}

#[test]
fn a_debug_link_is_followed_if_the_checksum_matches() {
    let debug = copy("linked.debug", &["--only-keep-debug"]);
    let link = format!("--add-gnu-debuglink={}", debug.display());
    let path = copy("linked.so", &["--strip-all", &link]);
    let place = path.with_file_name(".debug").join("linked.debug");

    let file = open(&path);
    assert!(!file.has_dwarf() && file.debug_companion().is_none() && file.symbol("secret").is_none());
    assert!(
        file.debug_search().iter().any(|l| l.contains("linked.debug") && l.contains("No such file")),
        "{:?}",
        file.debug_search()
    );

    std::fs::create_dir_all(place.parent().expect("parent")).expect("directory");
    std::fs::copy(&debug, &place).expect("copy");
    let file = open(&path);
    let companion = file.debug_companion().expect("companion");
    assert!(companion.has_dwarf() && companion.path() == place);
    assert_eq!(file.symbol("secret").map(|s| s.origin), Some(SymbolOrigin::DebugFile));

    let mut bytes = std::fs::read(&debug).expect("read");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&place, &bytes).expect("write");
    let file = open(&path);
    assert!(file.debug_companion().is_none());
    assert!(file.debug_search().iter().any(|l| l.contains("CRC-32")), "{:?}", file.debug_search());

    // The debug file of another build.
    let script = format!("-Wl,--version-script={}", support::scratch().join("versions").display());
    let flags = ["-shared", "-fPIC", "-Wl,--build-id=0x0123456789abcdef0123456789abcdef01234567", &script];
    let other = support::compile("library.c", "other.so", &flags);
    std::fs::copy(other, &place).expect("copy");
    let file = open(&path);
    assert!(file.debug_companion().is_none());
    let id = file.build_id().map(BuildId::to_string).expect("build-id");
    let both = |l: &String| l.contains("0123456789abcdef0123456789abcdef01234567") && l.contains(&id);
    assert!(file.debug_search().iter().any(both), "{:?}", file.debug_search());
}

#[test]
fn only_regular_elf_files_are_opened() {
    let dir = support::scratch();
    let refused = |path: &Path| ElfFile::open(path).expect_err("refused").to_string();
    assert!(refused(dir).contains("not a regular file"));
    assert!(refused(Path::new("/dev/null")).contains("not a regular file"));
    let pipe = dir.join("pipe");
    support::run(Command::new("mkfifo").arg(&pipe));
    assert!(refused(&pipe).contains("not a regular file"));
    assert!(refused(&dir.join("missing")).contains("No such file"));
    let text = dir.join("text");
    std::fs::write(&text, "int main;").expect("write");
    assert!(refused(&text).contains("ELF magic"));
    std::fs::write(&text, "").expect("write");
    assert!(ElfFile::open(&text).is_err());
}

/// The runtime this project is about, as the distribution ships it: stripped.
#[test]
fn the_installed_libgomp_is_understood() {
    let out = Command::new("cc").arg("-print-file-name=libgomp.so.1").output().expect("cc");
    let path = PathBuf::from(String::from_utf8_lossy(&out.stdout).trim());
    if !path.is_absolute() {
        return support::skip("the C compiler has no libgomp");
    }
    let file = open(&path);
    assert_eq!(file.soname().as_deref(), Some("libgomp.so.1"));
    let nodes = file.version_nodes();
    assert!(["OMP_1.0", "GOMP_1.0"].iter().all(|n| nodes.iter().any(|have| have == n)), "{nodes:?}");
    let symbol = file.symbol("omp_get_thread_num").expect("symbol");
    assert!(symbol.size > 0 && file.exports("GOMP_parallel") && !file.exports("malloc"));
    assert_eq!(file.function_range(symbol.addr.0), Some(symbol.addr.0..symbol.addr.0 + symbol.size));
    assert!(file.bytes_at(symbol.addr.0, symbol.size).is_some());
    if cfg!(target_arch = "x86_64") {
        // R_X86_64_TPOFF64: where the thread's own data lies relative to its thread pointer.
        assert!(file.relocations().values().any(|r| r.kind == 18));
    }
    // Functions that no symbol names are known by their frame descriptions: most of the code.
    let code = &file.executable_ranges()[0];
    let named = code.clone().step_by(64).filter(|a| file.symbol_at(Addr(*a)).is_some()).count();
    let framed = code.clone().step_by(64).filter(|a| file.function_range(*a).is_some()).count();
    assert!(framed > named, "{framed} {named}");
}

/// Every method, on damaged files: answers may be wrong or missing, but none may panic or take forever.
#[test]
fn damaged_files_do_no_harm() {
    let whole = std::fs::read(library()).expect("read");
    let mut random = test_programs::Random::new(0x9e37_79b9_7f4a_7c15);
    let mut next = |below: usize| random.below(below);
    let sections = u64::from_le_bytes(whole[40..48].try_into().expect("e_shoff")) as usize;
    let mut opened = 0;
    for round in 0..2500 {
        let mut bytes = whole.clone();
        for _ in 0..1 + round % 4 {
            // Mostly headers, section headers and the tables near the beginning: damage to code changes nothing.
            let at = match next(4) {
                0 => next(64 + 56 * 12),
                1 => sections + next(whole.len() - sections),
                _ => next(whole.len().min(0x2000)),
            };
            bytes[at] = if next(3) == 0 { 0xff } else { next(256) as u8 };
        }
        if round % 5 == 0 {
            bytes.truncate(next(whole.len()));
        }
        let Ok(file) = ElfFile::from_bytes("damaged", bytes) else { continue };
        opened += 1;
        let _ = (file.soname(), file.needed(), file.version_nodes(), file.has_dwarf(), file.section(".debug_info"));
        let _ = (file.symbol("secret"), file.symbol("mark"), file.exports("caller"), file.exported_names().count());
        let _ = (file.is_program(), file.has_names(), file.global_names().count());
        let _ = file.symbol("mark").and_then(|mark| file.thread_pointer_offset(&mark));
        let _ = file.symbol("secret").and_then(|secret| file.source_of(secret.addr.0).map(|s| s.locals.len()));
        for range in file.executable_ranges() {
            let _ =
                (file.symbol_at(Addr(range.start)), file.function_range(range.start), file.bytes_at(range.start, 64));
        }
        let _ = (file.relocations().len(), file.debug_search(), file.tls_segment(), file.bytes_at(0, u64::MAX));
    }
    assert!(opened > 1000, "the damage must leave files that open: {opened}");
}

/// Programs that print how far their thread-local variables lie from the thread pointer, linked in every way that has
/// an effect on it.
#[test]
fn thread_local_variables_of_programs_lie_where_the_linker_puts_them() {
    const SOURCE: &str = "#include <stdio.h>\n\
        __thread char first = 1; __thread long second; __thread char third[ROOM] __attribute__((aligned(ALIGN)));\n\
        #define AT(v) printf(\"%ld\\n\", (long)((char *)&v - (char *)__builtin_thread_pointer()))\n\
        int main(void) { AT(first); AT(second); AT(third); return 0; }\n";
    let folder = support::scratch().join("tls");
    std::fs::create_dir_all(&folder).expect("a folder");
    let source = folder.join("tls.c");
    std::fs::write(&source, SOURCE).expect("the source is written");
    let mut tried = 0;
    for (n, (link, room, align)) in ["-static", "-static-pie", "-pie", "-no-pie"]
        .into_iter()
        .flat_map(|link| [(1, 1), (3, 16), (200, 64), (70, 4096)].map(|(room, align)| (link, room, align)))
        .enumerate()
    {
        let program = folder.join(format!("tls-{n}"));
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", link, &format!("-DROOM={room}"), &format!("-DALIGN={align}")]).arg(&source);
        if !gcc.arg("-o").arg(&program).output().is_ok_and(|out| out.status.success()) {
            support::skip(&format!("gcc {link} does not link here"));
            continue;
        }
        let said = Command::new(&program).output().expect("the program runs");
        let said = String::from_utf8(said.stdout).expect("numbers");
        let truth: Vec<i64> = said.lines().map(|line| line.parse().expect("a number")).collect();
        let file = open(&program);
        let variable = |name| file.symbol(name).expect("the program is not stripped");
        let ours = ["first", "second", "third"].map(|name| file.thread_pointer_offset(&variable(name)).expect(name));
        assert_eq!(ours, *truth, "{link}, {room} bytes aligned to {align}");
        assert!(file.is_program() && file.has_names());
        assert_eq!(file.thread_pointer_offset(&variable("main")), None);
        tried += 1;
    }
    assert!(tried > 0);
    // Of a library only the loader knows.
    let file = open(library());
    assert!(!file.is_program());
    assert_eq!(file.thread_pointer_offset(&file.symbol("mark").expect("mark")), None);
}

#[test]
fn local_symbols_are_put_down_to_their_source_files() {
    let folder = support::scratch().join("sources");
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("the source is written");
        path
    };
    let inside =
        "__attribute__((noinline)) static int helper(int n) { return n * KEY + 1; }\nstatic int LOCAL = KEY;\n";
    let one = file("one.c", &format!("{inside}int one(int n) {{ LOCAL += n; return helper(LOCAL); }}\n"));
    let two = file("two.c", &format!("{inside}int two(int n) {{ LOCAL += n; return helper(LOCAL); }}\n"));
    let main =
        file("main.c", "int one(int), two(int); int main(int n, char **v) { (void)v; return one(n) + two(n); }\n");
    let object = |source: &Path, key: &str, local: &str| {
        let out = source.with_extension("o");
        let flags = ["-O1".to_owned(), "-c".to_owned(), format!("-DKEY={key}"), format!("-DLOCAL={local}")];
        support::run(Command::new("gcc").args(flags).arg(source).arg("-o").arg(&out));
        out
    };
    let objects = [object(&one, "3", "in_one"), object(&two, "5", "in_two"), object(&main, "0", "none")];
    let program = folder.join("program");
    support::run(Command::new("gcc").args(&objects).arg("-o").arg(&program));
    let file = open(&program);
    for (variable, source) in [("in_one", "one.c"), ("in_two", "two.c")] {
        let found = file.source_of(file.symbol(variable).expect(variable).addr.0).expect("a local symbol");
        assert_eq!(found.name, Some(source));
        assert!(found.locals.contains(&"helper") && found.locals.contains(&variable), "{found:?}");
        assert!(!found.locals.contains(&"main") && found.locals.len() < 8, "{found:?}");
    }
    // Global ones, and what nobody named.
    assert_eq!(file.source_of(file.symbol("one").expect("one").addr.0), None);
    assert_eq!(file.source_of(u64::MAX), None);
    assert!(file.global_names().any(|name| name == "two") && !file.global_names().any(|name| name == "helper"));
    let stripped = folder.join("stripped");
    support::run(Command::new("strip").arg(&program).arg("-o").arg(&stripped));
    assert_eq!(open(&stripped).global_names().count(), 0);
}

#[test]
fn exports_by_hash_are_those_of_the_table() {
    let libc = std::env::current_exe().map(|own| ElfFile::open(&own).expect("this test")).expect("its path").needed();
    let libc = libc.iter().find(|name| name.starts_with("libc.so")).expect("it uses the C library");
    let found = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let libc =
        found.lines().find_map(|line| line.split_whitespace().nth(5).filter(|path| path.ends_with(libc.as_str())));
    for path in [library().to_owned(), PathBuf::from(libc.expect("it is mapped"))] {
        let whole = open(&path);
        let names: Vec<String> = whole.exported_names().map(str::to_owned).collect();
        // Each time without a table.
        for name in names.iter().step_by(names.len().div_ceil(100)) {
            let fresh = open(&path);
            let no_name = format!("{name}_");
            assert_eq!((fresh.exports(&no_name), fresh.exports(name)), (whole.exports(&no_name), true), "{name}");
        }
        let fresh = open(&path);
        assert!(fresh.symbol("no such name").is_none() && !fresh.exports(""));
    }
}

#[test]
fn damaged_hash_table_does_no_harm() {
    let sections = readelf(&["-SW"], library());
    let line = sections.lines().find(|line| line.contains(" GNU_HASH ")).expect("a hash table");
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "GNU_HASH").expect("its kind");
    let place = usize::from_str_radix(words[at + 2], 16).expect("its place");
    let bytes = std::fs::read(library()).expect("the library");
    // Counts of buckets, of symbols left out and of filter words, and the shift.
    for field in 0..4 {
        for value in [0, 1, 31, 32, 63, 64, 255, u32::MAX] {
            let mut changed = bytes.clone();
            changed[place + 4 * field..][..4].copy_from_slice(&u32::to_le_bytes(value));
            let file = ElfFile::from_bytes("changed", changed).expect("all else is as it was");
            assert!(!file.exports("no such name"), "{field} {value}");
            let _ = file.exports("answer");
        }
    }
}
