//! The functions of the docs page that need no browser: search, reading the OpenAPI document, and the
//! code samples, which are run.

use std::{path::Path, process::Command};

use serde_json::Value;

use crate::{all_in_one::AllInOne, prerequisites::skip, program};

#[tokio::test(flavor = "multi_thread")]
async fn the_docs_page_searches_the_document_and_its_samples_send_the_request_shown() {
    for program in ["node", "php"] {
        if Command::new(program).arg("--version").output().is_err() {
            return skip("the docs page", &format!("{program} is not installed"));
        }
    }
    let platform = AllInOne::start().await;
    let document = platform.directory.path().join("openapi.json");
    let ready = std::fs::read(platform.directory.path().join("data/ready.json")).unwrap();
    let ready: Value = serde_json::from_slice(&ready).unwrap();
    let mut read = program::command(Path::new("curl"));
    read.args(["-sSf", "-o", document.to_str().unwrap()]);
    read.arg(format!(
        "{}/api/docs.json",
        ready["base_url"].as_str().unwrap()
    ));
    assert!(program::output(&mut read).status.success());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));

    let mut tests = program::command(Path::new("node"));
    tests
        .args(["--test", "tests/docs_page/"])
        .current_dir(root)
        .env("OPENAPI", &document);
    let output = program::output(&mut tests);

    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}");
}
