//! A block in memory of the test.

use std::cell::{Cell, RefCell};
use std::mem::offset_of;

use ompt_record::block::{Header, MAGIC, Shape, State, VERSION};
use ompt_record::read::{Block, Memory};

/// Where it is said to be.
pub const AT: u64 = 0x7000_0000;

/// A block in words of its own. Each read may be followed by a change.
pub struct Words {
    pub words: RefCell<Vec<u64>>,
    pub reads: Cell<usize>,
    /// After this read, the word at this index becomes this.
    pub change: Option<(usize, usize, u64)>,
}

impl Memory for Words {
    type Error = ();

    fn words(&self, at: u64, count: usize) -> Result<Vec<u64>, ()> {
        let from = usize::try_from(at.checked_sub(AT).ok_or(())? / 8).map_err(|_| ())?;
        let read = self.words.borrow().get(from..from.checked_add(count).ok_or(())?).ok_or(())?.to_vec();
        self.reads.set(self.reads.get() + 1);
        if let Some((after, index, value)) = self.change
            && after == self.reads.get()
        {
            self.words.borrow_mut()[index] = value;
        }
        Ok(read)
    }
}

/// The words of a block with one ring, and the places of its parts.
pub fn block() -> (Vec<u64>, Shape) {
    let shape = Shape::new(2, 64, 64, 64).expect("a shape");
    let mut words = vec![0; usize::try_from(shape.size() / 8).expect("it is small")];
    for (at, value) in [
        (offset_of!(Header, magic_first), MAGIC[0]),
        (offset_of!(Header, magic_second), MAGIC[1]),
        (offset_of!(Header, version), VERSION),
        (offset_of!(Header, address), AT),
        (offset_of!(Header, rings), shape.rings),
        (offset_of!(Header, events), shape.events),
        (offset_of!(Header, regions), shape.regions),
        (offset_of!(Header, tasks), shape.tasks),
        (offset_of!(Header, rings_used), 1),
        (offset_of!(Header, state), State::Recording as u64),
    ] {
        words[at / 8] = value;
    }
    (words, shape)
}

pub fn open(words: Vec<u64>, change: Option<(usize, usize, u64)>) -> (Words, Block) {
    let memory = Words { words: RefCell::new(words), reads: Cell::new(0), change: None };
    let block = Block::open(&memory, AT).expect("it is a block");
    (Words { change, reads: Cell::new(0), ..memory }, block)
}
