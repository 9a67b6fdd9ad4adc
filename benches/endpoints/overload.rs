//! Requests at multiples of the capacity of the empty server and of a platform, in an open loop. The server
//! and its connections to the database have one processor, the client has another.

use std::{process::Command, time::Duration};

use crate::{
    CONNECTIONS, DURATION,
    empty_server::{self, EmptyServer},
    endpoints::Endpoint,
    load::Load,
    open_loop,
    platform::Platform,
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
        "\n| overload | capacity/s | times capacity | accepted/s, of capacity, of the most | p99 of accepted \
         | rejected | not sent | failed | MiB resident |\n|---|---|---|---|---|---|---|---|---|"
    );
    {
        let server = EmptyServer::start();
        pin(server.id(), 0);
        let load = server.load(empty_server::TASK, CONNECTIONS);
        measure_load("empty server", &load, || None).await;
    }
    for (database, url) in [("SQLite", None), ("PostgreSQL", Some(postgres.url()))] {
        let platform = Platform::start(database, url.as_deref()).await;
        pin(platform.id(), 0);
        for endpoint in Endpoint::all(&platform).await {
            let name = format!("{}, {database}", endpoint.name);
            let load = Load::new(&platform.base_url, endpoint.requests, CONNECTIONS);
            measure_load(&name, &load, || Some(platform.resident_kib() / 1024)).await;
        }
    }
}

/// Measures a load at each rate, and prints what was accepted as a share of the capacity and of the most
/// that was accepted at any rate.
#[expect(clippy::cast_precision_loss, reason = "rounded for display")]
async fn measure_load(name: &str, load: &Load, resident_mib: impl Fn() -> Option<u64>) {
    eprintln!("overload: {name}");
    // The first fills caches.
    load.run(DURATION).await;
    let capacity = load.run(DURATION_PER_RATE).await.rate;
    let mut runs = Vec::new();
    for multiple in MULTIPLES {
        let outcomes = open_loop::run(load, capacity * multiple, DURATION_PER_RATE).await;
        runs.push((multiple, outcomes, resident_mib()));
    }
    let goodputs = runs.iter().map(|(_, outcomes, _)| outcomes.goodput());
    let most = goodputs.fold(0.0, f64::max);
    for (multiple, mut outcomes, memory) in runs {
        let share = |count: usize| 100.0 * count as f64 / outcomes.due as f64;
        let [rejected, unsent] = [outcomes.rejected, outcomes.unsent].map(share);
        let goodput = outcomes.goodput();
        println!(
            "| {name} | {capacity:.0} | {multiple} | {goodput:.0}, {:.2}, {:.2} | {:.0} ms \
             | {rejected:.0} % | {unsent:.0} % | {} | {} |",
            goodput / capacity,
            goodput / most,
            outcomes.p99(),
            outcomes.failed,
            memory.map_or("–".to_owned(), |memory| memory.to_string()),
        );
    }
}

/// Runs all threads of a process, and those that it starts later, on one processor.
fn pin(process: u32, processor: u32) {
    let mut taskset = Command::new("taskset");
    taskset.args(["--all-tasks", "--cpu-list", "--pid"]);
    taskset.args([processor, process].map(|number| number.to_string()));
    let output = taskset.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
