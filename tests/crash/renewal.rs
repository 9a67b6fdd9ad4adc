//! A dispatcher whose credentials are renewed while it runs: its access token, and its secret file.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};

use crate::{
    api_client::ApiClient,
    cluster::{RECEIVER_FLAGS, credentials, write_secret},
    eventually, one_processor,
    program::PROGRAMS,
    readiness::Platform,
    server::Server,
    webhook_receiver::WebhookReceiver,
};

/// A dispatcher renews a token of this lifetime four seconds before it expires: enough time on a
/// busy host.
const TOKEN_LIFETIME: &str = "--token-lifetime=8s";

/// Far longer than a renewal, or the report of an outcome, takes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How many more streams the dispatcher opens, each while a notification is in flight.
const RENEWALS: usize = 3;

/// What a dispatcher prints when a stream is open.
const OPEN: &str = "stream from core is open";

fn dispatcher(platform: &Platform, secret_file: &Path, ready: &'static str) -> Server {
    let client = credentials(&platform.clients["dispatcher_client"]);
    let mut arguments = vec![
        format!("--core-url=http://{}", platform.cores[0].addr),
        format!("--client-key={}", client.api_key),
        format!("--client-secret-file={}", secret_file.display()),
    ];
    arguments.extend(RECEIVER_FLAGS.map(str::to_owned));
    Server::new("dispatcher", &PROGRAMS.dispatcher, arguments, (ready, 1))
}

async fn start() -> Option<(Platform, String)> {
    let flags = [
        "--geocoder=none",
        TOKEN_LIFETIME,
        RECEIVER_FLAGS[0],
        RECEIVER_FLAGS[1],
    ];
    let platform = Platform::start(&[(&flags, &[])]).await?;
    let secret = credentials(&platform.clients["dispatcher_client"]).api_secret;
    Some((platform, secret))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispatcher_renews_its_token_and_loses_or_repeats_no_notification() {
    let _processor = one_processor().await;
    let Some((platform, secret)) = start().await else {
        return;
    };
    let secret_file = platform.files.directory().join("secret");
    write_secret(&secret_file, &secret);
    let mut dispatcher = dispatcher(&platform, &secret_file, OPEN);
    dispatcher.start().await;
    let receiver = WebhookReceiver::start().await;
    let client = platform.create_client();
    let gateway = format!("http://{}", platform.gateway_addr);
    let scopes = ["deliveries", "tasks"];
    let shop = async || ApiClient::authorized(&gateway, &client, &scopes).await;
    let draft = json!({ "event": "delivery.completed", "url": receiver.url() });
    shop().await.post("/api/webhooks", draft).await.expect(201);

    let mut objects = Vec::new();
    let mut expected = Vec::new();
    for _ in 0..RENEWALS {
        // A notification is in flight while the stream is replaced.
        receiver.hold_responses(true);
        let point = json!({ "streetAddress": "48 Rue de Rivoli", "latLng": [48.857, 2.354] });
        let draft = json!({ "dropoff": { "address": point, "before": "tomorrow 13:00" } });
        let delivery = shop()
            .await
            .post("/api/deliveries", draft)
            .await
            .expect(201);
        for task in ["pickup", "dropoff"] {
            let task = delivery[task]["@id"].as_str().unwrap();
            platform.operator(0, &["tasks", "complete", task]);
        }
        expected.push(delivery["@id"].as_str().unwrap().to_owned());
        let notification = receiver.next_notification().await;
        objects.push(
            notification.json()["data"]["object"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
        let printed = dispatcher.output();
        let opened = printed.iter().filter(|line| line.contains(OPEN)).count();
        dispatcher.wait_for_lines(OPEN, opened + 1).await;
        receiver.hold_responses(false);
        // Otherwise the response would be held back again and time out.
        wait_until_delivered(&platform).await;
    }

    assert_eq!(objects, expected);
    let attempts = platform
        .postgres
        .query("SELECT max(attempts) FROM notifications");
    assert_eq!(attempts, "1");
    assert!(receiver.received().await.is_empty(), "repeated");
    let printed = dispatcher.output();
    let failed = printed.iter().find(|line| line.contains("WARN"));
    assert_eq!(failed, None);
    assert_eq!(dispatcher.terminate().await.code(), Some(0));
}

async fn wait_until_delivered(platform: &Platform) {
    let unfinished = "SELECT count(*) FROM notifications WHERE state <> 'delivered'";
    eventually(TIMEOUT, "an outcome is not recorded", async || {
        (platform.postgres.query(unfinished) == "0").then_some(())
    })
    .await;
}

/// The dispatcher runs on without a restart.
#[tokio::test(flavor = "multi_thread")]
async fn a_dispatcher_reads_its_renewed_secret_file() {
    let _processor = one_processor().await;
    let Some((platform, secret)) = start().await else {
        return;
    };
    let secret_file = platform.files.directory().join("secret");
    write_secret(&secret_file, "of another platform");
    let mut dispatcher = dispatcher(&platform, &secret_file, "stream from core failed");
    dispatcher.start().await;

    write_secret(&secret_file, &secret);
    dispatcher.wait_for_line(OPEN).await;

    let listed = platform.operator(0, &["clients", "list"]);
    let is_own = |client: &&Value| client["name"] == "Webhook dispatcher";
    let own = listed.as_array().unwrap().iter().find(is_own).unwrap();
    let rotated = platform.operator(
        0,
        &["clients", "rotate-secret", own["id"].as_str().unwrap()],
    );
    write_secret(&secret_file, rotated["api_secret"].as_str().unwrap());
    // The replaced secret would be valid for a day. Without it, the next token needs the new one.
    platform
        .postgres
        .sql("UPDATE api_clients SET replaced_secrets = ''");
    // The second stream may have been opened before.
    dispatcher.wait_for_lines(OPEN, 3).await;
    assert_eq!(dispatcher.terminate().await.code(), Some(0));
}
