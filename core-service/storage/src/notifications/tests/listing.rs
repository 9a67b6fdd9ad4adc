//! Lists of failed notifications don't read the delivered ones.

use domain::notification_state::State;
use sea_orm::{ConnectionTrait as _, DbBackend, QueryTrait as _};

use super::*;

use crate::{
    pages::{Cursor, Start},
    webhook_notifications::page_query,
};

#[tokio::test]
async fn failed_notifications_are_found_by_their_partial_index() {
    let (store, webhook_id) = TestStore::with_a_webhook().await;
    let cursor = Cursor {
        created_at: NOW,
        id: Uuid::nil(),
    };
    for start in [
        Start::Newest,
        Start::OlderThan(cursor),
        Start::NewerThan(cursor),
    ] {
        for (states, uses_partial_index) in [
            (&[State::Failed][..], true),
            (&[State::Exhausted], true),
            (&[State::Cancelled], true),
            (&[State::Failed, State::Exhausted, State::Cancelled], true),
            (&[State::Failed, State::Delivered], false),
            (&[], false),
        ] {
            let mut statement =
                page_query(store.key(webhook_id), states, start).build(DbBackend::Sqlite);
            statement.sql = format!("EXPLAIN QUERY PLAN {}", statement.sql);

            let plan = store.storage.reader().query_all_raw(statement).await;

            let steps: Vec<String> = plan
                .unwrap()
                .iter()
                .map(|step| step.try_get("", "detail").unwrap())
                .collect();
            let [step] = &steps[..] else {
                panic!("{states:?} {start:?}: {steps:?}");
            };
            let index = if uses_partial_index {
                "USING INDEX notifications_failed "
            } else {
                "USING INDEX notifications_by_creation "
            };
            assert!(step.contains(index), "{states:?} {start:?}: {step}");
        }
    }
}

#[tokio::test]
async fn notifications_are_filtered_by_state() {
    let (store, webhook_id) = TestStore::with_a_webhook().await;
    let found = async |states: &[State]| {
        let page = page_query(store.key(webhook_id), states, Start::Newest);
        page.all(store.storage.reader()).await.unwrap().len()
    };
    store.make_healthy(NOW).await;
    store.complete(2, NOW).await;
    let leased = store.claim(NOW).await;
    store.report_all(&leased[..1], &server_error(), NOW).await;
    for (states, count) in [
        (&[][..], 3),
        (&[State::Delivered], 1),
        (&[State::Failed], 1),
        (&[State::Pending], 1),
        (&[State::Pending, State::Failed], 2),
        (&[State::Exhausted, State::Cancelled], 0),
    ] {
        assert_eq!(found(states).await, count, "{states:?}");
    }

    store.set_enabled(webhook_id, false, NOW).await;

    assert_eq!(found(&[State::Failed]).await, 0);
    assert_eq!(
        found(&[State::Cancelled]).await,
        2,
        "one of them without an attempt"
    );
}
