//! Headless Chromium, by its driver: the protocol of the W3C is JSON over HTTP, and has the commands of Chromium's
//! developer tools too. With axe-core, which finds what hinders people.

use std::{os::unix::process::CommandExt as _, path::Path, process::Command, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{installed, prerequisites, resource_script::ResourceScript};

/// Far longer than a command takes.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Prints the port of `ChromeDriver`. When standard input closes, ends it and all that it has started.
const DRIVER: &str = r#"
"$1" --port=0 | sed --unbuffered --quiet 's/.* successfully on port \([0-9]*\).*/\1/p' &
cat >/dev/null
kill -KILL -$$
"#;

/// CI runs as root, for whom Chromium has no sandbox; it calls no other host.
const ARGUMENTS: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

/// Timers of 15 seconds or more fire when the test says so.
const TIMERS: &str = "
    const [start, stop] = [setTimeout, clearTimeout];
    window.timers = new Map();
    window.setTimeout = (callback, delay) => {
        if (delay < 15_000) return start(callback, delay);
        const timer = {};
        timers.set(timer, { callback, seconds: delay / 1000 });
        return timer;
    };
    window.clearTimeout = (timer) => timers.delete(timer) || stop(timer);
";

const AXE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/browser/node_modules/axe-core/axe.min.js"
);

/// WCAG 2.2 AA, and what axe-core recommends beyond.
const RUN_AXE: &str = "
    const values = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
    return axe.run({ runOnly: { type: 'tag', values } }).then(({ violations, passes }) => violations.flatMap(
        ({ id, help, nodes }) => nodes.map(({ html }) => `${id}: ${help}: ${html}`)).concat(
        passes.some(({ id }) => id === 'color-contrast') ? [] : ['the contrast was not checked']));
";

/// A window and its session. Ended when it is dropped.
pub(crate) struct Browser {
    http: Client<HttpConnector, Full<Bytes>>,
    /// The URL of the session.
    session: String,
    axe: String,
    _driver: ResourceScript,
    /// Of Chromium; removed after its end.
    _profile: TempDir,
}

/// What a page is shown on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    pub(crate) width: u32,
    /// `light` or `dark`.
    pub(crate) theme: &'static str,
    /// `screen` or `print`.
    pub(crate) media: &'static str,
}

impl Browser {
    /// `None`, with a message on stderr, on a machine without Chromium, its driver or axe-core.
    pub(crate) async fn start(subject: &str) -> Option<Self> {
        installed::find("chromium", subject)?;
        let driver = installed::find("chromedriver", subject)?;
        let Ok(axe) = std::fs::read_to_string(AXE) else {
            prerequisites::skip(
                subject,
                "axe-core is missing: npm ci --prefix tests/browser",
            );
            return None;
        };
        let (driver, port) = start_driver(&driver);
        let profile = tempfile::tempdir().unwrap();
        let profile_flag = format!("--user-data-dir={}", profile.path().display());
        let arguments: Vec<_> = ARGUMENTS.into_iter().chain([&*profile_flag]).collect();
        let mut browser = Self {
            http: Client::builder(TokioExecutor::new()).build_http(),
            session: format!("http://127.0.0.1:{port}/session"),
            axe,
            _driver: driver,
            _profile: profile,
        };
        let options = json!({
            "goog:chromeOptions": { "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
        });
        let session = json!({ "capabilities": { "alwaysMatch": options } });
        let session = browser.call(Method::POST, "", &session).await;
        browser.session = format!(
            "{}/{}",
            browser.session,
            session["sessionId"].as_str().unwrap()
        );
        let timers = json!({ "source": TIMERS });
        browser
            .devtools("Page.addScriptToEvaluateOnNewDocument", timers)
            .await;
        Some(browser)
    }

    /// Ends Chromium.
    pub(crate) async fn stop(self) {
        self.call(Method::DELETE, "", &json!(null)).await;
    }

    pub(crate) async fn open(&self, url: &str) {
        self.call(Method::POST, "/url", &json!({ "url": url }))
            .await;
    }

    /// What the body of a function returns in the page, or what its promise becomes.
    pub(crate) async fn run(&self, script: &str) -> Value {
        let call = json!({ "script": script, "args": [] });
        self.call(Method::POST, "/execute/sync", &call).await
    }

    /// Lets the only timer of the page fire, and waits for what it does. Returns its seconds; null without a timer.
    pub(crate) async fn fire_timer(&self) -> Value {
        let script = "
            if (timers.size > 1) throw new Error('the page has several timers');
            for (const [timer, { callback, seconds }] of timers) {
                timers.delete(timer);
                return Promise.resolve(callback()).then(() => seconds);
            }
            return null;
        ";
        self.run(script).await
    }

    /// What a script finds in a page that is opened in another window and runs none of its own.
    pub(crate) async fn run_without_scripts(&self, url: &str, script: &str) -> Value {
        let first = self.call(Method::GET, "/window", &json!(null)).await;
        let second = self
            .call(Method::POST, "/window/new", &json!({ "type": "window" }))
            .await;
        let switch = async |handle: &Value| {
            self.call(Method::POST, "/window", &json!({ "handle": handle }))
                .await;
        };
        switch(&second["handle"]).await;
        let disabled = json!({ "value": true });
        self.devtools("Emulation.setScriptExecutionDisabled", disabled)
            .await;
        self.open(url).await;
        let found = self.run(script).await;
        self.call(Method::DELETE, "/window", &json!(null)).await;
        switch(&first).await;
        found
    }

    pub(crate) async fn show_on(&self, screen: Screen) {
        let metrics = json!({
            "width": screen.width, "height": 844, "deviceScaleFactor": 1, "mobile": screen.width < 600,
        });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics)
            .await;
        let theme = json!({ "name": "prefers-color-scheme", "value": screen.theme });
        let media = json!({ "media": screen.media, "features": [theme] });
        self.devtools("Emulation.setEmulatedMedia", media).await;
    }

    /// What hinders people on the page as it is shown.
    pub(crate) async fn accessibility_violations(&self) -> Value {
        let script = format!("{}\n{RUN_AXE}", self.axe);
        self.run(&script).await
    }

    /// The whole page as a PNG.
    pub(crate) async fn screenshot(&self) -> Vec<u8> {
        let metrics = self.devtools("Page.getLayoutMetrics", json!({})).await;
        let size = &metrics["cssContentSize"];
        let (width, height) = (&size["width"], &size["height"]);
        let clip = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
        let capture = json!({ "captureBeyondViewport": true, "clip": clip });
        let captured = self.devtools("Page.captureScreenshot", capture).await;
        BASE64_STANDARD
            .decode(captured["data"].as_str().unwrap())
            .unwrap()
    }

    /// What the browser has complained about since the last call, but for the status of the page itself.
    pub(crate) async fn complaints(&self, page: &str) -> Vec<String> {
        let of_page = format!("{page} - ");
        let log = self
            .call(Method::POST, "/se/log", &json!({ "type": "browser" }))
            .await;
        let messages = log.as_array().unwrap().iter();
        let messages = messages.map(|entry| entry["message"].as_str().unwrap().to_owned());
        messages
            .filter(|message| {
                !message.starts_with(&of_page) || !message.contains("responded with a status")
            })
            .collect()
    }

    async fn devtools(&self, command: &str, parameters: Value) -> Value {
        let call = json!({ "cmd": command, "params": parameters });
        self.call(Method::POST, "/goog/cdp/execute", &call).await
    }

    async fn call(&self, method: Method, path: &str, body: &Value) -> Value {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.session));
        let request = request.body(Full::from(body)).unwrap();
        let called = async {
            let (head, body) = self.http.request(request).await.unwrap().into_parts();
            (head.status, body.collect().await.unwrap().to_bytes())
        };
        let (status, body) = tokio::time::timeout(TIMEOUT, called).await.expect(path);
        let mut answer: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(status, 200, "{path}: {answer}");
        answer["value"].take()
    }
}

/// Starts a driver; returns its port.
fn start_driver(program: &Path) -> (ResourceScript, String) {
    let mut command = Command::new("sh");
    command
        .args(["-c", DRIVER, "driver"])
        .arg(program)
        .process_group(0);
    let (script, port) = ResourceScript::start(&mut command);
    assert!(!port.is_empty(), "ChromeDriver did not start");
    (script, port)
}
