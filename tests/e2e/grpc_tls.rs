//! The gRPC API of the all-in-one over TLS, in addition to its plaintext listener on loopback.

use std::{process::Output, slice};

use serde_json::json;

use crate::{
    harness::{
        all_in_one::{AllInOne, operator_command, run_delivery, run_delivery_json, stderr},
        grpc::NOT_A_CORE,
    },
    rest_tls::Identity,
};

/// Runs an operator's command against a core, with flags of the connection.
fn list_stores(running: &AllInOne, core_url: &str, flags: &[String]) -> Output {
    let operator = running.operator_client();
    let mut command = operator_command(core_url, &operator, &["stores", "list"]);
    command.args(flags).output().unwrap()
}

#[test]
fn grpc_is_served_over_tls_while_the_platform_itself_and_its_commands_need_no_certificate() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = directory.path().join("data");
    let server = Identity::create(directory.path(), "server");
    let caller = Identity::create(directory.path(), "caller");
    let flag = |name: &str, file: &std::path::Path| format!("--{name}={}", file.display());
    let flags = [
        flag("grpc-tls-certificate", &server.certificate),
        flag("grpc-tls-key", &server.key),
        flag("grpc-tls-client-ca", &caller.certificate),
        // Beyond loopback, where gRPC without TLS would be refused.
        "--core-listen=0.0.0.0:0".to_owned(),
        "--demo-on-a-network=yes".to_owned(),
        "--allow-http".to_owned(),
        "--allow-network=127.0.0.0/8".to_owned(),
    ];
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();

    let running = AllInOne::start(&data_dir, &flags);

    let grpc_url = &running.grpc_url();
    assert!(grpc_url.starts_with("https://127.0.0.1:"), "{grpc_url}");
    // The gateway, the dispatcher and a command call core.
    assert!(running.create_delivery()["@id"].is_string());
    let webhook = json!({
        "url": "http://127.0.0.1:80/",
        "event": "delivery.completed",
    });
    let webhook = running.call("/api/webhooks", &["-d", &webhook.to_string()]);
    let test = [
        "webhooks",
        "test",
        webhook["id"].as_str().unwrap(),
        "--json",
    ];
    let tested = run_delivery(&data_dir, &test);
    let tested: serde_json::Value = serde_json::from_slice(&tested.stdout).unwrap();
    assert_eq!(tested["failure"], "connect", "{tested}");
    let stores = run_delivery_json(&data_dir, &["stores", "list"]);
    assert_eq!(stores.as_array().map(Vec::len), Some(1), "{stores}");

    let trust = flag("core-tls-ca", &server.certificate);
    let authenticate = [
        flag("core-tls-certificate", &caller.certificate),
        flag("core-tls-key", &caller.key),
    ];
    let all = [slice::from_ref(&trust), &authenticate].concat();
    let listed = list_stores(&running, grpc_url, &all);
    assert!(listed.status.success(), "{}", stderr(&listed));
    let plaintext = grpc_url.replace("https:", "http:");
    for (core_url, flags, reason) in [
        (
            grpc_url,
            slice::from_ref(&trust),
            "it requires a client certificate",
        ),
        (
            grpc_url,
            &authenticate,
            "is not issued by a trusted authority",
        ),
        (&plaintext, &[][..], NOT_A_CORE),
    ] {
        let rejected = list_stores(&running, core_url, flags);
        assert!(!rejected.status.success(), "{core_url} {flags:?}");
        assert!(stderr(&rejected).contains(reason), "{}", stderr(&rejected));
    }
    assert!(running.stop("-TERM").success());
}

#[test]
fn without_tls_grpc_is_not_served_beyond_loopback() {
    let directory = tempfile::tempdir().unwrap();
    let start = [
        "start",
        "--rest-listen=127.0.0.1:0",
        "--core-listen=0.0.0.0:0",
        "--demo-on-a-network=yes",
    ];

    let rejected = run_delivery(&directory.path().join("data"), &start);

    let error = stderr(&rejected);
    assert!(!rejected.status.success());
    assert!(
        error.contains("would send tokens and secrets unencrypted")
            && error.contains("delivery has --grpc-tls-certificate and --grpc-tls-key"),
        "{error}"
    );
}
