//! One struct of the target, read in one go.

use ompd_process::{Addr, ByteOrder, ReadError, ReadFault, Target, TargetExt};

use crate::facts::Field;

/// The bytes of one struct. Fields are decoded from the copy; nothing is read twice.
#[derive(Debug, Clone)]
pub struct Record {
    /// Address of the struct in the target.
    pub addr: Addr,
    bytes: Vec<u8>,
    order: ByteOrder,
}

impl Record {
    /// Reads `size` bytes at `addr`.
    ///
    /// # Errors
    /// As [`Target::read`].
    pub fn read(target: &dyn Target, addr: Addr, size: u64) -> Result<Record, ReadError> {
        Ok(Record { addr, bytes: target.read_vec(addr, size)?, order: target.arch().byte_order })
    }

    /// A struct that was read together with others ([`Target::read_ranges`]).
    pub fn new(addr: Addr, bytes: Vec<u8>, order: ByteOrder) -> Record {
        Record { addr, bytes, order }
    }

    /// The struct without owning its bytes.
    pub fn borrowed(&self) -> RecordRef<'_> {
        RecordRef { addr: self.addr, bytes: &self.bytes, order: self.order }
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

    /// The raw bytes of the whole record.
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
}

impl<'a> RecordRef<'a> {
    /// The struct at `addr`, of which `bytes` were read.
    pub fn new(addr: Addr, bytes: &'a [u8], order: ByteOrder) -> RecordRef<'a> {
        RecordRef { addr, bytes, order }
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
        Record::new(self.addr, self.bytes.to_vec(), self.order)
    }

    /// The value of an integer or pointer field, zero-extended; bit-fields are shifted down.
    ///
    /// # Errors
    /// [`ReadFault::BadLength`] if the field does not lie within the record or is wider than eight bytes: the layout
    /// is wrong, and a wrong value must not come of it.
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
        self.bytes.get(field.offset as usize..end as usize).ok_or(fault)
    }
}
