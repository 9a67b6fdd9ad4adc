//! The documentation page, its guides and its files.

use std::{collections::BTreeSet, fs, path::Path};

use crate::harness::{Platform, Reply};

#[tokio::test]
async fn the_docs_page_and_its_guides_load_only_their_own_files() {
    let platform = Platform::start().await;

    let page = platform.client.get("/api/docs").await;
    assert_is_safe_html(&page);
    let folders = ["courier", "dispatch", "receivers", "shop"];
    let folders = folders.map(|folder| format!("../examples/{folder}"));
    let endings = &[".php", ".py", ".mjs", ".go", ".rs"];
    let examples = folders.iter().flat_map(|folder| files(folder, endings));
    let examples: BTreeSet<_> = examples.collect();
    let mut found = links(page.text(), "docs/");
    let mut seen = BTreeSet::new();
    while let Some(url) = found.pop() {
        let (file, version) = url.split_once('?').unwrap_or((&url, ""));
        let (file, has_version) = (file.to_owned(), !version.is_empty());
        if !seen.insert(file.clone()) {
            continue;
        }
        let reply = platform.client.get(&format!("/api/docs/{url}")).await;

        assert_eq!(reply.status, 200, "{file}");
        let is_kept = reply
            .header("cache-control")
            .unwrap()
            .ends_with("immutable");
        assert_eq!(is_kept, has_version, "{file}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        let text = reply.text();
        match reply.header("content-type").unwrap() {
            "text/html; charset=utf-8" => {
                assert_is_safe_html(&reply);
                found.extend(links(text, ""));
            }
            "text/plain; charset=utf-8" => assert!(examples.contains(&file), "{file}"),
            _ => {
                assert!(!text.contains("://"), "{file}");
                let modules = text.split("from \"./").skip(1);
                found.extend(modules.map(|rest| rest.split_once('"').unwrap().0.to_owned()));
            }
        }
    }
    let scripts_and_styles = files("src/resources/docs_page", &[".js", ".css"]);
    let guides = files("../docs/guides", &[".md"]).map(|file| file.replace(".md", ""));
    let all: BTreeSet<_> = scripts_and_styles.chain(guides).chain(examples).collect();
    assert_eq!(seen, all);
    assert_eq!(platform.client.get("/api/docs/mod.rs").await.status, 404);
}

/// The names of the files in a folder of the repository that have one of these endings.
fn files(folder: &str, endings: &'static [&str]) -> impl Iterator<Item = String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let names = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| endings.iter().any(|ending| name.ends_with(ending)))
}

/// The files below `/api/docs/` that a page loads or links to.
fn links(html: &str, folder: &str) -> Vec<String> {
    let mut files = Vec::new();
    for attribute in [" src=\"", " href=\""] {
        for rest in html.split(attribute).skip(1) {
            let (address, _) = rest.split_once('"').unwrap();
            let (file, _) = address.split_once('#').unwrap_or((address, ""));
            let file = file.strip_prefix(folder).unwrap_or_default();
            if !file.is_empty() && !file.contains(['/', ':']) && !file.starts_with("..") {
                files.push(file.to_owned());
            }
        }
    }
    files
}

/// Asserts that a page has no inline scripts or styles, and that its policy permits none from other
/// origins.
fn assert_is_safe_html(reply: &Reply) {
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let policy = reply.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self';"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"), "{policy}");
    let html = reply.text();
    for forbidden in [
        "<style",
        " style=",
        " onclick=",
        "<script>",
        "src=\"http",
        "<!-- ",
    ] {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
}

#[tokio::test]
async fn the_docs_page_is_readable_before_its_script_runs() {
    let platform = Platform::start().await;

    let page = platform.client.get("/api/docs").await;

    for text in [
        "<title>Service API</title>",
        "<li><strong>Query parameters</strong> that are unknown are violations.</li>",
        "<li><a href=\"#createDelivery\"><span class=\"method post\">POST</span>",
        "<details class=\"operation\" id=\"createDelivery\"><summary>",
        "<p>The dropoff requires an address and a time: <code>before</code> or",
        "id=\"webhook/delivery.completed\"",
        "<td><code>webhook-signature</code></td>",
        "<a href=\"https://www.standardwebhooks.com\">",
    ] {
        assert!(page.text().contains(text), "{text}");
    }
    let sections = page.text().matches("id=\"createDelivery\"").count();
    assert_eq!(sections, 1);
}

#[tokio::test]
async fn the_guides_show_the_receivers_and_link_to_sections_that_exist() {
    let platform = Platform::start().await;
    let guide = async |name: &str| {
        let reply = platform.client.get(&format!("/api/docs/{name}")).await;
        assert_eq!(reply.status, 200, "{name}");
        reply.text().to_owned()
    };

    let webhooks = guide("webhooks").await;

    for shown in [
        "hash_equals($expected, $signature)",
        "hmac.compare_digest",
        "timingSafeEqual",
        "hmac.Equal",
        "verify_slice",
    ] {
        assert!(webhooks.contains(shown), "{shown}");
    }
    assert!(webhooks.contains("<a href=\"webhooks\" aria-current=\"page\">Webhooks</a>"));
    assert!(webhooks.contains("<title>Webhooks</title>"));
    for name in links(&webhooks, "") {
        if name.contains('.') {
            continue;
        }
        let html = guide(&name).await;
        for rest in html.split(" href=\"").skip(1) {
            let (address, _) = rest.split_once('"').unwrap();
            let Some((target, fragment)) = address.split_once('#') else {
                continue;
            };
            let target = match target {
                "" => html.clone(),
                target => guide(target).await,
            };
            assert!(
                target.contains(&format!(" id=\"{fragment}\"")),
                "{name}: {address}"
            );
        }
    }
}
