//! What spares work must not change what is found: compared with the long way, on the runtimes at hand.

use std::ops::Range;

use ompd_layout::code::{CodeImage, Slot, functions, immediate_stores, may_store_words};
use ompd_process::{ElfFile, Machine};
use test_programs::Runtime;

/// The same file, of which it is not known where the next function begins.
struct StepByStep(ElfFile);

impl CodeImage for StepByStep {
    fn machine(&self) -> Machine {
        CodeImage::machine(&self.0)
    }

    fn code_at(&self, addr: u64, len: usize) -> Option<&[u8]> {
        self.0.code_at(addr, len)
    }

    fn data_at(&self, addr: u64, len: usize) -> Option<&[u8]> {
        self.0.data_at(addr, len)
    }

    fn slot(&self, addr: u64) -> Option<Slot> {
        self.0.slot(addr)
    }

    fn function(&self, addr: u64) -> Option<Range<u64>> {
        self.0.function(addr)
    }

    fn symbol(&self, name: &str) -> Option<u64> {
        CodeImage::symbol(&self.0, name)
    }

    fn executable(&self) -> Vec<Range<u64>> {
        self.0.executable()
    }
}

fn files() -> impl Iterator<Item = (Runtime, ElfFile)> {
    let open = |runtime: Runtime| ElfFile::open(&runtime.library().expect("it is here")).expect("it can be read");
    Runtime::available().into_iter().map(move |runtime| (runtime, open(runtime)))
}

#[test]
fn gaps_between_functions_are_left_out() {
    for (runtime, file) in files() {
        let found: Vec<_> = functions(&file).collect();
        let step_by_step: Vec<_> = functions(&StepByStep(file)).collect();
        assert!(found.len() > 100 && found == step_by_step, "{runtime:?}");
    }
}

#[test]
fn a_glance_misses_no_function_that_stores_constants() {
    const LEAST: usize = 5;
    for (runtime, file) in files() {
        let (mut storing, mut spared) = (0, 0);
        for function in functions(&file).filter(|function| function.end - function.start < 4096) {
            let words = immediate_stores(&file, function.clone()).iter().filter(|store| store.size == 8).count();
            let may = may_store_words(&file, function.clone(), LEAST);
            assert!(may || words < LEAST, "{runtime:?}: {words} words in {function:x?}");
            storing += usize::from(words >= LEAST);
            spared += usize::from(!may);
        }
        assert!(spared > storing, "{runtime:?}: {spared} spared, {storing} store");
    }
}
