//! A kernel's timekeeper.
#![no_std]
