//! Blocks of an OMPT companion, as in a file or a core that somebody has changed.

use ompd_inspection::history;
use ompd_report::text::history::HistoryView;
use ompd_report::{json, text};
use ompt_record::block::{EVENT_WORDS, Header, HeaderValues, MAGIC, Ring, RingValues, Shape, State, VERSION, in_ring};
use ompt_record::device::{DEVICES, Device, DeviceRecord, DeviceState, ENTRY_SIZE, More, TABLE_AT};
use ompt_record::event::Event;

/// Events that are asked for at most: damaged files repeat themselves, and to show the same a thousand times shows nothing more.
const MOST: u64 = 256;

/// Reads the input as a companion file, unchanged and with corrected check words of its events. Shows it in every form.
pub fn check(data: &[u8]) {
    show(data);
    show(&with_sound_events(data));
}

fn show(bytes: &[u8]) {
    let Some(Ok(read)) = history::of_bytes(bytes, MOST) else { return };
    for thread in &read.threads {
        assert!(
            thread.events.len() as u64 + thread.not_shown <= thread.total,
            "{} of {}",
            thread.events.len(),
            thread.total
        );
        let mut after = thread.events.iter().skip(1);
        assert!(thread.events.iter().all(|event| after.next().is_none_or(|next| next.position > event.position)));
    }
    for view in [HistoryView::ByThread, HistoryView::ByTime] {
        let shown = text::plain(&text::history::render(&read, view, Some(80)));
        assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?} commands a terminal");
    }
    let document = serde_json::to_string(&json::history::history(&read)).expect("it is JSON");
    serde_json::from_str::<serde_json::Value>(&document).expect("it is JSON that can be read");
    let mut trace = Vec::new();
    text::trace::write(&read, &mut trace).expect("memory can be written to");
    serde_json::from_slice::<serde_json::Value>(&trace).expect("a trace is JSON");
}

/// What no random change comes to: each event says that it is whole. `position` and `check` follow from where it lies.
fn with_sound_events(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    let word = |bytes: &[u8], at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk::<8>()?));
    let header = (0..Header::WORDS).map_while(|n| word(&bytes, 8 * n)).collect::<Vec<_>>();
    let Some(header) = HeaderValues::from_words(&header) else { return bytes };
    let Some(shape) = Shape::new(header.rings, header.events, header.regions, header.tasks) else { return bytes };
    for ring in 0..shape.rings {
        let at = shape.ring_at(ring) as usize;
        let values = (0..Ring::WORDS).map_while(|n| word(&bytes, at + 8 * n)).collect::<Vec<_>>();
        let Some(values) = RingValues::from_words(&values) else { break };
        for back in 1..=shape.events {
            let position = values.head.wrapping_sub(back);
            let at = at + in_ring::EVENTS_AT as usize + (position % shape.events) as usize * EVENT_WORDS * 8;
            let Some(slot) = bytes.get_mut(at..at + EVENT_WORDS * 8) else { continue };
            let words: Vec<u64> = slot.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
            let &[_, time, what, region, task, other, codeptr_ra, _] = &words[..] else { continue };
            let [kind, endpoint, sub_low, sub_high, a, b, c, d] = what.to_le_bytes();
            let (sub, flags) = (u16::from_le_bytes([sub_low, sub_high]), u32::from_le_bytes([a, b, c, d]));
            let event = Event { position, time, kind, endpoint, sub, flags, region, task, other, codeptr_ra };
            for (to, word) in slot.as_chunks_mut::<8>().0.iter_mut().zip(event.words()) {
                *to = word.to_le_bytes();
            }
        }
    }
    bytes
}

/// A file of a companion: two threads, whose events are of all kinds, and a device with records.
pub fn sample() -> Vec<u8> {
    let shape = Shape::new(3, 64, 64, 64).expect("a shape");
    let mut bytes = vec![0; usize::try_from(shape.size()).expect("it is small")];
    let mut put = |at: u64, words: &[u64]| {
        for (to, word) in bytes[at as usize..].as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *to = word.to_le_bytes();
        }
    };
    let [first, second] = MAGIC;
    let at = 0x7000_0000_0000;
    let state = State::Recording as u64;
    // The rest of the header counts what was left out.
    put(0, &[first, second, VERSION, at, 3, 64, 64, 64, 3, 70, 1, state, 1, 100, 1 << 60, 1, 1, 1, 201_611]);
    put(size_of::<Header>() as u64, &[u64::from_le_bytes(*b"libomp\0\0")]);
    let ring = |kind, head, first| [1, 1, 71, 0x7000, kind, 100, 0, head, first, 0, 0];
    let slot = |ring, position: u64| shape.ring_at(ring) + in_ring::EVENTS_AT + position % 64 * 64;
    put(shape.ring_at(0), &ring(1, 38, 0));
    for kind in 1..=38_u8 {
        let position = u64::from(kind) - 1;
        let (endpoint, sub) = (kind % 4, u16::from(kind % 7));
        let flags = u32::from(kind) << 25 | 1;
        let event = Event {
            position,
            time: 1000 * position,
            kind,
            endpoint,
            sub,
            flags,
            region: 1,
            task: 64,
            other: 65,
            codeptr_ra: 0x40_1000,
        };
        put(slot(0, position), &event.words());
    }
    // One that has come around, and whose first events were another thread's.
    put(shape.ring_at(1), &ring(2, 100, 50));
    for position in 36..100 {
        let event = Event { position, time: position, kind: 26 + (position % 2) as u8, sub: 2, ..Event::default() };
        put(slot(1, position), &event.words());
    }
    let mut device = [0; Device::WORDS];
    device[0] = DeviceState::Tracing as u64;
    (device[1], device[2], device[8], device[9]) = (5, u64::MAX, 3, 100);
    for index in [0, DEVICES as u64 - 1] {
        put(TABLE_AT + index * ENTRY_SIZE, &device);
    }
    put(shape.ring_at(2), &ring(1 << 32 | 5, 9, 0));
    let what = Event { kind: 34, sub: 2, flags: 8, ..Event::default() };
    let record = DeviceRecord {
        device: 5,
        kind: 34,
        time: Some(7),
        end_time: Some(9),
        host_time: Some(1.5),
        host_end_time: Some(1.75),
        target_id: Some(1),
        host_op_id: Some(2),
        what: Some(what),
        more: Some(More::DataOperation { bytes: 8, source: -1, destination: 5 }),
        text: Some(*b"what a device says of itself\0\0\0\0"),
        ..DeviceRecord::default()
    };
    for (position, part) in (0..).zip([record.parts().events(), record.parts().events()].concat()) {
        put(slot(2, position), &Event { position, ..part }.words());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_says_all_that_it_has() {
        let read = history::of_bytes(&sample(), u64::MAX).expect("it begins as a file does").expect("it can be read");
        let counts: Vec<_> = read.threads.iter().map(|thread| (thread.events.len(), thread.overwritten)).collect();
        assert_eq!(counts, [(38, 0), (50, 0)], "{:?}", read.issues);
        let records: Vec<_> = read.devices.iter().map(|device| (device.number, device.records.len())).collect();
        assert_eq!(records, [(5, 1), (5, 1)], "both entries name the same ring, of which nine events are read");
        let sound =
            history::of_bytes(&with_sound_events(&sample()), u64::MAX).expect("it begins so").expect("it can be read");
        let same = sound.threads.iter().zip(&read.threads).all(|(sound, read)| sound.events == read.events);
        assert!(same, "what is whole stays as it is");
    }
}
