//! The all-in-one over one of its databases.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use http_body_util::BodyExt;
use hyper::{Request, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::{
    processor_time::processor_time,
    requests::{Body, SHOP_SCOPE, get, token},
    reserved_addr::reserve_addr,
    server::Server,
};

/// A client may have 16 lists in flight, and the benchmark has 32 connections.
const CLIENTS_THAT_LIST: usize = 4;

/// The program of this commit.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_delivery");

pub(crate) struct Platform {
    pub(crate) database: &'static str,
    pub(crate) base_url: String,
    /// `Basic` credentials of the demo's shop.
    pub(crate) credentials: String,
    /// `Bearer` token of the demo's shop.
    pub(crate) authorization: String,
    /// A list of the newest 30 deliveries, by each of the shop's clients.
    pub(crate) lists: Vec<Request<Body>>,
    server: Server,
    directory: TempDir,
}

impl Platform {
    pub(crate) async fn start(database: &'static str, database_url: Option<&str>) -> Self {
        Self::start_program(Path::new(PROGRAM), database, database_url).await
    }

    pub(crate) async fn start_program(
        program: &Path,
        database: &'static str,
        database_url: Option<&str>,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data_dir = directory.path().to_str().unwrap();
        let mut arguments = vec![
            format!("--rest-listen={}", reserve_addr()),
            format!("--core-listen={}", reserve_addr()),
            format!("--data-dir={data_dir}"),
        ];
        arguments.extend(database_url.map(|url| format!("--database-url={url}")));
        let mut server = Server::new("delivery", program, arguments, ("ready:", 1));
        server.start().await;
        let mut platform = Self {
            database,
            base_url: String::new(),
            credentials: String::new(),
            authorization: String::new(),
            lists: Vec::new(),
            server,
            directory,
        };
        platform.base_url = text(&platform.ready()["base_url"]);
        let ready = platform.ready();
        platform.credentials = credentials(&ready["demo_client"]);
        platform.authorization = platform.authorize("demo_client", SHOP_SCOPE).await;
        for _ in 0..CLIENTS_THAT_LIST {
            let mut command = Command::new(program);
            command.args(["clients", "create", "--json", "--name=Website"]);
            command.args(["--scopes=deliveries tasks", "--store"]);
            command.arg(text(&ready["store"]));
            let created = command
                .env("DELIVERY_DATA_DIR", platform.directory.path())
                .output();
            let created: Value = serde_json::from_slice(&created.unwrap().stdout).unwrap();
            let issued = platform.fetch(token(&credentials(&created), SHOP_SCOPE));
            let authorization = format!("Bearer {}", text(&issued.await["access_token"]));
            platform.lists.push(get("/api/deliveries", &authorization));
        }
        platform
    }

    /// What the platform has written when it was ready.
    fn ready(&self) -> Value {
        let ready = std::fs::read(self.file("ready.json")).unwrap();
        serde_json::from_slice(&ready).unwrap()
    }

    /// A `Bearer` token of one of the clients that the platform has made.
    pub(crate) async fn authorize(&self, client: &str, scope: &str) -> String {
        let credentials = credentials(&self.ready()[client]);
        let issued = self.fetch(token(&credentials, scope)).await;
        format!("Bearer {}", text(&issued["access_token"]))
    }

    /// Sends a request on a connection of its own, and returns the response's JSON.
    pub(crate) async fn fetch(&self, request: Request<Body>) -> Value {
        let addr = self.base_url.strip_prefix("http://").unwrap();
        let stream = TcpStream::connect(addr).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let response = sender.send_request(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(status.is_success(), "{status} {body:?}");
        serde_json::from_slice(&body).unwrap()
    }

    pub(crate) async fn stop(&mut self) {
        assert!(self.server.terminate().await.success());
    }

    pub(crate) async fn start_again(&mut self) {
        self.server.start().await;
    }

    pub(crate) fn sqlite_file(&self) -> PathBuf {
        self.file("delivery.sqlite")
    }

    /// A file of the data directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn id(&self) -> u32 {
        self.server.id()
    }

    pub(crate) fn resident_kib(&self) -> u64 {
        self.server.status("VmRSS:")
    }

    /// Processor time of the process in seconds.
    pub(crate) fn processor_time(&self) -> f64 {
        processor_time(self.server.id())
    }

    /// Memory, and processor time while nothing is requested.
    pub(crate) async fn idle_usage(&self, duration: Duration) -> String {
        let before = self.processor_time();
        tokio::time::sleep(duration).await;
        let share = (self.processor_time() - before) / duration.as_secs_f64();
        let resident = self.resident_kib();
        format!(
            "{resident} KiB resident, {:.1} % of a processor",
            100.0 * share
        )
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// `Basic` credentials of a client, as commands and `ready.json` show it.
fn credentials(client: &Value) -> String {
    let pair = [&client["api_key"], &client["api_secret"]].map(text);
    format!("Basic {}", STANDARD.encode(pair.join(":")))
}
