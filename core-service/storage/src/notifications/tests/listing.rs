//! What a webhook's owner looks for is found without reading everything that was delivered.

use domain::notification_state::State;
use sea_orm::{ConnectionTrait as _, DbBackend, QueryTrait as _};

use super::*;

use crate::{
    pages::{Place, Start},
    webhook_notifications::page,
};

#[tokio::test]
async fn what_failed_is_found_by_an_index_that_holds_nothing_else() {
    let (shop, webhook_id) = Shop::with_a_webhook().await;
    let place = Place {
        created_at: NOW,
        id: Uuid::nil(),
    };
    for start in [
        Start::Newest,
        Start::OlderThan(place),
        Start::NewerThan(place),
    ] {
        for (states, is_found_by_it) in [
            (&[State::Failed][..], true),
            (&[State::GivenUp], true),
            (&[State::Dropped], true),
            (&[State::Failed, State::GivenUp, State::Dropped], true),
            (&[State::Failed, State::Delivered], false),
            (&[], false),
        ] {
            let mut statement =
                page((shop.store_id, webhook_id), states, start).build(DbBackend::Sqlite);
            statement.sql = format!("EXPLAIN QUERY PLAN {}", statement.sql);

            let plan = shop.storage.reader().query_all_raw(statement).await;

            let steps: Vec<String> = plan
                .unwrap()
                .iter()
                .map(|step| step.try_get("", "detail").unwrap())
                .collect();
            let [step] = &steps[..] else {
                panic!("{states:?} {start:?}: {steps:?}");
            };
            let index = if is_found_by_it {
                "USING INDEX notifications_failed "
            } else {
                "USING INDEX notifications_by_creation "
            };
            assert!(step.contains(index), "{states:?} {start:?}: {step}");
        }
    }
}

#[tokio::test]
async fn each_is_found_in_the_state_it_is_in() {
    let (shop, webhook_id) = Shop::with_a_webhook().await;
    let found = async |states: &[State]| {
        let page = page((shop.store_id, webhook_id), states, Start::Newest);
        page.all(shop.storage.reader()).await.unwrap().len()
    };
    shop.has_answered(NOW).await;
    shop.complete(2, NOW).await;
    let held = shop.claim(NOW).await;
    shop.report_all(&held[..1], &refused(), NOW).await;
    for (states, count) in [
        (&[][..], 3),
        (&[State::Delivered], 1),
        (&[State::Failed], 1),
        (&[State::Pending], 1),
        (&[State::Pending, State::Failed], 2),
        (&[State::GivenUp, State::Dropped], 0),
    ] {
        assert_eq!(found(states).await, count, "{states:?}");
    }

    shop.set_enabled(webhook_id, false, NOW).await;

    assert_eq!(found(&[State::Failed]).await, 0);
    assert_eq!(found(&[State::Dropped]).await, 2, "one of them never tried");
}
