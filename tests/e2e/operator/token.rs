//! `delivery token`: access tokens for the lines of a shell.

use std::process::Output;

use serde_json::json;

use crate::harness::{
    all_in_one::{AllInOne, command, run_delivery, stderr},
    token::decoded,
};

/// Runs `delivery token` with these variables.
fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut token = command();
    token.arg("token").args(arguments);
    token.envs(variables.iter().copied());
    token.output().unwrap()
}

/// The scope of a printed token.
#[track_caller]
fn scope(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    let token = printed.strip_suffix('\n').unwrap();
    decoded(token, 1)["scope"].as_str().unwrap().to_owned()
}

#[track_caller]
fn assert_refused(output: &Output, error: &str) {
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"");
    assert_eq!(stderr(output), format!("{error}\n"));
}

#[test]
fn a_token_is_that_of_the_demo_or_of_the_client_in_the_environment() {
    let running = AllInOne::start_new(&[]);
    let create = ["clients", "create", "--name=Courier app", "--scopes"];
    let courier = running.run_json(&[&create[..], &["tasks:all"]].concat());
    let [key, secret] = ["api_key", "api_secret"].map(|name| courier[name].as_str().unwrap());
    let variables = [("DELIVERY_API_KEY", key), ("DELIVERY_API_SECRET", secret)];
    let data_dir = running.data_dir().to_str().unwrap();
    let base_url = format!("{}/", running.text("/base_url"));

    assert_eq!(scope(&running.run(&["token"])), "deliveries");
    let both = running.run(&["token", "--scopes", "deliveries tasks"]);
    assert_eq!(scope(&both), "deliveries tasks");
    let of_key = run(&["--data-dir", data_dir], &variables);
    assert_eq!(scope(&of_key), "tasks:all");
    let of_url = run(&["--base-url", &base_url], &variables);
    assert_eq!(scope(&of_url), "tasks:all");

    // A shop's program gets an answer with it.
    let me = running.call("/api/me", &[]);
    assert_eq!(me["@type"], json!("http://schema.org/Person"), "{me}");
}

#[test]
fn a_token_that_is_not_issued_is_explained() {
    let running = AllInOne::start_new(&["--rate-limit-token-client=1/1m"]);
    let base_url = running.text("/base_url");
    let key = running.demo_client().api_key;
    let unknown = [
        ("DELIVERY_BASE_URL", base_url),
        ("DELIVERY_API_KEY", &key),
        ("DELIVERY_API_SECRET", "wrong"),
    ];

    assert_refused(&run(&[], &unknown), "");
    let scope = running.run(&["token", "--scopes=admin"]);
    assert_refused(&scope, "");
    let limited = running.run(&["token"]);
    assert_refused(&limited, "");
    assert_refused(
        &run(&[], &unknown[..2]),
        "DELIVERY_API_KEY is set, but DELIVERY_API_SECRET is not",
    );
    assert_refused(
        &run(&["--base-url", base_url], &[]),
        "set DELIVERY_API_KEY and DELIVERY_API_SECRET: only a running demo's client is known without them",
    );
    let other = run(
        &[],
        &[
            &unknown[1..],
            &[("DELIVERY_BASE_URL", "http://127.0.0.1:1")],
        ]
        .concat(),
    );
    assert_refused(
        &other,
        "cannot get an access token: cannot connect to 127.0.0.1:1: Connection refused (os error 111)",
    );
    let data_dir = tempfile::tempdir().unwrap();
    let missing = data_dir.path().join("ready.json");
    let missing = missing.display();
    assert_refused(
        &run_delivery(data_dir.path(), &["token"]),
        &format!(
            "no --base-url is given: cannot read {missing}: start `delivery`, or set its data directory with --data-dir: No such file or directory (os error 2)"
        ),
    );
}
