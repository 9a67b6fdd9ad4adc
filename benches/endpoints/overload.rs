//! Requests at multiples of a platform's capacity, in an open loop. The platform and its connections
//! to the database have one processor, the client has another.

use std::{process::Command, time::Duration};

use crate::{
    CONNECTIONS, DURATION, endpoints::Endpoint, load::Load, open_loop, platform::Platform,
    postgres::Postgres,
};

const MULTIPLES: [f64; 5] = [0.5, 1.0, 2.0, 5.0, 10.0];

/// How long requests are sent at each rate.
const DURATION_PER_RATE: Duration = Duration::from_secs(3);

pub(crate) async fn measure(postgres: &Postgres) {
    pin(std::process::id(), 1);
    let data = postgres.query("SHOW data_directory");
    let id = std::fs::read_to_string(format!("{data}/postmaster.pid")).unwrap();
    pin(id.lines().next().unwrap().parse().unwrap(), 0);
    println!(
        "\n| overload | capacity/s | times capacity | accepted/s, of capacity | p99 of accepted \
         | rejected | not sent | failed | MiB resident |\n|---|---|---|---|---|---|---|---|---|"
    );
    for (database, url) in [("SQLite", None), ("PostgreSQL", Some(postgres.url()))] {
        let platform = Platform::start(database, url.as_deref()).await;
        pin(platform.id(), 0);
        for endpoint in Endpoint::all(&platform).await {
            eprintln!("overload: {}, {database}", endpoint.name);
            let load = Load::new(&platform.base_url, endpoint.requests, CONNECTIONS);
            // The first fills caches.
            load.run(DURATION).await;
            let capacity = load.run(DURATION_PER_RATE).await.rate;
            for multiple in MULTIPLES {
                let name = format!("{}, {database}", endpoint.name);
                measure_rate(&name, &load, (capacity, multiple), &platform).await;
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "rounded for display")]
async fn measure_rate(
    name: &str,
    load: &Load,
    (capacity, multiple): (f64, f64),
    platform: &Platform,
) {
    let mut outcomes = open_loop::run(load, capacity * multiple, DURATION_PER_RATE).await;
    let share = |count: usize| 100.0 * count as f64 / outcomes.due as f64;
    let [rejected, unsent] = [outcomes.rejected, outcomes.unsent].map(share);
    println!(
        "| {name} | {capacity:.0} | {multiple} | {:.0}, {:.2} | {:.0} ms | {rejected:.0} % \
         | {unsent:.0} % | {} | {} |",
        outcomes.goodput(),
        outcomes.goodput() / capacity,
        outcomes.p99(),
        outcomes.failed,
        platform.resident_kib() / 1024,
    );
}

/// Runs all threads of a process, and those that it starts later, on one processor.
fn pin(process: u32, processor: u32) {
    let mut taskset = Command::new("taskset");
    taskset.args(["--all-tasks", "--cpu-list", "--pid"]);
    taskset.args([processor, process].map(|number| number.to_string()));
    let output = taskset.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
