//! The rule that each statement on a store's rows names the store. Over PostgreSQL, every test
//! checks the statements of its platform when it stops it (`harness::statements`).

use std::{
    collections::BTreeSet, fs::Permissions, os::unix::fs::PermissionsExt as _, process::Command,
    sync::LazyLock, time::Duration,
};

use jiff::SignedDuration;

use crate::harness::{
    Database, Platform, UNKNOWN_ID, WebhookReceiver, deliver,
    plans::{self, FullScan, full_scans},
    raw, reserve_addr, run_sql,
    statements::{CHECKED_FILE, EXCEPTIONS, TABLES, executed},
    store_rule::{Tables, uses},
};

/// Tests that use all exceptions and all tables.
const COVERING_TESTS: [&str; 29] = [
    "all_stores::listing::deliveries_of_all_stores_are_listed_in_pages_the_latest_dropoff_first::postgres",
    "all_stores::searching::deliveries_are_found_by_what_people_know_of_them::postgres",
    "couriers::effects::a_rescheduled_task_is_unassigned::postgres",
    "couriers::images::an_image_loses_its_metadata_and_is_read_by_all_who_read_the_task::postgres",
    "couriers::incidents::listing::incidents_of_all_stores_are_listed_newest_first::postgres",
    "couriers::late::conflicts::each_courier_command_and_state_has_a_conflict_of_its_own::postgres",
    "couriers::listing::a_day_is_filtered_by_courier_and_by_state::postgres",
    "couriers::lists::a_whole_day_is_moved_to_another_courier_and_back::postgres",
    "couriers::watching_lists::a_rescheduled_task_leaves_the_list_of_its_day::postgres",
    "deliveries::quota::a_store_creates_as_many_bytes_of_deliveries_in_24_hours_as_its_quota",
    "events::listing::an_expired_number_is_410_and_never_a_silent_gap::postgres",
    "events::watching::a_client_watches_all_stores_and_resumes_at_a_position::postgres",
    "lifecycle::listing::the_tasks_of_a_day_are_listed_with_their_stores_and_other_tasks::postgres",
    "operator::master_keys::nothing_needs_the_old_master_key_after_a_rotation::postgres",
    "operator::webhooks::an_operator_inspects_and_repairs_a_stores_webhooks::postgres",
    "personal_data::a_delivery_is_erased_after_its_retention_on_postgres",
    "personal_data::a_removed_delivery_is_404_and_in_no_list_on_postgres",
    "personal_data::every_delivery_for_a_telephone_number_is_erased::postgres",
    "personal_data::erasing_a_delivery_leaves_no_personal_data_and_keeps_the_rest::postgres",
    "retail_prices::quotes::a_quote_is_used_once::postgres",
    "statements::a_notification_is_sent_again_after_its_lease_has_expired",
    "statements::an_idempotency_key_is_removed_once_it_has_expired",
    "statements::the_metrics_of_a_platform_are_read",
    "tasks::a_dispatch_board_reads_any_task_but_no_delivery_and_invalid_completions_are_rejected::postgres",
    "time_slots::capacity::a_slot_accepts_as_many_deliveries_as_its_capacity::postgres",
    "tracking::brand::a_page_shows_the_logo_and_the_colour_of_its_shop_alone::postgres",
    "webhooks::history::a_shop_recovers_failed_and_missed_notifications::postgres",
    "webhooks::retrying::a_notification_that_fails_every_attempt_is_exhausted_and_stays_visible::postgres",
    "webhooks::settings::a_sent_event_is_not_recovered_once_its_notification_is_removed",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_metrics_of_a_platform_are_read() {
    let Some(database) = Database::postgres() else {
        return;
    };
    let addr = reserve_addr();
    let platform = Platform::start_with(database, |settings| settings.health_listen = Some(addr));
    let platform = platform.await;
    raw::metrics(addr).await;
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idempotency_key_is_removed_once_it_has_expired() {
    let Some((platform, url)) = Platform::start_on_postgres().await else {
        return;
    };
    let id = UNKNOWN_ID;
    let insert = format!(
        "INSERT INTO idempotency_keys VALUES ('{id}', '{id}', '', '', '', 0) RETURNING created_at"
    );
    assert_eq!(run_sql(&url, &insert).await, "0\n");

    // It looks again when the clock changes.
    platform.advance(SignedDuration::from_secs(1));

    let removed = async {
        while !run_sql(&url, "SELECT 1 FROM idempotency_keys")
            .await
            .is_empty()
        {}
    };
    let removed = tokio::time::timeout(Duration::from_secs(30), removed).await;
    removed.expect("the key should be removed");
    platform.stop().await;
}

/// An unproven webhook has one attempt at its host at a time: the expiry also frees the host.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notification_is_sent_again_after_its_lease_has_expired() {
    let Some((platform, url)) = Platform::start_on_postgres().await else {
        return;
    };
    let client = platform.client().await;
    let receiver = WebhookReceiver::start().await;
    receiver.hold_responses(true);
    client
        .create_webhook("delivery.completed", receiver.url())
        .await;
    deliver(&client, &platform.courier().await).await;
    let first_attempt = receiver.next_notification().await;
    let expire = "UPDATE notifications SET lease_expires_at = 0 WHERE state = 'leased'";
    run_sql(&url, expire).await;

    let second_attempt = receiver.next_notification().await;

    assert_eq!(
        second_attempt.header("webhook-id"),
        first_attempt.header("webhook-id")
    );
    receiver.hold_responses(false);
    platform.stop().await;
}

/// Otherwise a completion would take one more round trip.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_history_of_a_task_is_inserted_by_the_statement_of_its_change() {
    let Some((platform, url)) = Platform::start_on_postgres().await else {
        return;
    };
    deliver(&platform.client().await, &platform.courier().await).await;

    let mut executed = executed(&url).await;
    executed.retain(|statement| statement.contains(r#"INSERT INTO "task_events""#));
    assert!(!executed.is_empty());
    for statement in executed {
        assert!(statement.contains(r#"UPDATE "tasks""#), "{statement}");
    }
    platform.stop().await;
}

/// What the covering tests write into files.
struct Recorded {
    /// As `harness::statements` describes.
    checked: String,
    /// The log of PostgreSQL, with plans.
    log: String,
}

/// The tests run in a process of their own.
static RECORDED: LazyLock<Recorded> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    // PostgreSQL does not run as root, but writes a file there.
    std::fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
    let files = ["checked", "log"].map(|name| directory.path().join(name));
    std::fs::write(&files[0], "").unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .arg("--exact")
        .args(COVERING_TESTS)
        .env(CHECKED_FILE, &files[0])
        .env(plans::FILE, &files[1])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let passed = format!("{} passed; 0 failed", COVERING_TESTS.len());
    assert!(printed.contains(&passed), "{printed}");
    let [checked, log] = files.map(|file| std::fs::read_to_string(file).unwrap());
    Recorded { checked, log }
});

/// Statements that may read all of a table, and the table. Core executes the first two every minute,
/// the next two at its start and after the rotation of a master key, the last when it erases an address.
const PERMITTED_FULL_SCANS: [(&str, &str); 5] = [
    (
        "receiver_hosts",
        r#"DELETE FROM "receiver_hosts" WHERE "receiver_hosts"."failed_at" < $"#,
    ),
    (
        "webhooks",
        r#"FROM "webhooks" WHERE "webhooks"."disabled_at" IS NOT NULL AND (SELECT MIN("#,
    ),
    (
        "webhooks",
        "SELECT DISTINCT substr(encrypted_retired_secrets,",
    ),
    ("webhooks", "SELECT DISTINCT substr(encrypted_secret,"),
    (
        "geocodes",
        "DELETE FROM geocodes WHERE key IN (SELECT key FROM geocodes LIMIT $",
    ),
];

/// What a statement costs must not grow with the platform.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_statement_finds_its_rows_by_an_index() {
    let Some((platform, url)) = Platform::start_on_postgres().await else {
        return;
    };
    let select = "SELECT indexrelid::regclass, attname FROM pg_index JOIN pg_attribute
        ON attrelid = indrelid AND attnum = indkey[0] WHERE indpred IS NULL";
    let indexes = run_sql(&url, select).await;
    let indexes = indexes.lines().map(|line| {
        let (index, first_column) = line.split_once('|').unwrap();
        (index.to_owned(), first_column.to_owned())
    });
    let indexes = indexes.collect();
    platform.stop().await;
    let growing = ["stores", "api_clients", "geocodes"].map(str::to_owned);
    let tables = TABLES.distributed.iter().cloned().chain(growing).collect();

    let found = full_scans(&RECORDED.log, &tables, &indexes);

    let is_expected = |scan: &FullScan, (table, text): &(&str, &str)| {
        scan.table == *table && scan.statement.contains(text)
    };
    let unexpected: Vec<_> = found
        .iter()
        .filter(|scan| {
            !PERMITTED_FULL_SCANS
                .iter()
                .any(|expected| is_expected(scan, expected))
        })
        .collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
    for expected in &PERMITTED_FULL_SCANS {
        assert!(
            found.iter().any(|scan| is_expected(scan, expected)),
            "{expected:?}"
        );
    }
}

#[test]
fn every_exception_is_needed_and_every_table_is_checked() {
    if Database::postgres().is_none() {
        return;
    }
    let checked = &RECORDED.checked;
    let checked: BTreeSet<_> = checked.lines().collect();
    let patterns = EXCEPTIONS.iter().flat_map(|(_, patterns)| *patterns);
    let patterns = patterns.flat_map(|(verbs, pattern)| {
        let verbs = verbs.iter();
        verbs.map(move |verb| format!("{verb} {pattern}"))
    });
    let tables = TABLES.distributed.iter();
    let of_tables =
        tables.flat_map(|table| ["SELECT", "INSERT"].map(|verb| format!("{verb} {table}")));
    let unused: Vec<_> = patterns
        .chain(of_tables)
        .filter(|expected| !checked.contains(&**expected))
        .collect();
    assert_eq!(unused, [""; 0]);
}

#[test]
fn the_documentation_lists_the_exceptions() {
    let page = include_str!("../../docs/postgresql.md");
    let (_, list) = page.split_once("These statements name no store").unwrap();
    let list = list.split("\n\n").nth(1).unwrap();
    let items = list.trim_start_matches("- ").split("\n- ");
    let items = items.map(|item| {
        item.replace("\n  ", " ")
            .trim_end_matches([';', '.'])
            .to_owned()
    });
    let items: Vec<_> = items.collect();
    assert_eq!(items, EXCEPTIONS.map(|(item, _)| item));
}

#[test]
#[expect(clippy::too_many_lines, reason = "they are a list")]
fn a_statement_names_the_store_of_each_table() {
    let tables = Tables {
        distributed: ["tasks", "deliveries", "events"].map(str::to_owned).into(),
        reference: ["stores", "api_clients"].map(str::to_owned).into(),
    };
    for (sql, expected) in [
        ("SELECT 1 FROM tasks WHERE id = $1", false),
        ("SELECT 1 FROM tasks WHERE store_id = $1 AND id = $2", true),
        ("SELECT 1 FROM tasks WHERE store_id > $1", false),
        ("SELECT 1 FROM tasks WHERE store_id = $1 OR id = $2", false),
        (
            "SELECT 1 FROM tasks WHERE (store_id = $1 AND id = $2) OR (store_id = $3)",
            true,
        ),
        ("SELECT 1 FROM tasks WHERE store_id IN ($1, $2)", true),
        ("SELECT 1 FROM tasks WHERE store_id NOT IN ($1, $2)", false),
        (
            "SELECT 1 FROM tasks WHERE (store_id, id) IN (($1, $2))",
            true,
        ),
        (
            "SELECT found.* FROM (VALUES ($1, $2)) AS keys CROSS JOIN LATERAL (SELECT 1 FROM tasks
             WHERE (tasks.store_id, tasks.id) = (keys.column1, keys.column2) LIMIT 1) AS found",
            true,
        ),
        (
            "SELECT 1 FROM tasks WHERE store_id IN (SELECT id FROM stores)",
            false,
        ),
        ("SELECT 1 FROM tasks WHERE store_id = tasks.store_id", false),
        (
            "SELECT 1 FROM tasks t LEFT JOIN deliveries d ON t.store_id = d.store_id
             WHERE d.store_id = $1",
            true,
        ),
        (
            "SELECT 1 FROM tasks t JOIN deliveries d ON t.store_id = d.store_id",
            false,
        ),
        (
            "SELECT 1 FROM tasks t JOIN deliveries d ON t.id = d.id WHERE d.store_id = $1",
            false,
        ),
        (
            "SELECT 1 FROM deliveries d LEFT JOIN tasks t ON t.store_id = d.store_id
             WHERE d.store_id = $1",
            true,
        ),
        (
            "SELECT 1 FROM tasks t LEFT JOIN deliveries d ON t.store_id = $1 AND d.store_id = $1",
            false,
        ),
        (
            "SELECT 1 FROM tasks t LEFT JOIN deliveries d ON t.store_id = $1 AND d.store_id = $1
             WHERE t.store_id = d.store_id",
            true,
        ),
        (
            "SELECT 1 FROM tasks t JOIN api_clients c ON t.store_id = c.store_id WHERE c.id = $1",
            false,
        ),
        (
            "SELECT 1 FROM tasks, api_clients WHERE (tasks.store_id, tasks.id) =
             (api_clients.store_id, $1)",
            false,
        ),
        (
            "WITH wanted AS (SELECT $1 AS store_id)
             SELECT 1 FROM tasks JOIN wanted ON tasks.store_id = wanted.store_id",
            true,
        ),
        (
            "SELECT 1 FROM stores
             WHERE EXISTS (SELECT 1 FROM tasks WHERE tasks.store_id = stores.id)",
            false,
        ),
        (
            "SELECT 1 FROM stores WHERE EXISTS (SELECT 1 FROM tasks)",
            false,
        ),
        ("UPDATE tasks SET store_id = $1 WHERE id = $2", false),
        (
            "UPDATE tasks SET id = $1 WHERE store_id = $2 RETURNING id",
            true,
        ),
        ("DELETE FROM tasks", false),
        ("DELETE FROM tasks WHERE store_id = $1", true),
        ("INSERT INTO tasks (id) VALUES ($1)", false),
        (
            "INSERT INTO tasks (store_id, id) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            true,
        ),
        (
            "WITH d AS (INSERT INTO deliveries (id) VALUES ($1))
             INSERT INTO tasks (store_id) VALUES ($2)",
            false,
        ),
    ] {
        let uses = uses(sql, &tables);
        assert!(!uses.is_empty(), "{sql}");
        let names_store = uses.iter().all(|found| found.names_store);
        assert_eq!(names_store, expected, "{sql}");
    }
}
