//! Fuzzes the target in the environment variable `FUZZ_TARGET` with libFuzzer. `.ci/fuzz` compiles and runs
//! it; `targets.rs` lists the targets.
#![no_main]

mod targets;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    #[expect(clippy::disallowed_methods, reason = "libFuzzer reads the flags")]
    let name = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a target");
    let found = targets::ALL.iter().find(|(target, _)| *target == name);
    found.unwrap_or_else(|| panic!("no target {name}")).1
});

fuzz_target!(|input: &[u8]| TARGET(input));
