//! A PostgreSQL that permits fewer connections than a core may open.

use std::time::Instant;

use futures_util::future::join_all;

use crate::{
    SLACK, all_processors, cluster::Cluster, eventually, exposition::Exposition,
    health::wait_until_ready, postgres::Postgres, report, reserved_addr::reserve_addr,
};

/// How many connections the core's role may open.
const PERMITTED: u32 = 8;

/// More creates than core runs at once. With a key, each has a transaction of its own.
const CREATES: usize = 90;

#[tokio::test(flavor = "multi_thread")]
async fn a_core_that_is_refused_connections_works_with_those_it_has() {
    let _processors = all_processors().await;
    let Some(postgres) = Postgres::start() else {
        return;
    };
    postgres.sql("CREATE ROLE app LOGIN");
    postgres.sql("GRANT ALL ON SCHEMA public TO app");
    let url = postgres.url().replace("//delivery@", "//app@");
    let mut cluster = Cluster::start_on(postgres, &url).await;
    let health = reserve_addr();
    let [core, other] = &mut cluster.cores;
    for core in [&mut *core, other] {
        core.terminate().await;
    }
    core.add_argument(&format!("--health-listen={health}"));
    core.start().await;
    wait_until_ready(health).await;
    let shop = cluster.shop().await;
    shop.create_delivery().await.unwrap();
    let limit = format!("ALTER ROLE app CONNECTION LIMIT {PERMITTED}");
    cluster.postgres.sql(&limit);

    // In the first round connections are refused for the first time; in the second, further ones
    // are rarely tried.
    for round in ["first", "second"] {
        let started = Instant::now();
        let keys: Vec<_> = (0..CREATES)
            .map(|number| format!("{round} {number}"))
            .collect();
        let created = keys.iter().map(|key| shop.create_delivery_with_key(key));
        let created = join_all(created).await;
        let took = started.elapsed();

        report(&format!(
            "{round} {CREATES} creates with {PERMITTED} connections: {took:?}"
        ));
        let failed: Vec<_> = created
            .iter()
            .filter_map(|created| created.as_ref().err())
            .collect();
        assert!(failed.is_empty(), "{} {:?}", failed.len(), failed.first());
        assert!(took < 2 * SLACK, "{round}: {took:?}");
    }

    let refusal = "PostgreSQL refuses more connections";
    let warning = cluster.cores[0].wait_for_line(refusal).await;
    let reason = "too many connections for role \"app\"";
    assert!(warning.contains(reason), "{warning}");
    let scraped = Exposition::scrape(health).await;
    let refused = scraped.value("delivery_database_connections_refused_total", &[]);
    assert!(refused >= Some(1.0), "{refused:?}");
    let pool = ("db_client_connection_pool_name", "postgresql");
    assert_eq!(
        scraped.value("db_client_connection_max", &[pool]),
        Some(20.0)
    );
    assert_eq!(
        scraped.value("db_client_connection_timeouts_total", &[pool]),
        Some(0.0)
    );
    // A connection is counted from the attempt to open it until its refusal.
    let open = |scraped: &Exposition| -> f64 {
        let count = |state| {
            let labels = [pool, ("db_client_connection_state", state)];
            scraped.value("db_client_connection_count", &labels)
        };
        ["used", "idle"].into_iter().filter_map(count).sum()
    };
    // Those that were open before the limit stay open, even if they are more.
    let opened = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'";
    let what = "refused connections are counted as open";
    eventually(SLACK * 5, what, async || {
        let scraped = Exposition::scrape(health).await;
        (open(&scraped).to_string() == cluster.postgres.query(opened)).then_some(())
    })
    .await;
}
