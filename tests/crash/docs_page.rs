//! The functions of the docs page that need no browser: search, reading the OpenAPI document, the form of
//! an operation, and the code samples, which are run.

use std::path::Path;

use crate::{all_in_one::AllInOne, installed::find, program};

#[tokio::test(flavor = "multi_thread")]
async fn the_docs_page_searches_the_document_and_its_samples_send_the_request_shown() {
    for program in ["node", "php"] {
        if find(program, "the docs page").is_none() {
            return;
        }
    }
    let platform = AllInOne::start().await;
    let document = platform.directory.path().join("openapi.json");
    let mut read = program::command(Path::new("curl"));
    read.args(["-sSf", "-o", document.to_str().unwrap()]);
    let base_url = platform.ready()["base_url"].take();
    read.arg(format!("{}/api/docs.json", base_url.as_str().unwrap()));
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
