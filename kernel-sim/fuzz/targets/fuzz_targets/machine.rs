//! Updates and reads: what the input decides happens to a machine, and every read is judged.
#![no_main]

use std::cell::RefCell;

use fuzz::Stage;
use libfuzzer_sys::fuzz_target;

thread_local! {
    static STAGE: RefCell<Stage> = RefCell::new(Stage::new());
}

fuzz_target!(|bytes: &[u8]| {
    let scenario = fuzz::generate::scripted(bytes);
    let outcome = STAGE.with_borrow_mut(|stage| stage.run(&scenario)).expect("it can be run");
    if let Some((step, violation)) = outcome.violation {
        panic!("step {step}: {violation}\n{scenario}");
    }
});
