//! Checks the statements that platforms execute over PostgreSQL: each names the store of the rows
//! that it uses, so that the schema can be split by store, or is an exception that
//! `docs/postgresql.md` lists.

use std::{
    collections::BTreeSet,
    fs::File,
    io::Write as _,
    sync::{LazyLock, Mutex},
};

use super::{
    run_sql,
    store_rule::{Tables, uses},
};

/// The environment variable with the path of a file. If it is set, the check appends a line
/// `VERB table` for each use of a table, and a line `VERB pattern` for each exception that it finds.
pub(crate) const CHECKED_FILE: &str = "DELIVERY_TEST_CHECKED_STATEMENTS";

/// The verbs that an exception's statements apply to tables without naming a store, and a pattern of
/// their text, in which `…` stands for any text.
type Pattern = (&'static [&'static str], &'static str);

/// The items of the list in `docs/postgresql.md`, and the statements of each.
pub(crate) const EXCEPTIONS: [(&str, &[Pattern]); 14] = [
    (
        "a task or a delivery by its id alone (`tasks:all`, `dispatch`, erasing)",
        &[
            (
                &["SELECT"],
                "JOIN stores ON stores.id = tasks.store_id WHERE (tasks.id)",
            ),
            (
                &["SELECT"],
                "FROM deliveries WHERE store_id IN (SELECT id FROM stores) AND id = $",
            ),
        ],
    ),
    (
        "the tasks of a day of all stores, and those that watchers of them get (`tasks:all`, `dispatch`)",
        &[
            (
                &["SELECT"],
                "AS page JOIN tasks ON tasks.store_id = page.store_id",
            ),
            (
                &["SELECT"],
                "WHERE (tasks.store_id, tasks.delivery_id) IN (VALUES ($",
            ),
        ],
    ),
    (
        "the tasks of couriers' lists, and those that a change of lists names (`dispatch`)",
        &[
            (&["SELECT"], "FROM tasks WHERE tasks.courier_id IS NOT NULL"),
            (
                &["SELECT"],
                "FROM tasks JOIN tasks AS named ON named.store_id = tasks.store_id",
            ),
            (
                &["SELECT"],
                "SELECT id FROM deliveries WHERE (store_id, id) IN (VALUES ($",
            ),
        ],
    ),
    (
        "the incidents of all stores, and one by its id alone (`dispatch`)",
        &[
            (
                &["SELECT"],
                r#"FROM "incidents" WHERE "incidents"."id" = $"#,
            ),
            (
                &["SELECT"],
                r#"FROM "incidents" …ORDER BY "incidents"."created_at" DESC"#,
            ),
        ],
    ),
    (
        "an image by its id alone (`tasks:all`, `dispatch`, couriers)",
        &[(&["SELECT"], r#"FROM "images" WHERE "images"."id" "#)],
    ),
    (
        "the deliveries of all stores, in lists and searches (`dispatch`)",
        &[
            (
                &["SELECT"],
                r#"ORDER BY "deliveries"."dropoff_before" …, "deliveries"."id""#,
            ),
            (
                &["SELECT"],
                "FROM stores CROSS JOIN LATERAL (SELECT store_id, id FROM deliveries WHERE store_id = stores.id AND",
            ),
            (
                &["SELECT"],
                "FROM deliveries WHERE erased_at IS NULL AND dropoff_before >= $1 AND (dropoff_before, id) < ($",
            ),
        ],
    ),
    (
        "the operator's view of a webhook or a notification by its id alone, and of the webhooks that fail",
        &[
            (&["SELECT"], r#"FROM "webhooks" WHERE "webhooks"."id" = $"#),
            (
                &["SELECT"],
                r#"FROM "webhooks" WHERE "webhooks"."failing_since" IS NOT NULL ORDER BY"#,
            ),
            (
                &["SELECT"],
                r#"FROM "notifications" WHERE "notifications"."id" = $"#,
            ),
        ],
    ),
    (
        "the sequencer, which numbers events, their retention, and the streams of all stores' \
         events",
        &[
            (
                &["SELECT"],
                "(SELECT MIN(created_at) FROM events WHERE number IS NULL AND created_at >= $",
            ),
            (
                &["SELECT"],
                "( SELECT store_id, id, created_at FROM events WHERE number IS NULL",
            ),
            (
                &["SELECT"],
                "SELECT store_id, MAX(number), … FROM events WHERE position > $",
            ),
            (
                &["SELECT"],
                r#"FROM "events" WHERE "events"."position" IS NOT NULL ORDER BY"#,
            ),
            (
                &["DELETE"],
                r#"DELETE FROM "events" WHERE "events"."position" <= $"#,
            ),
            (
                &["SELECT"],
                r#"FROM "events" WHERE "events"."position" > $"#,
            ),
        ],
    ),
    (
        "the claims of notifications, which take the webhooks that are due, of all stores, with \
         `FOR UPDATE SKIP LOCKED`; their outcomes and leases, by the ids of notifications",
        &[
            (
                &["SELECT"],
                r#"FROM "webhooks" WHERE "webhooks"."next_due_at" <= $"#,
            ),
            (
                &["UPDATE"],
                r#"UPDATE "notifications" SET "state" = … WHERE "notifications"."id" IN ("#,
            ),
            (
                &["SELECT"],
                r#"SELECT … FROM "notifications" WHERE "notifications"."id" IN ("#,
            ),
            (
                &["SELECT"],
                r#"FROM "notifications" WHERE (state = … AND "lease_expires_at" < ("#,
            ),
            (
                &["SELECT"],
                r#"UPDATE "receiver_hosts" … FROM "webhooks" WHERE "webhooks"."id" IN ("#,
            ),
        ],
    ),
    (
        "the removal of finished notifications, the backlogs of disabled webhooks, old failures of \
         hosts, and expired idempotency keys",
        &[
            (
                &["SELECT"],
                r#"FROM "notifications" WHERE "notifications"."finished_at" < $"#,
            ),
            (
                &["DELETE"],
                "DELETE FROM notifications WHERE (store_id, id) IN (VALUES ($",
            ),
            (
                &["DELETE"],
                "DELETE FROM attempts WHERE (store_id, notification_id) IN (VALUES ($",
            ),
            (
                &["SELECT"],
                r#"FROM "webhooks" WHERE "webhooks"."disabled_at" IS NOT NULL AND (SELECT MIN("#,
            ),
            (
                &["DELETE"],
                r#"DELETE FROM "receiver_hosts" WHERE "receiver_hosts"."failed_at" < $"#,
            ),
            (
                &["DELETE", "SELECT"],
                "DELETE FROM idempotency_keys WHERE ctid = ANY(ARRAY( SELECT ctid FROM idempotency_keys WHERE created_at <= $",
            ),
        ],
    ),
    (
        "re-encrypting secrets",
        &[
            (&["SELECT"], "SELECT DISTINCT substr(encrypted_"),
            (
                &["SELECT"],
                r#"FROM "webhooks" ORDER BY "webhooks"."store_id""#,
            ),
            (
                &["SELECT"],
                r#"FROM "webhooks" WHERE ("store_id", "id") > ("#,
            ),
            (
                &["SELECT"],
                r#"substr(encrypted_response, … FROM "idempotency_keys""#,
            ),
        ],
    ),
    (
        "erasing personal data by telephone number or retention",
        &[
            (
                &["SELECT"],
                r#"WHERE "deliveries"."erased_at" IS NULL AND "deliveries"."dropoff_before" <= $"#,
            ),
            (
                &["SELECT"],
                r#""tasks"."address" AS "address" FROM "tasks""#,
            ),
        ],
    ),
    (
        "the removal of erased deliveries, with all that names them",
        &[
            (
                &["SELECT"],
                "SELECT store_id, id FROM deliveries WHERE erased_at IS NOT NULL AND CASE",
            ),
            (
                &["SELECT"],
                "SELECT store_id, id FROM notifications WHERE (store_id, delivery_id) IN (VALUES ($",
            ),
            (
                &["DELETE"],
                "DELETE FROM tasks WHERE (store_id, delivery_id) IN (VALUES ($",
            ),
            (
                &["DELETE"],
                "DELETE FROM task_events WHERE (store_id, task_id) IN (VALUES ($",
            ),
            (
                &["DELETE"],
                "DELETE FROM incidents WHERE (store_id, task_id) IN (VALUES ($",
            ),
            (
                &["DELETE"],
                "DELETE FROM retail_price_uses WHERE (store_id, delivery_id) IN (VALUES ($",
            ),
            (
                &["DELETE"],
                "DELETE FROM deliveries WHERE (store_id, id) IN (VALUES ($",
            ),
        ],
    ),
    (
        "the metrics of the platform",
        &[
            (
                &["SELECT"],
                "FROM deliveries WHERE erased_at IS NULL AND dropoff_before >= $… GROUP BY",
            ),
            (&["SELECT"], "AND before >= $… GROUP BY"),
            (
                &["SELECT"],
                "FROM webhooks WHERE next_due_at IS NOT NULL AND next_due_at <= $",
            ),
            (
                &["SELECT"],
                "( SELECT created_at FROM events WHERE number IS NULL ORDER BY",
            ),
        ],
    ),
];

pub(crate) static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let page = include_str!("../../../docs/postgresql.md");
    let (_, rows) = page.split_once("| tables | kind | why |\n").unwrap();
    let of_kind = |kind: &str| {
        let mut rows = rows.lines();
        let tables = rows.find_map(|row| Some(row.split_once(kind)?.0));
        let names = tables.unwrap().split('`').skip(1).step_by(2);
        names.map(str::to_owned).collect()
    };
    Tables {
        distributed: of_kind("| distributed by `store_id`"),
        reference: of_kind("| reference tables"),
    }
});

/// Fails for a statement that was executed in a database, names no store and is no exception.
pub(crate) async fn check(database_url: &str) {
    static CHECKED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let (mut unexpected, mut found) = (Vec::new(), String::new());
    for statement in executed(database_url).await {
        if CHECKED.lock().unwrap().contains(&statement) {
            continue;
        }
        let mut verbs_without_store = BTreeSet::new();
        for found_use in uses(&statement, &TABLES) {
            found += &[found_use.verb, " ", &found_use.table, "\n"].concat();
            if !found_use.names_store {
                verbs_without_store.insert(found_use.verb);
            }
        }
        if !verbs_without_store.is_empty() {
            let mut patterns = EXCEPTIONS.iter().flat_map(|(_, patterns)| *patterns);
            let is_exception = |(verbs, pattern): &&Pattern| {
                verbs_without_store.iter().all(|verb| verbs.contains(verb))
                    && matches(pattern, &statement)
            };
            let Some((_, pattern)) = patterns.find(is_exception) else {
                unexpected.push((verbs_without_store, statement));
                continue;
            };
            for verb in verbs_without_store {
                found += &[verb, " ", pattern, "\n"].concat();
            }
        }
        CHECKED.lock().unwrap().insert(statement);
    }
    if let Some(file) = std::env::var_os(CHECKED_FILE) {
        let mut file = File::options().append(true).open(file).unwrap();
        file.write_all(found.as_bytes()).unwrap();
    }
    assert!(
        unexpected.is_empty(),
        "statements without a store: {unexpected:#?}"
    );
}

/// The URL of the database that has the extension `pg_stat_statements`, and the name of this one.
fn recorder(database_url: &str) -> (String, &str) {
    let (server, name) = database_url.split_once("localhost/").unwrap();
    let (name, parameters) = name.split_once('?').unwrap();
    (format!("{server}localhost/postgres?{parameters}"), name)
}

/// The statements executed in a database since the last call, on one line each.
pub(crate) async fn executed(database_url: &str) -> Vec<String> {
    let (url, name) = recorder(database_url);
    let select = format!(
        r"SELECT regexp_replace(query, '\s+', ' ', 'g') FROM pg_stat_statements
            WHERE dbid = (SELECT oid FROM pg_database WHERE datname = '{name}');
        SELECT pg_stat_statements_reset(0, oid, 0) FROM pg_database WHERE datname = '{name}'"
    );
    let statements = run_sql(&url, &select).await;
    // PostgreSQL records a constant as a parameter (`$2`), but not in a statement that was prepared
    // before the last reset.
    let statements = statements.lines();
    statements
        .map(|statement| statement.replacen("SELECT 1 FROM", "SELECT $2 FROM", 1))
        .collect()
}

fn matches(pattern: &str, statement: &str) -> bool {
    let mut rest = statement;
    pattern.split('…').all(|part| {
        let found = rest.split_once(part);
        rest = found.map_or("", |(_, after)| after);
        found.is_some()
    })
}
