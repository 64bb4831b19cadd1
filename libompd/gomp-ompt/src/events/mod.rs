//! What the entry points report, by construct.

pub mod barriers;
pub mod cancel;
pub mod doacross;
pub mod locks;
pub mod loops;
pub mod regions;
pub mod sections;
pub mod single;
pub mod target;
pub mod tasks;
pub mod work;
