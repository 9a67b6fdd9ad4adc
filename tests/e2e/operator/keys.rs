//! `delivery keys`: a new key takes over, and nobody's token is refused meanwhile.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::harness::{ApiClient, Platform, Twin};

const MINUTE: SignedDuration = SignedDuration::from_mins(1);
const SECOND: SignedDuration = SignedDuration::from_secs(1);

on_both_databases! {
    async fn keys_are_rotated_and_listed(platform: &Platform) {
        let first = platform.delivery_json(&["keys", "list"]).await;
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
        let made = platform.delivery_json(&["keys", "rotate"]).await;
        let published = json!({
            "id": made["id"],
            "state": "published",
            "created_at": "2020-04-02T09:01:00+00:00",
            "signs_from": "2020-04-02T09:02:00+00:00",
            "accepted_until": null,
        });
        assert_eq!(made, published);
        let mut signing = signing;
        // A minute until the new key signs, half a minute for a core that does not know it, and
        // the longest life of a token.
        signing["accepted_until"] = "2020-04-03T09:02:30+00:00".into();
        assert_eq!(platform.delivery_json(&["keys", "list"]).await, json!([published, signing]));

        platform.advance(MINUTE);
        assert_eq!(
            platform.delivery(&["keys", "list"]).await,
            format!(
                "id                                           state    created                    signs from                 accepted until\n\
                 {}  signing  2020-04-02T09:01:00+00:00  2020-04-02T09:02:00+00:00\n\
                 {}  retired  2020-04-02T09:00:00+00:00  2020-04-02T09:00:00+00:00  2020-04-03T09:02:30+00:00\n",
                made["id"].as_str().unwrap(),
                old.as_str().unwrap(),
            )
        );
        let printed = platform.delivery(&["keys", "rotate"]).await;
        let (id, rest) = printed.split_once('\n').unwrap();
        assert!(id.starts_with("id          "));
        assert_eq!(
            rest,
            "state       published\n\
             created     2020-04-02T09:02:00+00:00\n\
             signs from  2020-04-02T09:03:00+00:00\n"
        );
    }

    async fn what_the_old_key_signed_stays_good_until_it_expires(platform: &Platform) {
        let before = platform.client().await;
        platform.advance(SECOND);
        let rotated = platform.delivery_json(&["keys", "rotate"]).await;
        let new = rotated["id"].clone();
        let old = kid(&before);
        assert_ne!(old, new);
        assert_eq!(published(&platform.stranger()).await, [new.clone(), old.clone()]);

        // Until everybody can know the new key, the old one signs.
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

    async fn a_key_that_no_good_token_is_signed_with_is_forgotten(platform: &Platform) {
        platform.advance(SECOND);
        let first = platform.delivery_json(&["keys", "rotate"]).await;
        platform.advance(MINUTE + SignedDuration::from_secs(30) + SignedDuration::from_hours(24));

        let listed = platform.delivery_json(&["keys", "list"]).await;
        assert_eq!(listed.as_array().unwrap().len(), 1);
        assert_eq!(listed[0]["id"], first["id"]);
        assert_eq!(published(&platform.stranger()).await, [first["id"].clone()]);

        let second = platform.delivery_json(&["keys", "rotate"]).await;
        let listed = platform.delivery_json(&["keys", "list"]).await;
        assert_eq!(listed.as_array().unwrap().len(), 2);
        assert_eq!((&listed[0]["id"], &listed[1]["id"]), (&second["id"], &first["id"]));
    }
}

/// Whichever core signs and whichever judges, before, during and after a rotation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_rotated_at_one_core_is_in_use_at_every_core_and_no_token_is_refused() {
    let Some([first, second]) = Twin::start_two().await else {
        return;
    };
    first.advance(SECOND);
    let rotated = first.rotate_signing_key().await;

    for (later, signed_by_new) in [(SignedDuration::ZERO, false), (MINUTE, true)] {
        first.advance(later);
        for [signer, judge] in [[&first, &second], [&second, &first]] {
            let token = signer.client().await;
            assert_eq!(kid(&token) == rotated, signed_by_new);
            for twin in [signer, judge] {
                let client = twin.stranger().with_token(token.token());
                assert_eq!(client.get("/api/me").await.status, 200);
            }
        }
    }
    first.stop().await;
    second.stop().await;
}

/// The id of the key that signed a client's token.
fn kid(client: &ApiClient) -> Value {
    let header = client.token().split('.').next().unwrap();
    let header: Value =
        serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(header).unwrap()).unwrap();
    header["kid"].clone()
}

/// The ids of the keys that are public.
async fn published(client: &ApiClient) -> Vec<Value> {
    let answer = client.get("/oauth2/jwks").await;
    // A copy that may be kept longer than a new key is public before it signs would not know it.
    assert_eq!(answer.header("cache-control"), "public, max-age=30");
    let jwks = answer.expect(200);
    let keys = jwks["keys"].as_array().unwrap();
    keys.iter().map(|key| key["kid"].clone()).collect()
}
