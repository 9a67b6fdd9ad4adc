//! Whole lives of deliveries while processes are killed: shops, dispatchers and phones send random commands, repeat
//! them, and report late. Then the histories of the tasks must be runs of a model, with everything acknowledged once,
//! and all that is derived from them must agree with them.

mod actors;
mod alterations;
mod client;
mod journal;
mod model;
mod oracle;
mod run;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use delivery::Credentials;
use hyper::Method;
use proto::{
    CreateApiClientRequest, CreateCourierRequest, Event, GetTaskRequest, ListEventsRequest,
    ListIncidentsRequest, ListTaskEventsRequest, ListTasksRequest, iri,
};
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::{
    actors::{Actor, World},
    client::{Client, until_answered},
    oracle::Evidence,
};
use crate::{
    all_in_one::AllInOne,
    caller::Caller,
    checker,
    cluster::{Cluster, EXPIRE_LEASES, credentials},
    fault::Fault,
    one_processor,
    random::{Random, configured_duration},
    webhook_receiver::WebhookReceiver,
};

/// The duration of a test, unless configured, and the time in which enough must have happened to compare: a slow
/// machine takes more of it.
const DEFAULT_DURATION: Duration = Duration::from_secs(12);
const MAX_DURATION: Duration = Duration::from_mins(4);

/// The fewest kills, and the fewest commands answered.
const MIN_KILLS: usize = 4;
const MIN_ANSWERS: u64 = 400;

/// Whether each event, a conflict and a late report exist. Each conflict has an incident: a further one is of a late
/// report.
const ALL_SEEN: &str = "SELECT CASE WHEN (SELECT count(DISTINCT name) FROM events) = 11
    AND (SELECT count(*) FROM task_events WHERE transition = 'conflict')
        BETWEEN 1 AND (SELECT count(*) FROM incidents) - 1 THEN 1 ELSE 0 END";

/// The maximum number of answers between two kills, and the number before the other core's restart.
const MAX_ANSWERS_BETWEEN_KILLS: u64 = 120;
const ANSWERS_DURING_KILL: u64 = 10;

const SHOPS: usize = 2;
const DESKS: usize = 2;
const PHONES: usize = 4;

/// Longer than what is left to do when the commands end.
const SETTLE_TIMEOUT: Duration = Duration::from_mins(2);

/// All of a delivery.
const EVENTS: [&str; 11] = [
    "delivery.assigned",
    "delivery.cancelled",
    "delivery.completed",
    "delivery.created",
    "delivery.dropped",
    "delivery.failed",
    "delivery.in_transit",
    "delivery.picked",
    "delivery.reopened",
    "delivery.rescheduled",
    "delivery.started",
];

/// What a test must have seen.
const SEEN: [&str; 7] = [
    "acknowledged",
    "refused",
    "replayed",
    "completed",
    "conflicts",
    "late reports",
    "lost answers",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lives_of_deliveries_are_as_answered_when_the_all_in_one_is_killed() {
    let _processor = one_processor().await;
    let mut random = Random::seeded();
    let mut platform = AllInOne::start().await;
    let ready = platform.ready();
    let [operator, shop] = ["operator_client", "demo_client"].map(|name| credentials(&ready[name]));
    let core_urls = [ready["core_url"].as_str().unwrap().to_owned()];
    let caller = platform.shop().await;
    let start = LivesTest::start(&core_urls, [&operator, &shop], &caller, &mut random);
    let mut test = Box::pin(start).await;

    while test.is_time_left(|statement| platform.sql(statement)) {
        test.wait_before_kill(&mut random).await;
        platform.server.kill();
        platform.server.start().await;
        test.kills += 1;
    }

    Box::pin(test.finish("SQLite", |statement| platform.sql(statement))).await;
    assert_eq!(platform.sql("PRAGMA integrity_check"), "ok");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lives_of_deliveries_are_as_answered_when_either_core_is_killed() {
    let _processor = one_processor().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let mut random = Random::seeded();
    let clients = [&cluster.operator_client, &cluster.shop_client];
    let caller = cluster.shop().await;
    let start = LivesTest::start(&cluster.core_urls, clients, &caller, &mut random);
    let mut test = Box::pin(start).await;

    while test.is_time_left(|statement| cluster.postgres.query(statement)) {
        test.wait_before_kill(&mut random).await;
        let core = *random.pick(&[Fault::Core(0), Fault::Core(1)]);
        let wait = async |_| {
            let journal = &test.world.journal;
            journal.wait_for_answers(ANSWERS_DURING_KILL).await;
        };
        core.inject(&mut cluster, wait).await;
        test.kills += 1;
    }

    let query = |statement: &str| cluster.postgres.query(statement);
    Box::pin(test.finish("PostgreSQL", query)).await;
}

/// Clients of a platform.
struct LivesTest {
    world: Arc<World>,
    shop: Client,
    /// Reads what is left.
    reader: Client,
    receiver: WebhookReceiver,
    acting: JoinSet<()>,
    started: Instant,
    kills: usize,
}

/// Reads all pages.
macro_rules! read_all {
    ($client:expr, $rpc:ident, $request:expr, $items:ident) => {{
        let (mut request, mut all) = ($request, Vec::new());
        loop {
            let page = until_answered(|core| $client.$rpc(core, request.clone())).await;
            all.extend(page.$items);
            if page.next_page_token.is_empty() {
                break all;
            }
            request.page_token = page.next_page_token;
        }
    }};
}

impl LivesTest {
    /// With the clients of the operator and of a shop.
    async fn start(
        core_urls: &[String],
        [operator, shop]: [&Credentials; 2],
        caller: &Caller,
        random: &mut Random,
    ) -> Self {
        let receiver = WebhookReceiver::start().await;
        for event in EVENTS {
            let webhook = json!({ "event": event, "url": receiver.url() });
            let created = caller.call(Method::POST, "/api/webhooks", &webhook).await;
            created.unwrap();
        }
        let operator = Client::authorized(core_urls, operator, &["admin"]).await;
        let shop = Client::authorized(core_urls, shop, &["deliveries", "tasks"]).await;
        let mut phones = Vec::new();
        for number in 0..PHONES {
            let request = CreateCourierRequest {
                display_name: format!("Courier {number}"),
                ..Default::default()
            };
            let courier = operator.create_courier(0, request).await.unwrap().name;
            phones.push(create_client(&operator, core_urls, "courier", &courier).await);
        }
        let reader = create_client(&operator, core_urls, "dispatch", "").await;
        let today = reader.list_tasks(0, ListTasksRequest::default()).await;
        let today: jiff::civil::Date = today.unwrap().day.parse().unwrap();
        let later = today.tomorrow().unwrap().tomorrow().unwrap();
        let world = Arc::new(World {
            journal: journal::Journal::default(),
            today: today.to_string(),
            later: later.to_string(),
            couriers: phones.iter().map(|phone| phone.courier.clone()).collect(),
            finish: CancellationToken::new(),
            lost: AtomicUsize::new(0),
        });

        let mut acting = JoinSet::new();
        for _ in 0..SHOPS {
            acting.spawn(Actor::new(&world, shop.clone(), random).shop());
        }
        for phone in phones {
            acting.spawn(Actor::new(&world, phone, random).phone());
        }
        for _ in 0..DESKS {
            let desk = create_client(&operator, core_urls, "dispatch", "").await;
            acting.spawn(Actor::new(&world, desk, random).desk());
        }
        Self {
            world,
            shop,
            reader,
            receiver,
            acting,
            started: Instant::now(),
            kills: 0,
        }
    }

    /// Whether the duration has not passed, or too little has happened yet.
    fn is_time_left(&self, query: impl Fn(&str) -> String) -> bool {
        let (elapsed, journal) = (self.started.elapsed(), &self.world.journal);
        let is_enough = || {
            self.kills >= MIN_KILLS
                && journal.answered() >= MIN_ANSWERS
                && self.world.lost.load(Ordering::Relaxed) > 0
                && !journal.replays.lock().unwrap().is_empty()
                && query(ALL_SEEN) == "1"
        };
        elapsed < configured_duration().unwrap_or(DEFAULT_DURATION)
            || elapsed < MAX_DURATION && !is_enough()
    }

    async fn wait_before_kill(&self, random: &mut Random) {
        let answers = 1 + random.below(MAX_ANSWERS_BETWEEN_KILLS);
        self.world.journal.wait_for_answers(answers).await;
    }

    /// Ends the commands, waits until nothing is left to do, and verifies.
    async fn finish(mut self, database: &str, query: impl Fn(&str) -> String) {
        self.world.finish.cancel();
        let ended = async {
            while let Some(ended) = self.acting.join_next().await {
                ended.unwrap();
            }
        };
        let ended = tokio::time::timeout(SETTLE_TIMEOUT, ended).await;
        assert!(ended.is_ok(), "commands are not answered");
        query(EXPIRE_LEASES);
        checker::wait_until_settled(&query, SETTLE_TIMEOUT).await;

        let evidence = Box::pin(self.evidence()).await;
        let mut findings = oracle::verify(&evidence);
        let lost = self.world.lost.load(Ordering::Relaxed);
        findings.count("lost answers", lost);
        crate::report(&format!(
            "lives of deliveries, {database}, {} kills: {findings}",
            self.kills
        ));
        assert!(findings.defects.is_empty(), "{findings}");
        assert!(self.kills >= MIN_KILLS, "{}", self.kills);
        let seen = |what| findings.seen.get(what).is_some_and(|count| *count > 0);
        assert!(SEEN.into_iter().all(seen), "{findings}");
        let events: BTreeSet<_> = evidence.events.iter().map(|event| &*event.event).collect();
        assert_eq!(events, BTreeSet::from(EVENTS));
        alterations::assert_found(&evidence);
    }

    async fn evidence(&self) -> Evidence {
        let journal = &self.world.journal;
        let (events, notified) = (self.events().await, self.notified().await);
        let mut evidence = Evidence {
            commands: std::mem::take(&mut *journal.commands.lock().unwrap()),
            replays: std::mem::take(&mut *journal.replays.lock().unwrap()),
            orders: std::mem::take(&mut *journal.orders.lock().unwrap()),
            today: self.world.today.clone(),
            events,
            notified,
            ..Default::default()
        };
        let request = ListIncidentsRequest::default();
        evidence.incidents = read_all!(self.reader, list_incidents, request, incidents);
        for name in evidence.orders.iter().flat_map(|order| &order.tasks) {
            let request = GetTaskRequest { name: name.clone() };
            let task = until_answered(|core| self.reader.get_task(core, request.clone())).await;
            evidence.tasks.insert(name.clone(), task);
            let request = ListTaskEventsRequest {
                task: name.clone(),
                ..Default::default()
            };
            let history = read_all!(self.reader, list_task_events, request, events);
            evidence.histories.insert(name.clone(), history);
        }
        evidence
    }

    async fn events(&self) -> Vec<Event> {
        let mut events = Vec::<Event>::new();
        loop {
            let request = ListEventsRequest {
                after: Some(events.last().map_or(0, |event| event.number)),
                ..Default::default()
            };
            let page = until_answered(|core| self.shop.list_events(core, request.clone())).await;
            if page.events.is_empty() {
                return events;
            }
            events.extend(page.events);
        }
    }

    async fn notified(&self) -> BTreeMap<[String; 2], BTreeSet<String>> {
        let mut notified = BTreeMap::<_, BTreeSet<_>>::new();
        for notification in self.receiver.received().await {
            let data = &notification.json()["data"];
            let [event, object] = ["event", "object"].map(|member| data[member].as_str().unwrap());
            let key = [event, iri::name(object)].map(str::to_owned);
            let id = notification.header("webhook-id").to_owned();
            notified.entry(key).or_default().insert(id);
        }
        notified
    }
}

/// A new client of the platform, or of a courier's phone.
async fn create_client(
    operator: &Client,
    core_urls: &[String],
    scope: &str,
    courier: &str,
) -> Client {
    let request = CreateApiClientRequest {
        display_name: "A program".to_owned(),
        scopes: vec![scope.to_owned()],
        courier: courier.to_owned(),
        ..Default::default()
    };
    let created = operator.create_api_client(0, request).await.unwrap();
    let credentials = Credentials {
        api_key: created.api_key,
        api_secret: created.api_secret,
    };
    Client::authorized(core_urls, &credentials, &[scope]).await
}
