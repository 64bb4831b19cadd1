//! Variables of the environment.

/// The variables of the environment that a family knows, and what they mean there.
#[derive(Debug)]
pub struct Variables {
    /// What the names of its own variables begin with, beside `OMP_`.
    pub prefix: &'static str,
    /// A variable and the value of it with which waiting threads spin without end.
    pub spins: (&'static str, &'static str),
    /// Those that bind threads, beside `OMP_PROC_BIND` and `OMP_PLACES`.
    pub affinity: &'static [&'static str],
    /// What a switch says.
    pub flag: fn(&str) -> Option<bool>,
}
