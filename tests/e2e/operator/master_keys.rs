//! `delivery keys rotate-master` and `delivery master-key`: the master key is replaced, and nothing that
//! it encrypts is lost.

use std::path::Path;

use jiff::SignedDuration;
use serde_json::{Value, json};

use proto::{
    ReencryptSecretsRequest, ReencryptSecretsResponse, master_keys_client::MasterKeysClient,
};

use crate::harness::{
    ApiClient, Database, Platform, Response, WebhookReceiver,
    all_in_one::{AllInOne, run_delivery, run_delivery_json, run_master_key, stderr},
    deliver, draft,
    grpc::{self, with_token},
    iri, short_draft, stored_bytes,
};

const DELIVERIES: &str = "/api/deliveries";
const ROTATE: [&str; 2] = ["keys", "rotate-master"];

/// A shop with one value of each kind that the master key encrypts.
struct Shop {
    client: ApiClient,
    receiver: WebhookReceiver,
    webhook: Response,
    subscription: Value,
    new_secret: String,
    delivery: Response,
    quote: Value,
}

impl Shop {
    async fn open(platform: &Platform) -> Self {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        let subscription = json!({ "event": "delivery.completed", "url": receiver.url() });
        let webhook = client
            .post_with_key("/api/webhooks", "k", &subscription)
            .await;
        let rotate = format!("{}/rotate_secret", iri(&webhook.json));
        let rotated = client.post(&rotate, json!({})).await.expect(200);
        let quote = client.post("/api/retail_prices/calculate", draft()).await;
        Self {
            new_secret: rotated["secret"].as_str().unwrap().to_owned(),
            delivery: client.post_with_key(DELIVERIES, "k", &draft()).await,
            quote: quote.expect(200),
            client,
            receiver,
            webhook,
            subscription,
        }
    }

    /// Responses are replayed, both secrets of the webhook sign, the token from before is valid and a
    /// new one is issued.
    async fn assert_usable(&self, platform: &Platform) {
        // The time after which cores reload the signing keys.
        platform.advance(SignedDuration::from_secs(31));
        for (path, body, first) in [
            ("/api/webhooks", &self.subscription, &self.webhook),
            (DELIVERIES, &draft(), &self.delivery),
        ] {
            let again = self.client.post_with_key(path, "k", body).await;
            assert_eq!((again.status, &again.body), (201, &first.body));
        }
        let later = platform.client().await;
        deliver(&later, &platform.courier().await).await;
        let notification = self.receiver.next_notification().await;
        let old_secret = self.webhook.json["secret"].as_str().unwrap();
        assert!(notification.is_signed_with(old_secret));
        assert!(notification.has_standard_signature(&self.new_secret));
    }

    async fn quote_status(&self) -> u16 {
        self.client.get(iri(&self.quote)).await.status
    }
}

on_both_databases! {
    async fn nothing_needs_the_old_master_key_after_a_rotation(platform: &Platform) {
        let shop = Shop::open(platform).await;
        let old = platform.run_master_key(&["list"]);
        let [old] = &old[..] else {
            panic!("{old:?}");
        };
        let added = platform.run_master_key(&["add"]);
        let [first, new] = &added[..] else {
            panic!("{added:?}");
        };
        assert_eq!(first, old);
        let nothing = rotated(old, new, [0; 4]);
        assert_eq!(platform.run_delivery_json(&ROTATE).await, nothing);
        assert_eq!(is_used(platform, [old, new]).await, [true, false]);

        assert_eq!(platform.run_master_key(&["use", new]), [new.clone(), old.clone()]);
        assert_eq!(platform.run_delivery_json(&ROTATE).await, rotated(new, old, [1, 1, 1, 2]));

        assert_eq!(is_used(platform, [old, new]).await, [false, true]);
        assert_eq!(
            platform.run_delivery(&ROTATE).await,
            format!(
                "current key       {new}\n\
                 unused keys       {old}\n\
                 signing keys      0\n\
                 platform secrets  0\n\
                 webhooks          0\n\
                 stored responses  0\n"
            )
        );
        assert_eq!(shop.quote_status().await, 200);
        assert_eq!(platform.run_master_key(&["remove", old]), std::slice::from_ref(new));
        shop.assert_usable(platform).await;
        // A quote is not stored, so it is not encrypted again.
        assert_eq!(shop.quote_status().await, 404);
    }

    async fn secrets_that_are_created_during_a_rotation_are_found_by_the_next_one(platform: &Platform) {
        let client = platform.client().await;
        let subscription = json!({ "event": "delivery.completed", "url": "http://127.0.0.1:9/hook" });
        let create = async || {
            let mut created = Vec::new();
            for number in 0..40 {
                let key = format!("key {number}");
                created.push(client.post_with_key(DELIVERIES, &key, &draft()).await);
                if number % 4 == 0 {
                    client.post_with_key("/api/webhooks", &key, &subscription).await.expect(201);
                }
            }
            created
        };

        let rotate = async {
            let keys = platform.run_master_key(&["add", "--current"]);
            platform.run_delivery_json(&ROTATE).await;
            keys
        };
        let (created, keys) = tokio::join!(create(), rotate);
        platform.run_delivery_json(&ROTATE).await;

        let [new, old] = &keys[..] else {
            panic!("{keys:?}");
        };
        assert_eq!(is_used(platform, [old, new]).await, [false, true]);
        platform.run_master_key(&["remove", old]);
        for (first, again) in created.iter().zip(create().await) {
            assert_eq!((again.status, &again.body), (201, &first.body));
        }
    }
}

/// What `keys rotate-master` prints.
fn rotated(current: &str, unused: &str, counts: [u32; 4]) -> Value {
    let [signing_keys, platform_secrets, webhooks, stored_responses] = counts;
    json!({
        "current_key": current,
        "unused_keys": [unused],
        "signing_keys": signing_keys,
        "platform_secrets": platform_secrets,
        "webhooks": webhooks,
        "stored_responses": stored_responses,
    })
}

/// Whether the database contains a ciphertext of each master key: as bytes in SQLite, in hexadecimal
/// in a dump of PostgreSQL.
async fn is_used(platform: &Platform, ids: [&str; 2]) -> [bool; 2] {
    let stored = stored_bytes(platform).await;
    ids.map(|id| {
        let bytes = u32::from_str_radix(id, 16).unwrap().to_be_bytes();
        let contains = |part: &[u8]| stored.windows(part.len()).any(|window| window == part);
        contains(&bytes) || contains(id.as_bytes())
    })
}

/// The new key was made current before the second core had it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_core_without_a_master_key_says_which_it_lacks_until_its_file_has_it() {
    let Some([first, second]) = Platform::start_two().await else {
        return;
    };
    let data_dir = first.master_key_file().parent().unwrap().to_owned();
    let keys = run_master_key(&data_dir, &["add", "--current"]);
    let created = first
        .client()
        .await
        .post_with_key(DELIVERIES, "k", &draft())
        .await;

    let client = second.client().await;
    let again = client.post_with_key(DELIVERIES, "k", &draft()).await;
    let rotation = second.run_delivery_output(&ROTATE).await;

    assert_eq!((created.status, again.status), (201, 503));
    let message = format!(
        "a secret is encrypted with the master key {}, which {file} does not contain: add its line to that file, from {file}.removed, another core's file or a backup; the core reads the file again when it changes",
        keys[0],
        file = second.master_key_file().display()
    );
    assert_eq!(rotation.status.code(), Some(1));
    let printed = stderr(&rotation);
    assert!(printed.contains(&message), "{printed}");

    std::fs::copy(first.master_key_file(), second.master_key_file()).unwrap();
    let again = client.post_with_key(DELIVERIES, "k", &draft()).await;
    assert_eq!((again.status, &again.body), (201, &created.body));
    let finished = second.run_delivery_json(&ROTATE).await;
    assert_eq!(finished, rotated(&keys[0], &keys[1], [1, 1, 0, 0]));
    Platform::stop_both([first, second]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotation_continues_after_a_kill_and_keeps_the_demo_on_sqlite() {
    assert_continued_after_a_kill(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotation_continues_after_a_kill_and_keeps_the_demo_on_postgres() {
    if let Some(database) = Database::postgres() {
        let url = format!("--database-url={}", database.url.unwrap());
        assert_continued_after_a_kill(&[&url]).await;
    }
}

async fn assert_continued_after_a_kill(flags: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = directory.path();
    let running = AllInOne::start(data_dir, flags);
    let created = create(&running);
    let members = demo(&running);
    let keys = run_master_key(data_dir, &["add", "--current"]);
    let [new, old] = &keys[..] else {
        panic!("{keys:?}");
    };
    let first_page = reencrypt_first_page(&running).await;
    assert_eq!(
        (first_page.signing_keys, first_page.platform_secrets),
        (1, 1)
    );
    running.stop("-KILL");

    let running = AllInOne::start(data_dir, flags);
    let finished = run_delivery_json(data_dir, &ROTATE);

    assert_eq!(finished, rotated(new, old, [0, 0, 0, 1]));
    assert_eq!(
        run_master_key(data_dir, &["remove", old]),
        std::slice::from_ref(new)
    );
    assert!(running.stop("-TERM").success());
    let running = AllInOne::start(data_dir, flags);
    assert_eq!(demo(&running), members);
    assert_eq!(create(&running), created);
}

/// Creates a delivery with an idempotency key.
fn create(running: &AllInOne) -> Value {
    let draft = short_draft().to_string();
    let created = running.call(DELIVERIES, &["-H", "Idempotency-Key: k", "-d", &draft]);
    assert_eq!(
        created["@type"], "http://schema.org/ParcelDelivery",
        "{created}"
    );
    created
}

fn demo(running: &AllInOne) -> [Value; 3] {
    ["store", "demo_client", "operator_client"].map(|member| running.ready[member].clone())
}

async fn reencrypt_first_page(running: &AllInOne) -> ReencryptSecretsResponse {
    let operator = serde_json::from_value(running.ready["operator_client"].clone()).unwrap();
    let (channel, token) = grpc::connect(running.text("/core_url"), &operator, &["admin"]).await;
    let request = with_token(&token, ReencryptSecretsRequest::default());
    let response = MasterKeysClient::new(channel)
        .reencrypt_secrets(request)
        .await;
    response.unwrap().into_inner()
}

#[test]
fn a_start_without_a_master_key_that_is_still_used_is_refused_and_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = directory.path();
    let running = AllInOne::start(data_dir, &[]);
    let keys = run_master_key(data_dir, &["add", "--current"]);
    let [new, old] = &keys[..] else {
        panic!("{keys:?}");
    };
    // A key that signs tokens, encrypted with the new master key.
    run_delivery_json(data_dir, &["keys", "rotate"]);
    assert!(running.stop("-TERM").success());

    let refused = |id: &str, other: &str| {
        run_master_key(data_dir, &["use", other]);
        run_master_key(data_dir, &["remove", id]);
        let start = [
            "start",
            "--rest-listen=127.0.0.1:0",
            "--core-listen=127.0.0.1:0",
        ];
        let output = run_delivery(data_dir, &start);
        restore(data_dir);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(
            stderr(&output),
            format!(
                "secrets of this database are encrypted with the master key {id}, which {file} does not contain: add its line to that file, from {file}.removed, another core's file or a backup\n",
                file = data_dir.join("master.key").display()
            )
        );
    };
    refused(new, old);
    refused(old, new);
    AllInOne::start(data_dir, &[]);
}

/// Adds the removed keys to the file again.
fn restore(data_dir: &Path) {
    let (file, removed) = (
        data_dir.join("master.key"),
        data_dir.join("master.key.removed"),
    );
    let text =
        std::fs::read_to_string(&file).unwrap() + &std::fs::read_to_string(&removed).unwrap();
    std::fs::write(file, text).unwrap();
    std::fs::remove_file(removed).unwrap();
}
