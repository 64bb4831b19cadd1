//! Records of a device's trace, and the events that they are written as.

use super::{low, low_unsigned};
use crate::event::Event;

/// The parts of a record: kinds of events in a device's ring. Each record begins with `HEAD`, `IDS` and `WHAT`.
pub mod part {
    /// `endpoint`: how many parts there are; `sub`: kind of the record (number of the callback) and, in the upper byte,
    /// [`Form`](super::Form); `flags`: the device; `region`, `task`: time and end, in the device's units; `other`,
    /// `codeptr_ra`: both as seconds of the host (bits of a `double`).
    pub const HEAD: u8 = 64;
    /// `endpoint`: what is known of the two first parts (`known`); `region`: thread; `task`: target; `other`: host
    /// operation.
    pub const IDS: u8 = 65;
    /// The arguments that the callback of that number would have had, as in the table of
    /// [`Event`](crate::event::Event). The record's ids stand where that table has the companion's numbers. Nothing for
    /// native records.
    pub const WHAT: u8 = 66;
    /// What that has no place for: [`More`](super::More).
    pub const MORE: u8 = 67;
    /// The first bytes of a text, eight in each word.
    pub const TEXT: u8 = 68;
    /// An item of a map: `flags`: which; `sub`: what is known; `region`, `task`: host and device address; `other`:
    /// bytes; `codeptr_ra`: flags.
    pub const ITEM: u8 = 69;

    /// Bits that say what is known.
    pub(super) mod known {
        pub const TIME: u8 = 1;
        pub const END_TIME: u8 = 2;
        pub const HOST_TIME: u8 = 4;
        pub const HOST_END_TIME: u8 = 8;
        pub const THREAD: u8 = 16;
        pub const TARGET: u8 = 32;
        pub const HOST_OPERATION: u8 = 64;
        pub const WHAT: u8 = 128;
    }
}

use part::known;

/// In which form a record was (`ompt_record_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Form {
    /// OMPT's.
    #[default]
    Ompt = 1,
    /// The device's own. What is known of it comes from its abstract form, if there is one.
    Native = 2,
}

/// Bytes of a text that a record keeps.
pub const TEXT: usize = 32;
/// Items of a map that a record keeps.
pub const ITEMS: usize = 8;
/// Parts of the largest record.
pub const MOST_PARTS: usize = 5 + ITEMS;

/// What a record of some kinds has beside what the callback is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum More {
    /// Of `target_data_op`.
    DataOperation {
        /// Bytes moved, or allocated.
        bytes: u64,
        /// The device the data comes from.
        source: i32,
        /// The device it goes to.
        destination: i32,
    },
    /// Of `target_submit`.
    Kernel {
        /// Teams the kernel got.
        granted_teams: u32,
    },
    /// Of `mutex_acquire` and `lock_init`.
    Mutex {
        /// `impl`: how the runtime makes it.
        implementation: u32,
    },
    /// Of `implicit_task`.
    ImplicitTask {
        /// All of its flags.
        flags: u32,
    },
    /// Of `control_tool`.
    Control {
        /// The command.
        command: u64,
    },
    /// Of `error`.
    Error {
        /// Length of its message.
        length: u64,
    },
    /// Of a native record that has an abstract form.
    Abstract {
        /// `ompt_record_native_t`: 1 information, 2 an event.
        class: u32,
        /// Identifier of the hardware; 0 for none.
        hardware: u64,
    },
}

impl More {
    /// As words, the first of which says which it is.
    fn words(self) -> [u64; 4] {
        let wide = |number: i32| u64::from(number.cast_unsigned());
        match self {
            More::DataOperation { bytes, source, destination } => [1, bytes, wide(source), wide(destination)],
            More::Kernel { granted_teams } => [2, granted_teams.into(), 0, 0],
            More::Mutex { implementation } => [3, implementation.into(), 0, 0],
            More::ImplicitTask { flags } => [4, flags.into(), 0, 0],
            More::Control { command } => [5, command, 0, 0],
            More::Error { length } => [6, length, 0, 0],
            More::Abstract { class, hardware } => [7, class.into(), hardware, 0],
        }
    }

    fn from_words([which, a, b, c]: [u64; 4]) -> Option<More> {
        Some(match which {
            1 => More::DataOperation { bytes: a, source: low(b), destination: low(c) },
            2 => More::Kernel { granted_teams: low_unsigned(a) },
            3 => More::Mutex { implementation: low_unsigned(a) },
            4 => More::ImplicitTask { flags: low_unsigned(a) },
            5 => More::Control { command: a },
            6 => More::Error { length: a },
            7 => More::Abstract { class: low_unsigned(a), hardware: b },
            _ => return None,
        })
    }
}

/// An item of a map. What the runtime gave no array for is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MapItem {
    /// Its address on the host.
    pub host: Option<u64>,
    /// Its address on the device.
    pub device: Option<u64>,
    /// Its size.
    pub bytes: Option<u64>,
    /// `ompt_target_map_flag_t`.
    pub flags: Option<u32>,
}

/// A record of a device's trace. Times are as the record has them; nothing orders them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DeviceRecord {
    /// The position of its first part in the ring.
    pub position: u64,
    /// When the companion got it: nanoseconds of `CLOCK_MONOTONIC`.
    pub delivered: u64,
    /// The device's number.
    pub device: i32,
    /// In which form it was.
    pub form: Form,
    /// Number of the callback that the event belongs to; 0 for native records.
    pub kind: u8,
    /// When it happened or began, in the device's units.
    pub time: Option<u64>,
    /// When it ended, in the device's units: of operations, kernels and what has an abstract form.
    pub end_time: Option<u64>,
    /// [`time`](Self::time) as seconds of `omp_get_wtime`.
    pub host_time: Option<f64>,
    /// [`end_time`](Self::end_time) as seconds of `omp_get_wtime`.
    pub host_end_time: Option<f64>,
    /// The thread that the record names.
    pub thread_id: Option<u64>,
    /// The target region that every record of OMPT names.
    pub target_id: Option<u64>,
    /// The operation of the host that it belongs to: the number that callbacks of the host gave it.
    pub host_op_id: Option<u64>,
    /// What the callback would have been told. Its `position`, `time` and `kind` are those of the record's part.
    pub what: Option<Event>,
    /// What that has no place for.
    pub more: Option<More>,
    /// The beginning of its message or of the name of its type; zeros behind it.
    pub text: Option<[u8; TEXT]>,
    /// The first items of a map; [`Event::flags`] of `what` says how many there were.
    pub items: [Option<MapItem>; ITEMS],
}

/// The events that a record is written as. Their position is left at zero.
#[derive(Debug, Clone, Copy)]
pub struct Parts {
    events: [Event; MOST_PARTS],
    count: usize,
}

impl Parts {
    /// They.
    pub fn events(&self) -> &[Event] {
        self.events.get(..self.count).unwrap_or_default()
    }

    fn push(&mut self, event: Event) {
        if let Some(place) = self.events.get_mut(self.count) {
            *place = event;
            self.count += 1;
        }
    }
}

impl DeviceRecord {
    /// Its text, as far as it is kept.
    pub fn text(&self) -> Option<String> {
        let text = self.text?;
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(TEXT);
        Some(String::from_utf8_lossy(text.get(..end).unwrap_or_default()).into_owned())
    }

    /// The events it is written as. It allocates nothing.
    pub fn parts(&self) -> Parts {
        let mut parts = Parts { events: [Event::default(); MOST_PARTS], count: 0 };
        let plain = |kind| Event { time: self.delivered, kind, ..Event::default() };
        let bits = |time: Option<f64>| time.map_or(0, f64::to_bits);
        let bit = |there: bool, bit: u8| if there { bit } else { 0 };
        parts.push(Event {
            sub: u16::from(self.kind) | (self.form as u16) << 8,
            flags: self.device.cast_unsigned(),
            region: self.time.unwrap_or(0),
            task: self.end_time.unwrap_or(0),
            other: bits(self.host_time),
            codeptr_ra: bits(self.host_end_time),
            ..plain(part::HEAD)
        });
        parts.push(Event {
            endpoint: bit(self.time.is_some(), known::TIME)
                | bit(self.end_time.is_some(), known::END_TIME)
                | bit(self.host_time.is_some(), known::HOST_TIME)
                | bit(self.host_end_time.is_some(), known::HOST_END_TIME)
                | bit(self.thread_id.is_some(), known::THREAD)
                | bit(self.target_id.is_some(), known::TARGET)
                | bit(self.host_op_id.is_some(), known::HOST_OPERATION)
                | bit(self.what.is_some(), known::WHAT),
            region: self.thread_id.unwrap_or(0),
            task: self.target_id.unwrap_or(0),
            other: self.host_op_id.unwrap_or(0),
            ..plain(part::IDS)
        });
        parts.push(Event { time: self.delivered, kind: part::WHAT, ..self.what.unwrap_or_default() });
        if let Some(more) = self.more {
            let [region, task, other, codeptr_ra] = more.words();
            parts.push(Event { region, task, other, codeptr_ra, ..plain(part::MORE) });
        }
        if let Some(text) = self.text {
            let mut words = text.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
            let mut next = || words.next().unwrap_or(0);
            let (region, task, other, codeptr_ra) = (next(), next(), next(), next());
            parts.push(Event { region, task, other, codeptr_ra, ..plain(part::TEXT) });
        }
        for (n, item) in (0..).zip(&self.items) {
            let Some(item) = item else { continue };
            let known = [item.host.is_some(), item.device.is_some(), item.bytes.is_some(), item.flags.is_some()];
            parts.push(Event {
                sub: known.iter().zip(0..).map(|(known, n)| u16::from(*known) << n).sum(),
                flags: n,
                region: item.host.unwrap_or(0),
                task: item.device.unwrap_or(0),
                other: item.bytes.unwrap_or(0),
                codeptr_ra: item.flags.unwrap_or(0).into(),
                ..plain(part::ITEM)
            });
        }
        if let Some(head) = parts.events.first_mut() {
            head.endpoint = u8::try_from(parts.count).unwrap_or(0);
        }
        parts
    }

    /// The record of these parts, which follow one another in the ring; `None` if they are none.
    fn from_parts(parts: &[Event]) -> Option<DeviceRecord> {
        let [head, ids, what, rest @ ..] = parts else { return None };
        if [head.kind, ids.kind, what.kind] != [part::HEAD, part::IDS, part::WHAT] {
            return None;
        }
        let known = |bit: u8, value: u64| (ids.endpoint & bit != 0).then_some(value);
        let [kind, form] = head.sub.to_le_bytes();
        let mut record = DeviceRecord {
            position: head.position,
            delivered: head.time,
            device: head.flags.cast_signed(),
            form: [Form::Ompt, Form::Native].into_iter().find(|known| *known as u8 == form)?,
            kind,
            time: known(known::TIME, head.region),
            end_time: known(known::END_TIME, head.task),
            host_time: known(known::HOST_TIME, head.other).map(f64::from_bits),
            host_end_time: known(known::HOST_END_TIME, head.codeptr_ra).map(f64::from_bits),
            thread_id: known(known::THREAD, ids.region),
            target_id: known(known::TARGET, ids.task),
            host_op_id: known(known::HOST_OPERATION, ids.other),
            what: known(known::WHAT, 0).map(|_| Event { kind, ..*what }),
            ..DeviceRecord::default()
        };
        for event in rest {
            let words = [event.region, event.task, event.other, event.codeptr_ra];
            match event.kind {
                part::MORE => record.more = Some(More::from_words(words)?),
                part::TEXT => {
                    let mut text = [0; TEXT];
                    for (to, word) in text.as_chunks_mut().0.iter_mut().zip(words) {
                        *to = u64::to_le_bytes(word);
                    }
                    record.text = Some(text);
                }
                part::ITEM => {
                    let known = |n: u8, value: u64| (event.sub >> n & 1 == 1).then_some(value);
                    *record.items.get_mut(usize::try_from(event.flags).ok()?)? = Some(MapItem {
                        host: known(0, event.region),
                        device: known(1, event.task),
                        bytes: known(2, event.other),
                        flags: known(3, event.codeptr_ra).map(low_unsigned),
                    });
                }
                _ => return None,
            }
        }
        Some(record)
    }
}

/// The records of a device's ring, as far as they are whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeviceRecords {
    /// They, in the order in which they were delivered.
    pub records: Vec<DeviceRecord>,
    /// Parts of which others are missing: overwritten, or not yet written.
    pub fragments: u64,
}

/// Puts records together of the events of a device's ring ([`Block::events`](crate::read::Block::events)).
pub fn records(mut events: &[Event]) -> DeviceRecords {
    let mut all = DeviceRecords::default();
    while let [first, after @ ..] = events {
        let count = usize::from(first.endpoint);
        let parts = events.get(..count).filter(|parts| {
            // Parts between which one is missing do not belong together.
            let mut positions = parts.iter().map(|part| part.position).zip(0..);
            positions.all(|(position, n)| position.checked_sub(n) == Some(first.position))
        });
        if let Some(record) = parts.and_then(DeviceRecord::from_parts) {
            all.records.push(record);
            events = events.get(count..).unwrap_or_default();
        } else {
            all.fragments += 1;
            events = after;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> DeviceRecord {
        let what = Event {
            time: 9,
            position: 12,
            kind: 36,
            endpoint: 1,
            sub: 2,
            flags: 3,
            region: 4,
            task: 5,
            other: 6,
            codeptr_ra: 7,
        };
        DeviceRecord {
            position: 10,
            delivered: 9,
            device: -3,
            form: Form::Ompt,
            kind: 36,
            time: Some(0),
            end_time: Some(u64::MAX),
            host_time: Some(1.5),
            host_end_time: Some(-2.25),
            thread_id: Some(7),
            target_id: Some(0),
            host_op_id: Some(8),
            what: Some(what),
            more: Some(More::DataOperation { bytes: 1 << 40, source: -1, destination: i32::MAX }),
            text: Some(*b"exactly thirty-two bytes of text"),
            items: [Some(MapItem { host: Some(1), device: None, bytes: Some(0), flags: Some(0x21) }); ITEMS],
        }
    }

    /// As they come out of a ring, from a position on.
    fn in_ring(record: &DeviceRecord, from: u64) -> Vec<Event> {
        let at = |(event, position)| Event { position, ..event };
        record.parts().events().iter().copied().zip(from..).map(at).collect()
    }

    #[test]
    fn what_was_written_is_read() {
        let events = in_ring(&full(), 10);
        assert_eq!(events.len(), MOST_PARTS);
        assert_eq!(records(&events), DeviceRecords { records: vec![full()], fragments: 0 });
        let bare = DeviceRecord { form: Form::Native, ..DeviceRecord::default() };
        assert_eq!(records(&in_ring(&bare, 0)).records, [bare]);
    }

    /// Zeros and equal numbers would hide a number that is lost or in the wrong place.
    #[test]
    fn numbers_that_all_differ_are_read_as_written() {
        let record = DeviceRecord {
            delivered: 21,
            time: Some(22),
            target_id: Some(23),
            // In the ring its time is the delivery, as that of each part.
            what: full().what.map(|what| Event { time: 21, ..what }),
            items: [Some(MapItem { host: Some(24), device: Some(25), bytes: Some(26), flags: Some(27) }); ITEMS],
            ..full()
        };
        let written = DeviceRecord { what: full().what.map(|what| Event { time: 28, ..what }), ..record };
        let events = in_ring(&written, 10);
        assert!(events.iter().all(|event| event.time == 21), "{events:?}");
        assert_eq!(records(&events).records, [record]);
    }

    /// The runtime may have given some of the arrays of a map, and not the others.
    #[test]
    fn each_member_of_an_item_may_be_missing() {
        let whole = MapItem { host: Some(1), device: Some(2), bytes: Some(3), flags: Some(4) };
        let mut items = [None; ITEMS];
        for (n, item) in items.iter_mut().enumerate() {
            // The last four have one member, the others lack one.
            let has = |member: usize| (n % 4 == member) == (n >= 4);
            *item = Some(MapItem {
                host: whole.host.filter(|_| has(0)),
                device: whole.device.filter(|_| has(1)),
                bytes: whole.bytes.filter(|_| has(2)),
                flags: whole.flags.filter(|_| has(3)),
            });
        }
        let record = DeviceRecord { items, ..full() };
        assert_eq!(records(&in_ring(&record, 10)).records, [record]);
    }

    #[test]
    fn a_text_ends_at_its_first_zero_or_is_full() {
        let text = |text| DeviceRecord { text, ..DeviceRecord::default() }.text();
        let mut short = [0; TEXT];
        short[..4].copy_from_slice(b"abc\xff");
        // Left behind by a longer text.
        short[9] = b'x';
        assert_eq!(text(Some(short)).as_deref(), Some("abc\u{fffd}"));
        assert_eq!(text(full().text).as_deref(), Some("exactly thirty-two bytes of text"));
        assert_eq!(text(Some([0; TEXT])).as_deref(), Some(""));
        assert_eq!(text(None), None);
    }

    #[test]
    fn what_is_not_known_is_not_zero() {
        let all = [
            full().more,
            Some(More::Kernel { granted_teams: 5 }),
            Some(More::Mutex { implementation: 6 }),
            Some(More::ImplicitTask { flags: 7 }),
            Some(More::Control { command: u64::MAX }),
            Some(More::Error { length: 1 << 33 }),
            Some(More::Abstract { class: 2, hardware: 0 }),
            None,
        ];
        for more in all {
            let record = DeviceRecord { time: None, host_op_id: None, text: None, more, ..full() };
            assert_eq!(records(&in_ring(&record, 10)).records, [record]);
        }
    }

    #[test]
    fn a_record_that_lacks_a_part_is_none() {
        let (first, second) = (full(), DeviceRecord { position: 10 + MOST_PARTS as u64, ..full() });
        let second =
            DeviceRecord { what: second.what.map(|what| Event { position: second.position + 2, ..what }), ..second };
        let whole = [in_ring(&first, first.position), in_ring(&second, second.position)].concat();
        assert_eq!(records(&whole).records, [first, second]);
        for missing in 0..MOST_PARTS {
            let mut events = whole.clone();
            events.remove(missing);
            let read = records(&events);
            assert_eq!((read.records, read.fragments), (vec![second], MOST_PARTS as u64 - 1), "without {missing}");
        }
    }

    /// The end of one record and the begin of the next are overwritten. What is left has the kinds of a whole record.
    #[test]
    fn parts_of_two_records_make_none() {
        let (first, second) = (full(), DeviceRecord { position: 10 + MOST_PARTS as u64, ..full() });
        let mut events = in_ring(&first, first.position);
        events.pop();
        events.extend(in_ring(&second, second.position).last());
        assert_eq!(events.len(), MOST_PARTS);
        assert_eq!(records(&events), DeviceRecords { records: Vec::new(), fragments: MOST_PARTS as u64 });
    }

    #[test]
    fn no_number_of_parts_and_no_kind_is_believed() {
        for endpoint in 0..=u8::MAX {
            for kind in [0, 37, part::HEAD, part::IDS, 255] {
                let event = Event { kind, endpoint, sub: 0xffff, flags: u32::MAX, ..Event::default() };
                assert_eq!(records(&[event; 3]), DeviceRecords { records: Vec::new(), fragments: 3 });
            }
        }
    }
}
