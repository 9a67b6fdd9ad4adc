//! `POST /api/webhooks`; reading and deleting a webhook.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{deliver, iri};
use crate::harness::{
    Platform, WebhookReceiver,
    assertions::{assert_error, assert_violations, json_ld},
};

const WEBHOOKS: &str = "/api/webhooks";

on_both_databases! {
    /// "Response: the Webhook resource, including `secret`"; 201 with `Location`. "`secret`:
    /// standard padded Base64 of 32 random bytes (44 characters)." The events are
    /// `delivery.completed`, `delivery.picked` and `delivery.cancelled`.
    async fn a_webhook_is_returned_as_sent_with_its_own_secret(platform: &Platform) {
        let client = platform.client().await;
        let url = "http://127.0.0.1:9/hook?shop=1&x=%20y";
        let mut secrets = Vec::new();

        for event in [
            "delivery.completed",
            "delivery.picked",
            "delivery.cancelled",
        ] {
            let response = client
                .post(WEBHOOKS, json!({ "event": event, "url": url }))
                .await;

            let webhook = json_ld(&response, 201);
            let id = webhook["id"].as_str().unwrap();
            let secret = webhook["secret"].as_str().unwrap();
            assert_eq!(uuid::Uuid::parse_str(id).unwrap().get_version_num(), 7);
            assert_eq!(
                webhook,
                json!({
                    "@context": "/api/contexts/Webhook",
                    "@id": format!("/api/webhooks/{id}"),
                    "@type": "Webhook",
                    "id": id,
                    "url": url,
                    "event": event,
                    "secret": secret,
                    "secretOverlapEndsAt": null,
                    "enabled": true,
                    "disabledAt": null,
                    "disabledReason": null,
                })
            );
            assert!(
                response.header("location").ends_with(iri(&webhook)),
                "{response:?}"
            );
            assert_eq!(
                (secret.len(), STANDARD.decode(secret).unwrap().len()),
                (44, 32)
            );
            secrets.push(secret.to_owned());
        }
        secrets.sort();
        secrets.dedup();
        assert_eq!(secrets.len(), 3);
    }

    /// Clients register again to get a secret; one that forgets the first gets each event twice.
    async fn a_webhook_that_doubles_another_has_its_own_secret_and_a_warning(platform: &Platform) {
        let client = platform.client().await;
        let body = json!({ "event": "delivery.completed", "url": "http://127.0.0.1:9/" });
        let create = async |key| client.post_with_key(WEBHOOKS, key, &body).await.expect(201);
        let first = create("1").await;
        assert_eq!(first.get("warnings"), None);

        let second = create("2").await;

        let message = format!(
            "gets each event twice: {} is for the same event and url; delete the one that you do not need",
            iri(&first)
        );
        let warning = json!({ "propertyPath": "url", "message": message, "code": "duplicate_webhook" });
        assert_eq!(second["warnings"], json!([warning]));
        assert_ne!(second["secret"], first["secret"]);
        assert_eq!(create("2").await, second);
        for webhook in [&first, &second] {
            client.delete(iri(webhook)).await.expect(204);
        }
        assert_eq!(create("3").await.get("warnings"), None);
    }

    /// So a receiver of several webhooks chooses the secret by the query.
    async fn webhooks_whose_urls_differ_in_the_query_are_no_doubles(platform: &Platform) {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        let paths = ["/hook?webhook=1", "/hook?webhook=2"];
        let mut secrets = Vec::new();
        for path in paths {
            let url = receiver.url().replace("/hook", path);
            let webhook = client.create_webhook("delivery.completed", &url).await;
            assert_eq!((&webhook["url"], webhook.get("warnings")), (&json!(url), None));
            secrets.push((path, webhook["secret"].as_str().unwrap().to_owned()));
        }

        let delivery = deliver(&client, &platform.courier().await).await;

        let mut verified = Vec::new();
        for _ in paths {
            let notification = receiver.next_notification().await;
            let data = json!({ "object": delivery, "event": "delivery.completed" });
            assert_eq!(notification.json(), json!({ "data": data }));
            let is_signed = |secret: &str| {
                [notification.is_signed_with(secret), notification.has_standard_signature(secret)]
            };
            let signed = secrets.iter().map(|(path, secret)| (*path, is_signed(secret)));
            verified.push((notification.path.clone(), signed.collect::<Vec<_>>()));
        }
        verified.sort_unstable();
        let expected = paths.map(|own| {
            let signed = paths.map(|path| (path, [path == own; 2]));
            (own.to_owned(), signed.to_vec())
        });
        assert_eq!(verified, expected);
    }

    /// "list and read **without** `secret`; 204": after a DELETE it is not found.
    async fn a_webhook_is_read_without_its_secret_until_it_is_deleted(platform: &Platform) {
        let client = platform.client().await;
        let mut webhook = client
            .create_webhook("delivery.completed", "http://127.0.0.1:9/")
            .await;
        let iri = iri(&webhook).to_owned();
        webhook.as_object_mut().unwrap().remove("secret");

        assert_eq!(json_ld(&client.get(&iri).await, 200), webhook);
        let deleted = client.delete(&iri).await;

        assert_eq!((deleted.status, deleted.body.as_ref()), (204, &b""[..]));
        assert_error(&client.get(&iri).await, 404);
        assert_error(&client.delete(&iri).await, 404);
    }

    /// "`url`: absolute http(s), no credentials, no fragment, host not private; else violation
    /// `url`. http only where the operator allows it. A name that does not resolve yet is
    /// accepted." The demo allows http and loopback, and denies other private ranges.
    async fn a_url_is_absolute_http_without_credentials_to_no_private_host(platform: &Platform) {
        let client = platform.client().await;
        let register = async |url: &Value| {
            client
                .post(
                    WEBHOOKS,
                    json!({ "event": "delivery.completed", "url": url }),
                )
                .await
        };

        for url in [
            "http://127.0.0.1:9000/hook",
            "http://localhost:9000/hook",
            "http://[::1]:9000/",
            "https://example.com",
            "https://example.com:443/hook?shop=1",
            "http://example.com/hook",
            "https://not-yet.example/hook",
            "https://93.184.216.34/hook",
            "https://[2606:2800:220:1:248:1893:25c8:1946]/hook",
            "HTTPS://Example.COM/Hook",
            "https://example.com/%7Bhook%7D",
        ] {
            let response = register(&json!(url)).await;
            assert_eq!(
                (response.status, &response.json["url"]),
                (201, &json!(url)),
                "{url}: {}",
                response.json
            );
        }
        let mut accepted = Vec::new();
        for url in [
            // Private, in every notation.
            json!("http://10.0.0.1/"),
            json!("https://10.0.0.1/"),
            json!("http://172.16.0.1/"),
            json!("http://172.31.255.255/"),
            json!("http://192.168.0.1/"),
            json!("http://169.254.169.254/latest/meta-data/"),
            json!("http://100.64.0.1/"),
            json!("http://0.0.0.0/"),
            json!("http://255.255.255.255/"),
            json!("http://224.0.0.1/"),
            json!("http://[fd00::1]/"),
            json!("http://[fe80::1]/"),
            json!("http://[::]/"),
            json!("http://[ff02::1]/"),
            json!("http://[::ffff:10.0.0.1]/"),
            json!("http://[::ffff:a9fe:a9fe]/"),
            json!("http://[64:ff9b::a00:1]/"),
            json!("http://167772161/"),
            json!("http://0x0a000001/"),
            json!("http://012.0.0.1/"),
            json!("http://10.1/"),
            json!("http://192.168.0.1./"),
            json!("http://%31%30.0.0.1/"),
            json!("http://１０.0.0.1/"),
            // Ports other than 80 and 443.
            json!("https://example.com:8443/"),
            json!("http://example.com:25/"),
            json!("https://93.184.216.34:22/"),
            // Credentials, fragments.
            json!("https://user:password@example.com/"),
            json!("https://user@example.com/"),
            json!("https://:password@example.com/"),
            json!("https://example.com/#fragment"),
            json!("https://example.com/hook#"),
            // Not absolute http.
            json!("ftp://example.com/"),
            json!("file:///etc/passwd"),
            json!("javascript:alert(1)"),
            json!("mailto:shop@example.com"),
            json!("/hook"),
            json!("//example.com/hook"),
            json!("example.com/hook"),
            json!("http://"),
            json!("http:///hook"),
            json!("https:/example.com/"),
            json!("http://example.com:99999/"),
            json!("https://exa mple.com/"),
            json!("https://example.com/\r\nX-Injected: 1"),
            json!("https://example.com/\u{0}"),
            json!("not a url"),
            json!(" "),
            json!(""),
            json!(format!("https://example.com/{}", "x".repeat(10_000))),
            // Not a string.
            json!(null),
            json!(1),
            json!(true),
            json!(["https://example.com/"]),
            json!({ "url": "https://example.com/" }),
        ] {
            let response = register(&url).await;
            let shown: String = url.to_string().chars().take(80).collect();
            if (response.status, response.violation_paths()) == (400, vec!["url"]) {
                assert_violations(&response, &["url"]);
            } else {
                accepted.push(format!("{shown}: {} {}", response.status, response.json));
            }
        }
        assert!(accepted.is_empty(), "{accepted:#?}");
    }

    /// As in a text copied from a page. Nothing but such is nothing.
    async fn what_has_no_visible_form_is_dropped_from_the_url_and_the_event(platform: &Platform) {
        let client = platform.client().await;

        let webhook = client
            .create_webhook(
                "\u{2066}delivery.\u{200b}completed\u{2069}",
                "\u{feff}https://exam\u{ad}ple.com/\u{200b}hook\u{202a}?shop=1\u{202c}",
            )
            .await;
        let response = client
            .post(WEBHOOKS, json!({ "event": "\u{200b}", "url": "\u{feff}\u{202a}" }))
            .await;

        assert_eq!(webhook["event"], "delivery.completed");
        assert_eq!(webhook["url"], "https://example.com/hook?shop=1");
        assert_violations(&response, &["event", "url"]);
        let required = |member| json!({ "propertyPath": member, "message": "is required", "code": "required" });
        assert_eq!(response.json["violations"], json!([required("event"), required("url")]));
    }

    /// "Anything else: 400, violation `event`, listing the known ones"; **all** violations at
    /// once; unknown members are ignored.
    async fn an_unknown_event_is_rejected_with_a_list_of_the_known_ones(platform: &Platform) {
        let client = platform.client().await;
        let url = "https://example.com/";
        let documentation = client.get("/api/docs.json").await.expect(200);
        let event_name = &documentation["components"]["schemas"]["EventName"];
        let known = [
            "delivery.completed",
            "delivery.created",
            "delivery.assigned",
            "delivery.started",
            "delivery.picked",
            "delivery.in_transit",
            "delivery.dropped",
            "delivery.failed",
            "delivery.cancelled",
            "delivery.rescheduled",
            "delivery.reopened",
        ];
        assert_eq!(event_name["enum"], json!(known));

        for event in known {
            client.create_webhook(event, url).await;
        }
        for event in [
            // Of CoopCycle, which the platform lacks.
            json!("order.created"),
            json!("Delivery.Completed"),
            json!(" delivery.completed"),
            json!("delivery.*"),
            json!("x".repeat(10_000)),
        ] {
            let response = client
                .post(WEBHOOKS, json!({ "event": event, "url": url }))
                .await;
            assert_violations(&response, &["event"]);
            let message = response.json["violations"][0]["message"].as_str().unwrap();
            for known in known {
                assert!(message.contains(known), "{message}");
            }
        }
        for event in [
            json!(""),
            json!(null),
            json!(1),
            json!(["delivery.completed"]),
        ] {
            let response = client
                .post(WEBHOOKS, json!({ "event": event, "url": url }))
                .await;
            assert_violations(&response, &["event"]);
        }
        for body in [
            json!({}),
            json!({ "event": "x", "url": "y" }),
            json!({ "event": 1, "url": 2 }),
        ] {
            let response = client.post(WEBHOOKS, body).await;
            assert_violations(&response, &["event", "url"]);
        }
        let more = json!({
            "event": "delivery.picked",
            "url": url,
            "secret": "mine",
            "enabled": false,
            "colour": {},
        });
        let webhook = json_ld(&client.post(WEBHOOKS, more).await, 201);
        assert_ne!(webhook["secret"], "mine");
    }
}
