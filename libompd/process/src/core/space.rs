//! The address space of a core: which bytes of which file lie at an address.

use crate::memory::{Addr, ReadError, ReadFault};

/// Where the bytes of a stretch of addresses come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backing {
    /// The core file, from this offset.
    Core(u64),
    /// The mapped file with this index, from this offset.
    File(usize, u64),
    /// Mapped in the process, but the bytes are nowhere at hand.
    Absent,
}

impl Backing {
    fn advanced(self, by: u64) -> Backing {
        match self {
            Backing::Core(offset) => Backing::Core(offset.saturating_add(by)),
            Backing::File(file, offset) => Backing::File(file, offset.saturating_add(by)),
            Backing::Absent => Backing::Absent,
        }
    }
}

/// Addresses `start..end` and where their bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub start: u64,
    pub end: u64,
    pub source: Backing,
}

impl Piece {
    /// This piece without its addresses below `start`.
    fn from(self, start: u64) -> Piece {
        let cut = start.saturating_sub(self.start);
        Piece { start: self.start + cut, end: self.end, source: self.source.advanced(cut) }
    }
}

/// Disjoint pieces in address order.
#[derive(Debug, Default)]
pub(super) struct Space {
    pieces: Vec<Piece>,
}

impl Space {
    /// Puts `layer` below what is there: it shows only where nothing lay before. Where pieces of the layer overlap each
    /// other, the one that starts lower shows. Linear in the number of pieces, apart from sorting.
    pub fn add_below(&mut self, mut layer: Vec<Piece>) {
        layer.retain(|p| p.start < p.end);
        layer.sort_by_key(|p| p.start);
        let mut out = Vec::with_capacity(self.pieces.len() + layer.len());
        let mut upper = self.pieces.iter().copied().peekable();
        // Everything below this address has been decided.
        let mut done = 0;
        for piece in layer {
            let mut rest = piece.from(done.max(piece.start));
            while rest.start < rest.end {
                match upper.peek().copied() {
                    Some(above) if above.start <= rest.start => {
                        out.push(above);
                        upper.next();
                        rest = rest.from(above.end.max(rest.start));
                        done = done.max(above.end);
                    }
                    above => {
                        let end = above.map_or(rest.end, |a| a.start.min(rest.end));
                        out.push(Piece { end, ..rest });
                        rest = rest.from(end);
                        done = end;
                    }
                }
            }
        }
        out.extend(upper);
        self.pieces = out;
    }

    /// The piece that contains `addr`.
    pub fn find(&self, addr: u64) -> Option<&Piece> {
        let at = self.pieces.partition_point(|p| p.end <= addr);
        self.pieces.get(at).filter(|p| p.start <= addr)
    }

    /// Fills `buf` from `addr`; `bytes(source, len)` gives the bytes of a piece, if they are all there.
    pub fn read<'a>(
        &self,
        addr: u64,
        buf: &mut [u8],
        bytes: impl Fn(Backing, usize) -> Option<&'a [u8]>,
    ) -> Result<(), ReadError> {
        let len = buf.len() as u64;
        let mut done = 0;
        while done < buf.len() {
            let fail = |why| {
                let why = if done > 0 { ReadFault::Short { got: done as u64 } } else { why };
                ReadError { addr: Addr(addr), len, why }
            };
            let at = addr.checked_add(done as u64).ok_or(fail(ReadFault::Unmapped))?;
            let piece = self.find(at).ok_or(fail(ReadFault::Unmapped))?;
            let n = ((buf.len() - done) as u64).min(piece.end - at) as usize;
            let source = piece.from(at).source;
            let from = bytes(source, n).ok_or(fail(ReadFault::NotInCore))?;
            buf[done..done + n].copy_from_slice(from);
            done += n;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What each address shows, worked out byte by byte.
    fn model(layers: &[Vec<Piece>], addr: u64) -> Option<Backing> {
        for layer in layers {
            let mut sorted = layer.clone();
            sorted.sort_by_key(|p| p.start);
            if let Some(p) = sorted.iter().find(|p| p.start <= addr && addr < p.end) {
                return Some(p.source.advanced(addr - p.start));
            }
        }
        None
    }

    fn layer(source: impl Fn(u64) -> Backing + Clone + 'static) -> impl Strategy<Value = Vec<Piece>> {
        let piece = (0u64..200, 0u64..40, 0u64..1000).prop_map(move |(start, len, offset)| Piece {
            start,
            end: start + len,
            source: source(offset),
        });
        proptest::collection::vec(piece, 0..12)
    }

    proptest! {
        #[test]
        fn the_overlay_equals_a_byte_map(
            cores in layer(Backing::Core),
            files in layer(|o| Backing::File(1, o)),
            absent in layer(|_| Backing::Absent),
        ) {
            let layers = [cores, files, absent];
            let mut space = Space::default();
            for layer in &layers {
                space.add_below(layer.clone());
            }
            for pair in space.pieces.windows(2) {
                prop_assert!(pair[0].end <= pair[1].start);
            }
            for addr in 0..260 {
                let got = space.find(addr).map(|p| p.from(addr).source);
                prop_assert_eq!(got, model(&layers, addr), "address {}", addr);
            }
        }

        #[test]
        fn reads_equal_a_byte_map(
            cores in layer(Backing::Core),
            files in layer(|o| Backing::File(1, o)),
            absent in layer(|_| Backing::Absent),
            start in 0u64..220,
            len in 0usize..60,
        ) {
            let core: Vec<u8> = (0..1100).map(|i| (i % 251) as u8).collect();
            let file: Vec<u8> = (0..1100).map(|i| (i % 241) as u8).collect();
            let layers = [cores, files, absent];
            let mut space = Space::default();
            for layer in &layers {
                space.add_below(layer.clone());
            }
            let mut buf = vec![0; len];
            let got = space.read(start, &mut buf, |source, n| match source {
                Backing::Core(o) => core.get(o as usize..o as usize + n),
                Backing::File(_, o) => file.get(o as usize..o as usize + n),
                Backing::Absent => None,
            });
            let want: Vec<Result<u8, ReadFault>> = (start..start + len as u64).map(|a| match model(&layers, a) {
                Some(Backing::Core(o)) => Ok(core[o as usize]),
                Some(Backing::File(_, o)) => Ok(file[o as usize]),
                Some(Backing::Absent) => Err(ReadFault::NotInCore),
                None => Err(ReadFault::Unmapped),
            }).collect();
            match want.iter().position(Result::is_err) {
                None => {
                    prop_assert!(got.is_ok());
                    prop_assert_eq!(buf, want.into_iter().map(Result::unwrap).collect::<Vec<u8>>());
                }
                Some(0) => prop_assert_eq!(got.unwrap_err().why, want[0].unwrap_err()),
                Some(n) => prop_assert_eq!(got.unwrap_err().why, ReadFault::Short { got: n as u64 }),
            }
        }
    }

    #[test]
    fn the_end_of_the_address_space_is_no_special_place() {
        let mut space = Space::default();
        space.add_below(vec![Piece { start: u64::MAX - 4, end: u64::MAX, source: Backing::Core(0) }]);
        let mut buf = [0; 16];
        let got = space.read(u64::MAX - 4, &mut buf, |_, n| Some(&[1; 16][..n]));
        assert_eq!(got.unwrap_err().why, ReadFault::Short { got: 4 });
        assert!(space.read(u64::MAX, &mut buf, |_, _| None).is_err());
    }
}
