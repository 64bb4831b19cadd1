//! The peers of sockets of the machine, which no file of procfs tells: the kernel is asked (sock_diag(7)).

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};
use std::os::fd::AsRawFd as _;

/// `SOCK_DIAG_BY_FAMILY` (linux/sock_diag.h).
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST` (linux/netlink.h).
const REQUEST: u16 = 1;
/// `UDIAG_SHOW_PEER` (linux/unix_diag.h).
const SHOW_PEER: u32 = 4;
/// `UNIX_DIAG_PEER` (linux/unix_diag.h).
const PEER: u16 = 2;
/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Bytes of `struct unix_diag_msg`, with the inode of the socket at the offset `INODE`.
const MESSAGE: usize = 16;
const INODE: usize = 4;

/// The inode of the socket that the one with this inode is connected to, both in the network namespace of the caller. `None` if there is
/// none, or the kernel does not say.
pub(super) fn peer(inode: u32) -> Option<u32> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let kernel = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkSockDiag).ok()?;
    send(kernel.as_raw_fd(), &request(inode), MsgFlags::empty()).ok()?;
    // The kernel has answered when `send` returns.
    let mut answer = [0; 1024];
    let length = recv(kernel.as_raw_fd(), &mut answer, MsgFlags::empty()).ok()?;
    peer_in(answer.get(..length)?, inode)
}

/// A `struct nlmsghdr` with a `struct unix_diag_req` that asks for one socket, whatever its state and cookie.
fn request(inode: u32) -> Vec<u8> {
    let any = u32::MAX;
    let family = u8::try_from(nix::libc::AF_UNIX).unwrap_or_default();
    let mut body = vec![family, 0, 0, 0];
    body.extend([any, inode, SHOW_PEER, any, any].iter().flat_map(|word| word.to_ne_bytes()));
    let length = u32::try_from(HEADER + body.len()).unwrap_or_default();
    let mut whole = length.to_ne_bytes().to_vec();
    whole.extend([BY_FAMILY, REQUEST].iter().flat_map(|half| half.to_ne_bytes()));
    // Sequence and port.
    whole.extend([0; 8]);
    whole.extend(body);
    whole
}

/// The attribute of the answer that has the peer's inode.
fn peer_in(answer: &[u8], inode: u32) -> Option<u32> {
    let half = |at: usize| Some(u16::from_ne_bytes(answer.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    if half(4)? != BY_FAMILY || word(HEADER + INODE)? != inode {
        return None;
    }
    let mut at = HEADER + MESSAGE;
    // `struct rtattr`: length with these four bytes, type; aligned to four.
    loop {
        let (length, kind) = (usize::from(half(at)?), half(at + 2)?);
        match kind {
            PEER if length >= 8 => return word(at + 4).filter(|inode| *inode != 0),
            _ if length < 4 => return None,
            _ => at += length.next_multiple_of(4),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::{peer, peer_in};

    fn inode(socket: &impl AsFd) -> u32 {
        let stat = nix::sys::stat::fstat(socket.as_fd()).expect("an open socket");
        u32::try_from(stat.st_ino).expect("inodes of sockets have 32 bits")
    }

    #[test]
    fn both_ends_of_a_pair_are_peers() {
        let (one, other) = UnixStream::pair().expect("a pair");
        assert_eq!((peer(inode(&one)), peer(inode(&other))), (Some(inode(&other)), Some(inode(&one))));
        let end = inode(&one);
        drop(other);
        assert_eq!(peer(end), None);
    }

    #[test]
    fn answers_that_are_too_short_have_no_peer() {
        let whole: Vec<u8> = [40, 20 | 1 << 16, 0, 0, 1, 7, 0, 0, 8 | 2 << 16, 9u32]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        if cfg!(target_endian = "little") {
            assert_eq!(peer_in(&whole, 7), Some(9));
            assert_eq!(peer_in(&whole, 8), None);
        }
        for length in 0..whole.len() {
            assert_eq!(peer_in(&whole[..length], 7), None, "{length}");
        }
    }
}
