//! A cluster: two cores, two gateways and two dispatchers on one PostgreSQL.

use std::{
    io::Write as _,
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use delivery::Credentials;
use serde::Deserialize as _;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    caller::Caller,
    postgres::Postgres,
    program::{self, PROGRAMS, Programs},
    reserved_addr::reserve_addr,
    server::Server,
};

/// The public URL in tokens; no gateway listens there.
const PUBLIC_URL: &str = "http://delivery.example";

/// The demo's addresses.
pub(crate) const ADDRESSES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/core-service/geocoding/src/paris.csv"
);

/// Permits receivers on loopback over http.
pub(crate) const RECEIVER_FLAGS: [&str; 2] = ["--allow-http", "--allow-network=127.0.0.0/8"];

const PRICE_LIST: &str = r#"
currency = "EUR"
tax = { name = "VAT", rate = 2000 }
strategy = "first"

[[rule]]
name = "Anywhere"
when = "distance >= 0"
price = 499
"#;

const TIME_SLOT: &str = r#"
name = "Midday and afternoon"
opening_hours = ["Mo-Su 12:00-14:00", "Mo-Su 14:00-17:00"]
interval = "2 days"
"#;

/// Expires every lease.
pub(crate) const EXPIRE_LEASES: &str =
    "UPDATE notifications SET lease_expires_at = 0 WHERE state = 'leased'";

/// Six processes and a shop.
pub(crate) struct Cluster {
    pub(crate) gateways: [Server; 2],
    pub(crate) cores: [Server; 2],
    pub(crate) dispatchers: [Server; 2],
    pub(crate) postgres: Postgres,
    /// `http://127.0.0.1:<port>` each.
    pub(crate) gateway_urls: [String; 2],
    /// `http://127.0.0.1:<port>` each.
    pub(crate) core_urls: [String; 2],
    /// The health listeners of the gateways.
    pub(crate) gateway_health: [SocketAddr; 2],
    /// The operator's client: scopes `tasks:all admin`.
    pub(crate) operator_client: Credentials,
    /// The dispatchers' client: scope `notifications`.
    pub(crate) dispatcher_client: Credentials,
    /// The shop's client: scopes `deliveries tasks`.
    pub(crate) shop_client: Credentials,
    /// The shop's id.
    store: String,
    directory: TempDir,
    /// The programs that it was started from.
    programs: &'static Programs,
}

impl Cluster {
    /// Starts a cluster and PostgreSQL; `None`, with a message on stderr, on a machine without
    /// PostgreSQL.
    pub(crate) async fn start() -> Option<Self> {
        let postgres = Postgres::start()?;
        let url = postgres.url();
        Some(Self::start_on(postgres, &url).await)
    }

    /// Starts a cluster on a running PostgreSQL, which it reaches by a URL.
    pub(crate) async fn start_on(postgres: Postgres, database_url: &str) -> Self {
        Self::start_programs(&PROGRAMS, postgres, database_url).await
    }

    /// Like [`Cluster::start_on`], with other programs.
    pub(crate) async fn start_programs(
        programs: &'static Programs,
        postgres: Postgres,
        database_url: &str,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let core_arguments = vec![
            format!("--database-url={database_url}"),
            format!("--master-key-file={}", path(&directory, "master.key")),
            format!("--public-url={PUBLIC_URL}"),
            format!("--gazetteer-file={}", path(&directory, "addresses.sqlite")),
        ];
        let clients = programs.bootstrap(&core_arguments);
        let dispatcher_client = credentials(&clients["dispatcher_client"]);
        let secret_file = path(&directory, "dispatcher.secret");
        write_secret(&secret_file, &dispatcher_client.api_secret);

        let core_addrs = [reserve_addr(), reserve_addr()];
        let gateway_addrs = [reserve_addr(), reserve_addr()];
        let gateway_health = [reserve_addr(), reserve_addr()];
        let core_urls = core_addrs.map(url);
        let core_url_flags = core_urls.clone().map(|url| format!("--core-url={url}"));
        let cores = [0, 1].map(|number| {
            let mut arguments = core_arguments.clone();
            arguments.push(format!("--listen={}", core_addrs[number]));
            arguments.extend(RECEIVER_FLAGS.map(str::to_owned));
            let name = format!("core {number}");
            // The text that it prints when it is ready, and how many times.
            let ready = ("serving", 1);
            Server::new(&name, &programs.core, arguments, ready)
        });
        let gateways = [0, 1].map(|number| {
            let mut arguments = core_url_flags.to_vec();
            arguments.push(format!("--listen={}", gateway_addrs[number]));
            arguments.push(format!("--health-listen={}", gateway_health[number]));
            // Long enough for a client that gets no processor time for a second.
            arguments.push("--drain-grace=4s".to_owned());
            arguments.push(format!("--public-url={PUBLIC_URL}"));
            let name = format!("gateway {number}");
            let ready = ("serving the REST API", 1);
            Server::new(&name, &programs.gateway, arguments, ready)
        });
        let dispatchers = [0, 1].map(|number| {
            let mut arguments = core_url_flags.to_vec();
            arguments.push(format!("--client-key={}", dispatcher_client.api_key));
            arguments.push(format!("--client-secret-file={secret_file}"));
            arguments.extend(RECEIVER_FLAGS.map(str::to_owned));
            let name = format!("dispatcher {number}");
            let ready = ("stream from core is open", 2);
            Server::new(&name, &programs.dispatcher, arguments, ready)
        });

        let operator_client = credentials(&clients["operator_client"]);
        let mut cluster = Self {
            gateways,
            cores,
            dispatchers,
            postgres,
            gateway_urls: gateway_addrs.map(url),
            core_urls,
            gateway_health,
            // The shop is created once the processes run.
            shop_client: operator_client.clone(),
            store: String::new(),
            operator_client,
            dispatcher_client,
            directory,
            programs,
        };
        for server in cluster.servers() {
            server.start().await;
        }
        cluster.store = cluster.create_shop();
        cluster.shop_client = cluster.create_client();
        cluster
    }

    /// Every process, in start order.
    pub(crate) fn servers(&mut self) -> impl Iterator<Item = &mut Server> {
        let others = self.gateways.iter_mut().chain(&mut self.dispatchers);
        self.cores.iter_mut().chain(others)
    }

    /// The shop's client, behind a load balancer over both gateways.
    pub(crate) async fn shop(&self) -> Caller {
        Caller::authorized(&self.gateway_urls, &self.shop_client, "deliveries tasks").await
    }

    /// A client that completes tasks, behind a load balancer over both gateways.
    pub(crate) async fn dispatch_board(&self) -> Caller {
        Caller::authorized(&self.gateway_urls, &self.operator_client, "tasks:all").await
    }

    /// Creates webhooks with `due` due notifications each, and terminates the dispatchers and one
    /// core.
    pub(crate) async fn prepare_backlog(&mut self, webhooks: usize, due: usize) {
        let shop = self.shop().await;
        for _ in 0..webhooks {
            shop.subscribe("http://127.0.0.1:8000/hook").await;
        }
        for dispatcher in &mut self.dispatchers {
            dispatcher.terminate().await;
        }
        self.cores[1].terminate().await;
        self.postgres.sql(&format!(
            "INSERT INTO notifications (store_id, id, event_id, webhook_id, event, delivery_id,
                 state, attempts, attempts_at_resend, due_at, created_at)
             SELECT store_id, gen_random_uuid(), gen_random_uuid(), id, event, gen_random_uuid(),
                 'pending', 0, 0, number, number
             FROM webhooks, generate_series(1, {due}) AS number;
             ANALYZE notifications;
             UPDATE webhooks SET receiver_health = 'healthy', is_proven = true, next_due_at = 1"
        ));
    }

    /// Creates another API client of the shop with the operator's command.
    pub(crate) fn create_client(&self) -> Credentials {
        let store = format!("--store={}", self.store);
        let scopes = "--scopes=deliveries tasks";
        credentials(&self.operator(&["clients", "create", &store, "--name=Till", scopes]))
    }

    /// Creates a shop with the operator's commands; returns its id.
    fn create_shop(&self) -> String {
        // Both cores read the same gazetteer.
        self.operator(&["addresses", "import", ADDRESSES]);
        let store = self.operator(&[
            "stores",
            "create",
            "--name=Shop",
            "--address=24 Rue de la Paix, 75002 Paris",
        ]);
        let id = store["id"].as_str().unwrap().to_owned();
        for (command, definition) in [("prices", PRICE_LIST), ("time-slots", TIME_SLOT)] {
            self.apply(command, definition, &id);
        }
        id
    }

    /// Replaces the shop's price list.
    pub(crate) fn apply_price_list(&self, definition: &str) {
        self.apply("prices", definition, &self.store);
    }

    /// Replaces the shop's time slots.
    pub(crate) fn apply_time_slot(&self, definition: &str) {
        self.apply("time-slots", definition, &self.store);
    }

    /// Adds or replaces zones.
    pub(crate) fn apply_zones(&self, geo_json: &Value) {
        let file = self.directory.path().join("zones");
        std::fs::write(&file, geo_json.to_string()).unwrap();
        self.operator(&["zones", "apply", file.to_str().unwrap()]);
    }

    fn apply(&self, command: &str, definition: &str, store: &str) {
        let file = self.directory.path().join(command);
        std::fs::write(&file, definition).unwrap();
        let store = format!("--store={store}");
        self.operator(&[command, "apply", file.to_str().unwrap(), &store]);
    }

    fn operator(&self, arguments: &[&str]) -> Value {
        let operator = &self.operator_client;
        let mut command = self.programs.operator_command(&self.core_urls[0], operator);
        program::json(command.args(arguments).arg("--json"))
    }
}

/// Writes or replaces a file that only its owner can read.
pub(crate) fn write_secret(path: impl AsRef<Path>, secret: &str) {
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .unwrap();
    file.write_all(secret.as_bytes()).unwrap();
}

fn path(directory: &TempDir, file: &str) -> String {
    let path: PathBuf = directory.path().join(file);
    path.to_str().unwrap().to_owned()
}

fn url(addr: SocketAddr) -> String {
    format!("http://{addr}")
}

/// The key and secret in the JSON of an API client.
pub(crate) fn credentials(json: &Value) -> Credentials {
    Credentials::deserialize(json).unwrap()
}
