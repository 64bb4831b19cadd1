//! Who has the other ends of the pipes and connections that threads wait for. One look at all processes serves all threads.

use std::collections::{BTreeMap, BTreeSet};

use ompd_process::live::{DescriptorKind, Holders, Socket, Surroundings};

use super::model::{Described, Ends, Outside, OutsideWait};

/// Fills in what sockets are, and the other ends.
pub(super) fn find(surroundings: &Surroundings, outside: &mut [Outside]) {
    let links = |outside: &[Outside], wanted: &dyn Fn(&DescriptorKind) -> bool| -> BTreeSet<String> {
        let described = outside.iter().filter_map(|of| of.wait.as_ref()).flat_map(all);
        let descriptors = described.filter_map(|of| of.descriptor.as_ref());
        descriptors.filter(|of| wanted(&of.kind)).map(|of| of.link.clone()).collect()
    };
    let sockets = links(outside, &|kind| *kind == DescriptorKind::Socket);
    let sockets = if sockets.is_empty() { BTreeMap::new() } else { surroundings.sockets(&sockets) };
    let mut wanted = links(outside, &|kind| matches!(kind, DescriptorKind::Pipe | DescriptorKind::Fifo));
    wanted.extend(sockets.values().filter_map(peer).cloned());
    let holders = if wanted.is_empty() { Holders::default() } else { surroundings.holders(&wanted) };
    for wait in outside.iter_mut().filter_map(|of| of.wait.as_mut()) {
        let writes = is_output(wait);
        for of in all_mut(wait) {
            let Some(descriptor) = &of.descriptor else { continue };
            let (link, connected) = match descriptor.kind {
                DescriptorKind::Pipe | DescriptorKind::Fifo => (Some(&descriptor.link), false),
                DescriptorKind::Socket => {
                    of.socket = sockets.get(&descriptor.link).cloned();
                    (of.socket.as_ref().and_then(peer), true)
                }
                _ => (None, false),
            };
            let Some(link) = link else { continue };
            let found = holders.by_link.get(link).into_iter().flatten();
            // Of a pipe the end that this one waits for.
            let is_other = |reads: bool, write: bool| connected || if writes { reads } else { write };
            let holders_of = found.filter(|holder| is_other(holder.reads, holder.writes)).cloned().collect();
            of.ends = Some(Ends { holders: holders_of, complete: holders.complete });
        }
    }
}

fn peer(socket: &Socket) -> Option<&String> {
    match socket {
        Socket::Tcp { peer_link, .. } | Socket::Unix { peer_link, .. } => peer_link.as_ref(),
        _ => None,
    }
}

/// True if it waits until it may write.
fn is_output(wait: &OutsideWait) -> bool {
    match wait {
        OutsideWait::Descriptor { call, .. } => call.contains("write") || call.starts_with("send"),
        OutsideWait::Stopped { within: Some(within), .. } => is_output(within),
        _ => false,
    }
}

fn all(wait: &OutsideWait) -> Vec<&Described> {
    match wait {
        OutsideWait::Descriptor { on, .. } | OutsideWait::KernelWait { on: Some(on), .. } => vec![on],
        OutsideWait::Poll { on, .. } => on.iter().collect(),
        OutsideWait::Stopped { within: Some(within), .. } => all(within),
        _ => Vec::new(),
    }
}

fn all_mut(wait: &mut OutsideWait) -> Vec<&mut Described> {
    match wait {
        OutsideWait::Descriptor { on, .. } | OutsideWait::KernelWait { on: Some(on), .. } => vec![on],
        OutsideWait::Poll { on, .. } => on.iter_mut().collect(),
        OutsideWait::Stopped { within: Some(within), .. } => all_mut(within),
        _ => Vec::new(),
    }
}
