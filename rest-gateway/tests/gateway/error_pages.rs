//! The pages at the `type` of errors.

use http::Method;
use tonic::Code;

use crate::{
    errors::{error_json, without_title_and_retryable},
    harness::{PUBLIC_URL, Platform, samples::core_status},
};

#[tokio::test]
async fn every_error_has_a_page_at_its_type() {
    let platform = Platform::start().await;
    platform
        .core
        .will_fail(core_status(Code::NotFound, "NOT_FOUND", "the reason"));

    let error = platform.client.get("/api/tasks/1").await.json();
    let path = error["type"].as_str().unwrap().strip_prefix(PUBLIC_URL);
    let page = platform.client.get(path.unwrap()).await;
    let missing = platform.client.get("/errors/none").await;

    assert_eq!(page.status, 200);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    for part in [
        "<title>Not found · Service API</title>",
        "<code>not_found</code>, HTTP 404 Not Found",
        "<dt>Meaning</dt><dd>The resource does not exist or is not yours.</dd>",
        "<dt>Cause</dt>",
        "<dd>Use the <code>@id</code> of resources unchanged, as the API returned it.</dd>",
        "<dt>Retryable</dt><dd>No: the same request fails again.</dd>",
    ] {
        assert!(page.text().contains(part), "{part}");
    }
    let browser = platform.client.request(Method::GET, "/errors/%3Cnope%3E");
    let browser = browser.header("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let shown = platform.client.send(browser, "").await;
    assert_eq!(shown.status, 404);
    assert_eq!(shown.header("content-type"), page.header("content-type"));
    assert!(
        shown
            .text()
            .contains("There is no code <code>&lt;nope&gt;</code>.")
    );
    assert!(
        shown
            .text()
            .contains("<a href=\"../errors\">All errors</a>")
    );
    assert_eq!(missing.status, 404);
    assert_eq!(
        without_title_and_retryable(&missing),
        error_json(404, "not_found", "there is no such path; see /api/docs")
    );
}

#[tokio::test]
async fn every_code_has_a_page_with_cause_solution_and_example_and_is_in_the_index() {
    let platform = Platform::start().await;
    let documentation = platform.client.get("/api/docs.json").await.json();
    let schemas = &documentation["components"]["schemas"];
    let index = platform.client.get("/errors").await;
    assert_eq!(index.status, 200);
    assert!(!index.text().contains("<!--"), "a placeholder is left");
    for (schema, minimum, terms) in [
        (
            "ErrorCode",
            31,
            &["Meaning", "Cause", "Solution", "Retryable"][..],
        ),
        ("ViolationCode", 31, &["Cause", "Solution"]),
        ("WarningCode", 3, &["Cause", "Solution"]),
    ] {
        let codes = schemas[schema]["enum"].as_array().unwrap();
        assert!(codes.len() >= minimum, "{codes:?}");
        for code in codes {
            let code = code.as_str().unwrap();

            let page = platform.client.get(&format!("/errors/{code}")).await;

            assert_eq!(page.status, 200, "{code}");
            assert!(
                !page.text().contains("<!--"),
                "a placeholder is left: {code}"
            );
            assert!(page.text().contains(&format!("<code>{code}</code>, ")));
            for term in terms {
                let prefix = format!("<dt>{term}</dt><dd>");
                let (_, rest) = page.text().split_once(&prefix).unwrap();
                assert!(
                    rest.len() > 20 && !rest.starts_with("</dd>"),
                    "{term} of {code}"
                );
            }
            let (_, example) = page
                .text()
                .split_once("<h2>Example</h2>\n<pre><code>")
                .unwrap();
            let (example, _) = example.split_once("</code></pre>").unwrap();
            let example = example
                .replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&amp;", "&");
            let example: serde_json::Value = serde_json::from_str(&example).unwrap();
            assert_eq!(example["code"], code);
            let link = format!("<a href=\"errors/{code}\"><code>{code}</code></a>");
            assert!(index.text().contains(&link), "{code}");
        }
    }
}
