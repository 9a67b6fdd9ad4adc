//! `delivery keys`: list, rotate and revoke the keys that sign access tokens. A rotation invalidates
//! no token.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::SignedDuration;
use serde_json::{Value, json};

use proto::{WatchEventsRequest, events_client::EventsClient};
use tonic::Code;

use crate::harness::{ApiClient, Platform, grpc::with_token};

const MINUTE: SignedDuration = SignedDuration::from_mins(1);
const SECOND: SignedDuration = SignedDuration::from_secs(1);

on_both_databases! {
    async fn keys_are_rotated_and_listed(platform: &Platform) {
        let first = platform.run_delivery_json(&["keys", "list"]).await;
        let old = first[0]["id"].clone();
        let signing = json!({
            "id": old,
            "state": "signing",
            "created_at": "2020-04-02T09:00:00+00:00",
            "signs_from": "2020-04-02T09:00:00+00:00",
            "accepted_until": null,
        });
        assert_eq!(first, json!([signing]));

        platform.advance(MINUTE);
        let rotated = platform.run_delivery_json(&["keys", "rotate"]).await;
        let published = json!({
            "id": rotated["id"],
            "state": "published",
            "created_at": "2020-04-02T09:01:00+00:00",
            "signs_from": "2020-04-02T09:02:00+00:00",
            "accepted_until": null,
        });
        assert_eq!(rotated, published);
        let mut signing = signing;
        // A minute until the new key signs, half a minute in which a core may still have cached
        // the old one as the signing key, and the longest lifetime of a token.
        signing["accepted_until"] = "2020-04-03T09:02:30+00:00".into();
        assert_eq!(platform.run_delivery_json(&["keys", "list"]).await, json!([published, signing]));

        platform.advance(MINUTE);
        assert_eq!(
            platform.run_delivery(&["keys", "list"]).await,
            format!(
                "id                                           state    created                    signs from                 accepted until\n\
                 {}  signing  2020-04-02T09:01:00+00:00  2020-04-02T09:02:00+00:00\n\
                 {}  retired  2020-04-02T09:00:00+00:00  2020-04-02T09:00:00+00:00  2020-04-03T09:02:30+00:00\n",
                rotated["id"].as_str().unwrap(),
                old.as_str().unwrap(),
            )
        );
        let printed = platform.run_delivery(&["keys", "rotate"]).await;
        let (id, rest) = printed.split_once('\n').unwrap();
        assert!(id.starts_with("id          "));
        assert_eq!(
            rest,
            "state       published\n\
             created     2020-04-02T09:02:00+00:00\n\
             signs from  2020-04-02T09:03:00+00:00\n"
        );
    }

    async fn a_token_signed_by_the_old_key_is_valid_until_it_expires(platform: &Platform) {
        let before = platform.client().await;
        platform.advance(SECOND);
        let rotated = platform.run_delivery_json(&["keys", "rotate"]).await;
        let new = rotated["id"].clone();
        let old = kid(&before);
        assert_ne!(old, new);
        assert_eq!(public_keys(&platform.anonymous_client()).await, [new.clone(), old.clone()]);

        // The old key signs until every verifier can have fetched the new one.
        platform.advance(MINUTE - SECOND);
        assert_eq!(kid(&platform.client().await), old);
        platform.advance(SECOND);
        let after = platform.client().await;
        assert_eq!(kid(&after), new);
        assert_eq!(after.get("/api/me").await.status, 200);

        let rest = SignedDuration::from_hours(1) - MINUTE - SECOND;
        platform.advance(rest - SECOND);
        assert_eq!(before.get("/api/me").await.status, 200);
        platform.advance(SECOND);
        assert_eq!(before.get("/api/me").await.status, 401);
    }

    async fn a_revoked_key_ends_its_tokens_and_streams_and_no_others(platform: &Platform) {
        let (channel, token) = platform.connect(&["tasks:all"]).await;
        let requests = with_token(&token, WatchEventsRequest::default());
        let mut events = EventsClient::new(channel).watch_events(requests).await.unwrap().into_inner();
        // Its position.
        events.message().await.unwrap();
        let of_first = platform.client().await;
        platform.advance(SECOND);
        let second = platform.run_delivery_json(&["keys", "rotate"]).await["id"].take();
        platform.advance(MINUTE);
        let of_second = platform.client().await;
        let first = kid(&of_first);

        let left = platform.run_delivery_json(&["keys", "revoke", text(&first)]).await;

        assert_eq!(ids(&left), std::slice::from_ref(&second));
        assert_eq!(left[0]["state"], "signing");
        assert_eq!(of_first.get("/api/me").await.status, 401);
        assert_eq!(of_second.get("/api/me").await.status, 200);
        assert_eq!(public_keys(&platform.anonymous_client()).await, [second]);
        let ended = tokio::time::timeout(std::time::Duration::from_secs(10), events.message()).await;
        assert_eq!(ended.unwrap().unwrap_err().code(), Code::Unauthenticated);
    }

    async fn a_revoked_signing_key_is_replaced_by_one_that_signs(platform: &Platform) {
        let first = platform.client().await;
        platform.advance(SECOND);

        let left = platform.run_delivery_json(&["keys", "revoke", text(&kid(&first))]).await;

        // The only key signs at once.
        assert_eq!((ids(&left).len(), &left[0]["state"]), (1, &json!("signing")));
        assert_ne!(left[0]["id"], kid(&first));
        assert_eq!(first.get("/api/me").await.status, 401);
        let second = platform.client().await;
        assert_eq!((kid(&second), second.get("/api/me").await.status), (left[0]["id"].clone(), 200));
    }

    async fn revoking_all_keys_ends_all_tokens_issued_before(platform: &Platform) {
        let of_first = platform.client().await;
        platform.run_delivery_json(&["keys", "rotate"]).await;
        platform.advance(MINUTE);
        let of_second = platform.client().await;

        let left = platform.run_delivery_json(&["keys", "revoke", "--all"]).await;

        assert_eq!((ids(&left).len(), &left[0]["state"]), (1, &json!("signing")));
        for ended in [&of_first, &of_second] {
            assert_eq!(ended.get("/api/me").await.status, 401);
        }
        assert_eq!(kid(&platform.client().await), left[0]["id"]);
    }

    async fn a_key_without_valid_tokens_is_removed(platform: &Platform) {
        platform.advance(SECOND);
        let first = platform.run_delivery_json(&["keys", "rotate"]).await;
        platform.advance(MINUTE + SignedDuration::from_secs(30) + SignedDuration::from_hours(24));

        let listed = platform.run_delivery_json(&["keys", "list"]).await;
        assert_eq!(listed.as_array().unwrap().len(), 1);
        assert_eq!(listed[0]["id"], first["id"]);
        assert_eq!(public_keys(&platform.anonymous_client()).await, [first["id"].clone()]);

        let second = platform.run_delivery_json(&["keys", "rotate"]).await;
        let listed = platform.run_delivery_json(&["keys", "list"]).await;
        assert_eq!(listed.as_array().unwrap().len(), 2);
        assert_eq!((&listed[0]["id"], &listed[1]["id"]), (&second["id"], &first["id"]));
    }
}

/// A token of one core is valid on both, before and after the new key starts to sign.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_rotated_on_one_core_is_used_by_every_core_and_no_token_is_rejected() {
    let Some([first, second]) = Platform::start_two().await else {
        return;
    };
    first.advance(SECOND);
    let rotated = first.run_delivery_json(&["keys", "rotate"]).await["id"].take();

    for (later, signed_by_new) in [(SignedDuration::ZERO, false), (MINUTE, true)] {
        first.advance(later);
        for [signer, verifier] in [[&first, &second], [&second, &first]] {
            let issued = signer.client().await;
            assert_eq!(kid(&issued) == rotated, signed_by_new);
            for platform in [signer, verifier] {
                let client = platform.anonymous_client().with_token(issued.token());
                assert_eq!(client.get("/api/me").await.status, 200);
            }
        }
    }
    Platform::stop_both([first, second]).await;
}

/// A key that is revoked on one core is accepted by no other after 90 s.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_revoked_on_one_core_ends_its_tokens_on_every_core() {
    let Some([first, second]) = Platform::start_two().await else {
        return;
    };
    let client = second.client().await;
    assert_eq!(client.get("/api/me").await.status, 200);
    first.run_delivery_json(&["keys", "revoke", "--all"]).await;

    first.advance(SignedDuration::from_secs(90));

    assert_eq!(client.get("/api/me").await.status, 401);
    assert_eq!(second.client().await.get("/api/me").await.status, 200);
    Platform::stop_both([first, second]).await;
}

fn ids(keys: &Value) -> Vec<Value> {
    keys.as_array()
        .unwrap()
        .iter()
        .map(|key| key["id"].clone())
        .collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// The id of the key that signed a client's token.
fn kid(client: &ApiClient) -> Value {
    let header = client.token().split('.').next().unwrap();
    let header: Value =
        serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(header).unwrap()).unwrap();
    header["kid"].clone()
}

/// The ids of the public keys, in every state.
async fn public_keys(client: &ApiClient) -> Vec<Value> {
    let response = client.get("/oauth2/jwks").await;
    // A cached copy must expire before a newly published key starts to sign.
    assert_eq!(response.header("cache-control"), "public, max-age=30");
    let jwks = response.expect(200);
    let keys = jwks["keys"].as_array().unwrap();
    keys.iter().map(|key| key["kid"].clone()).collect()
}
