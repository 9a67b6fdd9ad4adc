//! Compares the endpoints of several platforms, measured interleaved.

use std::{collections::BTreeMap, path::Path};

use futures_util::{StreamExt as _, stream};

use crate::{
    CONNECTIONS, DURATION, ROUNDS,
    endpoints::{CREATE, Endpoint},
    load::Load,
    platform::{PROGRAM, Platform},
    postgres::Postgres,
    progress_from_warm_up, random_order,
    requests::{complete, create},
    table::{Rates, print_costs, print_ratios},
};

/// The tasks of one measurement of completions. Each is completed once.
const COMPLETIONS: usize = 2_000;

/// Compares this program with another, such as that of an earlier commit.
pub(crate) async fn measure(postgres: &Postgres, other: &Path) {
    for database in ["SQLite", "PostgreSQL"] {
        let mut platforms = Vec::new();
        for (name, program) in [
            ("other program", other),
            ("this program", Path::new(PROGRAM)),
        ] {
            let url =
                (database == "PostgreSQL").then(|| new_database(postgres, &name.replace(' ', "_")));
            let platform = Platform::start_program(program, database, url.as_deref()).await;
            platforms.push((name.to_owned(), platform));
        }
        compare(database, &platforms).await;
    }
}

/// Creates a database, and returns its URL.
pub(crate) fn new_database(postgres: &Postgres, name: &str) -> String {
    postgres.sql(&format!("CREATE DATABASE {name}"));
    postgres.url().replace("/postgres?", &format!("/{name}?"))
}

/// Compares named platforms with the first.
pub(crate) async fn compare(database: &str, platforms: &[(String, Platform)]) {
    let mut loads = Vec::new();
    for (name, platform) in platforms {
        for endpoint in Endpoint::all(platform).await {
            let load = Load::new(&platform.base_url, endpoint.requests, CONNECTIONS);
            loads.push((endpoint.name, name, platform, load));
        }
    }
    let mut rates = BTreeMap::<_, Rates>::new();
    let mut costs = BTreeMap::<_, Vec<_>>::new();
    // Creates last: they change the platforms.
    let (creates, reads): (Vec<_>, Vec<_>) = loads
        .iter()
        .partition(|(endpoint, ..)| endpoint.starts_with(CREATE));
    let loads = [reads, creates];
    for (loads, round) in loads
        .iter()
        .flat_map(|loads| (0..=ROUNDS).map(move |round| (loads, round)))
    {
        progress_from_warm_up(database, round);
        for index in random_order(loads.len()) {
            let (endpoint, name, platform, load) = loads[index];
            let before = platform.processor_time();
            let sample = load.run(DURATION).await;
            let time = platform.processor_time() - before;
            if round > 0 {
                rates.entry(*endpoint).or_default().add(name, sample);
                let costs = costs.entry(format!("{endpoint}, {database}, {name}"));
                costs.or_default().push(time / sample.requests);
            }
        }
    }
    for round in 0..=ROUNDS {
        progress_from_warm_up(database, round);
        for index in random_order(platforms.len()) {
            let (name, platform) = &platforms[index];
            let mut load = completions(platform).await;
            load.repeats = false;
            let before = platform.processor_time();
            let sample = load.run(DURATION).await;
            let time = platform.processor_time() - before;
            if round > 0 {
                let endpoint = "`PUT /api/tasks/{id}/done` of pickups";
                rates.entry(endpoint).or_default().add(name, sample);
                let costs = costs.entry(format!("{endpoint}, {database}, {name}"));
                costs.or_default().push(time / sample.requests);
            }
        }
    }
    for (endpoint, rates) in rates {
        let what = format!("{endpoint}, {database}");
        print_ratios(&what, &rates, &platforms[0].0, CONNECTIONS);
    }
    print_costs(&costs);
}

/// The completions of the pickups of new deliveries.
async fn completions(platform: &Platform) -> Load {
    let board = platform.authorize("operator_client", "tasks:all").await;
    let requests = stream::iter(0..COMPLETIONS).map(async |_| {
        let delivery = platform.fetch(create(&platform.authorization)).await;
        let pickup = delivery["pickup"]["@id"].as_str().unwrap();
        complete(&board, pickup.strip_prefix("/api/tasks/").unwrap())
    });
    let requests = requests.buffer_unordered(CONNECTIONS).collect().await;
    Load::new(&platform.base_url, requests, CONNECTIONS)
}
