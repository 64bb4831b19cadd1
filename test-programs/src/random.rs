//! Numbers that look random.

/// The same numbers at every run (xorshift64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Numbers that depend on the seed, which is not 0.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next one.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// The next one, below a limit.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.number() % limit as u64) as usize
    }
}
