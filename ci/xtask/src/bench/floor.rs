//! The shortest pause a tool of our kind can cause, and the least time that a look without a pause can take.

use std::fs::{self, File};
use std::io::IoSliceMut;
use std::num::NonZero;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use nix::fcntl::{OFlag, openat};
use nix::libc::PTRACE_EVENT_STOP;
use nix::sys::ptrace::{self, Options, regset};
use nix::sys::stat::Mode;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// What is read of the target's memory, in bytes: a page of most machines.
const PAGE: usize = 4096;

/// Stops all threads of a process, reads each thread's registers and one page of memory, and releases the threads. Returns the
/// time from the first `PTRACE_SEIZE` to the last `PTRACE_DETACH`.
///
/// It is a lower bound, not a tool: it searches for nothing, misses threads that start meanwhile, and waits for a stop without a
/// limit. The threads must stay what they are while this runs.
///
/// # Errors
/// When any step fails. Threads may then stay stopped until this process ends: end the target as well.
pub fn pause(pid: i32) -> Result<Duration> {
    let tids = threads(pid)?;
    let page = first_page(pid)?;
    let mut bytes = vec![0; PAGE];

    let began = Instant::now();
    stop(&tids)?;
    let remote = [RemoteIoVec { base: page, len: PAGE }];
    let read = process_vm_readv(Pid::from_raw(pid), &mut [IoSliceMut::new(&mut bytes)], &remote);
    for &tid in &tids {
        ptrace::getregset::<regset::NT_PRSTATUS>(tid).context("PTRACE_GETREGSET")?;
    }
    for &tid in &tids {
        ptrace::detach(tid, None).context("PTRACE_DETACH")?;
    }
    let held = began.elapsed();

    match read.context("process_vm_readv")? {
        PAGE => Ok(held),
        short => bail!("{short} bytes of a page were read"),
    }
}

/// Stops threads, and waits until all of them stand still.
fn stop(tids: &[Pid]) -> Result<()> {
    for &tid in tids {
        ptrace::seize(tid, Options::empty()).context("PTRACE_SEIZE")?;
    }
    for &tid in tids {
        ptrace::interrupt(tid).context("PTRACE_INTERRUPT")?;
    }
    for &tid in tids {
        match waitpid(tid, Some(WaitPidFlag::__WALL)).context("waiting for a stop")? {
            WaitStatus::PtraceEvent(_, _, PTRACE_EVENT_STOP) => {}
            other => bail!("a thread reports {other:?} and not the stop asked for"),
        }
    }
    Ok(())
}

/// As [`pause`], but reads the used part of every thread's stack instead of a page. It reads as much as we would, in as few
/// system calls as the kernel allows. Returns the number of bytes as well.
///
/// # Errors
/// As [`pause`].
pub fn pause_with_stacks(pid: i32) -> Result<(Duration, u64)> {
    let tids = threads(pid)?;
    let maps = mappings(pid)?;
    let limit = (STACKS / tids.len().max(1)).clamp(LEAST_STACK, MOST_STACK);
    let mut bytes: Vec<u8> = Vec::new();

    let began = Instant::now();
    stop(&tids)?;
    let mut ranges = Vec::with_capacity(tids.len());
    for &tid in &tids {
        let registers = ptrace::getregset::<regset::NT_PRSTATUS>(tid).context("PTRACE_GETREGSET")?;
        let base = registers.rsp as usize - RED_ZONE;
        let at = maps.partition_point(|(_, end)| *end <= base);
        let end = maps.get(at).filter(|(start, _)| *start <= base).context("a stack pointer astray")?.1;
        ranges.push(RemoteIoVec { base, len: (end - base).min(limit) });
    }
    let mut copied = 0;
    for batch in ranges.chunks(PIECES) {
        let length = batch.iter().map(|range| range.len).sum();
        bytes.resize(length, 0);
        let read = process_vm_readv(Pid::from_raw(pid), &mut [IoSliceMut::new(&mut bytes)], batch);
        copied += read.context("process_vm_readv")?;
    }
    for &tid in &tids {
        ptrace::detach(tid, None).context("PTRACE_DETACH")?;
    }
    let held = began.elapsed();
    let wanted: usize = ranges.iter().map(|range| range.len).sum();
    if copied != wanted {
        bail!("{copied} of {wanted} bytes were read");
    }
    Ok((held, copied as u64))
}

/// What it takes at least to show that no thread of a process runs. The threads are listed. Of each is read in `/proc` what it sleeps in, and
/// before and after that how often it was given a processor. As many threads as there are processors share the work, as in
/// `ompd-inspect`. The bytes are read, and nothing is made of them.
///
/// # Errors
/// When a file cannot be read.
pub fn proof(pid: i32) -> Result<Duration> {
    let began = Instant::now();
    let tids = threads(pid)?;
    let task = File::open(format!("/proc/{pid}/task")).with_context(|| format!("no process {pid}"))?;
    let parts = std::thread::available_parallelism().map_or(1, NonZero::get);
    for names in [&["schedstat", "syscall", "status"][..], &["schedstat"]] {
        let read_part = |part: &[Pid]| -> Result<()> {
            let mut bytes = vec![0; PAGE];
            for (tid, name) in part.iter().flat_map(|tid| names.iter().map(move |name| (tid, name))) {
                let file = openat(&task, format!("{tid}/{name}").as_str(), OFlag::O_RDONLY, Mode::empty())?;
                ensure!(nix::unistd::read(&file, &mut bytes)? > 0, "{name} of {tid} is empty");
            }
            Ok(())
        };
        let parts = tids.chunks(tids.len().div_ceil(parts).max(1));
        std::thread::scope(|scope| -> Result<()> {
            let read: Vec<_> = parts.map(|part| scope.spawn(move || read_part(part))).collect();
            read.into_iter().try_for_each(|part| part.join().map_err(|_| anyhow!("a reader has panicked"))?)
        })?;
    }
    Ok(began.elapsed())
}

/// What we copy of all stacks together, and of each at least and at most (`ompd-stack`, capture.rs).
const STACKS: usize = 64 << 20;
const LEAST_STACK: usize = 256 << 10;
const MOST_STACK: usize = 8 << 20;
const RED_ZONE: usize = 128;
/// Pieces of one `process_vm_readv` (IOV_MAX).
const PIECES: usize = 1024;

/// Beginning and end of all mappings.
fn mappings(pid: i32) -> Result<Vec<(usize, usize)>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).with_context(|| format!("no memory map of {pid}"))?;
    let range = |line: &str| {
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
    };
    maps.lines().map(|line| range(line).context("a line of the memory map without addresses")).collect()
}

/// The threads of a process.
fn threads(pid: i32) -> Result<Vec<Pid>> {
    let mut tids = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task")).with_context(|| format!("no process {pid}"))? {
        let name = entry?.file_name();
        let tid = name.to_str().and_then(|name| name.parse().ok()).context("a thread without a number")?;
        tids.push(Pid::from_raw(tid));
    }
    Ok(tids)
}

/// Where the first mapping begins: the ELF header of the executable, which is in memory.
fn first_page(pid: i32) -> Result<usize> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).with_context(|| format!("no memory map of {pid}"))?;
    let (start, _) = maps.split_once('-').context("an empty memory map")?;
    usize::from_str_radix(start, 16).context("a memory map that begins without an address")
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_programs::{Env, Launch, Opt, Runtime, Toolchain, build};

    #[test]
    fn the_target_runs_on() -> Result<()> {
        for toolchain in Toolchain::ALL {
            let runtime = match toolchain {
                Toolchain::Gcc => Runtime::Libgomp,
                Toolchain::Clang => Runtime::Libomp14,
            };
            if let Err(skip) = toolchain.check().and_then(|()| runtime.library()) {
                skip.show();
                continue;
            }
            let program = build("many", toolchain, Opt::O2, &[])?;
            let running = Launch::new(&program, runtime, Env::Settled).argument("5").start()?;
            assert_eq!(threads(running.pid)?.len(), 5);
            assert!(pause(running.pid)? > Duration::ZERO);
            assert!(proof(running.pid)? > Duration::ZERO);
            let (held, copied) = pause_with_stacks(running.pid)?;
            assert!(held > Duration::ZERO && copied > 5 * RED_ZONE as u64);
            assert_eq!(running.release()?.progress, 5);
        }
        Ok(())
    }
}
