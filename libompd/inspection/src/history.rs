//! What happened last in a process that has an OMPT companion: its threads' events, read from the companion's block.
//!
//! The block is read without stopping a live process. Events do not change once they are written. An event that is just being
//! written or overwritten is recognised, and counted instead of shown.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use std::time::{Duration, SystemTime};

use ompd_process::{Addr, BuildId, Listed, ListedFile, OpenError, OpenOptions, Target, TargetKind};
use ompd_runtime::companion::{self, Words};
use ompd_runtime::family::families;
use ompd_runtime::names;
use ompd_stack::{Cache, Code, CodePlace};
use ompt_record::block::{Header, HeaderValues, MAGIC, RingState, State};
use ompt_record::device::{
    DeviceAt, DeviceRecord, DeviceState, ENTRY_POINTS, HAS_HOST_TIME, HAS_LOOKUP, HAS_TIME, MOST_PARTS, records,
};
use ompt_record::event::Event;
use ompt_record::modules::{self, Mapped};
use ompt_record::read::{Block, Memory};

use crate::open;

/// The events of the threads of a process.
#[derive(Debug)]
pub struct History {
    /// What was read; `None` is a file that the companion wrote.
    pub kind: Option<TargetKind>,
    /// The process that wrote the events.
    pub pid: u64,
    /// How often the process forked since the companion began: with each fork the threads but one were left behind.
    pub forks: u64,
    /// How the runtime called itself to the companion (text of the target).
    pub runtime: String,
    /// The version of OpenMP it claims, as a date (`_OPENMP`).
    pub omp_version: u64,
    /// What the companion does.
    pub state: State,
    /// The last command of `omp_control_tool`, and how many there were.
    pub command: Option<(u64, u64)>,
    /// When the block was begun, in the time of events and as time of day.
    pub began: (u64, SystemTime),
    /// When it was read, if the process lives.
    pub now: Option<SystemTime>,
    /// Every thread that has events, in the order in which they began.
    pub threads: Vec<ThreadHistory>,
    /// Devices the runtime has introduced, also those that are gone.
    pub devices: Vec<DeviceHistory>,
    /// Where in the source the return addresses of the events are.
    pub places: HashMap<u64, CodePlace>,
    /// What the program calls the locks and variables that events name by their addresses, as far as they have symbols (text of the
    /// target).
    pub names: HashMap<u64, String>,
    /// What is missing, and why.
    pub issues: Vec<String>,
}

/// The events of one thread.
#[derive(Debug)]
pub struct ThreadHistory {
    /// Its number: the companion's, from 1, which is also what OMPD tells as its tool data.
    pub id: u64,
    /// The kernel's id it had.
    pub lwp: u64,
    /// `ompt_thread_t`, or what the companion calls threads of its own.
    pub kind: u64,
    /// When it began, in nanoseconds of `CLOCK_MONOTONIC`.
    pub began: u64,
    /// When it ended, if it has.
    pub ended: Option<u64>,
    /// How many events of it there were.
    pub total: u64,
    /// Those that were read, oldest first.
    pub events: Vec<Event>,
    /// How many that are in the ring were not asked for.
    pub not_shown: u64,
    /// How many are gone, since later ones took their places.
    pub overwritten: u64,
    /// How many were being written when they were read.
    pub torn: u64,
}

/// A device, and what its trace says.
#[derive(Debug)]
pub struct DeviceHistory {
    /// Its number.
    pub number: i32,
    /// What the runtime calls it; empty if it gave no name (text of the target).
    pub type_name: String,
    /// What becomes of it.
    pub state: DeviceState,
    /// The runtime gave a function to look up what the device offers.
    pub has_lookup: bool,
    /// What of it the device has, by name (OpenMP 5.2, table 19.4).
    pub entry_points: Vec<&'static str>,
    /// When it was introduced, in nanoseconds of `CLOCK_MONOTONIC`.
    pub began: u64,
    /// What its own clock said then, in its own units.
    pub device_time: Option<u64>,
    /// The same moment in seconds of `omp_get_wtime`.
    pub host_time: Option<f64>,
    /// When it was finalised, if it was.
    pub ended: Option<u64>,
    /// How many records were ever written.
    pub total: u64,
    /// Those that were read, in the order of their delivery; more than one event of the ring each.
    pub records: Vec<DeviceRecord>,
    /// Whether earlier ones were there and have been overwritten, or were not asked for.
    pub earlier: bool,
    /// How many parts of records were read whose others are missing.
    pub fragments: u64,
    /// Buffers that it asked for and did not get: what happened then may be missing.
    pub buffers_refused: u64,
    /// Records that could not be made sense of.
    pub invalid: u64,
    /// Deliveries of which not all could be read.
    pub cut: u64,
}

/// Why there is no history.
#[derive(Debug, thiserror::Error)]
pub enum NoHistory {
    /// The process or core cannot be read.
    #[error(transparent)]
    Target(#[from] OpenError),
    /// There is no companion in it.
    #[error("no companion has recorded in {0}")]
    NoCompanion(String),
    /// There is one, and its block cannot be read.
    #[error("the companion's block cannot be read: {0}")]
    Block(String),
}

impl NoHistory {
    /// How to fix it.
    pub fn remedy(&self) -> Option<String> {
        match self {
            NoHistory::Target(error) => error.remedy(),
            NoHistory::NoCompanion(_) => Some(format!(
                "start the program by \"ompd-inspect run --record -- PROGRAM\", or with OMP_TOOL_LIBRARIES=libompt_companion.so \
                 ({}; docs/companion.md)",
                who_has_tools()
            )),
            NoHistory::Block(_) => None,
        }
    }
}

/// Which libraries implement OMPT.
fn who_has_tools() -> String {
    let named = |with: bool| -> Vec<&str> {
        families().filter(|about| about.has_tools == with).flat_map(|about| about.libraries).copied().collect()
    };
    match (named(true), named(false)) {
        (with, _) if with.is_empty() => "no runtime this was built for has OMPT".to_owned(),
        (with, without) if without.is_empty() => format!("{} have OMPT", with.join(" and ")),
        (with, without) => format!("{} have OMPT, {} has not", with.join(" and "), without.join(" and ")),
    }
}

/// Reads the last events of each thread, at most `most`, of a process, a core, or a file that the companion wrote.
///
/// # Errors
/// If there is nothing to read.
pub fn history(target: &str, options: &OpenOptions, most: u64) -> Result<History, NoHistory> {
    if let Some(file) = BlockFile::open(Path::new(target)) {
        let mut history = file.history(most)?;
        name_places(&mut history, &file, options);
        return Ok(history);
    }
    let held = open(target, options)?;
    of_target(&*held, most)
}

/// As [`history`], of the bytes of a file that the companion wrote; `None` if they do not begin as such a file does.
pub fn of_bytes(bytes: &[u8], most: u64) -> Option<Result<History, NoHistory>> {
    Some(BlockFile::of(bytes)?.history(most))
}

/// As [`history`], of a target that is open.
///
/// # Errors
/// If it has no companion, or none whose block can be read.
pub fn of_target(target: &dyn Target, most: u64) -> Result<History, NoHistory> {
    let process = target.process();
    let name = || match process.pid {
        Some(pid) => format!("process {pid}"),
        None => "this process".to_owned(),
    };
    let block = match companion::find(target, &companion::words(target)) {
        None => return Err(NoHistory::NoCompanion(name())),
        Some(Err(why)) => return Err(NoHistory::Block(why.to_string())),
        Some(Ok(block)) => block,
    };
    let mut history = read(&block, &Words::of_running(target), most);
    history.kind = Some(target.kind());
    history.now = (target.kind() == TargetKind::Live).then(SystemTime::now);
    name_addresses(&mut history, target);
    Ok(history)
}

/// Names addresses by the files that the process had mapped, as far as a file of the companion's says which.
fn name_places<S: Stored>(history: &mut History, file: &BlockFile<S>, options: &OpenOptions) {
    let listed = file.modules().into_iter().map(|of| ListedFile {
        is_exe: of.is_program,
        bias: of.bias,
        range: of.first..of.last,
        build_id: (!of.build_id.is_empty()).then_some(BuildId(of.build_id)),
        path: of.path,
    });
    let listed: Vec<ListedFile> = listed.collect();
    if listed.is_empty() {
        history
            .issues
            .push("the file does not say which files the process had mapped: addresses have no names".to_owned());
        return;
    }
    match Listed::open(listed, options) {
        Some(target) => {
            name_addresses(history, &target);
            history.issues.extend(target.issues().iter().cloned());
        }
        None => history.issues.push("none of the files that the process had mapped is at hand".to_owned()),
    }
}

fn name_addresses(history: &mut History, target: &dyn Target) {
    let code = Code::of(target, &Cache::default());
    let mut named = HashMap::new();
    for thread in &history.threads {
        for event in thread.events.iter().filter(|event| event.codeptr_ra != 0) {
            let place = history.places.entry(event.codeptr_ra);
            place.or_insert_with(|| code.of_return_address(Addr(event.codeptr_ra)));
        }
        for address in thread.events.iter().filter_map(named_address) {
            if let Entry::Vacant(entry) = named.entry(address) {
                entry.insert(names::symbol(target, Addr(address)));
            }
        }
    }
    history.names = named.into_iter().filter_map(|(address, name)| Some((address, name?))).collect();
}

/// The address by which an event names a lock or variable of the program.
pub fn named_address(event: &Event) -> Option<u64> {
    // What has to do with locks, and dependences.
    matches!(event.kind, 17 | 18 | 24..=28).then_some(event.other).filter(|address| *address != 0)
}

/// The most events that are read, of all threads together. They take a quarter of a gigabyte, and about ten times that as JSON.
const MOST_EVENTS: u64 = 1 << 22;

fn read<M: Memory>(block: &Block, memory: &M, most: u64) -> History {
    let header = &block.header;
    let mut issues = Vec::new();
    let (rings, unreadable) = block.rings(memory);
    let mut lost = |count: u64, what: &str| {
        if count > 0 {
            issues.push(format!("{count} {what}"));
        }
    };
    lost(unreadable, "threads' events cannot be read");
    lost(header.threads_beyond, "threads were not recorded, since there were more than rings (OMPT_COMPANION_THREADS)");
    lost(
        header.runtimes_beyond,
        "further OpenMP runtimes of the process were not recorded: one companion records one runtime",
    );
    let mut threads: Vec<ThreadHistory> = Vec::new();
    // A core may claim more memory than there is, by mapping one piece of its file many times.
    let mut room = MOST_EVENTS;
    for ring in rings {
        let values = ring.values;
        let total = values.head.saturating_sub(values.first.min(values.head));
        let there = total.min(block.shape.events);
        let wanted = most.min(room);
        room -= there.min(wanted);
        let read = block.events(memory, ring, wanted);
        let events = read.unwrap_or_else(|_| {
            issues.push(format!("the events of thread {} cannot be read", values.id));
            Default::default()
        });
        threads.push(ThreadHistory {
            id: values.id,
            lwp: values.lwp,
            kind: values.kind,
            began: values.began,
            ended: (values.state == RingState::Ended as u64).then_some(values.ended),
            total,
            not_shown: there - there.min(wanted),
            overwritten: events.overwritten,
            torn: events.torn,
            events: events.events,
        });
    }
    threads.sort_by_key(|thread| thread.id);
    let devices = block.devices(memory).unwrap_or_else(|_| {
        issues.push("the table of devices cannot be read".to_owned());
        Vec::new()
    });
    let devices = devices.iter().map(|device| of_device(block, memory, device, most, &mut room, &mut issues)).collect();
    History {
        kind: None,
        pid: header.pid,
        forks: header.forks,
        runtime: block.runtime.clone(),
        omp_version: header.omp_version,
        // `Block::open` refuses blocks in other states.
        state: State::from_number(header.state).unwrap_or(State::Ended),
        command: (header.commands > 0).then_some((header.command, header.commands)),
        began: (header.began, SystemTime::UNIX_EPOCH + Duration::from_nanos(header.began_realtime)),
        now: None,
        threads,
        devices,
        places: HashMap::new(),
        names: HashMap::new(),
        issues,
    }
}

fn of_device<M: Memory>(
    block: &Block,
    memory: &M,
    device: &DeviceAt,
    most: u64,
    room: &mut u64,
    issues: &mut Vec<String>,
) -> DeviceHistory {
    let values = &device.values;
    let has = |bit: u64| values.capabilities & bit != 0;
    let mut history = DeviceHistory {
        number: device.number(),
        type_name: device.type_name.clone(),
        // A number that is no state may be there in a damaged block only.
        state: DeviceState::from_number(values.state).unwrap_or(DeviceState::Free),
        has_lookup: has(HAS_LOOKUP),
        entry_points: ENTRY_POINTS.into_iter().filter(|name| device.has(name)).collect(),
        began: values.began,
        device_time: has(HAS_TIME).then_some(values.device_time),
        host_time: has(HAS_HOST_TIME).then(|| f64::from_bits(values.host_time)),
        ended: (values.ended != 0).then_some(values.ended),
        total: values.records,
        records: Vec::new(),
        earlier: false,
        fragments: 0,
        buffers_refused: values.buffers_refused,
        invalid: values.invalid,
        cut: values.cut,
    };
    let ring = match block.device_ring(memory, device) {
        Ok(Some(ring)) => ring,
        // It has none, or another one has taken it over.
        Ok(None) => {
            history.earlier = history.total > 0;
            return history;
        }
        Err(_) => {
            issues.push(format!("the records of device {} cannot be read", device.number()));
            return history;
        }
    };
    // A record takes several events.
    let wanted = most.saturating_mul(MOST_PARTS as u64).min(*room);
    *room -= ring.values.head.min(block.shape.events).min(wanted);
    match block.events(memory, ring, wanted) {
        Ok(events) => {
            let read = records(&events.events);
            history.fragments = read.fragments + events.torn;
            history.records = read.records;
            let beyond = history.records.len().saturating_sub(usize::try_from(most).unwrap_or(usize::MAX));
            history.records.drain(..beyond);
            history.earlier = (history.records.len() as u64) < history.total;
        }
        Err(_) => issues.push(format!("the records of device {} cannot be read", device.number())),
    }
    history
}

impl History {
    /// The time of the newest event that was read; `None` if there is none.
    pub fn newest(&self) -> Option<u64> {
        self.threads.iter().filter_map(|thread| thread.events.last()).map(|event| event.time).max()
    }

    /// The time of day at a time of events. `None` if it is before the block was begun.
    pub fn time_of_day(&self, time: u64) -> Option<SystemTime> {
        let (began, day) = self.began;
        day.checked_add(Duration::from_nanos(time.checked_sub(began)?))
    }

    /// Every event with the thread it is of, by time. Events of a thread stay in their order.
    pub fn by_time(&self) -> Vec<(&ThreadHistory, &Event)> {
        let all = self.threads.iter().flat_map(|thread| thread.events.iter().map(move |event| (thread, event)));
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|(_, event)| event.time);
        all
    }

    /// True if nothing is missing but what was not asked for or has been overwritten.
    pub fn complete(&self) -> bool {
        self.issues.is_empty()
    }
}

/// A block that the companion wrote to a file. It is read piece by piece: what the file says of its size, or its own size, which may be
/// mostly holes, takes no memory.
struct BlockFile<S> {
    stored: S,
    /// Where the block was in the process.
    at: u64,
}

/// Bytes that can be read here and there.
trait Stored {
    /// How many there are.
    fn size(&self) -> std::io::Result<u64>;
    /// Fills the buffer from a position on.
    fn read_at(&self, buffer: &mut [u8], from: u64) -> std::io::Result<()>;
}

impl Stored for std::fs::File {
    fn size(&self) -> std::io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], from: u64) -> std::io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buffer, from)
    }
}

impl Stored for &[u8] {
    fn size(&self) -> std::io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], from: u64) -> std::io::Result<()> {
        let from = usize::try_from(from).ok().and_then(|from| self.get(from..)?.get(..buffer.len()));
        buffer.copy_from_slice(from.ok_or(std::io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl BlockFile<std::fs::File> {
    /// The file, if it is one.
    fn open(path: &Path) -> Option<BlockFile<std::fs::File>> {
        // Before it is opened: a pipe that nobody writes to would keep who opens it.
        if !std::fs::metadata(path).is_ok_and(|data| data.is_file()) {
            return None;
        }
        BlockFile::of(std::fs::File::open(path).ok()?)
    }
}

impl<S: Stored> BlockFile<S> {
    /// What is stored, if it begins as such a file does.
    fn of(stored: S) -> Option<BlockFile<S>> {
        let file = BlockFile { stored, at: 0 };
        let header = HeaderValues::from_words(&file.words(0, Header::WORDS).ok()?)?;
        let is_block = [header.magic_first, header.magic_second] == MAGIC;
        is_block.then_some(BlockFile { at: header.address, ..file })
    }

    /// The files that the process had mapped; none if the file does not say.
    fn modules(&self) -> Vec<Mapped> {
        let text = || {
            let end = self.stored.size().ok()?.checked_sub(modules::FOOTER as u64)?;
            let mut footer = [0; modules::FOOTER];
            self.stored.read_at(&mut footer, end).ok()?;
            let length = modules::length(footer)?;
            let mut text = vec![0; usize::try_from(length).ok()?];
            self.stored.read_at(&mut text, end.checked_sub(length)?).ok()?;
            Some(text)
        };
        text().map(|text| modules::read(&text)).unwrap_or_default()
    }

    fn history(&self, most: u64) -> Result<History, NoHistory> {
        let block = Block::open(self, self.at).map_err(|why| NoHistory::Block(why.to_string()))?;
        Ok(read(&block, self, most))
    }
}

/// Why words are not in a file.
#[derive(Debug, thiserror::Error)]
enum NotInFile {
    #[error("the file ends before")]
    Ends,
    #[error("{0}")]
    Unreadable(#[from] std::io::Error),
}

impl<S: Stored> Memory for BlockFile<S> {
    type Error = NotInFile;

    fn words(&self, at: u64, count: usize) -> Result<Vec<u64>, NotInFile> {
        let from = at.checked_sub(self.at).ok_or(NotInFile::Ends)?;
        let size = count.checked_mul(size_of::<u64>()).ok_or(NotInFile::Ends)?;
        let to = from.checked_add(size as u64).ok_or(NotInFile::Ends)?;
        // Before memory is taken for them.
        if to > self.stored.size()? {
            return Err(NotInFile::Ends);
        }
        let mut bytes = vec![0; size];
        self.stored.read_at(&mut bytes, from)?;
        Ok(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use ompt_record::block::Shape;

    use super::*;

    /// A file that says that it has all there can be, and is a single page and a hole.
    #[test]
    fn a_hole_takes_no_memory() {
        let path = std::env::temp_dir().join(format!("ompt-record-hole-{}", std::process::id()));
        let mut file = std::fs::File::create(&path).expect("a file");
        let at = 0x7f00_0000_0000;
        let words = [MAGIC[0], MAGIC[1], ompt_record::block::VERSION, at, 1 << 16, 1 << 20, 64, 64, 1, 17, 0, 1];
        file.write_all(&words.map(u64::to_le_bytes).concat()).expect("it is written");
        let size = Shape::new(1 << 16, 1 << 20, 64, 64).expect("a shape").size().min(1 << 43);
        let grown = file.set_len(size);
        let read =
            BlockFile::open(&path).map(|file| (Block::open(&file, file.at).map(|block| block.shape.rings), file));
        let _ = std::fs::remove_file(&path);
        grown.expect("a hole");
        let (rings, file) = read.expect("it is a block");
        assert_eq!(rings.ok(), Some(1 << 16));
        assert!(matches!(file.words(at, usize::MAX / 8), Err(NotInFile::Ends)));
        assert!(matches!(file.words(at - 8, 1), Err(NotInFile::Ends)));
        assert_eq!(file.words(at, 1).ok().as_deref(), Some(&MAGIC[..1]));
        // A damaged shape is one, and no core.
        std::fs::write(&path, [&MAGIC[..], &[0; 60]].concat().iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>())
            .expect("another file");
        let other = BlockFile::open(&path).map(|file| Block::open(&file, file.at).is_err());
        let _ = std::fs::remove_file(&path);
        assert_eq!(other, Some(true));
    }
}
