//! The judge's verdict on the vDSO of the machine that runs the tests, rule by rule.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use kernel_sim::functions::host_image;
use linker::judge::{ImageFile, Outcome, RULES, judge};

/// What Linux's own image is known to break, and why no program stumbles over it.
///
/// Another kernel may break fewer of them; a rule that is not here holds for every kernel's image,
/// or it is not a fact about consumers.
const EXPECTED: [(&str, &str); 3] = [
    ("no-builder-paths", "a toolchain that writes DT_RUNPATH leaves the builder's path"),
    ("no-alternatives", "the kernel patches its image at boot, before it maps it"),
    ("unwind-every-path", "the ChaCha20 rounds behind getrandom have no unwind entry"),
];

#[test]
fn the_hosts_image_breaks_only_the_rules_that_it_is_known_to_break() {
    let Some(bytes) = host_image() else {
        assert!(!xtask::tools::required(), "this machine's kernel maps no vDSO");
        println!("skip: this machine's kernel maps no vDSO (vdso=0, or an emulator)");
        return;
    };
    let verdict = judge(&ImageFile::read(bytes).unwrap());
    assert_eq!(verdict.findings.len(), RULES.len());
    for finding in &verdict.findings {
        let name = finding.rule.name;
        match &finding.outcome {
            Outcome::Holds => println!("{name}: holds"),
            Outcome::NotApplicable(reason) => println!("{name}: {reason}"),
            Outcome::Broken(broken) => {
                let expected = EXPECTED.iter().find(|(rule, _)| *rule == name);
                let (_, why) = expected.unwrap_or_else(|| panic!("{name}: {broken}"));
                println!("{name}: {broken} (expected: {why})");
            }
        }
    }
    // Rules about our note, and those for i386, are the only ones that have nothing to say.
    let (_, applicable) = verdict.score();
    assert_eq!(applicable, RULES.len() - 5);
    for (rule, _) in EXPECTED {
        assert!(RULES.iter().any(|known| known.name == rule), "{rule} is no rule");
    }
}
