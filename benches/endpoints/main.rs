//! Measures what requests cost, as ratios to references of the same run: an empty server, with the
//! same HTTP and gRPC calls but no work, and the databases alone, which read or insert the same rows. Takes
//! minutes; asserts no times.
//!
//! With the argument `overload`, measures requests beyond the capacity instead; with `separate`, separate
//! processes with one core and with two; with `growth` and numbers of deliveries, platforms that store
//! as many; with `compare` and the absolute path of a program, this program and that one.
#![expect(
    clippy::unwrap_used,
    reason = "a panic fails the benchmark and shows where"
)]
#![expect(clippy::print_stdout, reason = "the benchmark prints its results")]

mod comparison;
mod empty_server;
mod endpoints;
mod growth;
mod load;
mod open_loop;
mod overload;
mod pgbench;
mod platform;
mod requests;
mod separate;
mod sqlite_alone;
mod table;

#[expect(dead_code, reason = "the crash tests use the rest of it")]
#[path = "../../tests/crash/postgres.rs"]
mod postgres;
#[path = "../../tests/e2e/harness/postgres_programs.rs"]
mod postgres_programs;
#[path = "../../tests/e2e/harness/prerequisites.rs"]
mod prerequisites;
#[path = "../notifications/processor_time.rs"]
mod processor_time;
#[expect(dead_code, reason = "the crash tests use the rest of it")]
#[path = "../../tests/crash/program.rs"]
mod program;
#[expect(dead_code, reason = "the crash tests use the rest of it")]
#[path = "../../tests/crash/psql_session.rs"]
mod psql_session;
#[path = "../../tests/e2e/harness/reserved_addr.rs"]
mod reserved_addr;
#[expect(dead_code, reason = "the crash tests use the rest of it")]
#[path = "../../tests/e2e/harness/resource_script.rs"]
mod resource_script;
#[expect(dead_code, reason = "the crash tests use the rest of it")]
#[path = "../../tests/crash/server.rs"]
mod server;

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    path::Path,
    time::Duration,
};

use hyper::Request;

use self::{
    empty_server::EmptyServer,
    endpoints::Endpoint,
    load::{Load, Sample},
    pgbench::Pgbench,
    platform::Platform,
    postgres::Postgres,
    requests::{Body, create, get},
    sqlite_alone::SqliteAlone,
    table::{Rates, print_costs, print_ratios},
};

#[global_allocator]
static ALLOCATOR: process::Allocator = process::Allocator;

/// How often each measurement is repeated.
const ROUNDS: usize = 7;
/// How long each measurement takes, in each round.
const DURATION: Duration = Duration::from_millis(1500);
/// The number of connections, and of requests at once.
const CONNECTIONS: usize = 32;
/// The same for what is compared with pgbench.
const PGBENCH_CONNECTIONS: [usize; 2] = [8, 32];
/// How long the idle platform is observed.
const IDLE: Duration = Duration::from_secs(10);

/// What a rate is compared with.
const EMPTY_SERVER: &str = "empty server";

fn main() {
    process::listen::raise_file_limit();
    // As many threads as the process may use processors, like the platform.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        // `EmptyServer::start` starts this program again.
        if std::env::args().any(|argument| argument == empty_server::ARGUMENT) {
            return empty_server::serve().await;
        }
        let Some(postgres) = Postgres::start() else {
            return;
        };
        let arguments: Vec<_> = std::env::args().collect();
        if arguments.iter().any(|argument| argument == "overload") {
            return overload::measure(&postgres).await;
        }
        if arguments.iter().any(|argument| argument == "separate") {
            return separate::measure(&postgres).await;
        }
        if arguments.iter().any(|argument| argument == "growth") {
            let sizes = arguments.iter().filter_map(|size| size.parse().ok());
            return growth::measure(&postgres, &sizes.collect::<Vec<_>>()).await;
        }
        if let Some(at) = arguments.iter().position(|argument| argument == "compare") {
            let program = Path::new(&arguments[at + 1]);
            assert!(
                program.is_absolute(),
                "compare needs the absolute path of a program"
            );
            return comparison::measure(&postgres, program).await;
        }
        let sqlite = Platform::start("SQLite", None).await;
        println!("idle all-in-one: {}", sqlite.idle_usage(IDLE).await);
        let postgresql = Platform::start("PostgreSQL", Some(&postgres.url())).await;
        measure_endpoints(&[&sqlite, &postgresql]).await;
        measure_sqlite(&sqlite).await;
        measure_postgresql(&postgresql, &postgres).await;
    });
}

/// Measures endpoints and the empty server, in random order.
async fn measure_endpoints(platforms: &[&Platform]) {
    let empty_server = EmptyServer::start();
    let mut loads = vec![
        (
            EMPTY_SERVER.to_owned(),
            empty_server.load(empty_server::TASK, CONNECTIONS),
            None,
        ),
        (
            format!("{EMPTY_SERVER}, over HTTP the bytes of 30 deliveries"),
            empty_server.load(empty_server::LIST, CONNECTIONS),
            None,
        ),
    ];
    for platform in platforms {
        for endpoint in Endpoint::all(platform).await {
            let name = format!("{}, {}", endpoint.name, platform.database);
            let load = Load::new(&platform.base_url, endpoint.requests, CONNECTIONS);
            loads.push((name, load, Some(*platform)));
        }
    }
    let mut rates = Rates::default();
    let mut costs = BTreeMap::new();
    for round in 0..ROUNDS {
        progress("endpoints", round);
        for index in random_order(loads.len()) {
            let (name, load, platform) = &loads[index];
            let before = platform.map(Platform::processor_time);
            let sample = load.run(DURATION).await;
            if let (Some(platform), Some(before)) = (platform, before) {
                let time = platform.processor_time() - before;
                costs
                    .entry(name.clone())
                    .or_insert_with(Vec::new)
                    .push(time / sample.requests);
            }
            rates.add(name, sample);
        }
    }
    print_ratios("endpoint", &rates, EMPTY_SERVER, CONNECTIONS);
    print_costs(&costs);
}

/// Measures requests over SQLite, and SQLite alone, which reads or inserts the same rows.
async fn measure_sqlite(platform: &Platform) {
    let alone = SqliteAlone::copy(platform);
    let creates = Reference {
        name: "SQLite alone",
        measure: &|| alone.creates(DURATION),
    };
    let requests = vec![create(&platform.authorization)];
    compare("create", platform, requests, &creates, CONNECTIONS).await;
    let pages = Reference {
        name: "SQLite alone",
        measure: &|| alone.pages(DURATION),
    };
    let requests = platform.lists.clone();
    compare("list", platform, requests, &pages, CONNECTIONS).await;
}

/// Measures requests over PostgreSQL, and pgbench, which inserts the rows of a create in one statement,
/// reads a task or reads a page.
async fn measure_postgresql(platform: &Platform, postgres: &Postgres) {
    let pgbench = Pgbench::prepare(postgres);
    let authorization = &platform.authorization;
    let created = platform.fetch(create(authorization)).await;
    let task = created["dropoff"]["@id"].as_str().unwrap();
    let requests = [
        ("create", vec![create(authorization)], pgbench::CREATE),
        (
            "read of a task",
            vec![get(task, authorization)],
            pgbench::READ,
        ),
        ("list", platform.lists.clone(), pgbench::LIST),
    ];
    for connections in PGBENCH_CONNECTIONS {
        for (what, requests, script) in requests.clone() {
            let reference = Reference {
                name: "pgbench",
                measure: &|| pgbench.run(script, connections, DURATION),
            };
            compare(what, platform, requests, &reference, connections).await;
        }
    }
}

/// What a database does for a request without the platform.
struct Reference<'a> {
    name: &'a str,
    measure: &'a dyn Fn() -> Sample,
}

/// Measures requests and their reference, in random order.
async fn compare(
    what: &str,
    platform: &Platform,
    requests: Vec<Request<Body>>,
    reference: &Reference<'_>,
    connections: usize,
) {
    let load = Load::new(&platform.base_url, requests, connections);
    let mut rates = Rates::default();
    for round in 0..ROUNDS {
        progress(&format!("{what}, {}", reference.name), round);
        for index in random_order(2) {
            if index == 0 {
                rates.add(platform.database, load.run(DURATION).await);
            } else {
                rates.add(reference.name, (reference.measure)());
            }
        }
    }
    print_ratios(what, &rates, reference.name, connections);
}

/// Random, so that the after-effects of a measurement are spread evenly over the others.
fn random_order(count: usize) -> Vec<usize> {
    let random = RandomState::new();
    let mut order: Vec<_> = (0..count).collect();
    order.sort_by_cached_key(|index| random.hash_one(index));
    order
}

fn progress(what: &str, round: usize) {
    eprintln!("{what}: round {} of {ROUNDS}", round + 1);
}

/// As [`progress`], where a round 0 that only fills caches comes before the others.
fn progress_from_warm_up(what: &str, round: usize) {
    match round.checked_sub(1) {
        Some(round) => progress(what, round),
        None => eprintln!("{what}: filling caches"),
    }
}
