//! Environment variables: empty ones are unset, booleans have the usual spellings, and an error
//! names the variable.

use std::process::Command;

use crate::program::{self, PROGRAMS};

/// Starts a core that cannot open its database; it is allowed to listen on any interface or not.
fn core(allow_plaintext: &str) -> Command {
    let mut command = program::command(&PROGRAMS.core);
    command
        .args(["--listen=0.0.0.0:0", "--database-url=sqlite:///nowhere/x"])
        .env("DELIVERY_ALLOW_PLAINTEXT", allow_plaintext);
    command
}

fn errors(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), errors)
}

#[test]
fn a_boolean_variable_is_1_0_yes_or_no() {
    for (text, is_allowed) in [
        ("1", true),
        ("yes", true),
        ("true", true),
        ("0", false),
        ("no", false),
        ("false", false),
        ("", false),
    ] {
        let (status, errors) = errors(&mut core(text));
        assert_eq!(status, Some(1), "{text:?}: {errors}");
        let is_refused = errors.contains("would send tokens and secrets unencrypted");
        assert_eq!(is_refused, !is_allowed, "{text:?}: {errors}");
    }
    let (status, errors) = errors(&mut core("perhaps"));
    assert_eq!(status, Some(2));
    assert!(errors.contains("DELIVERY_ALLOW_PLAINTEXT"), "{errors}");
}

#[test]
fn an_empty_variable_is_unset() {
    let (status, printed) = errors(
        program::command(&PROGRAMS.core)
            .args(["--database-url=sqlite:///nowhere/x", "--listen=127.0.0.1:0"])
            .env("DELIVERY_CORE_HEALTH_LISTEN", "")
            .env("DELIVERY_TOKEN_LIFETIME", "")
            .env("DELIVERY_DATABASE_URL_FILE", ""),
    );
    assert_eq!(status, Some(1), "{printed}");
    assert!(printed.contains("the SQLite file /nowhere/x"), "{printed}");

    let (status, printed) = errors(
        program::command(&PROGRAMS.dispatcher)
            .env("DELIVERY_CORE_URL", "")
            .env("DELIVERY_CLIENT_KEY", "key")
            .env("DELIVERY_CLIENT_SECRET", "secret"),
    );
    let message = "webhook-dispatcher: no core url given: set --core-url\n";
    assert_eq!((status, printed.as_str()), (Some(1), message));

    let (status, printed) = errors(
        program::command(&PROGRAMS.delivery)
            .args(["stores", "list", "--data-dir=/nowhere"])
            .env("DELIVERY_CORE_URL", ""),
    );
    assert_eq!(status, Some(1), "{printed}");
    assert!(
        printed.starts_with("cannot read /nowhere/ready.json"),
        "{printed}"
    );
}

#[test]
fn every_program_prints_its_version() {
    let migrations = PROGRAMS.core.with_file_name("migrations");
    for program in [
        &PROGRAMS.delivery,
        &PROGRAMS.core,
        &PROGRAMS.gateway,
        &PROGRAMS.dispatcher,
        &migrations,
    ] {
        let output = program::command(program).arg("--version").output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let name = program.file_name().unwrap().to_str().unwrap();
        assert_eq!(printed, format!("{name} {}\n", env!("CARGO_PKG_VERSION")));
    }
}
