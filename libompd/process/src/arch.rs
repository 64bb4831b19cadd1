//! What has to be known of the target's machine to read its memory.

/// Order of the bytes of an integer in target memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// Decodes an unsigned integer of up to eight bytes; longer input uses its eight least significant bytes.
    pub fn uint(self, bytes: &[u8]) -> u64 {
        // Whole words are most of what is read, while a process is held.
        if let Ok(word) = <[u8; 8]>::try_from(bytes) {
            return match self {
                ByteOrder::Little => u64::from_le_bytes(word),
                ByteOrder::Big => u64::from_be_bytes(word),
            };
        }
        if let Ok(half) = <[u8; 4]>::try_from(bytes) {
            return match self {
                ByteOrder::Little => u32::from_le_bytes(half).into(),
                ByteOrder::Big => u32::from_be_bytes(half).into(),
            };
        }
        let fold = |acc: u64, b: &u8| (acc << 8) | u64::from(*b);
        match self {
            ByteOrder::Little => bytes.iter().rev().fold(0, fold),
            ByteOrder::Big => bytes.iter().fold(0, fold),
        }
    }
}

/// Machine, pointer width and byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arch {
    /// Instruction set.
    pub machine: Machine,
    /// Width of a pointer in bytes (4 or 8).
    pub pointer_bytes: u8,
    /// Byte order of data.
    pub byte_order: ByteOrder,
}

/// Instruction set of the target, by its ELF `e_machine` value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Machine(u16);

impl Machine {
    /// The machine an ELF file says it is for.
    pub const fn of_elf(number: u16) -> Machine {
        Machine(number)
    }

    /// Its ELF `e_machine` value.
    pub const fn elf(self) -> u16 {
        self.0
    }
}
