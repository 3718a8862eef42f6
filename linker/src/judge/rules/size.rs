//! How large an image may be.

use super::{Level, Rule, Scope, broken};

const PAGE: usize = 4096;

pub(crate) const TWO_PAGES: Rule = Rule {
    name: "two-pages",
    level: Level::Must,
    scope: Scope::Ours,
    demand: "the file, section headers included, has at most 8192 bytes",
    consumers: "kernels that reserve two pages for it, as Linux's image has",
    check: |file| at_most(file.bytes.len(), 2 * PAGE),
};

pub(crate) const ONE_PAGE: Rule = Rule {
    name: "one-page",
    level: Level::Should,
    scope: Scope::Ours,
    demand: "the file, section headers included, has at most 4096 bytes",
    consumers: "every process: one page less to map, one TLB entry less",
    check: |file| at_most(file.bytes.len(), PAGE),
};

fn at_most(found: usize, limit: usize) -> Result<(), super::Broken> {
    if found > limit {
        broken!("{found} bytes, {} too many", found - limit);
    }
    Ok(())
}
