//! Beginning, pauses and end, as the program and its runtime ask for them.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null;
use std::sync::atomic::Ordering::Relaxed;

use ompt_record::block::State;
use ompt_record::event::Event;

use crate::runtime::{Runtime, TODAY, alone, block, events, make, ring};
use crate::{Address, BEGIN, Data, Word, make_all, make_all_of_devices, thread_begins};

/// `omp_control_tool`
fn control(command: u64, modifier: u64) -> c_int {
    let argument: *mut c_void = std::ptr::without_provenance_mut(0x99);
    make!(11, (u64, u64, *mut c_void, Address) -> c_int, (command, modifier, argument, crate::address(0x4000)))
}

#[test]
fn in_a_pause_nothing_is_written_and_nothing_gets_a_number() {
    let paused = [("OMPT_COMPANION_START", " Paused ")];
    alone("states::in_a_pause_nothing_is_written_and_nothing_gets_a_number", &paused, || {
        assert!(TODAY.start());
        // The thread has its number and its ring all the same: the pause may end before it does.
        assert_ne!(thread_begins(1).load(Relaxed), 0);
        make_all();
        make_all_of_devices();
        let [encountering, region, task, implicit, target] = [61, 0, 0, 0, 0].map(Data::new);
        let mut operation = 5_u64;
        let code = crate::address(0x4000);
        make!(3, (Word, Address, Word, c_uint, c_int, Address), (&encountering, null(), &region, 8, 1, code));
        make!(5, (Word, Address, Word, c_int, c_int, Address), (&encountering, null(), &task, 4, 1, code));
        make!(7, (c_int, Word, Word, c_uint, c_uint, c_int), (BEGIN, &region, &implicit, 8, 3, 2));
        make!(33, (c_int, c_int, c_int, Word, Word, Word, Address), (1, BEGIN, 5, null(), null(), &target, code));
        make!(35, (c_int, Word, *mut u64, c_uint), (BEGIN, null(), &raw mut operation, 12));
        let numbers = [&region, &task, &implicit, &target].map(|word| word.load(Relaxed));
        // The number of another operation would be found again.
        assert_eq!((numbers, operation), ([0; 4], 0));
        assert_eq!(events(), []);
    });
}

#[test]
fn commands_of_the_program_are_obeyed_until_one_ends_the_recording() {
    alone("states::commands_of_the_program_are_obeyed_until_one_ends_the_recording", &[], || {
        assert!(TODAY.start());
        thread_begins(1);
        let (done, ignored) = (0, 1);
        let all = [
            (2, done, State::Paused),
            (2, done, State::Paused),
            (1, done, State::Recording),
            (1, done, State::Recording),
            (3, done, State::Recording),
            (5, ignored, State::Recording),
            (u64::MAX, ignored, State::Recording),
            (4, done, State::Ended),
            (1, ignored, State::Ended),
            (2, ignored, State::Ended),
            (3, done, State::Ended),
            (4, done, State::Ended),
        ];
        let before = block().1.header;
        assert_eq!((before.command, before.command_modifier, before.commands), (0, 0, 0));
        for (modifier, (command, answer, state)) in (31..).zip(all) {
            assert_eq!(control(command, modifier), answer, "command {command}");
            let header = block().1.header;
            assert_eq!(header.state, state as u64, "command {command}");
            assert_eq!((header.command, header.command_modifier, header.commands), (command, modifier, modifier - 30));
        }
        // There was one pause.
        assert_eq!(block().1.header.epoch, before.epoch + 1);
        // Those that came in a pause, or after the end, are not written.
        let command = |flags: u32, task: u64| Event {
            kind: 11,
            flags,
            task,
            other: 0x99,
            codeptr_ra: 0x4000,
            ..Event::default()
        };
        let expected =
            [command(2, 31), command(1, 34), command(3, 35), command(5, 36), command(u32::MAX, 37), command(4, 38)];
        assert_eq!(events()[1..], expected);
    });
}

#[test]
fn a_command_to_flush_is_refused_if_the_file_cannot_be_written() {
    let file = [("OMPT_COMPANION_FILE", "/dev/null/file")];
    alone("states::a_command_to_flush_is_refused_if_the_file_cannot_be_written", &file, || {
        assert!(TODAY.start());
        assert_eq!(control(3, 0), 1);
    });
}

#[test]
fn the_block_says_which_runtime_it_is_of() {
    alone("states::the_block_says_which_runtime_it_is_of", &[], || {
        let seconds = || std::time::UNIX_EPOCH.elapsed().expect("it is after 1970").as_nanos() as u64;
        let before = seconds();
        assert!(TODAY.start());
        let block = block().1;
        let header = block.header;
        assert_eq!((header.omp_version, &*block.runtime), (202_111, "a runtime that is played"));
        // The third and the last of the list.
        assert_eq!(header.entry_points, 0b100_0000_0000_0000_0100);
        assert_eq!((header.pid, header.forks, header.epoch), (u64::from(std::process::id()), 0, 1));
        assert!((before..=seconds()).contains(&header.began_realtime));
        assert_eq!((header.rings, header.rings_used), (1024, 0));
        // Of callbacks with two forms, the older one is not asked for.
        let asked: Vec<u8> = (1..=48).filter(|number| header.result(*number) == Some(5)).collect();
        let expected: Vec<u8> = (1..=7).chain(11..=21).chain(23..=37).collect();
        assert_eq!(asked, expected);
    });
}

/// The next runtime begins where the one before it has ended. Two at a time cannot be told apart.
#[test]
fn one_runtime_at_a_time_is_recorded() {
    let next = Runtime { omp_version: 202_411, name: c"the next", ..TODAY };
    alone("states::one_runtime_at_a_time_is_recorded", &[], move || {
        assert!(TODAY.start());
        thread_begins(1);
        assert!(!next.start_as_another());
        let of_first = block().1;
        assert_eq!((of_first.header.runtimes_beyond, of_first.header.omp_version), (1, 202_111));
        assert_eq!(of_first.runtime, "a runtime that is played");
        let first = ring();
        TODAY.end();
        assert_eq!(block().1.header.state, State::Ended as u64);
        assert_eq!(ring().values, first.values, "the thread may be there longer than the runtime");
        assert!(next.start_as_another());
        let of_next = block().1;
        assert_eq!((of_next.header.runtimes_beyond, of_next.header.omp_version), (1, 202_411));
        assert_eq!((&*of_next.runtime, of_next.is_recording()), ("the next", true));
        assert!(ring().values.ended > 0, "the runtime that ended does not tell of the thread any more");
    });
}

#[test]
fn a_runtime_of_an_unknown_draft_is_left_alone() {
    let draft = Runtime { omp_version: 201_611, entry_points: &["ompt_set_callback"], ..TODAY };
    alone("states::a_runtime_of_an_unknown_draft_is_left_alone", &[], move || {
        assert!(!draft.start());
        assert_eq!(ompt_companion::ompt_companion_block.load(Relaxed), 0);
        assert!(crate::runtime::registered().is_empty());
    });
}
