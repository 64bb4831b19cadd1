//! Variables of programs that use no construct of OpenMP, against what their sources give them.

use std::sync::Arc;

use ompd_process::{Target as _, TargetExt as _};
use ompd_runtime::names::Expressions as _;
use ompd_stack::{Cache, FrameVariables};

use crate::support::{Built, Look};

/// The variables of the function that has this name.
fn variables(look: &Look, function: &str) -> Arc<FrameVariables> {
    let cache = Cache::default();
    let report = look.report(&cache);
    let locals = report.locals(&look.live, &look.stacks, &cache);
    let at = report.logical[0].frames.iter().position(|frame| frame.function.as_deref() == Some(function));
    Arc::clone(&locals.of(0)[at.expect("its frame")])
}

/// Name, type and value of each variable of a function: where only an address is shown, nothing follows `(at `.
fn shown(look: &Look, function: &str) -> Vec<(String, String, Result<String, String>)> {
    let value = |value: &Result<String, String>| match value {
        Ok(value) if value.starts_with("(at 0x") => Ok("(at".to_owned()),
        other => other.clone(),
    };
    let frame = variables(look, function);
    assert_eq!(frame.missing, None);
    frame.variables.iter().map(|of| (of.name.clone(), of.type_name.clone(), value(&of.value))).collect()
}

#[test]
fn variables_of_every_kind_have_the_values_and_types_of_the_source() {
    let look = Built::from("kinds", &["-g", "-O0"]).start(&[], 1).look();
    let expected = [
        ("parameter", "int", "10"),
        ("yes", "_Bool", "true"),
        ("small", "signed char", "-3"),
        ("letter", "char", "120 'x'"),
        ("quote", "char", "39 '\\''"),
        ("backslash", "char", "92 '\\\\'"),
        ("newline", "char", "10"),
        ("byte", "unsigned char", "200"),
        ("brief", "short int", "-300"),
        ("word", "short unsigned int", "65535"),
        ("whole", "int", "-70000"),
        ("count", "unsigned int", "4000000000"),
        ("wide", "long long int", "-5000000000"),
        ("most", "long long unsigned int", "18446744073709551615"),
        ("size", "size_type", "12"),
        ("half", "float", "0.5"),
        ("tenth", "double", "0.1"),
        ("no", "_Bool", "false"),
        ("known", "color", "BLUE"),
        ("unknown", "color", "77"),
        ("below", "sign", "MINUS"),
        ("beside", "sign", "-9"),
        ("text", "char[12]", r#""a\tb\"c\\\001d""#),
        ("full", "char[4]", r#""abcd""#),
        ("row", "int[3]", "{1, -2, 3}"),
        ("several", "double[9]", "{0, 1, 2, 3, 4, 5, 6, 7, …}"),
        ("eight", "int[8]", "{1, 2, 3, 4, 5, 6, 7, 8}"),
        ("words", "const char * const[2]", "{0x0, 0x0}"),
        ("place", "place_t", "{x = 3, y = 4.25}"),
        ("many", "many", "{a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8, …}"),
        ("mixed", "mixed", r#"{number = -1, bits = …, text = "inner", inner = …, row = …, either = …, name = 0x0}"#),
        ("function", "function *", "0x0"),
        ("nothing", "void *", "0x0"),
        ("shaky", "volatile int", "6"),
        // It hides another one.
        ("hidden", "int", "2"),
        ("inner", "int", "9"),
    ];
    let addresses = [("extended", "long double"), ("rows", "int[2][2]"), ("pair", "point[2]"), ("computed", "char[]")];
    let found = shown(&look, "kinds");
    for (name, of, value) in expected.into_iter().chain(addresses.map(|(name, of)| (name, of, "(at"))) {
        let all: Vec<_> = found.iter().filter(|(known, ..)| known == name).collect();
        assert_eq!(all, [&(name.to_owned(), of.to_owned(), Ok(value.to_owned()))]);
    }
    let longer = found.iter().find(|(name, ..)| name == "longer").and_then(|(.., value)| value.clone().ok());
    assert_eq!(longer, Some(format!("\"{}\"…", "z".repeat(64))), "64 characters are shown");
    let kept = found.iter().find(|(name, ..)| name == "kept").and_then(|(.., value)| value.clone().err());
    assert!(kept.is_some_and(|why| why.ends_with(", not on a copied stack")), "no page beside stacks is copied");
    let frame = variables(&look, "kinds");
    let parameters: Vec<&str> = frame.variables.iter().filter(|of| of.parameter).map(|of| of.name.as_str()).collect();
    assert_eq!(parameters, ["parameter", "at", "yes"]);
    assert!(frame.variables.iter().all(|of| of.shared.is_none() && of.note.is_none()), "it is in no construct");
}

#[test]
fn optimized_variables_have_their_values_or_a_reason() {
    let look = Built::from("kinds", &["-g", "-O2"]).start(&[], 1).look();
    let (mut known, mut unknown) = (0, 0);
    let right = Built::from("kinds", &["-g", "-O0"]).start(&[], 1).look();
    let right = shown(&right, "kinds");
    for (name, of, value) in shown(&look, "kinds") {
        let of_source = right.iter().find(|(known, ..)| *known == name);
        let (_, right_type, right) = of_source.unwrap_or_else(|| panic!("{name} is in the source"));
        assert_eq!(of, *right_type, "{name}");
        match value {
            // One is the address of a stack, and one has no value yet.
            Ok(value) if !["at", "later"].contains(&name.as_str()) => {
                assert_eq!(Ok(value), *right, "{name}");
                known += 1;
            }
            Ok(_) => {}
            Err(why) => {
                assert!(!why.is_empty(), "{name}");
                unknown += 1;
            }
        }
    }
    assert!(known > 10 && unknown > 0, "{known} {unknown}");
}

/// What the source calls the object at each of the first places that a program gives.
fn names_of_places(program: &str, flags: &[&str], count: u64) -> Vec<Option<String>> {
    let waiting = Built::from(program, flags).start(&[], 1);
    let look = waiting.look();
    let cache = Cache::default();
    let report = look.report(&cache);
    let locals = report.locals(&look.live, &look.stacks, &cache);
    let program = look.live.modules().iter().find(|module| module.name() == "places").expect("the program");
    let places = program.symbol("places").expect("the places").addr;
    let place = |n| look.live.read_ptr(places.offset(n * 8)).expect("a place");
    (0..count).map(|n| locals.of_object(place(n), None)).collect()
}

#[test]
fn locks_have_the_names_by_which_the_source_reaches_them() {
    let found = names_of_places("objects", &["-g", "-O0"], 21);
    let expected = [
        "alone",
        "several[2]",
        "table[1][2]",
        "grid.corner.lock",
        "grid.row[1].lock",
        "grid.nest",
        "grid.mutex",
        "heap->next->corner.lock",
        "heap->cells[3].lock (probably)",
        "*pointed",
        "work::local",
        "work::cell[1].lock",
        "main::inner.row[2].lock",
        "heap->corner.lock",
        "heap->row[0].lock",
        "heap->cells->lock",
    ];
    let (named, others) = found.split_at(expected.len());
    assert_eq!(named, expected.map(|name| Some(name.to_owned())));
    // An integer, the inside of a lock, another member, behind a `void *`, behind the end of a block.
    let inside = Some("grid.corner.lock".to_owned());
    assert_eq!(others, [None, inside, None, None, None]);
}

#[test]
fn lock_with_a_content_that_no_other_lock_has_is_found() {
    let waiting = Built::from("objects", &["-g", "-O0"]).start(&[], 1);
    let look = waiting.look();
    let cache = Cache::default();
    let report = look.report(&cache);
    let locals = report.locals(&look.live, &look.stacks, &cache);
    let found = [7, 8, 9, 10, 11, 12, 0].map(|content| locals.lock_with(content));
    let named = ["several[1]", "heap->corner.lock", "heap->cells[2].lock"].map(|name| Some(name.to_owned()));
    assert_eq!(found[..3], named);
    // Two have it; an integer has it; none has it; nobody has written it.
    assert_eq!(found[3..], [const { None }; 4]);
}

#[test]
fn nothing_has_a_name_of_the_source_without_debug_information() {
    assert_eq!(names_of_places("objects", &["-O0"], 16), [const { None }; 16]);
    let look = Built::from("kinds", &["-O0"]).start(&[], 1).look();
    let frame = variables(&look, "kinds");
    assert_eq!((frame.variables.len(), frame.missing.is_some()), (0, true));
}
