//! The statements that platforms execute over PostgreSQL. Each names the store of the rows that it
//! uses, so that the schema can be split by store, or is an exception of `docs/postgresql.md`.

use std::{
    collections::BTreeSet,
    fs::File,
    io::Write as _,
    sync::{LazyLock, Mutex},
};

use super::{run_sql, store_rule::uses};

/// With this variable, what is checked is appended to the file that it names, a line each: the
/// patterns of exceptions, and `VERB table`.
pub(crate) const CHECKED_FILE: &str = "DELIVERY_TEST_CHECKED_STATEMENTS";

/// The items of the list in `docs/postgresql.md`, and the statements of each: `…` stands for any
/// text.
pub(crate) const EXCEPTIONS: [(&str, &[&str]); 8] = [
    (
        "a courier's task by its id alone (`tasks:all`)",
        &[r#"FROM "tasks" WHERE "tasks"."id" = $"#],
    ),
    (
        "the operator's view of a webhook or a notification, by its id alone",
        &[
            r#"FROM "webhooks" WHERE "webhooks"."id" = $"#,
            r#"FROM "notifications" WHERE "notifications"."id" = $"#,
        ],
    ),
    (
        "the sequencer, which numbers events, their retention, and the streams of all stores' \
         events",
        &[
            r#"SELECT $2 FROM "events" WHERE "events"."number" IS NULL LIMIT"#,
            "( SELECT store_id, id, created_at FROM events WHERE number IS NULL",
            r#"FROM "events" WHERE "events"."position" IS NOT NULL ORDER BY"#,
            r#"DELETE FROM "events" WHERE "events"."position" <= $"#,
            r#"FROM "events" WHERE "events"."position" > $"#,
        ],
    ),
    (
        "the claims of notifications, which take the webhooks that are due, of all stores, with \
         `FOR UPDATE SKIP LOCKED`; their outcomes and leases, by the ids of notifications",
        &[
            r#"FROM "webhooks" WHERE "webhooks"."next_due_at" <= $"#,
            r#"UPDATE "notifications" SET "state" = … WHERE "notifications"."id" IN ("#,
            r#"SELECT … FROM "notifications" WHERE "notifications"."id" IN ("#,
            r#"FROM "notifications" WHERE (state = … AND "lease_expires_at" < ("#,
            r#"UPDATE "receiver_hosts" … FROM "webhooks" WHERE "webhooks"."id" IN ("#,
        ],
    ),
    (
        "the removal of finished notifications, the backlogs of disabled webhooks, old failures of \
         hosts, and expired idempotency keys",
        &[
            r#"FROM "notifications" WHERE "notifications"."finished_at" < $"#,
            r#"FROM "webhooks" WHERE "webhooks"."disabled_at" IS NOT NULL AND (SELECT MIN("#,
            r#"DELETE FROM "receiver_hosts" WHERE "receiver_hosts"."failed_at" < $"#,
            r#"FROM "idempotency_keys" WHERE "idempotency_keys"."created_at" <= $"#,
        ],
    ),
    (
        "re-encrypting secrets",
        &[
            "SELECT DISTINCT substr(encrypted_",
            r#"FROM "webhooks" ORDER BY "webhooks"."store_id""#,
            r#"FROM "webhooks" WHERE ("store_id", "id") > ("#,
            r#"substr(encrypted_response, … FROM "idempotency_keys""#,
        ],
    ),
    (
        "erasing personal data by the id of a delivery alone, telephone number or retention",
        &[
            r#"FROM "deliveries" WHERE "deliveries"."store_id" IN (SELECT "stores"."id" FROM"#,
            r#"WHERE "deliveries"."erased_at" IS NULL AND "deliveries"."dropoff_before" <= $"#,
            r#""tasks"."address" AS "address" FROM "tasks""#,
        ],
    ),
    (
        "the metrics of the platform",
        &[
            "FROM deliveries WHERE erased_at IS NULL AND dropoff_before >= $",
            "FROM webhooks WHERE next_due_at IS NOT NULL AND next_due_at <= $",
            "( SELECT created_at FROM events WHERE number IS NULL ORDER BY",
        ],
    ),
];

/// The tables that can be distributed by store.
pub(crate) static TABLES: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let page = include_str!("../../../docs/postgresql.md");
    let (_, tables) = page.split_once("| tables | kind | why |").unwrap();
    let (tables, _) = tables.split_once("| distributed by `store_id`").unwrap();
    let names = tables.split('`').skip(1).step_by(2);
    names.map(str::to_owned).collect()
});

/// Fails for a statement that was executed in a database, names no store and is no exception.
pub(crate) async fn check(database_url: &str) {
    static CHECKED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let (mut without, mut found) = (Vec::new(), String::new());
    for statement in executed(database_url).await {
        if CHECKED.lock().unwrap().contains(&statement) {
            continue;
        }
        let uses = uses(&statement, &TABLES);
        for found_use in &uses {
            found += &[found_use.verb, " ", &found_use.table, "\n"].concat();
        }
        if !uses.iter().all(|found_use| found_use.names_store) {
            let mut patterns = EXCEPTIONS.iter().flat_map(|(_, patterns)| *patterns);
            let Some(pattern) = patterns.find(|pattern| matches(pattern, &statement)) else {
                without.push(statement);
                continue;
            };
            found += &[pattern, "\n"].concat();
        }
        CHECKED.lock().unwrap().insert(statement);
    }
    if let Some(file) = std::env::var_os(CHECKED_FILE) {
        let mut file = File::options().append(true).open(file).unwrap();
        file.write_all(found.as_bytes()).unwrap();
    }
    assert!(
        without.is_empty(),
        "statements without a store: {without:#?}"
    );
}

/// The statements executed in a database since the last call, on one line each.
async fn executed(database_url: &str) -> Vec<String> {
    let (server, name) = database_url.split_once("localhost/").unwrap();
    let (name, parameters) = name.split_once('?').unwrap();
    // Has the extension.
    let url = format!("{server}localhost/postgres?{parameters}");
    let select = format!(
        r"SELECT regexp_replace(query, '\s+', ' ', 'g') FROM pg_stat_statements
            WHERE dbid = (SELECT oid FROM pg_database WHERE datname = '{name}');
        SELECT pg_stat_statements_reset(0, oid, 0) FROM pg_database WHERE datname = '{name}'"
    );
    let statements = run_sql(&url, &select).await;
    statements.lines().map(str::to_owned).collect()
}

fn matches(pattern: &str, statement: &str) -> bool {
    let mut rest = statement;
    pattern.split('…').all(|part| {
        let found = rest.split_once(part);
        rest = found.map_or("", |(_, after)| after);
        found.is_some()
    })
}
