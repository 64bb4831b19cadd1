//! The table of devices, as it is read while somebody writes it, or when it is damaged.

mod common;

use std::mem::offset_of;

use ompt_record::block::{DEVICE_RING, EVENT_WORDS, Ring, in_ring};
use ompt_record::device::{
    DEVICES, Device, DeviceState, ENTRY_POINTS, ENTRY_SIZE, MOST_PARTS, TABLE_AT, part, records,
};
use ompt_record::event::Event;

use common::{block, open};

/// Places of words of a ring.
const KIND: usize = offset_of!(Ring, kind) / 8;
const HEAD: usize = offset_of!(Ring, head) / 8;
const FIRST: usize = offset_of!(Ring, first) / 8;

fn entry(index: usize) -> usize {
    (TABLE_AT + index as u64 * ENTRY_SIZE) as usize / 8
}

#[test]
fn one_that_is_just_introduced_is_not_shown() {
    let (mut words, _) = block();
    for (index, state) in [DeviceState::Gone, DeviceState::Coming, DeviceState::Tracing].into_iter().enumerate() {
        words[entry(index)] = state as u64;
        words[entry(index) + 1] = 40 + index as u64;
        words[entry(index) + Device::WORDS] = u64::from_le_bytes(*b"kind\0xyz");
    }
    let (memory, opened) = open(words.clone(), None);
    let devices = opened.devices(&memory).expect("they can be read");
    let numbers: Vec<_> = devices.iter().map(|device| (device.index, device.number(), &*device.type_name)).collect();
    assert_eq!(numbers, [(0, 40, "kind"), (2, 42, "kind")]);

    // Between the two looks another device takes an entry, or has taken it.
    for (member, value) in [(0, DeviceState::Coming as u64), (offset_of!(Device, began) / 8, 5)] {
        let (memory, opened) = open(words.clone(), Some((1, entry(0) + member, value)));
        let devices = opened.devices(&memory).expect("they can be read");
        let left: Vec<_> = devices.iter().map(|device| device.index).collect();
        assert_eq!(left, [2], "word {member}");
    }
}

#[test]
fn only_its_own_ring_is_a_devices() {
    let (mut words, shape) = block();
    words[entry(3)] = DeviceState::Tracing as u64;
    words[entry(3) + 1] = u64::from((-7_i32).cast_unsigned());
    let ring = usize::try_from(shape.ring_at(0) / 8).expect("it is small");
    let kind = KIND;
    words[ring] = 1;
    words[ring + kind] = DEVICE_RING | u64::from((-7_i32).cast_unsigned());
    // A ring that the header does not count is in nobody's use.
    words[usize::try_from(shape.ring_at(1) / 8).expect("it is small") + kind] = words[ring + kind];
    let own = entry(3) + offset_of!(Device, ring) / 8;
    for (index, kind_of_ring, has) in [
        (1, words[ring + kind], true),
        (0, words[ring + kind], false),
        (2, words[ring + kind], false),
        (u64::MAX, words[ring + kind], false),
        (1, 2, false),
        (1, DEVICE_RING | 7, false),
    ] {
        let mut words = words.clone();
        words[own] = index;
        words[ring + kind] = kind_of_ring;
        let (memory, opened) = open(words, None);
        let devices = opened.devices(&memory).expect("they can be read");
        let [device] = &devices[..] else { panic!("{devices:?}") };
        assert_eq!(device.number(), -7);
        let found = opened.device_ring(&memory, device).expect("it can be read");
        assert_eq!(found.is_some(), has, "ring {index}, {kind_of_ring:#x}");
        // Rings of devices are no threads.
        assert_eq!(opened.rings(&memory).0.len(), usize::from(kind_of_ring & DEVICE_RING == 0));
    }
}

#[test]
fn no_damage_leads_anywhere() {
    let (words, shape) = block();
    let ring = usize::try_from(shape.ring_at(0) / 8).expect("it is small");
    let events = ring + in_ring::EVENTS_AT as usize / 8;
    // Words without any order, the same in each run.
    let mut next = 1_u64;
    let mut random = || {
        next = next.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        if next >> 60 == 0 { next >> 33 & 0xff } else { next.rotate_left(17) }
    };
    let mut found = 0;
    for _ in 0..500 {
        let mut words = words.clone();
        for word in &mut words[entry(0)..entry(DEVICES - 1) + Device::WORDS] {
            *word = random();
        }
        for n in 0..DEVICES {
            words[entry(n) + offset_of!(Device, ring) / 8] = 1;
        }
        words[ring..ring + Ring::WORDS].fill_with(&mut random);
        (words[ring + HEAD], words[ring + FIRST]) = (64, 0);
        // Events that are whole, and make no sense.
        for (position, event) in (0..64).zip(words[events..].as_chunks_mut::<EVENT_WORDS>().0) {
            let [what, flags] = [random(), random()];
            *event = Event {
                position,
                kind: part::HEAD.wrapping_add(if what & 7 == 0 { (what >> 3) as u8 } else { (position % 4) as u8 }),
                endpoint: if what >> 13 & 7 == 0 { (what >> 16) as u8 } else { 3 + (what >> 12 & 1) as u8 },
                sub: (what >> 32 & 0x3ff) as u16,
                flags: (flags % 10) as u32,
                region: random(),
                task: random(),
                ..Event::default()
            }
            .words();
        }
        words[ring + KIND] = DEVICE_RING | words[entry(0) + 1] & 0xffff_ffff;
        let (memory, opened) = open(words, None);
        let devices = opened.devices(&memory).expect("they can be read");
        for device in &devices {
            for (name, kind) in ENTRY_POINTS.iter().zip(0..) {
                let _ = (device.has(name), device.result(kind), device.result(kind + 200));
            }
            if let Some(ring) = opened.device_ring(&memory, device).expect("it can be read") {
                let read = opened.events(&memory, ring, u64::MAX).expect("they can be read");
                assert_eq!(read.events.len(), 64);
                let read = records(&read.events);
                let most = read.records.len() * MOST_PARTS + usize::try_from(read.fragments).expect("few");
                assert!(most >= 64 && read.fragments <= 64, "{read:?}");
                found += read.records.len();
            }
        }
    }
    assert!(found > 0, "some of them should have looked like a record");
}
