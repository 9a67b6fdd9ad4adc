//! Errors of the operator's commands: the cause, and the command or setting that resolves it.

use std::process::Command;

use serde_json::{Value, json};

use crate::{
    api_client::ApiClient,
    cluster::{RECEIVER_FLAGS, credentials},
    files::Files,
    grpc::NOT_A_CORE,
    program::{self, PROGRAMS},
    reserved_addr::reserve_addr,
    server::Server,
    startup_errors::assert_error,
};

/// A core over SQLite without addresses and dispatchers, and a gateway.
struct Platform {
    files: Files,
    clients: Value,
    core_url: String,
    gateway_url: String,
    _servers: [Server; 2],
}

impl Platform {
    async fn start() -> Self {
        let files = Files::new();
        let [core_addr, gateway_addr] = [reserve_addr(), reserve_addr()];
        let [core_url, gateway_url] =
            [core_addr, gateway_addr].map(|addr| format!("http://{addr}"));
        let (mut arguments, clients) = files.bootstrap();
        arguments.extend([
            format!("--gazetteer-file={}", files.path("addresses.sqlite")),
            format!("--public-url={gateway_url}"),
            format!("--listen={core_addr}"),
        ]);
        arguments.extend(RECEIVER_FLAGS.map(str::to_owned));
        let mut core = Server::core("core", arguments);
        core.start().await;
        let arguments = vec![
            format!("--listen={gateway_addr}"),
            format!("--core-url={core_url}"),
        ];
        let mut gateway = Server::gateway("gateway", arguments);
        gateway.start().await;
        Self {
            files,
            clients,
            core_url,
            gateway_url,
            _servers: [core, gateway],
        }
    }

    fn operator(&self, arguments: &[&str]) -> Command {
        let client = credentials(&self.clients["operator_client"]);
        let mut command = PROGRAMS.operator_command(&self.core_url, &client);
        command.args(arguments);
        command
    }

    /// A webhook of a new shop, which nothing listens to.
    async fn create_webhook(&self) -> String {
        let store =
            program::json(&mut self.operator(&["stores", "create", "--name=Shop", "--json"]));
        let store = format!("--store={}", store["id"].as_str().unwrap());
        let arguments = ["clients", "create", &store, "--name=Till", "--scopes=tasks"];
        let client = program::json(self.operator(&arguments).arg("--json"));
        let client = credentials(&client);
        let client = ApiClient::authorized(&self.gateway_url, &client, &["tasks"]).await;
        let draft = json!({ "event": "delivery.completed", "url": "http://127.0.0.1:1/" });
        let webhook = client.post("/api/webhooks", draft).await.expect(201);
        webhook["id"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn an_error_names_its_cause_and_what_resolves_it() {
    let platform = Platform::start().await;
    let webhook = platform.create_webhook().await;
    let empty = platform.files.write("empty.csv", 0o600, "");

    let no_addresses = format!(
        "core cannot geocode: there is no usable address index at {}; run `delivery addresses import FILE…`, give the core another --geocoder, or `--geocoder none` if all addresses have points",
        platform.files.path("addresses.sqlite")
    );
    for arguments in [
        &["addresses", "search", "48 Rue de Rivoli, 75004 Paris"][..],
        &[
            "stores",
            "create",
            "--name=Shop",
            "--address=48 Rue de Rivoli, 75004 Paris",
        ],
    ] {
        assert_error(&mut platform.operator(arguments), 1, &no_addresses);
    }
    assert_error(
        &mut platform.operator(&["webhooks", "test", &webhook]),
        1,
        "no webhook dispatcher is connected to this core: start a webhook-dispatcher with this core in its --core-url",
    );
    assert_error(
        &mut platform.operator(&["addresses", "import", &empty]),
        1,
        &format!("{empty} is empty"),
    );
    let gateway_url = &platform.gateway_url;
    let rejected = program::output(
        platform
            .operator(&["stores", "list"])
            .args(["--core-url", gateway_url]),
    );
    let printed = String::from_utf8_lossy(&rejected.stderr);
    let cause = "cannot get an access token for the operator: ";
    assert!(
        printed.starts_with(&format!("{gateway_url} {NOT_A_CORE}: {cause}")),
        "{printed}"
    );
    assert!(printed.ends_with("status: 404 Not Found\n"), "{printed}");
    assert_eq!(rejected.status.code(), Some(1));
}

/// Like the programs that call cores, a command accepts the URLs of several.
#[tokio::test]
async fn a_command_calls_the_first_core_that_can_be_reached() {
    let platform = Platform::start().await;
    let unused = format!("http://{}", reserve_addr());

    for urls in [
        format!("{unused},{}", platform.core_url),
        format!("{},{unused}", platform.core_url),
    ] {
        let mut command = platform.operator(&["stores", "list", "--json"]);
        assert_eq!(
            program::json(command.env("DELIVERY_CORE_URL", urls)),
            json!([])
        );
    }
}
