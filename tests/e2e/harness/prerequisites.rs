//! What a test needs in addition to cargo: programs of the machine, and permissions.

use std::io::Write as _;

/// With this value, or with `CI=true`, a test that would be skipped fails.
const REQUIRE_ALL: (&str, &str) = ("DELIVERY_TEST_REQUIRE_ALL", "1");

/// Reports on stderr, past the test runner's capture, that a test cannot run on this machine. Fails
/// where every test must run.
pub(crate) fn skip(subject: &str, reason: &str) {
    let must_run = [REQUIRE_ALL, ("CI", "true")]
        .into_iter()
        .any(|(name, value)| std::env::var_os(name).is_some_and(|set| set == value));
    let (name, value) = REQUIRE_ALL;
    assert!(
        !must_run,
        "{subject}: {reason}, and with {name}={value} or CI=true no test may be skipped"
    );
    let _ = writeln!(std::io::stderr(), "\n*** SKIPPED: {subject}: {reason}");
}
