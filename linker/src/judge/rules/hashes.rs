//! Both hash tables: each finds every name.

use object::elf;

use super::{Level, Rule, Scope, broken};
use crate::judge::tables::{GnuHash, Symbol, SysvHash};

pub(crate) const SYSV_HASH: Rule = Rule {
    name: "sysv-hash",
    level: Level::Must,
    scope: Scope::Every,
    demand: "a DT_HASH that finds every exported name",
    consumers: "musl, CRIU, dietlibc, abseil, Linux's parse_vdso before 6.12",
    check: |file| {
        let Some(hash) = &file.tables.hash else {
            broken!("there is no DT_HASH");
        };
        all_found(&file.tables.symbols, |symbol| find_sysv(hash, &file.tables.symbols, symbol))
    },
};

pub(crate) const GNU_HASH: Rule = Rule {
    name: "gnu-hash",
    level: Level::Must,
    scope: Scope::Every,
    demand: "a DT_GNU_HASH that finds every exported name, with a filter of 2^n words",
    consumers: "glibc (asserts the power of two), Go, parsers that know no other table",
    check: |file| {
        let Some(hash) = &file.tables.gnu_hash else {
            broken!("there is no DT_GNU_HASH");
        };
        let words = hash.bloom.len();
        if !words.is_power_of_two() {
            broken!("its filter has {words} words, which is no power of two");
        }
        let bits = if file.is_64 { 64 } else { 32 };
        all_found(&file.tables.symbols, |symbol| find_gnu(hash, &file.tables.symbols, symbol, bits))
    },
};

fn all_found<'s, 'a: 's>(
    symbols: &'s [Symbol<'a>],
    find: impl Fn(&Symbol<'a>) -> Option<usize>,
) -> Result<(), super::Broken> {
    let mut exported = 0;
    for (index, symbol) in symbols.iter().enumerate() {
        if symbol.is_undefined() || symbol.name.is_empty() {
            continue;
        }
        exported += 1;
        match find(symbol) {
            Some(found) if found == index => {}
            Some(found) => broken!("it finds symbol {found} for {}, number {index}", symbol.name),
            None => broken!("it does not find {}", symbol.name),
        }
    }
    if exported == 0 {
        broken!("there is no exported name to find");
    }
    Ok(())
}

/// The symbol that a lookup of `wanted` ends at.
fn find_sysv(hash: &SysvHash, symbols: &[Symbol<'_>], wanted: &Symbol<'_>) -> Option<usize> {
    let buckets = u32::try_from(hash.buckets.len()).ok()?;
    let bucket = elf::hash(wanted.name.as_bytes()).checked_rem(buckets)?;
    let mut at = *hash.buckets.get(bucket as usize)? as usize;
    // A chain that visits more symbols than there are is a circle.
    for _ in 0..hash.chains.len() {
        if at == 0 {
            return None;
        }
        if symbols.get(at)?.name == wanted.name {
            return Some(at);
        }
        at = *hash.chains.get(at)? as usize;
    }
    None
}

/// As [`find_sysv`], filter included.
fn find_gnu(
    hash: &GnuHash,
    symbols: &[Symbol<'_>],
    wanted: &Symbol<'_>,
    word_bits: u32,
) -> Option<usize> {
    let value = elf::gnu_hash(wanted.name.as_bytes());
    let words = u32::try_from(hash.bloom.len()).ok()?;
    let word = *hash.bloom.get((value / word_bits).checked_rem(words)? as usize)?;
    let second = value.checked_shr(hash.bloom_shift)?;
    for bit in [value % word_bits, second % word_bits] {
        if word >> bit & 1 == 0 {
            return None;
        }
    }
    let buckets = u32::try_from(hash.buckets.len()).ok()?;
    let start = *hash.buckets.get(value.checked_rem(buckets)? as usize)?;
    let chain = hash.hashes.get(start.checked_sub(hash.first)? as usize..)?;
    for (step, found) in chain.iter().enumerate() {
        let at = start as usize + step;
        if found | 1 == value | 1 && symbols.get(at)?.name == wanted.name {
            return Some(at);
        }
        if found & 1 == 1 {
            return None;
        }
    }
    None
}
