//! One struct of the target, read in one go.

use std::ops::Range;

use ompd_process::{Addr, ByteOrder, ReadError, ReadFault, Target, TargetExt};

use crate::facts::Field;

/// The bytes of one struct. Fields are decoded from the copy; nothing is read twice.
#[derive(Debug, Clone)]
pub struct Record {
    /// Address of the struct in the target.
    pub addr: Addr,
    bytes: Vec<u8>,
    order: ByteOrder,
    /// What of it was read, in bytes from its start; empty if all was.
    parts: Vec<Range<u64>>,
}

/// Two parts of a struct are read together where no more bytes than this lie between them. A call of a debugger in Python costs as
/// much as 12 bytes do, one of a debugger in C as much as thousands.
const ONE_READ: u64 = 24;

/// No struct of a runtime has so many bytes.
const LARGEST: usize = 1 << 20;

impl Record {
    /// Reads `size` bytes at `addr`.
    ///
    /// # Errors
    /// As [`Target::read`].
    pub fn read(target: &dyn Target, addr: Addr, size: u64) -> Result<Record, ReadError> {
        Ok(Record::new(addr, target.read_vec(addr, size)?, target.arch().byte_order))
    }

    /// Reads these parts of a struct of `size` bytes at `addr`, in bytes from its start, for whoever pays for each byte. What lies
    /// outside of them cannot be decoded, but for what lies between two that were read together.
    ///
    /// # Errors
    /// As [`Target::read`]; [`ReadFault::BadLength`] if a part does not lie within the struct.
    pub fn read_parts(
        target: &dyn Target,
        addr: Addr,
        size: u64,
        mut parts: Vec<Range<u64>>,
    ) -> Result<Record, ReadError> {
        let fault = ReadError { addr, len: size, why: ReadFault::BadLength };
        let mut bytes = vec![0; usize::try_from(size).ok().filter(|size| *size <= LARGEST).ok_or(fault)?];
        parts.sort_unstable_by_key(|part| part.start);
        let mut joined: Vec<Range<u64>> = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            match joined.last_mut() {
                Some(last) if part.start <= last.end.saturating_add(ONE_READ) => last.end = last.end.max(part.end),
                _ => joined.push(part),
            }
        }
        for part in &joined {
            let into = bytes.get_mut(part.start as usize..part.end as usize).ok_or(fault)?;
            target.read(addr.offset(part.start), into)?;
        }
        if joined.is_empty() {
            bytes.clear();
        }
        Ok(Record { parts: joined, ..Record::new(addr, bytes, target.arch().byte_order) })
    }

    /// A struct that was read together with others ([`Target::read_ranges`]).
    pub fn new(addr: Addr, bytes: Vec<u8>, order: ByteOrder) -> Record {
        Record { addr, bytes, order, parts: Vec::new() }
    }

    /// The struct without owning its bytes.
    pub fn borrowed(&self) -> RecordRef<'_> {
        RecordRef { addr: self.addr, bytes: &self.bytes, order: self.order, parts: &self.parts }
    }

    /// As [`RecordRef::uint`].
    ///
    /// # Errors
    /// As [`RecordRef::uint`].
    pub fn uint(&self, field: Field) -> Result<u64, ReadError> {
        self.borrowed().uint(field)
    }

    /// As [`RecordRef::int`].
    ///
    /// # Errors
    /// As [`RecordRef::uint`].
    pub fn int(&self, field: Field) -> Result<i64, ReadError> {
        self.borrowed().int(field)
    }

    /// The value of a pointer field.
    ///
    /// # Errors
    /// As [`RecordRef::uint`].
    pub fn ptr(&self, field: Field) -> Result<Addr, ReadError> {
        self.uint(field).map(Addr)
    }

    /// Address of a field in the target.
    pub fn addr_of(&self, field: Field) -> Addr {
        self.addr.offset(field.offset)
    }

    /// The raw bytes of the whole record; zero where they were not read.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The bytes of one struct that lie in a larger buffer: of a million structs none has to be copied to be looked at.
#[derive(Debug, Clone, Copy)]
pub struct RecordRef<'a> {
    addr: Addr,
    bytes: &'a [u8],
    order: ByteOrder,
    parts: &'a [Range<u64>],
}

impl<'a> RecordRef<'a> {
    /// The struct at `addr`, of which `bytes` were read.
    pub fn new(addr: Addr, bytes: &'a [u8], order: ByteOrder) -> RecordRef<'a> {
        RecordRef { addr, bytes, order, parts: &[] }
    }

    /// Address of the struct in the target.
    pub fn addr(&self) -> Addr {
        self.addr
    }

    /// The raw bytes of the whole record.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// A copy that owns its bytes.
    pub fn to_record(self) -> Record {
        Record { parts: self.parts.to_vec(), ..Record::new(self.addr, self.bytes.to_vec(), self.order) }
    }

    /// The value of an integer or pointer field, zero-extended; bit-fields are shifted down.
    ///
    /// # Errors
    /// [`ReadFault::BadLength`] if the field does not lie within what was read of the record, or is wider than eight
    /// bytes. Then the layout is wrong, and a wrong value must not come of it.
    pub fn uint(&self, field: Field) -> Result<u64, ReadError> {
        let raw = self.order.uint(self.slice(field)?);
        Ok(match field.bits {
            Some(bits) => {
                let low = raw.checked_shr(u32::from(bits.shift)).unwrap_or(0);
                if bits.width >= 64 { low } else { low & ((1u64 << bits.width) - 1) }
            }
            None => raw,
        })
    }

    /// The value of a signed integer field, sign-extended.
    ///
    /// # Errors
    /// As [`RecordRef::uint`].
    pub fn int(&self, field: Field) -> Result<i64, ReadError> {
        let raw = self.uint(field)?;
        let width = field.bits.map_or(field.size * 8, |b| u64::from(b.width));
        let unused = 64 - width.clamp(1, 64) as u32;
        Ok(((raw << unused) as i64) >> unused)
    }

    fn slice(&self, field: Field) -> Result<&[u8], ReadError> {
        let fault = ReadError { addr: self.addr.offset(field.offset), len: field.size, why: ReadFault::BadLength };
        if field.size == 0 || field.size > 8 {
            return Err(fault);
        }
        let end = field.offset.checked_add(field.size).ok_or(fault)?;
        let lies_in = |part: &Range<u64>| part.start <= field.offset && end <= part.end;
        if !self.parts.is_empty() && !self.parts.iter().any(lies_in) {
            return Err(fault);
        }
        self.bytes.get(field.offset as usize..end as usize).ok_or(fault)
    }
}
