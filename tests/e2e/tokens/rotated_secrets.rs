//! A token is valid no longer than the secret that it was issued for.

use jiff::SignedDuration;

use crate::harness::{Mismatches, Platform, Response};

const HOUR: u32 = 3600;
const SECOND: SignedDuration = SignedDuration::from_secs(1);
const MINUTE: SignedDuration = SignedDuration::from_mins(1);

on_both_databases! {
    /// The clock is not advanced: all tokens are issued in the same second.
    async fn an_overlap_of_0_ends_the_tokens_of_all_replaced_secrets(platform: &Platform) {
        let (operator, first) = (platform.operator().await, &platform.demo_client);
        let of_first = platform.client_for(first, &["deliveries"]).await;
        let second = operator.rotate_secret(first, Some(HOUR)).await;
        let of_second = platform.client_for(&second, &["deliveries"]).await;
        for client in [&of_first, &of_second] {
            assert_eq!(client.get("/api/me").await.status, 200);
        }

        let third = operator.rotate_secret(first, Some(0)).await;

        let of_third = platform.client_for(&third, &["deliveries"]).await;
        assert_eq!(of_third.get("/api/me").await.status, 200);
        for client in [&of_first, &of_second] {
            assert_invalid(&client.get("/api/me").await);
        }
    }

    async fn a_token_is_valid_until_the_overlap_of_its_secret_ends(platform: &Platform) {
        let (operator, old) = (platform.operator().await, &platform.demo_client);
        let before = platform.client_for(old, &["deliveries"]).await;
        let new = operator.rotate_secret(old, Some(90)).await;
        platform.advance(SECOND * 89);
        let during = platform.client_for(old, &["deliveries"]).await;
        let of_new = platform.client_for(&new, &["deliveries"]).await;
        for client in [&before, &during, &of_new] {
            assert_eq!(client.get("/api/me").await.status, 200);
        }

        platform.advance(SECOND);

        assert_invalid(&before.get("/api/me").await);
        assert_eq!(during.get("/api/me").await.status, 401);
        assert_eq!(of_new.get("/api/me").await.status, 200);
    }

    async fn a_token_of_a_replaced_secret_expires_with_it(platform: &Platform) {
        let old = &platform.demo_client;
        platform.operator().await.rotate_secret(old, Some(HOUR + 60)).await;
        let form = [("grant_type", "client_credentials")];

        for (elapsed, expected) in [(0, 3600), (61, 3599), (3598, 1)] {
            platform.advance(SECOND * elapsed);
            let token = platform.anonymous_client().request_token(old, &form).await;
            assert_eq!(token.expect(200)["expires_in"], expected, "{elapsed}");
        }
    }

    async fn the_default_overlap_leaves_tokens_as_they_are(platform: &Platform) {
        let old = &platform.demo_client;
        let client = platform.client_for(old, &["deliveries"]).await;

        platform.operator().await.rotate_secret(old, None).await;

        platform.advance(MINUTE * 59);
        assert_eq!(client.get("/api/me").await.status, 200);
    }
}

/// The other core has cached the token.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_was_ended_on_one_core_ends_its_tokens_on_every_core_within_a_minute() {
    let Some([first, second]) = Platform::start_two().await else {
        return;
    };
    let client = second.client().await;
    assert_eq!(client.get("/api/me").await.status, 200);

    let demo = &second.demo_client;
    first.operator().await.rotate_secret(demo, Some(0)).await;

    second.advance(MINUTE);
    assert_invalid(&client.get("/api/me").await);
    Platform::stop_both([first, second]).await;
}

#[track_caller]
fn assert_invalid(response: &Response) {
    let mut mismatches = Mismatches::default();
    mismatches.check_error("the token", response, 401);
    mismatches.assert_none();
    assert_eq!(response.json["code"], "token_invalid");
    let challenge = response.header("www-authenticate");
    assert!(
        challenge.contains(r#"error="invalid_token""#),
        "{challenge}"
    );
}
