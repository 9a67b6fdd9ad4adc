//! The sources of traffic.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use proto::{CompleteTaskRequest, tasks_client::TasksClient};
use serde_json::{Value, json};
use tonic::{
    Code, Status,
    transport::{Channel, Endpoint},
};
use uuid::Uuid;

use super::traffic::{Access, Journal};
use crate::{
    caller::{Caller, iri},
    event_log::EventLog,
    grpc::with_token,
};

/// One delivery in this many gets only its pickup completed: no completion may be reported for it.
const UNFINISHED_INTERVAL: usize = 4;

/// How long a token is used; it is valid for an hour.
const TOKEN_AGE: Duration = Duration::from_mins(10);

/// The timeout of a call over gRPC.
const CALL_TIMEOUT: Duration = Duration::from_secs(40);

/// The pause before a retry: an immediate one would take processor time from the recovering
/// platform.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// A caller whose token is replaced in time.
struct AuthorizedCaller {
    caller: Caller,
    issued: Instant,
}

impl AuthorizedCaller {
    fn new(caller: Caller) -> Self {
        Self {
            caller,
            issued: Instant::now(),
        }
    }

    async fn caller(&mut self, journal: &Journal) -> &Caller {
        if self.issued.elapsed() > TOKEN_AGE {
            let issued = journal.count_rest("token", self.caller.request_token().await);
            if let Some(token) = issued {
                self.caller
                    .set_token(token["access_token"].as_str().unwrap());
                self.issued = Instant::now();
            }
        }
        &self.caller
    }
}

/// One source of traffic, which takes a step at most once per interval.
pub(super) trait Actor: Send + 'static {
    const STEP_INTERVAL: Duration;

    fn step(&mut self, journal: &Journal) -> impl Future<Output = ()> + Send;
}

/// Creates deliveries and completes their tasks.
pub(super) struct Creator {
    shop: AuthorizedCaller,
    board: AuthorizedCaller,
    task_clients: Vec<TasksClient<Channel>>,
    steps: usize,
}

impl Actor for Creator {
    const STEP_INTERVAL: Duration = Duration::from_secs(1);

    async fn step(&mut self, journal: &Journal) {
        self.steps += 1;
        let delivery = self.create(journal).await;
        let [pickup, dropoff] = ["pickup", "dropoff"].map(|task| iri(&delivery[task]));
        journal.write(|acknowledged| acknowledged.requested.insert(pickup.to_owned()));
        self.complete_over_grpc(journal, pickup).await;
        journal.write(|acknowledged| acknowledged.done.insert(pickup.to_owned()));
        if !self.steps.is_multiple_of(UNFINISHED_INTERVAL) {
            journal.write(|acknowledged| acknowledged.requested.insert(dropoff.to_owned()));
            self.complete_over_rest(journal, dropoff).await;
            journal.write(|acknowledged| acknowledged.done.insert(dropoff.to_owned()));
        }
    }
}

impl Creator {
    pub(super) async fn new(access: &Access, first_step: usize) -> Self {
        Self {
            shop: AuthorizedCaller::new(access.shop().await),
            board: AuthorizedCaller::new(access.board().await),
            task_clients: access
                .core_urls
                .iter()
                .map(|url| task_client(url))
                .collect(),
            steps: first_step,
        }
    }

    /// Retried until it succeeds, with the same key, so that a delivery whose response was lost is
    /// not created again.
    async fn create(&mut self, journal: &Journal) -> Value {
        let key = Uuid::now_v7().to_string();
        let shop = self.shop.caller(journal).await;
        loop {
            let created = shop.create_delivery_with_key(&key).await;
            if let Some(delivery) = journal.count_rest("create", created) {
                journal.write(|acknowledged| acknowledged.created(&key, delivery.clone()));
                return delivery;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// Retried until it succeeds; each attempt asks the next core.
    async fn complete_over_grpc(&mut self, journal: &Journal, task: &str) {
        let board = self.board.caller(journal).await;
        for attempt in 0.. {
            let name = proto::iri::name(task).to_owned();
            let request = with_token(
                board.token(),
                CompleteTaskRequest {
                    name,
                    ..Default::default()
                },
            );
            let core = (self.steps + attempt) % self.task_clients.len();
            let done = self.task_clients[core].complete_task(request).await;
            if journal
                .count("complete over gRPC", done, is_expected)
                .is_some()
            {
                return;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// Retried until it succeeds.
    async fn complete_over_rest(&mut self, journal: &Journal, task: &str) {
        let board = self.board.caller(journal).await;
        while journal
            .count_rest("complete", board.complete(task).await)
            .is_none()
        {
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}

/// Reads, in turn, a page of the list, a delivery, a task and a price.
pub(super) struct Reader {
    shop: AuthorizedCaller,
    steps: usize,
}

impl Reader {
    pub(super) async fn new(access: &Access, first_step: usize) -> Self {
        let shop = AuthorizedCaller::new(access.shop().await);
        Self {
            shop,
            steps: first_step,
        }
    }
}

impl Actor for Reader {
    const STEP_INTERVAL: Duration = Duration::from_millis(500);

    async fn step(&mut self, journal: &Journal) {
        let last = journal.write(|acknowledged| acknowledged.created.last().cloned());
        let Some((_, delivery)) = last else {
            return;
        };
        let shop = self.shop.caller(journal).await;
        self.steps += 1;
        let (kind, result) = match self.steps % 4 {
            0 => ("list", shop.get("/api/deliveries").await),
            1 => ("read a delivery", shop.get(iri(&delivery)).await),
            2 => ("read a task", shop.get(iri(&delivery["dropoff"])).await),
            _ => {
                let draft = json!({
                    "dropoff": {
                        "address": "48 Rue de Rivoli, 75004 Paris",
                        "before": "tomorrow 13:00",
                    },
                });
                let path = "/api/retail_prices/calculate";
                ("price", shop.post(path, &draft, None).await)
            }
        };
        journal.count_rest(kind, result);
    }
}

/// Opens a connection, gets a token, polls events and lists time slots.
pub(super) struct NewConnectionClient(pub(super) Access);

impl Actor for NewConnectionClient {
    /// Two actors with the same API client stay below its limit of 60 tokens in a minute.
    const STEP_INTERVAL: Duration = Duration::from_secs(3);

    async fn step(&mut self, journal: &Journal) {
        let Access {
            base_urls, shop, ..
        } = &self.0;
        let client = Caller::try_authorized(base_urls, shop, "deliveries").await;
        let Some(client) = journal.count_rest("token", client) else {
            return;
        };
        let events = client.get("/api/events?itemsPerPage=30").await;
        journal.count_rest("events", events);
        let choices = client.get("/api/time_slots/choices").await;
        journal.count_rest("time slots", choices);
    }
}

/// Copies the event log.
pub(super) struct Follower {
    shop: AuthorizedCaller,
    log: Arc<tokio::sync::Mutex<EventLog>>,
}

impl Follower {
    pub(super) async fn new(access: &Access, log: Arc<tokio::sync::Mutex<EventLog>>) -> Self {
        let shop = AuthorizedCaller::new(access.shop().await);
        Self { shop, log }
    }
}

impl Actor for Follower {
    const STEP_INTERVAL: Duration = Duration::from_secs(1);

    async fn step(&mut self, journal: &Journal) {
        let shop = self.shop.caller(journal).await;
        let read = self.log.lock().await.read_new(shop).await;
        journal.count_rest("follow events", read);
    }
}

/// A connection to a core, opened by the first call and again after it broke.
fn task_client(core_url: &str) -> TasksClient<Channel> {
    let endpoint = Endpoint::from_shared(core_url.to_owned()).unwrap();
    TasksClient::new(endpoint.timeout(CALL_TIMEOUT).connect_lazy())
}

/// Whether a call may end so when a core is killed or has no database. Without a response, tonic
/// reports a broken connection as `Unknown`, `Internal` or `Cancelled`.
fn is_expected(status: &Status) -> bool {
    let codes = [Code::Unknown, Code::Internal, Code::Cancelled];
    status.code() == Code::Unavailable
        || (codes.contains(&status.code()) && std::error::Error::source(status).is_some())
}
