//! Memory that cannot be trusted.

use ompd_process::{Addr, Live};
use test_programs::ChangedTarget;

/// A process whose memory lies, in a way that depends on the address.
pub fn lying(live: &Live, seed: u64) -> ChangedTarget<&Live> {
    ChangedTarget::new(live).with_change(move |addr, buf| lie(addr, buf, seed))
}

/// One aligned word in 24 is another: its neighbour, so that lists run in circles, or none, or a number far too large.
fn lie(addr: Addr, buf: &mut [u8], seed: u64) {
    let mut at = (8 - addr.0 % 8) % 8;
    while at + 16 <= buf.len() as u64 {
        let mixed = (addr.0.wrapping_add(at) ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let place = at as usize;
        match mixed % 72 {
            0 => buf.copy_within(place + 8..place + 16, place),
            1 => buf[place..place + 8].fill(0),
            2 => buf[place..place + 8].copy_from_slice(&[0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0]),
            _ => {}
        }
        at += 8;
    }
}
