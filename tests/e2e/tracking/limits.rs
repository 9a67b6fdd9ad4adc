//! Rate limits of tracking pages: by link, and by the address of the reader.

use delivery::{RateLimitConfig, Settings};
use proto::{GetTrackingRequest, tracking_client::TrackingClient};
use serde_json::Value;
use tonic::{Code, Request, Status, transport::Endpoint};

use super::{draft, path, status};
use crate::harness::{Database, Platform};

async fn start(database: Database, limit: impl FnOnce(&mut RateLimitConfig)) -> Platform {
    Platform::start_with(database, |settings: &mut Settings| {
        let mut limits = RateLimitConfig::off();
        limit(&mut limits);
        settings.rate_limits = Some(limits);
    })
    .await
}

/// The paths of the pages of two new deliveries.
async fn pages(platform: &Platform) -> [String; 2] {
    let client = platform.client().await;
    let first = client.create_delivery(draft()).await;
    let mut draft = draft();
    draft["externalReference"] = Value::Null;
    let second = client.create_delivery(draft).await;
    [first, second].map(|delivery| path(platform, &delivery))
}

/// Calls core as a program without a token does.
async fn call(platform: &Platform, token: &str) -> Result<(), Status> {
    let endpoint = Endpoint::from_shared(platform.core_url.clone()).unwrap();
    let mut core = TrackingClient::new(endpoint.connect().await.unwrap());
    let token = token.to_owned();
    let request = Request::new(GetTrackingRequest { token });
    core.get_tracking(request).await.map(|_| ())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_has_a_limit_that_other_links_and_guesses_do_not_use() {
    for database in Database::each() {
        let platform = start(database, |limits| limits.client = "20/1d".parse().unwrap()).await;
        let pages = pages(&platform).await;
        let [first, second] = pages.each_ref().map(|path| &path["/t/".len()..]);
        let guess = format!("{}{}", &first[..22], &second[22..]);

        for _ in 0..25 {
            let guessed = call(&platform, &guess).await.unwrap_err();
            let expected = [Code::NotFound, Code::ResourceExhausted];
            assert!(expected.contains(&guessed.code()), "{guessed:?}");
        }
        for _ in 0..20 {
            call(&platform, first).await.unwrap();
        }

        let limited = call(&platform, first).await.unwrap_err();
        assert_eq!(limited.code(), Code::ResourceExhausted);
        call(&platform, second).await.unwrap();
        platform.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_has_a_limit_over_all_links_at_the_gateway_and_at_core() {
    for database in Database::each() {
        let limit = |limits: &mut RateLimitConfig| {
            limits.tracking_address = "3/1d".parse().unwrap();
        };
        let platform = start(database, limit).await;
        let pages = pages(&platform).await;

        let mut statuses = Vec::new();
        for page in pages.iter().cycle().take(4) {
            statuses.push(status(&platform, page).await);
        }
        let mut codes = Vec::new();
        for page in pages.iter().cycle().take(4) {
            let called = call(&platform, &page["/t/".len()..]).await;
            codes.push(called.err().map(|status| status.code()));
        }

        assert_eq!(statuses, [200, 200, 200, 429]);
        assert_eq!(codes, [None, None, None, Some(Code::ResourceExhausted)]);
        platform.stop().await;
    }
}
