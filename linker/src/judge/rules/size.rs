//! How large an image may be.

use super::{Level, Rule, Scope, broken};

const PAGE: usize = 4096;

pub(crate) const TWO_PAGES: Rule = Rule {
    name: "two-pages",
    level: Level::Must,
    scope: Scope::Ours,
    demand: "the file, section headers included, has at most 8192 bytes",
    consumers: "kernels that reserve two pages for it, as Linux's image has",
    check: |file| {
        let (found, limit) = (file.bytes.len(), 2 * PAGE);
        if found > limit {
            broken!("{found} bytes, {} too many", found - limit);
        }
        Ok(())
    },
};
