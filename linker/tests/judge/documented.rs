//! `docs/image-rules.md` has a row for each rule, made from the rules themselves.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use linker::judge::{Arch, RULES};

const BEGIN: &str =
    "<!-- made by `cargo xtask bless -p linker --features judge --test judge` -->\n";
const END: &str = "<!-- end -->\n";

#[test]
fn the_document_has_the_rules_of_today() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/image-rules.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the mark where the table begins");
    let (table, after) = rest.split_once(END).expect("the mark where it ends");
    let wanted = rows();
    if std::env::var_os("UVDSO_BLESS").is_some_and(|value| value == "1") {
        fs::write(&path, format!("{before}{BEGIN}{wanted}{END}{after}")).unwrap();
        return;
    }
    for (found, wanted) in table.lines().zip(wanted.lines()) {
        assert_eq!(found, wanted, "docs/image-rules.md is not what the rules say");
    }
    assert_eq!(table.lines().count(), wanted.lines().count(), "rows of docs/image-rules.md");
}

fn rows() -> String {
    let mut rows = String::from(
        "| rule | level | what an image has to have | who breaks without it | architectures | policies |\n\
         |---|---|---|---|---|---|\n",
    );
    for rule in RULES {
        let archs: Vec<_> = rule.scope.architectures().map(Arch::name).collect();
        let archs =
            if archs.len() == Arch::ALL.len() { "all".to_owned() } else { archs.join(", ") };
        writeln!(
            rows,
            "| `{}` | {} | {} | {} | {archs} | {} |",
            rule.name,
            rule.level,
            rule.demand,
            rule.consumers,
            rule.scope.policies()
        )
        .unwrap();
    }
    rows
}
