//! What is attacked: running processes, their listeners, their memory, and the clients of a shop.

use std::{collections::BTreeMap, fmt, fs};

use hyper::Method;
use serde_json::json;
use tonic::transport::Endpoint;

use super::{attack::Target, haproxy::HaProxy, honest_client::HonestClient};
use crate::{
    all_in_one::AllInOne,
    caller::Caller,
    cluster::{Cluster, credentials},
    program,
    server::Server,
};

const SCOPES: &str = "deliveries tasks";

/// How many deliveries the attacker lists, which is a page, and the comment on each task: the longest.
const DELIVERIES: usize = 100;
const COMMENT: &str = "\u{1f6b2}";
const COMMENT_LENGTH: usize = 5_000;

pub(super) struct Victim {
    pub(super) name: &'static str,
    pub(super) honest_client: HonestClient,
    pub(super) rest: Target,
    pub(super) grpc: Target,
    /// The client whose token the targets have.
    attacker: Caller,
    platform: Platform,
    /// In front of the gateway.
    proxy: Option<HaProxy>,
}

enum Platform {
    Cluster(Box<Cluster>),
    AllInOne(Box<AllInOne>),
}

struct Urls {
    rest: String,
    core: String,
}

struct Clients {
    honest: Caller,
    attacker: Caller,
}

/// The resident memory of each process, in MiB.
pub(super) struct Memory(BTreeMap<String, u64>);

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self
            .0
            .iter()
            .map(|(process, mib)| format!("{process} {mib}"));
        write!(f, "{} MiB", parts.collect::<Vec<_>>().join(", "))
    }
}

async fn new_token(caller: &Caller) -> String {
    let issued = caller.request_token().await.unwrap();
    issued["access_token"].as_str().unwrap().to_owned()
}

impl Memory {
    pub(super) fn above(&self, before: &Self) -> impl Iterator<Item = (&str, u64)> {
        let processes = self.0.iter();
        processes.map(|(process, mib)| (&process[..], mib.saturating_sub(before.0[process])))
    }
}

impl Platform {
    /// The processes whose memory is measured.
    fn servers(&self) -> Vec<&Server> {
        match self {
            Self::Cluster(cluster) => {
                let [first, second] = &cluster.cores;
                vec![&cluster.gateways[0], first, second]
            }
            Self::AllInOne(platform) => vec![&platform.server],
        }
    }
}

impl Victim {
    /// A gateway and its cores; none on a machine without PostgreSQL.
    pub(super) async fn cluster() -> Option<Self> {
        let cluster = Cluster::start().await?;
        let rest = cluster.gateway_urls[0].clone();
        Some(Self::of_cluster("processes", cluster, rest).await)
    }

    /// A gateway behind the shipped `HAProxy`, which it trusts, and its cores.
    pub(super) async fn behind_haproxy() -> Option<Self> {
        let mut cluster = Cluster::start().await?;
        let gateway = &mut cluster.gateways[0];
        gateway.terminate().await;
        gateway.add_argument("--trusted-proxies=127.0.0.1");
        gateway.start().await;
        let url = &cluster.gateway_urls[0];
        let proxy = HaProxy::start(url.strip_prefix("http://").unwrap()).await?;
        let rest = format!("http://{}", proxy.addr);
        let mut victim = Self::of_cluster("behind HAProxy", cluster, rest).await;
        victim.proxy = Some(proxy);
        Some(victim)
    }

    async fn of_cluster(name: &'static str, cluster: Cluster, rest: String) -> Self {
        let core = cluster.core_urls[0].clone();
        let other = cluster.create_client();
        let clients = Clients {
            honest: cluster.shop().await.with_base_url(&rest),
            attacker: Caller::authorized(&cluster.gateway_urls[..1], &other, SCOPES).await,
        };
        let platform = Platform::Cluster(Box::new(cluster));
        Self::new(name, platform, clients, &Urls { rest, core }).await
    }

    pub(super) async fn all_in_one() -> Self {
        let platform = AllInOne::start().await;
        let ready = platform.ready();
        let text = |member: &str| ready[member].as_str().unwrap().to_owned();
        let urls = Urls {
            rest: text("base_url"),
            core: text("core_url"),
        };
        let store = format!("--store={}", text("store"));
        let scopes = "--scopes=deliveries tasks";
        let arguments = [
            "clients",
            "create",
            &store,
            "--name=Other",
            scopes,
            "--json",
        ];
        let other = program::parse(&platform.operator(&arguments));
        let clients = Clients {
            honest: platform.shop().await,
            attacker: platform.caller_for(&credentials(&other), SCOPES).await,
        };
        Self::new(
            "all-in-one",
            Platform::AllInOne(Box::new(platform)),
            clients,
            &urls,
        )
        .await
    }

    async fn new(name: &'static str, platform: Platform, clients: Clients, urls: &Urls) -> Self {
        let Clients { honest, attacker } = clients;
        let comments = COMMENT.repeat(COMMENT_LENGTH);
        let task = json!({
            "address": "48 Rue de Rivoli, 75004 Paris",
            "before": "tomorrow 13:00",
            "comments": comments,
        });
        let delivery = json!({ "pickup": task, "dropoff": task });
        for _ in 0..DELIVERIES {
            let created = attacker.call(Method::POST, "/api/deliveries", &delivery);
            created.await.unwrap();
        }
        let target = |url: &str| Target {
            addr: url.strip_prefix("http://").unwrap().parse().unwrap(),
            token: attacker.token().to_owned(),
        };
        let rest = target(&urls.rest);
        let endpoint = Endpoint::from_shared(urls.core.clone()).unwrap();
        Self {
            name,
            honest_client: HonestClient {
                shop: honest,
                rest: rest.addr,
                channel: endpoint.connect().await.unwrap(),
                endpoint,
            },
            rest,
            grpc: target(&urls.core),
            attacker,
            platform,
            proxy: None,
        }
    }

    /// Requests the tokens anew: all attacks together take longer than a token is valid.
    pub(super) async fn renew_tokens(&mut self) {
        let honest = new_token(&self.honest_client.shop).await;
        self.honest_client.shop.set_token(&honest);
        self.rest.token = new_token(&self.attacker).await;
        self.grpc.token.clone_from(&self.rest.token);
    }

    pub(super) fn memory(&self) -> Memory {
        self.status("VmRSS:")
    }

    /// The highest memory since the last reset.
    pub(super) fn peaks(&self) -> Memory {
        self.status("VmHWM:")
    }

    pub(super) fn reset_peaks(&self) {
        for server in self.platform.servers() {
            fs::write(format!("/proc/{}/clear_refs", server.id()), "5").unwrap();
        }
    }

    fn status(&self, line: &str) -> Memory {
        let servers = self.platform.servers().into_iter();
        let mib = servers.map(|server| (server.name().to_owned(), server.status(line) / 1024));
        Memory(mib.collect())
    }
}
