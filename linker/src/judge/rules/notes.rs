//! The notes.

use super::{Level, Rule, Scope, broken};

pub(crate) const BUILD_ID: Rule = Rule {
    name: "build-id",
    level: Level::Must,
    scope: Scope::Every,
    demand: "a build id in a PT_NOTE, at least 8 bytes and not all zero",
    consumers: "gdb, perf, pprof (find the image's debug file by it)",
    check: |file| match file.build_id() {
        None => broken!("there is none"),
        Some(id) if id.len() < 8 => broken!("it has {} bytes", id.len()),
        Some(id) if id.iter().all(|&byte| byte == 0) => broken!("it is all zero"),
        Some(_) => Ok(()),
    },
};

pub(crate) const OWN_NOTE: Rule = Rule {
    name: "own-note",
    level: Level::Must,
    scope: Scope::Ours,
    demand: "the uVDSO note has four words: policy, page ABI, slots, bytes of a slot",
    consumers: "this project's loaders (compare it with the page before they map anything)",
    check: |file| {
        let Some(note) = file.own_note() else {
            broken!("it does not have four words");
        };
        if note.policy > 1 {
            broken!("policy {} is none; 0 is syscall, 1 is enosys", note.policy);
        }
        if note.page_abi == 0 {
            broken!("page ABI 0 was never given out");
        }
        if note.slots == 0 || note.slots > 64 {
            broken!("{} page slots; there are 1 to 64", note.slots);
        }
        if !note.slot_bytes.is_power_of_two() || !(4096..=65536).contains(&note.slot_bytes) {
            broken!("slots of {} bytes; pages have 4096 to 65536", note.slot_bytes);
        }
        Ok(())
    },
};
