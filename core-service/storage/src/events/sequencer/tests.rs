//! What the sequencer reads while a long snapshot is open.

use std::sync::Arc;

use super::*;
use crate::{Storage, fixture, task_changes};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// How many buffers a statement reads, whose parameters are replaced by these numbers.
async fn buffers(
    transaction: &impl ConnectionTrait,
    statement: &str,
    parameters: &[i64],
) -> Result<i64, Error> {
    let with_values =
        (1..)
            .zip(parameters)
            .fold(statement.to_owned(), |statement, (number, value)| {
                statement.replace(&format!("${number}"), &format!("CAST({value} AS bigint)"))
            });
    let explain = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {with_values}");
    let plan: serde_json::Value = rows::find_value(transaction, &explain, [])
        .await?
        .unwrap_or_default();
    let read = ["Shared Hit Blocks", "Shared Read Blocks"]
        .map(|name| plan[0]["Plan"][name].as_i64().unwrap());
    Ok(read.iter().sum())
}

/// A dump takes hours. What was numbered and moved since it began is still stored, and its entries in the indexes too.
#[tokio::test]
async fn a_long_snapshot_does_not_make_the_sequencer_read_what_it_has_numbered() {
    let Some(storage) = fixture::postgres().await else {
        return;
    };
    let other = Arc::clone(&storage);
    let with_snapshot = other.write(move |transaction| {
        let storage = Arc::clone(&storage);
        async move {
            let begin = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ";
            transaction.execute_unprepared(begin).await?;
            transaction.execute_unprepared("SELECT 1").await?;
            let heads = numbered_in_snapshot(&storage).await?;

            let looking = statement(DbBackend::Postgres);
            let reader = storage.reader();
            for (heads, is_bounded) in [(QueueHeads::BEGINNING, false), (heads, true)] {
                let [event, change] = [heads.event, heads.change].map(|head| head.max(0));
                for (statement, parameters) in [
                    (&*looking, vec![change, event, 0]),
                    (ASSIGN_NUMBERS, vec![0, 1000, event, change]),
                ] {
                    let read = buffers(reader, statement, &parameters).await?;
                    assert_eq!(read < 50, is_bounded, "{read}: {statement}");
                }
            }
            Ok::<_, Error>(())
        }
    });
    with_snapshot.await.unwrap();
}

/// Inserts events and changes, numbers and moves them, and returns the heads of the queues a minute later.
async fn numbered_in_snapshot(storage: &Storage) -> Result<QueueHeads, Error> {
    let insert = "\
        INSERT INTO events (store_id, id, name, object_collection, object_id, created_at)
            SELECT gen_random_uuid(), gen_random_uuid(), 'delivery.picked', 'deliveries',
                gen_random_uuid(), number FROM generate_series(1, 5000) AS number;
        INSERT INTO task_change_queue (store_id, delivery_id)
            SELECT gen_random_uuid(), gen_random_uuid() FROM generate_series(1, 5000)";
    storage.reader().execute_unprepared(insert).await?;
    let mut heads = QueueHeads::BEGINNING;
    let (at, minute) = (Instant::now(), Duration::from_mins(1));
    let found = look(storage.reader(), &mut heads, NOW + minute, at).await?;
    assert!(found.events && found.changes);
    let moved = storage.write(move |transaction| async move {
        task_changes::move_to_log(&transaction, 5000, heads, NOW).await?;
        assign_numbers(&transaction, 5000, heads).await
    });
    assert_eq!(moved.await?, Some(5000));
    let later = look(
        storage.reader(),
        &mut heads,
        NOW + minute * 2,
        at + LATEST_COMMIT * 2,
    );
    let later = later.await?;
    assert!(!later.events && !later.changes);
    assert_eq!((heads.event, heads.change), (45_000_000, 5001));
    // As autovacuum does.
    let analyze = "ANALYZE events, task_change_queue";
    storage.reader().execute_unprepared(analyze).await?;
    Ok(heads)
}

#[test]
fn heads_move_once_the_transactions_of_the_mark_have_ended_and_not_past_what_is_found() {
    let (at, minute) = (Instant::now(), Duration::from_mins(1));
    let nothing = Found {
        change: None,
        event: None,
        last_change: 7,
        oldest_writer: None,
        database_now: 0,
    };
    let something = Found {
        change: Some(3),
        event: Some(4),
        last_change: 9,
        oldest_writer: Some(1),
        database_now: 2,
    };
    // A transaction that began before the mark has not ended.
    let held = Found {
        oldest_writer: Some(0),
        ..nothing
    };
    let mut heads = QueueHeads::BEGINNING.or_beginning(NOW + minute, at);
    let mut moved = Vec::new();
    for (passed, found) in [
        (Duration::ZERO, &nothing),
        (
            LATEST_COMMIT.saturating_sub(Duration::from_millis(1)),
            &nothing,
        ),
        (LATEST_COMMIT, &held),
        (LATEST_COMMIT, &nothing),
        (LATEST_COMMIT * 2, &something),
    ] {
        heads.advance(found, NOW + minute + passed, at + passed);
        moved.push((heads.event, heads.change));
    }

    let beginning = (i64::MIN, i64::MIN);
    assert_eq!(
        moved,
        [beginning, beginning, beginning, (45_000_000, 8), (4, 3)]
    );
    for (now, at, is_beginning) in [
        (NOW + minute * 2, at + minute, false),
        (NOW, at + minute, true),
        (NOW + minute * 2, at + FROM_BEGINNING, true),
    ] {
        let from = heads.or_beginning(now, at);
        assert_eq!(from.event == i64::MIN, is_beginning);
        assert_eq!(from.change == i64::MIN, is_beginning);
    }
    let promoted = Found {
        last_change: 8,
        ..nothing
    };
    heads.advance(&promoted, NOW + minute * 2, at + minute);
    assert_eq!((heads.event, heads.change), beginning);
}
