//! The platform as separate processes over one PostgreSQL. One of two cores gets all requests, or both
//! do. Measures the processor time of each part per request, with little logging.

use std::collections::BTreeMap;

use crate::{
    CONNECTIONS, DURATION, ROUNDS,
    endpoints::Endpoint,
    load::Load,
    platform::Platform,
    postgres::Postgres,
    processor_time::{postgres_processes, processor_time},
    progress_from_warm_up, random_order,
    requests::complete,
    reserved_addr::reserve_addr,
    server::Server,
    table::median,
};

const CORE_LIMITS: [&str; 4] = [
    "--rate-limit-client=off",
    "--rate-limit-peer=off",
    "--rate-limit-token-client=off",
    "--rate-limit-token-peer=off",
];

const GATEWAY_LIMITS: [&str; 3] = [
    "--rate-limit-client=off",
    "--rate-limit-token-address=off",
    "--rate-limit-token-client=off",
];

/// The fewest tasks for one measurement of completions.
const MIN_COMPLETIONS: usize = 2_000;

/// What a core logs: that it is ready, and warnings.
const CORE_LOG: &str = "warn,core_service=info,core_service::call_observer=off,audit=off";

/// The same for a gateway.
const GATEWAY_LOG: &str = "warn,rest_gateway::service=info";

/// Processor times of gateways, cores and PostgreSQL.
type Times = [f64; 3];

/// The rates and processor times per request of an endpoint with a number of cores.
type Results = BTreeMap<(&'static str, usize), Vec<(f64, Times)>>;

pub(crate) async fn measure(postgres: &Postgres) {
    let mut platform = Platform::start("PostgreSQL", Some(&postgres.url())).await;
    let endpoints = Endpoint::all(&platform).await;
    let board = platform.authorize("operator_client", "tasks:all").await;
    platform.stop().await;
    let processes = Processes::start(&platform, &postgres.url()).await;

    let mut loads = Vec::new();
    for Endpoint { name, requests } in endpoints {
        for (url, cores) in &processes.gateway_urls {
            let load = Load::new(url, requests.clone(), CONNECTIONS);
            loads.push(((name, *cores), load));
        }
    }
    let mut results = Results::new();
    for round in 0..=ROUNDS {
        progress_from_warm_up("separate processes", round);
        for index in random_order(loads.len()) {
            let (name, load) = &loads[index];
            let measured = processes.run(load, postgres).await;
            if round > 0 {
                results.entry(*name).or_default().push(measured);
            }
        }
    }

    print(&results);

    // Each is completed once.
    let pickups = "SELECT id FROM tasks WHERE kind = 'pickup' AND completed_at IS NULL";
    let pickups = postgres.query(pickups);
    let pickups: Vec<_> = pickups.lines().collect();
    let count = pickups.len() / (processes.gateway_urls.len() * (ROUNDS + 1));
    assert!(count >= MIN_COMPLETIONS, "only {count} tasks are to do");
    let mut pickups = pickups.chunks(count);
    let mut results = Results::new();
    for round in 0..=ROUNDS {
        progress_from_warm_up("completions", round);
        for index in random_order(processes.gateway_urls.len()) {
            let (url, cores) = &processes.gateway_urls[index];
            let tasks = pickups.next().unwrap().iter();
            let requests = tasks.map(|task| complete(&board, task)).collect();
            let mut load = Load::new(url, requests, CONNECTIONS);
            load.repeats = false;
            let measured = processes.run(&load, postgres).await;
            if round > 0 {
                let name = ("`PUT /api/tasks/{id}/done` of pickups", *cores);
                results.entry(name).or_default().push(measured);
            }
        }
    }
    print(&results);
}

fn print(results: &Results) {
    println!(
        "\n| separate processes, {CONNECTIONS} connections | cores with requests | requests/s | ms of gateways \
         | of cores | of PostgreSQL |\n|---|---|---|---|---|---|"
    );
    for ((name, cores), samples) in results {
        let medians = [0, 1, 2].map(|part| {
            let times: Vec<_> = samples.iter().map(|(_, times)| times[part]).collect();
            median(&times)
        });
        let rates: Vec<_> = samples.iter().map(|(rate, _)| *rate).collect();
        let [gateways, of_cores, of_postgres] = medians;
        println!(
            "| {name} | {cores} | {:.0} | {gateways:.2} | {of_cores:.2} | {of_postgres:.2} |",
            median(&rates)
        );
    }
}

/// Two cores, a gateway of the first, and a gateway of both.
struct Processes {
    cores: [Server; 2],
    gateways: [Server; 2],
    /// With the number of their cores.
    gateway_urls: [(String, usize); 2],
}

impl Processes {
    /// Starts them on the database of a platform that is stopped, whose tokens they accept.
    async fn start(platform: &Platform, database_url: &str) -> Self {
        let public_url = format!("--public-url={}", platform.base_url);
        let core_addrs = [reserve_addr(), reserve_addr()];
        let cores = core_addrs.map(|addr| {
            let file = |name: &str| platform.file(name).display().to_string();
            let mut arguments = vec![
                format!("--listen={addr}"),
                format!("--database-url={database_url}"),
                format!("--master-key-file={}", file("master.key")),
                format!("--gazetteer-file={}", file("addresses.sqlite")),
                public_url.clone(),
            ];
            arguments.extend(CORE_LIMITS.map(str::to_owned));
            Server::core("core", arguments).with_variable("RUST_LOG", CORE_LOG)
        });
        let gateway_addrs = [reserve_addr(), reserve_addr()];
        let gateways = [1, 2].map(|count| {
            let mut arguments = vec![
                format!("--listen={}", gateway_addrs[count - 1]),
                public_url.clone(),
            ];
            let cores = &core_addrs[..count];
            arguments.extend(cores.iter().map(|addr| format!("--core-url=http://{addr}")));
            arguments.extend(GATEWAY_LIMITS.map(str::to_owned));
            Server::gateway("gateway", arguments).with_variable("RUST_LOG", GATEWAY_LOG)
        });
        let mut processes = Self {
            cores,
            gateways,
            gateway_urls: [1, 2]
                .map(|count| (format!("http://{}", gateway_addrs[count - 1]), count)),
        };
        for server in processes.cores.iter_mut().chain(&mut processes.gateways) {
            server.start().await;
        }
        processes
    }

    /// The rate of a load, and the milliseconds of processor time of each request.
    async fn run(&self, load: &Load, postgres: &Postgres) -> (f64, Times) {
        let before = self.times(postgres);
        let sample = load.run(DURATION).await;
        let after = self.times(postgres);
        let milliseconds = |part: usize| (after[part] - before[part]) * 1000.0 / sample.requests;
        (sample.rate, [0, 1, 2].map(milliseconds))
    }

    fn times(&self, postgres: &Postgres) -> Times {
        let of = |servers: &[Server; 2]| {
            let times = servers.iter().map(|server| processor_time(server.id()));
            times.sum::<f64>()
        };
        let postgres = postgres_processes(postgres).into_iter();
        [
            of(&self.gateways),
            of(&self.cores),
            postgres.map(processor_time).sum(),
        ]
    }
}
