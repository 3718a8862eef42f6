//! The page's writer for Linux: what the C shim calls from inside the kernel.
//!
//! The shim (`kernel/shim/vsyscall.c`) names Linux's structures and copies the fields that matter
//! into a plain [`Timekeeper`]; everything from there on is Rust: the clocks' instants
//! (`timekeeper.rs`) and the page (`datapage::Writer`). So no layout of Linux is known here, and
//! none of the page there.
//!
//! `cargo xtask kernel` compiles this crate to one object, refuses it if it has an undefined
//! symbol, a vector instruction or an unwind table, and links it into vmlinux.
//!
//! # Contract
//! All functions run under the timekeeper's lock with interrupts off, except
//! [`uvdso_setup_timens`], whose page nobody reads yet. They neither lock, wait, allocate nor panic.
#![no_std]
#![warn(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used
)]
#![cfg_attr(test, allow(clippy::panic, reason = "the rules of kernel code do not bind its tests"))]

#[cfg(test)]
extern crate std;

mod timekeeper;

use datapage::namespace::{Offset, Offsets};
use datapage::{Features, Page, SLOT_BYTES, TimeZone, Update, UpdateError, Writer};

pub use timekeeper::Timekeeper;

/// Makes the kernel's page one that serves nothing yet.
///
/// # Safety
/// `page` is a page of kernel memory that nobody else writes; see the crate's contract.
// SAFETY: the prefix is this project's; the object is linked into vmlinux, where nothing has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uvdso_format(page: *mut Page, features: u64) {
    // SAFETY: the caller passes a page that only this crate writes.
    let mut writer = unsafe { Writer::at(page) };
    writer.format(Features::from_bits_retain(features), SLOT_BYTES);
}

/// Publishes the timekeeper's state; returns 0, or why the state cannot be published.
///
/// A state that is refused must not leave readers on an older one, whose clocks would run on: the
/// page then serves nothing, and every program falls back to the kernel.
///
/// # Safety
/// As [`uvdso_format`], which was called before; `timekeeper` points to a `Timekeeper`.
// SAFETY: as `uvdso_format`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uvdso_update(page: *mut Page, timekeeper: *const Timekeeper) -> i32 {
    // SAFETY: the caller passes a page that only this crate writes.
    let mut writer = unsafe { Writer::at(page) };
    // SAFETY: the caller passes a live structure that nobody changes during the call.
    let timekeeper = unsafe { &*timekeeper };
    match timekeeper.page_values().validate() {
        Ok(update) => {
            writer.publish(&update);
            0
        }
        Err(error) => {
            writer.publish(&Update::default());
            reason(error)
        }
    }
}

/// The number that the kernel's log shows for a refused update.
fn reason(error: UpdateError) -> i32 {
    match error {
        UpdateError::Shift { .. } => 1,
        UpdateError::Mask { .. } => 2,
        UpdateError::Clock { .. } => 3,
        UpdateError::Nanos { .. } => 4,
        _ => 5,
    }
}

/// Publishes the timezone.
///
/// # Safety
/// As [`uvdso_format`], which was called before.
// SAFETY: as `uvdso_format`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uvdso_update_tz(page: *mut Page, minutes_west: i32, dst_time: i32) {
    // SAFETY: the caller passes a page that only this crate writes.
    let mut writer = unsafe { Writer::at(page) };
    writer.set_timezone(TimeZone { minutes_west, dst_time });
}

/// Makes a zeroed page that of a time namespace: what it adds to MONOTONIC and to BOOTTIME.
///
/// `features` are those that the kernel's page was formatted with.
///
/// Linux keeps the nanoseconds of both below 10^9. Should they be out of range, the page stays
/// zeroed, and every call of a program in the namespace falls back to the kernel.
///
/// # Safety
/// `page` is a page of kernel memory that no program sees yet.
// SAFETY: as `uvdso_format`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uvdso_setup_timens(
    page: *mut Page,
    features: u64,
    monotonic_sec: i64,
    monotonic_nsec: i64,
    boottime_sec: i64,
    boottime_nsec: i64,
) {
    // SAFETY: the caller passes a page that only this crate writes.
    let writer = unsafe { Writer::at(page) };
    let offset = |secs, nsec: i64| Offset::new(secs, u32::try_from(nsec).ok()?);
    if let (Some(monotonic), Some(boottime)) =
        (offset(monotonic_sec, monotonic_nsec), offset(boottime_sec, boottime_nsec))
    {
        let offsets = Offsets { monotonic, boottime };
        let features = Features::from_bits_retain(features);
        writer.format_namespace(&offsets, features, SLOT_BYTES);
    }
}
