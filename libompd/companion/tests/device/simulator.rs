//! The device simulator of the test programs, with the companion in it.

use std::fs::File;
use std::io::{BufRead as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use ompt_record::block::RingState;
use ompt_record::device::{DeviceAt, DeviceRecords, records};
use ompt_record::event::Event;
use ompt_record::read::{Block, Memory};
use serde_json::Value;
use test_programs::{Env, Launch, Opt, Process, Runtime, Skip, Toolchain, build, built_by_cargo};

/// The number of the simulated device.
pub const DEVICE: i32 = 5;

/// A simulator that runs. When this value is dropped, it is killed and reaped.
pub struct Simulator {
    process: Process,
    /// All that it has said.
    pub lines: Vec<Value>,
    /// Where the block of the companion is.
    at: u64,
}

/// The memory of a process.
struct Live(File);

impl Memory for Live {
    type Error = std::io::Error;

    fn words(&self, at: u64, count: usize) -> std::io::Result<Vec<u64>> {
        let mut bytes = vec![0; count * 8];
        self.0.read_exact_at(&mut bytes, at)?;
        Ok(bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
    }
}

/// A block that was written to a file: it says where it was.
struct Written {
    bytes: Vec<u8>,
    at: u64,
}

impl Memory for Written {
    type Error = std::io::Error;

    fn words(&self, at: u64, count: usize) -> std::io::Result<Vec<u64>> {
        let from = at.checked_sub(self.at).and_then(|from| usize::try_from(from).ok());
        let bytes = from.and_then(|from| self.bytes.get(from..from.checked_add(count * 8)?));
        let bytes = bytes.ok_or(std::io::ErrorKind::UnexpectedEof)?;
        Ok(bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
    }
}

/// What a block has of the simulated device.
pub struct Found {
    pub block: Block,
    pub devices: Vec<DeviceAt>,
    /// The entry of the simulated device.
    pub device: DeviceAt,
    /// The records of its ring; `None` if it has none.
    pub records: Option<DeviceRecords>,
    /// How many of the ring's events are gone, since later ones took their places.
    pub overwritten: u64,
    /// Whether the ring is that of a device that is there.
    pub ring_is_used: bool,
    /// The events of the rings of threads.
    pub host: Vec<Event>,
}

fn found<M: Memory<Error = std::io::Error>>(memory: &M, at: u64) -> Result<Found> {
    let block = Block::open(memory, at)?;
    let devices = block.devices(memory)?;
    let device = devices.iter().find(|device| device.number() == DEVICE).context("the device is not there")?.clone();
    let ring = block.device_ring(memory, &device)?;
    let mut overwritten = 0;
    let records = match ring {
        Some(ring) => {
            let events = block.events(memory, ring, u64::MAX)?;
            ensure!(events.torn == 0, "{} events are torn", events.torn);
            overwritten = events.overwritten;
            Some(records(&events.events))
        }
        None => None,
    };
    let mut host = Vec::new();
    let (rings, unreadable) = block.rings(memory);
    ensure!(unreadable == 0, "{unreadable} rings cannot be read");
    for thread in rings {
        ensure!(thread.values.lwp != 0, "a ring of a device is told as a thread's");
        host.extend(block.events(memory, thread, u64::MAX)?.events);
    }
    let ring_is_used = ring.is_some_and(|ring| ring.values.state == RingState::Used as u64);
    Ok(Found { block, devices, device, records, overwritten, ring_is_used, host })
}

/// Reads the block that the companion wrote to a file.
pub fn read_file(file: &Path) -> Result<Found> {
    let bytes = std::fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    let address = bytes.get(24..32).and_then(|bytes| bytes.try_into().ok()).context("the file has no header")?;
    let at = u64::from_le_bytes(address);
    found(&Written { bytes, at }, at)
}

impl Simulator {
    /// Starts it; the inner error says why that cannot be tried here.
    pub fn start(modes: &[&str], variables: &[(&str, &str)]) -> Result<Result<Simulator, Skip>> {
        if let Err(skip) = Toolchain::Clang.check().and_then(|()| Runtime::Libomp14.library().map(drop)) {
            return Ok(Err(skip));
        }
        let program = build("device_simulator", Toolchain::Clang, Opt::O2, &[])?;
        let mut launch = Launch::new(&program, Runtime::Libomp14, Env::Stock);
        launch = launch.argument(&built_by_cargo("libompt_companion.so").to_string_lossy());
        for mode in modes {
            launch = launch.argument(mode);
        }
        for (name, value) in variables {
            launch = launch.variable(name, value);
        }
        let mut simulator = Simulator { process: launch.spawn()?, lines: Vec::new(), at: 0 };
        let ready = simulator.read_until("ready")?;
        simulator.at = ready["block"].as_u64().context("it does not say where the block is")?;
        Ok(Ok(simulator))
    }

    fn read_until(&mut self, member: &str) -> Result<Value> {
        loop {
            let mut line = String::new();
            if self.process.stdout.read_line(&mut line)? == 0 {
                bail!("the simulator ended before it said {member:?}");
            }
            let line: Value = serde_json::from_str(&line).with_context(|| format!("no JSON: {line}"))?;
            let told = line.get(member).cloned();
            self.lines.push(line);
            if let Some(told) = told {
                return Ok(told);
            }
        }
    }

    /// Has it obey these characters, one after another; returns what the last one answered.
    pub fn obey(&mut self, commands: &str) -> Result<i64> {
        let mut answer = 0;
        for command in commands.bytes() {
            self.process.stdin.write_all(&[command])?;
            self.read_until("did")?;
            answer = self.lines.last().and_then(|line| line["answer"].as_i64()).context("no answer")?;
        }
        Ok(answer)
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.process.child.id().cast_signed()
    }

    /// What the companion's block says now.
    pub fn found(&self) -> Result<Found> {
        let file = File::open(format!("/proc/{}/mem", self.process.child.id()))?;
        found(&Live(file), self.at)
    }

    /// Has it end. Fails if the companion has broken a rule in all this time, or anything else went wrong.
    pub fn end(mut self) -> Result<Vec<Value>> {
        self.process.stdin.write_all(b"q")?;
        self.read_until("done")?;
        let status = self.process.child.wait()?;
        ensure!(status.success(), "the simulator ended with {status}");
        let broken: Vec<_> = self.lines.iter().filter_map(|line| line.get("error")).collect();
        ensure!(broken.is_empty(), "rules were broken: {broken:?}");
        Ok(std::mem::take(&mut self.lines))
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        // Both fail only when the process was reaped already.
        let _ = self.process.child.kill();
        let _ = self.process.child.wait();
    }
}

/// What a simulator said under this name.
pub fn told<'a>(lines: &'a [Value], member: &str) -> Vec<&'a Value> {
    lines.iter().filter_map(|line| line.get(member)).collect()
}
