//! Lists of notifications read little more than they show, also of a webhook with many in another state.

use domain::notification::State;
use sea_orm::{ConnectionTrait as _, DbBackend, QueryTrait as _};

use super::*;

use crate::{
    pages::{Cursor, Start},
    webhook_notifications::{self, page_queries},
};

#[tokio::test]
async fn notifications_are_found_by_the_index_of_their_state() {
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
        for state in State::ALL {
            let queries = page_queries(store.key(webhook_id), &[state, state], start);
            let [query] = &queries[..] else {
                panic!("{state:?}: {} queries", queries.len());
            };
            let mut statement = query.build(DbBackend::Sqlite);
            statement.sql = format!("EXPLAIN QUERY PLAN {}", statement.sql);

            let plan = store.storage.reader().query_all_raw(statement).await;

            let steps: Vec<String> = plan
                .unwrap()
                .iter()
                .map(|step| step.try_get("", "detail").unwrap())
                .collect();
            let [step] = &steps[..] else {
                panic!("{state:?} {start:?}: {steps:?}");
            };
            let index = if state == State::Delivered {
                "USING INDEX notifications_by_creation (store_id=? AND webhook_id=?"
            } else {
                "USING INDEX notifications_by_state (store_id=? AND webhook_id=? AND <expr>=?"
            };
            assert!(step.contains(index), "{state:?} {start:?}: {step}");
        }
    }
}

#[tokio::test]
async fn a_page_of_a_state_reads_none_of_a_long_backlog_in_another() {
    let Some(store) = TestStore::on_postgres().await else {
        return;
    };
    let webhook_id = store.add_webhook().await;
    let reader = store.storage.reader();
    let insert = format!(
        "INSERT INTO notifications (store_id, id, event_id, webhook_id, event, delivery_id, state, attempts, due_at,
            created_at)
        SELECT '{}', gen_random_uuid(), gen_random_uuid(), '{}', '', gen_random_uuid(),
            CASE WHEN number <= 20000 THEN 'pending' ELSE 'delivered' END, number % 2, 0, number
        FROM generate_series(1, 40000) AS number",
        store.key(webhook_id).store_id.0,
        webhook_id.0
    );
    reader.execute_unprepared(&insert).await.unwrap();
    reader
        .execute_unprepared("ANALYZE notifications")
        .await
        .unwrap();
    for (state, rows) in [
        (State::Pending, 31),
        (State::Failed, 31),
        (State::Exhausted, 0),
        (State::Cancelled, 0),
    ] {
        let queries = page_queries(store.key(webhook_id), &[state], Start::Newest);
        let mut statement = queries[0].clone().limit(31).build(DbBackend::Postgres);
        statement.sql = format!("EXPLAIN (ANALYZE, BUFFERS) {}", statement.sql);

        let plan = reader.query_all_raw(statement).await.unwrap();

        let lines = plan
            .iter()
            .map(|line| line.try_get_by_index::<String>(0).unwrap());
        let plan = lines.collect::<Vec<_>>().join("\n");
        assert!(
            plan.contains("using notifications_by_state"),
            "{state:?}: {plan}"
        );
        assert!(
            plan.contains(&format!("rows={rows} loops=1")),
            "{state:?}: {plan}"
        );
        assert!(
            !plan.contains("Rows Removed") && !plan.contains("Sort"),
            "{state:?}: {plan}"
        );
    }
}

#[tokio::test]
async fn notifications_are_filtered_by_state() {
    let (store, webhook_id) = TestStore::with_a_webhook().await;
    let found = async |states: &[State]| {
        let (reader, key) = (store.storage.reader(), store.key(webhook_id));
        let page = webhook_notifications::read(reader, key, states, Start::Newest, 10);
        page.await.unwrap().0.len()
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
        (&[State::Failed, State::Delivered, State::Failed], 2),
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
