//! `/readyz` of cores and gateways: 200 only if a write would succeed and texts can be geocoded, and
//! an answer within a second; and cores whose clocks differ.

use std::{
    net::SocketAddr,
    process::Command,
    time::{Duration, Instant},
};

use delivery::Credentials;
use serde_json::{Value, json};

use crate::{
    all_processors,
    api_client::ApiClient,
    clock,
    cluster::{ADDRESSES, credentials},
    eventually,
    files::Files,
    health::{readiness, wait_until_ready},
    postgres::Postgres,
    program::{self, PROGRAMS},
    reserved_addr::reserve_addr,
    server::Server,
    startup_errors::assert_error,
};

/// The guaranteed second, and what a busy machine may add.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(1000 + 500);

/// Far longer than a change takes to be noticed.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(20);

/// The flags and the environment of a core.
type CoreSettings<'a> = (&'a [&'a str], &'a [(&'a str, String)]);

/// A core, with the addresses of its gRPC API and of its `/readyz`.
pub(crate) struct Core {
    pub(crate) server: Server,
    pub(crate) addr: SocketAddr,
    pub(crate) health: SocketAddr,
}

/// Cores on one PostgreSQL, and a gateway.
pub(crate) struct Platform {
    pub(crate) postgres: Postgres,
    pub(crate) files: Files,
    /// The output of `bootstrap`.
    pub(crate) clients: Value,
    pub(crate) cores: Vec<Core>,
    pub(crate) gateway: Server,
    pub(crate) gateway_addr: SocketAddr,
}

impl Platform {
    /// Starts a core for each entry. `None` without PostgreSQL.
    pub(crate) async fn start(cores: &[CoreSettings<'_>]) -> Option<Self> {
        let postgres = Postgres::start()?;
        let files = Files::new();
        let common = [
            format!("--database-url={}", postgres.url()),
            format!("--master-key-file={}", files.path("master.key")),
            "--public-url=http://delivery.example".to_owned(),
        ];
        let clients = PROGRAMS.bootstrap(&common);
        let mut started = Vec::new();
        for (index, (flags, environment)) in cores.iter().enumerate() {
            let [addr, health] = [reserve_addr(), reserve_addr()];
            let mut arguments = common.to_vec();
            arguments.push(format!("--listen={addr}"));
            arguments.push(format!("--health-listen={health}"));
            arguments.push(format!(
                "--gazetteer-file={}",
                files.path(&gazetteer_file(index))
            ));
            arguments.extend(flags.iter().map(|&flag| flag.to_owned()));
            let mut server = Server::core(&format!("core {index}"), arguments);
            for (name, value) in *environment {
                server = server.with_variable(name, value);
            }
            server.start().await;
            started.push(Core {
                server,
                addr,
                health,
            });
        }
        let gateway_addr = reserve_addr();
        let mut arguments: Vec<_> = started
            .iter()
            .map(|core| format!("--core-url=http://{}", core.addr))
            .collect();
        arguments.push(format!("--listen={gateway_addr}"));
        let mut gateway = Server::gateway("gateway", arguments);
        gateway.start().await;
        Some(Self {
            postgres,
            files,
            clients,
            cores: started,
            gateway,
            gateway_addr,
        })
    }

    fn health(&self, core: usize) -> SocketAddr {
        self.cores[core].health
    }

    /// The JSON of an operator's command to a core.
    pub(crate) fn operator(&self, core: usize, arguments: &[&str]) -> Value {
        program::json(&mut self.operator_command(core, arguments))
    }

    fn operator_command(&self, core: usize, arguments: &[&str]) -> Command {
        let client = credentials(&self.clients["operator_client"]);
        let core_url = format!("http://{}", self.cores[core].addr);
        let mut command = PROGRAMS.operator_command(&core_url, &client);
        command.args(arguments).arg("--json");
        command
    }

    /// The API client of a new shop.
    pub(crate) fn create_client(&self) -> Credentials {
        let location = "--lat-lng=48.8554,2.3596";
        let store = self.operator(0, &["stores", "create", "--name=Shop", location]);
        let store = format!("--store={}", store["id"].as_str().unwrap());
        let scopes = "--scopes=deliveries tasks";
        credentials(&self.operator(0, &["clients", "create", &store, "--name=Till", scopes]))
    }

    /// A new shop's client, at the gateway.
    async fn shop(&self) -> ApiClient {
        let gateway = format!("http://{}", self.gateway_addr);
        let scopes = ["deliveries", "tasks"];
        ApiClient::authorized(&gateway, &self.create_client(), &scopes).await
    }
}

/// The name of a core's own file of addresses.
fn gazetteer_file(core: usize) -> String {
    format!("gazetteer {core}")
}

/// The reason of a 503 from `/readyz`, once there is one.
async fn wait_until_not_ready(addr: SocketAddr) -> String {
    wait_for_reason(addr, "").await
}

/// The reason of a 503 from `/readyz`, once it contains this.
async fn wait_for_reason(addr: SocketAddr, expected: &str) -> String {
    let what = format!("{addr} does not become unready: {expected}");
    eventually(NOTICE_TIMEOUT, &what, async || {
        let asked = Instant::now();
        let (status, body) = readiness(addr).await;
        assert!(asked.elapsed() < ANSWER_TIMEOUT, "{:?}", asked.elapsed());
        (status == "503" && body.contains(expected)).then_some(body)
    })
    .await
}

/// A core that needs no addresses, and a gateway, both ready; with the core's health listener.
async fn ready_platform() -> Option<(Platform, SocketAddr)> {
    let platform = Platform::start(&[(&["--geocoder=none"], &[])]).await?;
    let health = platform.health(0);
    wait_until_ready(health).await;
    wait_until_ready(platform.gateway_addr).await;
    Some((platform, health))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_core_is_not_ready_on_a_standby_until_it_is_promoted() {
    let _processors = all_processors().await;
    let Some((mut platform, health)) = ready_platform().await else {
        return;
    };

    platform.postgres.become_standby();

    // While it restarts, it refuses connections.
    let reason = wait_for_reason(health, "standby").await;
    assert_eq!(
        reason,
        "this PostgreSQL is a standby, which accepts no writes: name the primary in the database's URL, or wait until a failover has promoted one\n"
    );
    wait_until_not_ready(platform.gateway_addr).await;
    assert_error(
        &mut platform.operator_command(0, &["stores", "create", "--name=Shop"]),
        1,
        "the database accepts no writes: promote the standby, or name the primary in the database URL of the core; a file must be writable by it",
    );
    platform.postgres.promote();
    wait_until_ready(health).await;
    wait_until_ready(platform.gateway_addr).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_is_answered_within_a_second_while_postgresql_is_frozen() {
    let _processors = all_processors().await;
    let Some((mut platform, health)) = ready_platform().await else {
        return;
    };

    platform.postgres.pause();

    for addr in [health, platform.gateway_addr] {
        wait_until_not_ready(addr).await;
        let asked = Instant::now();
        assert_eq!(readiness(addr).await.0, "503");
        assert!(asked.elapsed() < ANSWER_TIMEOUT, "{:?}", asked.elapsed());
    }
    platform.postgres.resume();
    wait_until_ready(health).await;
    wait_until_ready(platform.gateway_addr).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_core_without_addresses_is_not_ready_and_serves_no_requests_while_another_has_them() {
    let _processors = all_processors().await;
    let Some(platform) = Platform::start(&[(&[], &[]), (&[], &[])]).await else {
        return;
    };
    let reason = wait_until_not_ready(platform.health(0)).await;
    assert!(reason.contains("delivery addresses import"), "{reason}");
    assert!(reason.contains("--geocoder none"), "{reason}");
    wait_until_not_ready(platform.gateway_addr).await;

    platform.operator(0, &["addresses", "import", ADDRESSES]);

    wait_until_ready(platform.health(0)).await;
    wait_until_ready(platform.gateway_addr).await;
    assert_eq!(
        wait_until_not_ready(platform.health(1)).await,
        reason.replace(&gazetteer_file(0), &gazetteer_file(1))
    );
    let unready = format!(
        "core is not ready or is shutting down core=http://{}",
        platform.cores[1].addr
    );
    platform.gateway.wait_for_line(&unready).await;
    let shop = platform.shop().await;
    let draft = json!({
        "dropoff": { "address": "48 Rue de Rivoli, 75004 Paris", "before": "tomorrow 13:00" }
    });
    for _ in 0..20 {
        shop.post("/api/deliveries", draft.clone())
            .await
            .expect(201);
    }
    let directory = platform.files.directory();
    assert!(directory.join(gazetteer_file(0)).exists());
    assert!(!directory.join(gazetteer_file(1)).exists());
}

/// The clocks differ by 25 s, more than those of hosts that are synchronized.
#[tokio::test(flavor = "multi_thread")]
async fn cores_accept_each_others_tokens_while_their_clocks_differ_and_warn_above_2_s() {
    let _processors = all_processors().await;
    let Some(library) = clock::find_library("clocks of hosts that differ") else {
        return;
    };
    let environments = ["+20s", "-5s", "+1.5s"].map(|offset| clock::shifted(&library, offset));
    let flags: &[&str] = &["--geocoder=none"];
    let cores: Vec<_> = environments
        .iter()
        .map(|names| (flags, &names[..]))
        .collect();
    let Some(platform) = Platform::start(&cores).await else {
        return;
    };

    for (core, ahead) in [(0, 20.0), (1, -5.0)] {
        let warning = "the clock of this host differs from PostgreSQL's by ";
        let warned = platform.cores[core].server.wait_for_line(warning).await;
        assert!(warned.contains("WARN"), "{warned}");
        // On a busy machine, PostgreSQL's clock is read a moment later than the host's.
        let (_, difference) = warned.split_once(warning).unwrap();
        let difference: f64 = difference.split(' ').next().unwrap().parse().unwrap();
        assert!((difference - ahead).abs() < 1.0, "{warned}");
    }
    let shop = platform.shop().await;
    for _ in 0..6 {
        // Round robin: a token of one core, a request to another.
        shop.get("/api/me").await.expect(200);
        platform.shop().await.get("/api/me").await.expect(200);
    }
    let output = platform.cores[2].server.output();
    let warned = output.iter().find(|line| line.contains("differs from"));
    assert_eq!(warned, None);
}
