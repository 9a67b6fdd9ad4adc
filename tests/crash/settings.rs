//! Environment variables: empty ones are unset, booleans have the usual spellings, an error names
//! the variable, and the help of each flag names it too.

use std::{net::TcpListener, process::Command};

use clap::{Args as _, CommandFactory as _, error::ErrorKind};

use crate::{
    program::{self, PROGRAMS},
    startup_errors::migrate,
};

/// A core that listens on all interfaces, with this value of `DELIVERY_ALLOW_PLAINTEXT`. It always
/// exits, because it cannot open its database.
fn core(allow_plaintext: &str) -> Command {
    let mut command = program::command(&PROGRAMS.core);
    command
        .args(["--listen=0.0.0.0:0", "--database-url=sqlite:///nowhere/x"])
        .env("DELIVERY_ALLOW_PLAINTEXT", allow_plaintext);
    command
}

fn errors(command: &mut Command) -> (Option<i32>, String) {
    let output = program::output(command);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), errors)
}

#[test]
fn a_boolean_variable_is_1_or_0_yes_or_no_true_or_false() {
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

    let occupied = TcpListener::bind("127.0.0.1:0").unwrap();
    let occupied = occupied.local_addr().unwrap().to_string();
    let (status, printed) = errors(
        program::command(&PROGRAMS.gateway)
            .env("DELIVERY_REST_LISTEN", &occupied)
            .env("DELIVERY_PUBLIC_URL", "")
            .env("DELIVERY_REST_MAX_BODY", "")
            .env("DELIVERY_REST_TLS_KEY", ""),
    );
    assert_eq!(status, Some(1), "{printed}");
    let cause = format!("rest-gateway: cannot listen on {occupied}");
    assert!(printed.starts_with(&cause), "{printed}");

    let (status, printed) = errors(
        migrate()
            .arg("--database-url=sqlite:///nowhere/x")
            .env("DELIVERY_DATABASE_URL_FILE", "")
            .env("DELIVERY_ALLOW_UNVERIFIED_DATABASE", ""),
    );
    assert_eq!(status, Some(1), "{printed}");
    assert!(printed.contains("the SQLite file /nowhere/x"), "{printed}");

    let (status, printed) = errors(
        program::command(&PROGRAMS.delivery)
            .args(["stores", "list", "--data-dir=/nowhere"])
            .env("DELIVERY_CORE_URL", ""),
    );
    assert_eq!(status, Some(1), "{printed}");
    assert!(
        printed.starts_with("no --core-url is given: cannot read /nowhere/ready.json"),
        "{printed}"
    );
}

#[test]
fn every_program_prints_its_version_and_commit() {
    let commit = option_env!("DELIVERY_COMMIT").filter(|commit| !commit.is_empty());
    let commit = commit.map_or_else(String::new, |commit| format!(" ({commit})"));
    for program in [
        &PROGRAMS.delivery,
        &PROGRAMS.core,
        &PROGRAMS.gateway,
        &PROGRAMS.dispatcher,
    ] {
        let output = program::output(program::command(program).arg("--version"));
        let printed = String::from_utf8(output.stdout).unwrap();
        let name = program.file_name().unwrap().to_str().unwrap();
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(printed, format!("{name} {version}{commit}\n"));
    }
}

/// The help of each flag has all three, and the program accepts the example.
#[test]
fn every_flag_names_its_variable_its_default_and_a_valid_example() {
    for command in [
        core_service::Config::augment_args(clap::Command::new("core-service")),
        rest_gateway::Config::command(),
        webhook_dispatcher::Config::command(),
        delivery::Settings::augment_args(clap::Command::new("delivery")),
    ] {
        let program = command.get_name().to_owned();
        let mut flags = 0;
        for flag in command.get_arguments() {
            let name = flag.get_long().unwrap();
            let help = flag
                .get_long_help()
                .or(flag.get_help())
                .unwrap()
                .to_string();
            let variable = flag.get_env().and_then(|variable| variable.to_str());
            let variable = variable.unwrap_or_else(|| panic!("{program} --{name}: no variable"));
            assert!(
                !flag.get_default_values().is_empty() || help.contains("Default: "),
                "{program} --{name} names no default: {help}"
            );
            let (_, example) = help
                .split_once("Example: `")
                .unwrap_or_else(|| panic!("{program} --{name} has no example: {help}"));
            let (example, _) = example.split_once('`').unwrap();
            if flag.get_action().takes_values() {
                let arguments = [program.clone(), format!("--{name}={example}")];
                let parsed = command.clone().try_get_matches_from(arguments);
                let error = parsed.err().map(|error| error.kind());
                assert!(
                    matches!(error, None | Some(ErrorKind::MissingRequiredArgument)),
                    "{program} --{name}={example}: {error:?}"
                );
            } else {
                assert_eq!(example, format!("{variable}=yes"), "{program} --{name}");
            }
            flags += 1;
        }
        assert!(flags > 10, "{program}");
    }

    let output = program::output(migrate().arg("--help"));
    let help = String::from_utf8(output.stdout).unwrap();
    let flags = help.split("\n      --").skip(1);
    let flags: Vec<_> = flags.filter(|flag| !flag.starts_with("dry-run")).collect();
    assert_eq!(flags.len(), 3, "{help}");
    for flag in flags {
        for part in ["Default: ", "Example: `", "[env: DELIVERY_"] {
            assert!(flag.contains(part), "{part} {flag}");
        }
    }
}
