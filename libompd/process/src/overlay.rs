//! A target that is another one, read in another way.

use std::ops::Range;

use crate::arch::Arch;
use crate::live::Surroundings;
use crate::memory::{Addr, ReadError};
use crate::module::Module;
use crate::thread::Thread;
use crate::{ProcessInfo, Target, TargetKind};

/// A target that lies over another one. What it does not answer itself, it asks the one below.
///
/// All memory is read by [`Overlay::read`], but for what [`Target::pthread_distance`] asks. [`Target::prefetch`] does nothing here, and
/// [`Target::in_use`] leaves nothing out.
pub trait Overlay {
    /// The type of the target below.
    type Below: Target + ?Sized;

    /// The target below.
    fn below(&self) -> &Self::Below;

    /// As [`Target::read`].
    ///
    /// # Errors
    /// As [`Target::read`].
    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadError>;

    /// As [`Target::mapping`].
    fn mapping(&self, addr: Addr) -> Option<Range<u64>> {
        self.below().mapping(addr)
    }

    /// As [`Target::in_use`].
    fn in_use(&self, range: Range<u64>) -> Vec<Range<u64>> {
        vec![range]
    }

    /// As [`Target::is_late`].
    fn is_late(&self) -> bool {
        self.below().is_late()
    }

    /// As [`Target::is_shared`].
    fn is_shared(&self, addr: Addr) -> Option<bool> {
        self.below().is_shared(addr)
    }

    /// As [`Target::threads`].
    fn threads(&self) -> &[Thread] {
        self.below().threads()
    }

    /// As [`Target::pthread_distance`].
    fn pthread_distance(&self) -> Option<u64> {
        self.below().pthread_distance()
    }
}

impl<O: Overlay> Target for O {
    fn kind(&self) -> TargetKind {
        self.below().kind()
    }

    fn arch(&self) -> Arch {
        self.below().arch()
    }

    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadError> {
        Overlay::read(self, addr, buf)
    }

    fn mapping(&self, addr: Addr) -> Option<Range<u64>> {
        Overlay::mapping(self, addr)
    }

    fn in_use(&self, range: Range<u64>) -> Vec<Range<u64>> {
        Overlay::in_use(self, range)
    }

    fn is_late(&self) -> bool {
        Overlay::is_late(self)
    }

    fn is_shared(&self, addr: Addr) -> Option<bool> {
        Overlay::is_shared(self, addr)
    }

    fn maps(&self, path: &str) -> bool {
        self.below().maps(path)
    }

    fn surroundings(&self) -> Option<Surroundings> {
        self.below().surroundings()
    }

    fn modules(&self) -> &[Module] {
        self.below().modules()
    }

    fn threads(&self) -> &[Thread] {
        Overlay::threads(self)
    }

    fn pthread_distance(&self) -> Option<u64> {
        Overlay::pthread_distance(self)
    }

    fn process(&self) -> &ProcessInfo {
        self.below().process()
    }

    fn issues(&self) -> &[String] {
        self.below().issues()
    }

    fn unread(&self) -> Option<String> {
        self.below().unread()
    }
}
