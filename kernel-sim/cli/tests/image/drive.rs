//! `image check --drive`: what no rule can see of a file is found by calling what is in it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use object::elf;

use super::patch::{note, put, segment, symbol};
use super::{built, directory, run, stderr, stdout};

/// Our image with a change to its bytes, as a file.
fn changed(directory: &Path, change: impl FnOnce(&mut Vec<u8>)) -> String {
    let file = built(directory, "syscall");
    let mut bytes = fs::read(&file).unwrap();
    change(&mut bytes);
    fs::write(&file, bytes).unwrap();
    file
}

/// What driving a file prints, which no rule refuses.
fn driven(file: &str, code: i32) -> String {
    assert_eq!(run(&["check", file]).status.code(), Some(0), "no rule sees it");
    let output = run(&["check", "--drive", file]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(code), "{text}{}", stderr(&output));
    text
}

/// The calls whose answers differ, of which there are some.
fn differing(text: &str) -> Vec<&str> {
    let calls: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("differs  ")).collect();
    assert!(!calls.is_empty(), "{text}");
    calls
}

#[test]
fn a_driven_image_answers_every_call() {
    let directory = directory("drive");
    for policy in ["syscall", "enosys"] {
        let text = driven(&built(&directory, policy), 0);
        let numbers = text.lines().find_map(|line| {
            let (calls, pages) =
                line.strip_suffix(" pages, 0 wrong answers")?.split_once(" calls on ")?;
            Some((calls.strip_prefix("driven: ")?.parse().ok()?, pages.parse().ok()?))
        });
        let (calls, pages): (u32, u32) = numbers.unwrap_or_else(|| panic!("{text}"));
        // Each id on each page, of five names.
        assert!(pages > 25 && calls > 5 * 600 * pages, "{text}");
        // It says what it calls: every function under each of its names.
        let said = text.split("\ndrives ").nth(1).unwrap();
        let said: Vec<_> = said.split_whitespace().map(|word| word.trim_end_matches(',')).collect();
        for symbol in linker::SYSCALL.symbols {
            assert!(said.contains(&symbol.name), "{}: {text}", symbol.name);
        }
    }
}

/// Our image with other code where `__vdso_clock_getres` begins, which no rule sees.
pub(super) fn with_code(directory: &Path, code: &[u8]) -> String {
    let file = changed(directory, |bytes| {
        let start = linker::SYSCALL.symbol("__vdso_clock_getres").unwrap().offset;
        bytes[start..start + code.len()].copy_from_slice(code);
    });
    assert_eq!(run(&["check", &file]).status.code(), Some(0));
    file
}

/// xor eax, eax; ret: success, and nothing written.
pub(super) const SUCCESS: [u8; 3] = [0x31, 0xc0, 0xc3];

/// A jump to itself.
pub(super) const SPIN: [u8; 2] = [0xeb, 0xfe];

/// mov edi, FIRST; mov eax, NUMBER; syscall.
pub(super) fn system_call(number: u8, first: u8) -> Vec<u8> {
    vec![0xbf, first, 0, 0, 0, 0xb8, number, 0, 0, 0, 0x0f, 0x05]
}

#[test]
fn wrong_code_is_found_by_driving_and_by_no_rule() {
    let directory = directory("drive-wrong");
    for (code, limit, found) in [
        (&SUCCESS[..], "60", "wrong answers"),
        // ud2.
        (&[0x0f, 0x0b][..], "60", "was ended by signal 4 in __vdso_clock_getres("),
        (&SPIN[..], "2", "did not return within 2 seconds from __vdso_clock_getres("),
        (&system_call(231, 0), "60", "ended the process with exit code 0 in __vdso_clock_getres("),
        (&system_call(60, 7), "60", "ended the process with exit code 7 in __vdso_clock_getres("),
        // A line in the name of the process that makes the calls.
        (
            // push "oh\n"; mov rsi, rsp; mov edx, 3; write; pop rdx; xor eax, eax; ret
            &[
                &[0x68, b'o', b'h', b'\n', 0, 0x48, 0x89, 0xe6, 0xba, 3, 0, 0, 0][..],
                &system_call(1, 1),
                &[0x5a],
                &SUCCESS,
            ]
            .concat(),
            "60",
            "wrote \"oh\" to the output in __vdso_clock_getres(",
        ),
    ] {
        let output = run(&["check", "--drive", "--limit", limit, &with_code(&directory, code)]);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(1), "{text}{}", stderr(&output));
        assert!(text.contains(found), "{text}");
    }
}

#[test]
fn wrong_answers_before_a_call_that_does_not_return_are_shown() {
    let exit = system_call(231, 0);
    // test edi, edi; js behind the exit: ids below zero come first, and none of them is served.
    let to_success = [0x85, 0xff, 0x78, u8::try_from(exit.len()).unwrap()];
    let file = with_code(&directory("drive-later"), &[&to_success, &exit[..], &SUCCESS].concat());
    let text = driven(&file, 1);
    assert_eq!(differing(&text).len(), 20, "{text}");
    let more = text.lines().find_map(|line| line.strip_prefix("and ")?.strip_suffix(" more"));
    assert!(more.is_some_and(|more| more.parse::<u32>().unwrap() > 300), "{text}");
    let found = "driven: ended the process with exit code 0 in __vdso_clock_getres(0, res)";
    assert!(text.contains(found), "{text}");
}

#[test]
fn an_alias_is_called_where_it_leads() {
    let file = changed(&directory("drive-alias"), |bytes| {
        // st_value and st_size: all that is wrong to a rule is a "should".
        let (alias, other) =
            (symbol(bytes, "clock_gettime") + 8, symbol(bytes, "clock_getres") + 8);
        bytes.copy_within(other..other + 16, alias);
    });
    let text = driven(&file, 1);
    for call in differing(&text) {
        assert!(call.starts_with("clock_gettime("), "{call}");
    }
}

#[test]
fn an_image_that_knows_no_time_namespace_is_found_on_their_pages() {
    let file = changed(&directory("drive-namespace"), |bytes| {
        // Every comparison of the mode with that of a namespace is one with another mode.
        let mode = i32::MAX.to_le_bytes();
        let text = bytes.len() - mode.len();
        let places: Vec<_> = (0..text).filter(|&at| bytes[at..].starts_with(&mode)).collect();
        assert!(!places.is_empty());
        places.iter().for_each(|&at| bytes[at] = 0xfe);
    });
    let text = driven(&file, 1);
    for call in differing(&text) {
        assert!(call.contains("behind a time namespace's"), "{call}");
    }
}

#[test]
fn a_build_id_of_any_length_that_the_rule_takes_can_be_driven() {
    for length in [8_u32, 16] {
        let file = changed(&directory("drive-build-id"), |bytes| {
            // The last of the notes: it becomes shorter, and the segment with it.
            let contents = note(bytes, b"GNU");
            put(bytes, contents - 12, length.to_le_bytes());
            let notes = segment(bytes, elf::PT_NOTE);
            let start = u64::from_le_bytes(bytes[notes + 8..notes + 16].try_into().unwrap());
            let size = contents as u64 + u64::from(length) - start;
            for field in [32, 40] {
                put(bytes, notes + field, size.to_le_bytes());
            }
        });
        let text = driven(&file, 0);
        assert!(text.contains(" 0 wrong answers"), "{text}");
    }
}

#[test]
fn why_an_image_is_not_driven_is_said_once() {
    type Change = fn(&mut Vec<u8>);
    let cases: [(&str, Change, &str); 3] = [
        (
            "of nobody",
            |bytes| {
                let owner = bytes.windows(6).position(|window| window == b"uVDSO\0").unwrap();
                bytes[owner] = b'x';
            },
            "no uVDSO note",
        ),
        (
            "of a page of another layout",
            |bytes| {
                let contents = note(bytes, b"uVDSO");
                put(bytes, contents + 4, 2_u32.to_le_bytes());
            },
            "the image reads page ABI 2",
        ),
        (
            "of one slot",
            |bytes| {
                let contents = note(bytes, b"uVDSO");
                put(bytes, contents + 8, 1_u32.to_le_bytes());
            },
            "1 page slots",
        ),
    ];
    for (what, change, said) in cases {
        let file = changed(&directory("drive-refused"), change);
        assert_eq!(run(&["check", &file]).status.code(), Some(0), "a note {what}");
        let output = run(&["check", "--drive", &file]);
        assert_eq!(output.status.code(), Some(2), "a note {what}: {}", stdout(&output));
        let error = stderr(&output);
        assert!(error.contains("cannot be driven: ") && error.contains(said), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(!stdout(&output).contains("driven"), "{}", stdout(&output));
    }
}

#[test]
fn what_stops_the_process_that_runs_the_image_is_left_to_its_parent_to_say() {
    let child = Command::new(env!("CARGO_BIN_EXE_kernel-sim"))
        .args(["image", "check", "--drive", "--driven", &std::process::id().to_string()])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(child.status.code(), Some(1));
    assert!(stdout(&child).starts_with("e 0 bytes"), "{}", stdout(&child));
    assert_eq!(stderr(&child), "");
}
