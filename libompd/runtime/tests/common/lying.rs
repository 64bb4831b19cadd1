//! Memory that cannot be trusted.

use ompd_process::{Addr, Arch, Live, Module, ProcessInfo, ReadError, Target, TargetKind};

/// A process whose memory lies, in a way that depends on the address.
pub struct Lying<'a> {
    pub inner: &'a Live,
    pub seed: u64,
}

impl Target for Lying<'_> {
    fn kind(&self) -> TargetKind {
        self.inner.kind()
    }
    fn arch(&self) -> Arch {
        self.inner.arch()
    }
    fn modules(&self) -> &[Module] {
        self.inner.modules()
    }
    fn threads(&self) -> &[ompd_process::Thread] {
        self.inner.threads()
    }
    fn process(&self) -> &ProcessInfo {
        self.inner.process()
    }
    fn issues(&self) -> &[String] {
        self.inner.issues()
    }

    /// One aligned word in 24 is another: its neighbour, so that lists run in circles, or none, or a number far too large.
    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadError> {
        self.inner.read(addr, buf)?;
        let mut at = (8 - addr.0 % 8) % 8;
        while at + 16 <= buf.len() as u64 {
            let mixed = (addr.0.wrapping_add(at) ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let place = at as usize;
            match mixed % 72 {
                0 => buf.copy_within(place + 8..place + 16, place),
                1 => buf[place..place + 8].fill(0),
                2 => buf[place..place + 8].copy_from_slice(&[0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0]),
                _ => {}
            }
            at += 8;
        }
        Ok(())
    }
}
