//! Images that are wrong in one way each: exactly the calls that meet it are reported.

use linker::{Policy, Symbol};

use super::*;

/// The calls that gave a wrong answer, with what was wrong.
fn wrong(image: &Image) -> Vec<String> {
    let (made, wrong) = wrong_on(image, State::all());
    // Each id on each page, of five names.
    assert!(made.pages > 25 && made.calls > made.pages as u64 * 5 * 600, "{made:?}");
    wrong
}

/// The same on few pages: for what is wrong on any.
fn wrong_on_some(image: &Image) -> Vec<String> {
    wrong_on(image, State::all().into_iter().step_by(5).collect()).1
}

fn wrong_on(image: &Image, states: Vec<State>) -> (Made, Vec<String>) {
    let (mut last, mut wrong) = (String::new(), Vec::new());
    let report = |event| match event {
        Event::Call(call) => last = call,
        Event::Difference(what) => wrong.push(format!("{last}: {what}")),
    };
    let made = Drive::of(image).unwrap().run_on(states, report).unwrap();
    (made, wrong)
}

#[test]
fn the_images_of_this_build_answer_every_call_as_they_must() {
    for image in [&linker::SYSCALL, &linker::ENOSYS] {
        assert_eq!(wrong(image), [] as [&str; 0], "{:?}", image.policy);
    }
}

#[test]
fn an_image_with_the_other_policys_note_is_found_out() {
    // The bytes of one policy under the constants of the other: it makes system calls that it
    // says it does not make.
    let mut liar = linker::SYSCALL;
    liar.policy = Policy::Enosys;
    assert!(wrong(&liar).len() > 1000);
}

#[test]
fn what_cannot_be_driven_is_refused_by_name() {
    let refused = |change: fn(&mut Image)| {
        let mut image = linker::SYSCALL;
        change(&mut image);
        Drive::of(&image).unwrap_err().to_string()
    };
    assert!(refused(|image| image.page_abi = 2).contains("page ABI 2"));
    assert!(refused(|image| image.slots = 1).contains("1 page slots"));
    assert!(refused(|image| image.symbols = &[]).contains("__vdso_clock_gettime"));
}

#[test]
fn every_export_is_called_or_said_not_to_be() {
    let known = Drive::of(&linker::SYSCALL).unwrap();
    assert_eq!(known.called().len(), linker::SYSCALL.symbols.len());
    assert_eq!(known.not_called(), [] as [&str; 0]);
    let mut image = linker::SYSCALL;
    let random = Symbol { name: "__vdso_getrandom", offset: 0x400, size: 16 };
    image.symbols = [image.symbols, &[random]].concat().leak();
    let drive = Drive::of(&image).unwrap();
    assert_eq!(drive.not_called(), ["__vdso_getrandom"]);
    assert_eq!(drive.called(), known.called());
}

#[test]
fn an_alias_that_leads_elsewhere_is_called_there() {
    let mut image = linker::SYSCALL;
    let mut symbols = image.symbols.to_vec();
    let elsewhere = image.symbol("__vdso_clock_getres").unwrap().offset;
    symbols.iter_mut().find(|symbol| symbol.name == "clock_gettime").unwrap().offset = elsewhere;
    image.symbols = symbols.leak();
    let wrong = wrong_on_some(&image);
    assert!(!wrong.is_empty());
    for call in wrong {
        assert!(call.starts_with("clock_gettime("), "{call}");
    }
}

/// What is wrong with an image: a name, code that runs before that function, what every wrong call
/// begins with and contains, and what one of them contains.
struct Fault {
    name: &'static str,
    code: &'static [u8],
    begins: &'static str,
    contains: &'static str,
    among: &'static str,
}

const FAULTS: &[Fault] = &[
    Fault {
        name: "__vdso_clock_gettime",
        // test rsi, rsi; jne on; xor eax, eax; ret
        code: &[0x48, 0x85, 0xf6, 0x75, 0x03, 0x31, 0xc0, 0xc3],
        begins: "__vdso_clock_gettime(",
        contains: ", NULL), mode ",
        among: "wanted signal 11",
    },
    Fault {
        // -EFAULT for null is the kernel's to say; whoever serves a clock lets the caller fault.
        name: "clock_gettime",
        // test rsi, rsi; jne on; mov eax, -14; cdqe; ret
        code: &[0x48, 0x85, 0xf6, 0x75, 0x08, 0xb8, 0xf2, 0xff, 0xff, 0xff, 0x48, 0x98, 0xc3],
        begins: "clock_gettime(",
        contains: ", NULL), mode ",
        among: "wanted signal 11",
    },
    Fault {
        name: "__vdso_clock_getres",
        // test rsi, rsi; jne on; mov eax, -14; cdqe; ret
        code: &[0x48, 0x85, 0xf6, 0x75, 0x08, 0xb8, 0xf2, 0xff, 0xff, 0xff, 0x48, 0x98, 0xc3],
        begins: "__vdso_clock_getres(",
        contains: ", NULL), mode ",
        among: "(0, NULL), mode 0x0, page published: -14; wanted 0",
    },
    Fault {
        name: "gettimeofday",
        // test rdi, rdi; jne on; mov eax, -14; cdqe; ret
        code: &[0x48, 0x85, 0xff, 0x75, 0x08, 0xb8, 0xf2, 0xff, 0xff, 0xff, 0x48, 0x98, 0xc3],
        begins: "gettimeofday(NULL, ",
        contains: ": -14; wanted 0",
        among: "(NULL, NULL)",
    },
    Fault {
        name: "__vdso_time",
        // test rdi, rdi; jne on; xor eax, eax; ret
        code: &[0x48, 0x85, 0xff, 0x75, 0x03, 0x31, 0xc0, 0xc3],
        begins: "__vdso_time(NULL)",
        contains: ": 0; wanted 1",
        among: "page published: 0; wanted 1700000000",
    },
    Fault {
        name: "getcpu",
        // test rsi, rsi; jne on; xor eax, eax; ret
        code: &[0x48, 0x85, 0xf6, 0x75, 0x03, 0x31, 0xc0, 0xc3],
        begins: "getcpu(cpu, NULL, ",
        contains: "; wanted 0, stored ",
        among: "(cpu, NULL, NULL)",
    },
    Fault {
        name: "__vdso_getcpu",
        // test rdx, rdx; je on; xor eax, eax; ret
        code: &[0x48, 0x85, 0xd2, 0x74, 0x03, 0x31, 0xc0, 0xc3],
        begins: "__vdso_getcpu(",
        contains: ", 16), mode ",
        among: "(NULL, node, 16)",
    },
    Fault {
        // A long where an unsigned int is: the neighbour of the caller's variable is lost.
        name: "__vdso_getcpu",
        // test rdi, rdi; je on; and qword ptr [rdi], 0
        code: &[0x48, 0x85, 0xff, 0x74, 0x04, 0x48, 0x83, 0x27, 0x00],
        begins: "__vdso_getcpu(cpu, ",
        contains: ": 0, stored 0x",
        among: "(cpu, node, NULL)",
    },
    Fault {
        name: "__vdso_clock_gettime",
        // cmp edi, i32::MIN; jne on; xor eax, eax; ret
        code: &[0x81, 0xff, 0x00, 0x00, 0x00, 0x80, 0x75, 0x03, 0x31, 0xc0, 0xc3],
        begins: "__vdso_clock_gettime(",
        contains: ": 0; wanted -22",
        among: "(-2147483648, NULL)",
    },
    Fault {
        // An id in sixteen bits.
        name: "clock_getres",
        // movsx edi, di
        code: &[0x0f, 0xbf, 0xff],
        begins: "clock_getres(",
        contains: "; wanted ",
        among: "(65537, res)",
    },
    Fault {
        // An id in 64 bits, of which half is anything.
        name: "__vdso_clock_gettime_ns",
        // mov rax, rdi; shr rax, 32; je on; mov rax, -22; ret
        code: &[
            0x48, 0x89, 0xf8, 0x48, 0xc1, 0xe8, 0x20, 0x74, 0x08, 0x48, 0xc7, 0xc0, 0xea, 0xff,
            0xff, 0xff, 0xc3,
        ],
        begins: "__vdso_clock_gettime_ns(0xdeadbeef",
        contains: ": -22; wanted ",
        among: "(0xdeadbeef00000000)",
    },
    Fault {
        // Success in a clock that is the kernel's, with a time that is nobody's.
        name: "clock_gettime",
        // cmp edi, 2; jne on; test rsi, rsi; je on; mov qword ptr [rsi], -1; xor eax, eax; ret
        code: &[
            0x83, 0xff, 0x02, 0x75, 0x0f, 0x48, 0x85, 0xf6, 0x74, 0x0a, 0x48, 0xc7, 0x06, 0xff,
            0xff, 0xff, 0xff, 0x31, 0xc0, 0xc3,
        ],
        begins: "clock_gettime(",
        contains: ": 0, stored -1",
        among: "(2, ts)",
    },
];

/// The image with `code` before one of its functions, under one of its names.
fn with_code_before(name: &str, code: &[u8]) -> Image {
    let mut image = linker::SYSCALL;
    let mut bytes = image.bytes.to_vec();
    bytes.resize(bytes.len().next_multiple_of(16), 0xcc);
    let start = bytes.len();
    bytes.extend(code);
    let target = i32::try_from(image.symbol(name).unwrap().offset).unwrap();
    let next = i32::try_from(bytes.len()).unwrap() + 5;
    bytes.push(0xe9); // jmp
    bytes.extend((target - next).to_le_bytes());
    let mut symbols = image.symbols.to_vec();
    symbols.iter_mut().find(|symbol| symbol.name == name).unwrap().offset = start;
    image.bytes = bytes.leak();
    image.symbols = symbols.leak();
    image
}

#[test]
fn a_fault_in_one_way_of_calling_is_found_by_exactly_those_calls() {
    for Fault { name, code, begins, contains, among } in FAULTS {
        let wrong = wrong_on_some(&with_code_before(name, code));
        let is_among = wrong.iter().any(|call| call.contains(among));
        let first = wrong.first();
        assert!(is_among, "{name}, {code:x?}: no {among:?}, but {first:?}");
        for call in wrong {
            assert!(call.starts_with(begins) && call.contains(contains), "{name}: {call}");
        }
    }
}

#[test]
fn a_fault_on_a_page_that_nobody_formatted_is_found_there_alone() {
    let image = linker::SYSCALL;
    let name = "__vdso_clock_getres";
    // cmp dword ptr [rip + to the kernel's page], 0; jne on; xor eax, eax; ret: the page's magic.
    let mut code = vec![0x83, 0x3d, 0, 0, 0, 0, 0, 0x75, 0x03, 0x31, 0xc0, 0xc3];
    let next = image.bytes.len().next_multiple_of(16) + 7;
    let magic = datapage::layout::offset::MAGIC;
    let distance = i32::try_from(image.data_offset() + next - magic).unwrap();
    code[2..6].copy_from_slice(&(-distance).to_le_bytes());
    let on_kernels = State::all().into_iter().filter(|state| !state.is_in_namespace).collect();
    let (_, wrong) = wrong_on(&with_code_before(name, &code), on_kernels);
    // Each id, twice with a pointer and once without.
    assert!(wrong.len() > 600, "{}", wrong.len());
    for call in wrong {
        assert!(call.starts_with(name) && call.contains("page zeroed: 0"), "{call}");
    }
}

#[test]
fn code_before_a_function_is_no_fault_by_itself() {
    for name in ["__vdso_clock_gettime", "time", "getcpu"] {
        assert_eq!(wrong_on_some(&with_code_before(name, &[0x90])), [] as [&str; 0], "{name}");
    }
}

#[test]
fn an_image_that_knows_no_time_namespace_is_found_on_their_pages_alone() {
    // It compares the mode with another number than i32::MAX.
    let mut image = linker::SYSCALL;
    let mut bytes = image.bytes.to_vec();
    let mode = i32::MAX.to_le_bytes();
    let mut places = Vec::new();
    for at in 0..bytes.len() - mode.len() {
        if bytes[at..].starts_with(&mode) {
            bytes[at] = 0xfe;
            places.push(at);
        }
    }
    assert!(!places.is_empty(), "the image compares with that number");
    image.bytes = bytes.leak();
    let wrong = wrong(&image);
    assert!(wrong.len() > 100, "{}", wrong.len());
    for call in wrong {
        assert!(call.contains("behind a time namespace's"), "{call}");
    }
}

#[test]
fn a_call_that_faults_where_null_is_legal_ends_the_process() {
    use crate::child::{Outcome, outcome};

    // mov rax, [rsi]
    let image = with_code_before("__vdso_clock_getres", &[0x48, 0x8b, 0x06]);
    let ends = outcome(|| i32::try_from(wrong(&image).len()).unwrap()).unwrap();
    assert_eq!(ends, Outcome::Signalled(libc::SIGSEGV));
}
