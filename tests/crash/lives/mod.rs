//! Whole lives of deliveries while processes are killed: shops, dispatchers and phones send random commands, each repeated
//! until it is answered, while two boards watch. Then the histories of the tasks must be runs of a model, with
//! everything acknowledged once, and all that is derived from them must agree with them.

mod actors;
mod board;
mod client;
mod journal;
mod model;
mod oracle;
mod run;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use delivery::Credentials;
use hyper::Method;
use proto::{
    CreateApiClientRequest, CreateCourierRequest, DayList, GetTaskRequest, ListCourierListsRequest,
    ListEventsRequest, ListIncidentsRequest, ListTaskEventsRequest, ListTasksRequest, Task,
    TaskEvent, iri,
};
use serde_json::json;
use tokio::{sync::watch, task::JoinSet};

use self::{
    actors::{Actor, World},
    board::BoardCopy,
    client::{Client, until_answered},
    oracle::{Defects, Evidence},
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

/// The duration of a test, unless configured.
const DEFAULT_DURATION: Duration = Duration::from_secs(8);

/// The fewest kills, and the fewest commands answered.
const MIN_KILLS: usize = 4;
const MIN_ANSWERS: u64 = 400;

/// The maximum number of answers between two kills, and the number before the other core's restart.
const MAX_ANSWERS_BETWEEN_KILLS: u64 = 120;
const ANSWERS_DURING_KILL: u64 = 10;

const SHOPS: usize = 2;
const DESKS: usize = 2;
const PHONES: usize = 3;

/// Longer than what is left to do when the commands end.
const SETTLE_TIMEOUT: Duration = Duration::from_mins(2);

const EVENTS: [&str; 11] = [
    "delivery.created",
    "delivery.assigned",
    "delivery.started",
    "delivery.picked",
    "delivery.in_transit",
    "delivery.dropped",
    "delivery.completed",
    "delivery.failed",
    "delivery.cancelled",
    "delivery.rescheduled",
    "delivery.reopened",
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

    while test.is_time_left() {
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

    while test.is_time_left() {
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
    /// The couriers of phones.
    couriers: BTreeMap<String, String>,
    receiver: WebhookReceiver,
    acting: JoinSet<()>,
    /// What each board follows, and its copy of it.
    boards: Vec<(ListTasksRequest, watch::Receiver<BoardCopy>)>,
    following: JoinSet<()>,
    started: Instant,
    kills: usize,
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
        let mut couriers = BTreeMap::new();
        for number in 0..PHONES {
            let request = CreateCourierRequest {
                display_name: format!("Courier {number}"),
                ..Default::default()
            };
            let courier = operator.create_courier(0, request).await.unwrap().name;
            let phone = create_client(&operator, core_urls, "courier", &courier).await;
            couriers.insert(phone.name.clone(), courier);
            phones.push(phone);
        }
        let reader = create_client(&operator, core_urls, "dispatch", "").await;
        let today = reader.list_tasks(0, ListTasksRequest::default()).await;
        let today: jiff::civil::Date = today.unwrap().day.parse().unwrap();
        let days = [today.yesterday().unwrap(), today, today.tomorrow().unwrap()];
        let world = Arc::new(World {
            journal: journal::Journal::default(),
            days: days.map(|day| day.to_string()),
            couriers: couriers.values().cloned().collect(),
            finish: tokio_util::sync::CancellationToken::new(),
            windows: AtomicI64::new(1),
        });

        let mut acting = JoinSet::new();
        let mut actor = |client: Client| Actor {
            world: world.clone(),
            client,
            random: random.fork(),
        };
        for _ in 0..SHOPS {
            acting.spawn(actor(shop.clone()).shop());
        }
        for phone in phones {
            acting.spawn(actor(phone).phone());
        }
        for _ in 0..DESKS {
            let desk = create_client(&operator, core_urls, "dispatch", "").await;
            acting.spawn(actor(desk).desk());
        }
        let (mut boards, mut following) = (Vec::new(), JoinSet::new());
        for include_overdue in [false, true] {
            let list = ListTasksRequest {
                day: world.days[1].clone(),
                include_overdue,
                page_size: Some(100),
                ..Default::default()
            };
            let copy = watch::Sender::new(BoardCopy::default());
            boards.push((list.clone(), copy.subscribe()));
            following.spawn(board::follow(reader.clone(), list, copy, random.fork()));
        }
        Self {
            world,
            shop,
            reader,
            couriers,
            receiver,
            acting,
            boards,
            following,
            started: Instant::now(),
            kills: 0,
        }
    }

    /// Whether the duration has not passed, or too little has happened yet.
    fn is_time_left(&self) -> bool {
        self.started.elapsed() < configured_duration().unwrap_or(DEFAULT_DURATION)
            || self.kills < MIN_KILLS
            || self.world.journal.answered() < MIN_ANSWERS
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
        let figures = oracle::verify(&evidence);
        let copies = self.boards.iter().map(|(_, copy)| copy.borrow().streams);
        crate::report(&format!(
            "lives of deliveries, {database}, {} kills, {} lost answers, {} streams of {} boards; {figures}",
            self.kills,
            self.world.journal.lost.load(Ordering::Relaxed),
            copies.sum::<usize>(),
            self.boards.len(),
        ));
        assert_eq!(figures.defects, Defects::default());
        let seen: BTreeSet<_> = evidence.events.iter().map(|event| &*event.event).collect();
        assert_eq!(seen, BTreeSet::from(EVENTS));
        assert!(figures.refused > 0 && figures.incidents > 0, "{figures}");
    }

    async fn evidence(&mut self) -> Evidence {
        let mut evidence = Evidence {
            commands: std::mem::take(&mut *self.world.journal.commands.lock().unwrap()),
            orders: std::mem::take(&mut *self.world.journal.orders.lock().unwrap()),
            shop: self.shop.name.clone(),
            couriers: self.couriers.clone(),
            today: self.world.days[1].clone(),
            ..Default::default()
        };
        for order in &evidence.orders {
            for task in &order.tasks {
                evidence.tasks.insert(task.clone(), self.task(task).await);
                let history = self.history(task).await;
                evidence.histories.insert(task.clone(), history);
            }
        }
        self.read_events(&mut evidence).await;
        self.read_incidents(&mut evidence).await;
        for notification in self.receiver.received().await {
            let data = &notification.json()["data"];
            let [event, object] = ["event", "object"].map(|member| data[member].as_str().unwrap());
            let key = [event, iri::name(object)].map(str::to_owned);
            let ids = evidence.notified.entry(key).or_default();
            ids.insert(notification.header("webhook-id").to_owned());
        }
        let mut etags = std::mem::take(&mut *self.world.journal.etags.lock().unwrap());
        for day in self.world.days.clone() {
            let request = ListCourierListsRequest { day };
            let listed = |core| self.reader.list_courier_lists(core, request.clone());
            let listed = until_answered(listed).await;
            for list in listed.lists {
                etags.add(&list);
                let (day, list) = (listed.day.clone(), Some(list));
                evidence.lists.push(DayList { day, list });
            }
        }
        evidence.wrong_etags = etags.wrong;
        for (list, copy) in &mut self.boards {
            let (expected, _) = board::read(&self.reader, list).await;
            let shown = board::wait_for(copy, &expected, checker::RECOVERY_TIMEOUT).await;
            evidence.boards.push([shown, expected]);
            evidence.backward += copy.borrow().backward;
        }
        self.following.abort_all();
        evidence
    }

    async fn task(&self, name: &str) -> Task {
        let name = name.to_owned();
        let request = GetTaskRequest { name };
        until_answered(|core| self.reader.get_task(core, request.clone())).await
    }

    async fn history(&self, task: &str) -> Vec<TaskEvent> {
        let mut history = Vec::new();
        let mut request = ListTaskEventsRequest {
            task: task.to_owned(),
            page_size: Some(100),
            ..Default::default()
        };
        loop {
            let list = |core| self.reader.list_task_events(core, request.clone());
            let page = until_answered(list).await;
            history.extend(page.events);
            request.page_token = page.next_page_token;
            if request.page_token.is_empty() {
                return history;
            }
        }
    }

    async fn read_events(&self, evidence: &mut Evidence) {
        let mut request = ListEventsRequest {
            page_size: Some(100),
            ..Default::default()
        };
        loop {
            let last = evidence.events.last().map(|event| event.number);
            request.after = last.or(Some(0));
            let list = |core| self.shop.list_events(core, request.clone());
            let page = until_answered(list).await;
            if page.events.is_empty() {
                return;
            }
            evidence.events.extend(page.events);
        }
    }

    async fn read_incidents(&self, evidence: &mut Evidence) {
        let mut request = ListIncidentsRequest {
            page_size: Some(100),
            ..Default::default()
        };
        loop {
            let list = |core| self.reader.list_incidents(core, request.clone());
            let page = until_answered(list).await;
            evidence.incidents.extend(page.incidents);
            request.page_token = page.next_page_token;
            if request.page_token.is_empty() {
                return;
            }
        }
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
