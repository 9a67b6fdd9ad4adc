//! Who changes deliveries: shops, people who dispatch, and the phones of couriers.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use proto::{
    CourierList, CreateDeliveryRequest, DeliveryDraft, GetTaskRequest, ListCourierListsRequest,
    ListTasksRequest, Task, TaskDraft, task::State, task_draft::Address,
};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::{
    client::{Client, PAUSE, TIMEOUT, idempotency, until_answered},
    journal::{Command, Journal, Kind, List, Order, Outcome, Window, now, window},
};
use crate::random::Random;

/// The pause of a shop: few enough tasks that a list can be set for two minutes, and many commands for each.
const PAUSE_OF_SHOP: Duration = Duration::from_millis(300);

/// The number of last deliveries that are worked on.
const RECENT: usize = 10;

/// The most tasks of a request that sets lists.
const MAX_SET: usize = 900;

/// How many answers others get while a phone is offline.
const ANSWERS_OFFLINE: u64 = 25;

/// One answered command in this many makes its client repeat an earlier one.
const REPLAYING: u64 = 6;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

pub(super) struct World {
    pub(super) journal: Journal,
    pub(super) today: String,
    /// A day whose lists are not worked on during the test, also if it runs at midnight.
    pub(super) later: String,
    pub(super) couriers: Vec<String>,
    pub(super) finish: CancellationToken,
    /// Attempts without an answer.
    pub(super) lost: AtomicUsize,
}

pub(super) struct Actor {
    world: Arc<World>,
    client: Client,
    random: Random,
    /// Answered commands that are now and then repeated.
    past: Vec<Command>,
    /// Commands whose answers were lost, to be sent again later.
    unanswered: Vec<Command>,
}

impl Actor {
    pub(super) fn new(world: &Arc<World>, client: Client, random: &mut Random) -> Self {
        Self {
            world: Arc::clone(world),
            client,
            random: random.fork(),
            past: Vec::new(),
            unanswered: Vec::new(),
        }
    }

    /// Creates deliveries, and cancels some.
    pub(super) async fn shop(mut self) {
        while !self.world.finish.is_cancelled() {
            let request = self.creation();
            let create = |core| self.client.create_delivery(core, request.clone());
            let created = until_answered(create).await;
            if self.random.below(REPLAYING) == 0 {
                assert_eq!(until_answered(create).await, created);
            }
            let orders = &self.world.journal.orders;
            orders.lock().unwrap().push(Order::of(created));
            if self.random.below(4) == 0 {
                let order = self.recent().unwrap();
                self.cancel(&order).await;
            }
            tokio::time::sleep(PAUSE_OF_SHOP).await;
        }
    }

    fn creation(&mut self) -> CreateDeliveryRequest {
        let days = [&self.world.today, &self.world.later];
        let day = *self.random.pick(&days);
        let task = |address: &str, hours: [u8; 2]| {
            let [after, before] = hours.map(|hour| Some(format!("{day}T{hour}:00:00Z")));
            Some(TaskDraft {
                address: Some(Address::AddressText(address.to_owned())),
                after,
                before,
                ..Default::default()
            })
        };
        CreateDeliveryRequest {
            delivery: Some(DeliveryDraft {
                pickup: task("1 Rue de la Paix, 75002 Paris", [10, 12]),
                dropoff: task("4 Rue de Rivoli, 75004 Paris", [14, 16]),
                ..Default::default()
            }),
            idempotency: idempotency(&uuid::Uuid::now_v7().to_string()),
            ..Default::default()
        }
    }

    /// Assigns, reschedules, corrects, reports for couriers.
    pub(super) async fn desk(mut self) {
        while !self.world.finish.is_cancelled() {
            if let Some(order) = self.recent() {
                self.dispatch(&order).await;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn dispatch(&mut self, order: &Order) {
        let index = *self.random.pick(&[0, 1]);
        let task = self.read(&order.tasks[index]).await;
        let kind = match (self.random.below(20), task.state()) {
            (0..=7, _) => return self.assign(&task, &order.tasks[1 - index]).await,
            (8..=9, _) => return self.set_lists(&task.name).await,
            (10, _) => return self.cancel(order).await,
            (11..=12, _) | (13.., State::Failed | State::Cancelled) => {
                let window = self.later(window(&task));
                let both = self.random.below(2) == 0;
                Kind::Reschedule { window, both }
            }
            (13.., State::Done) => Kind::Reopen,
            (13..=14, _) => Kind::Start,
            (15..=17, _) => Kind::Complete,
            _ => Kind::Fail,
        };
        let mut command = self.command(kind, &task.name);
        if self.random.below(2) == 0 {
            command.courier = task.courier;
        }
        self.execute(command, false).await;
    }

    /// Works the tasks in its list, late if it was offline.
    pub(super) async fn phone(mut self) {
        let mut worked: Vec<String> = Vec::new();
        let request = ListTasksRequest {
            day: self.world.today.clone(),
            states: vec![State::Todo.into(), State::Doing.into()],
            ..Default::default()
        };
        while !self.world.finish.is_cancelled() {
            tokio::time::sleep(PAUSE).await;
            let list = |core| self.client.list_tasks(core, request.clone());
            let listed = until_answered(list).await.tasks;
            let is_offline = self.random.below(2) == 0;
            let skew = *self.random.pick(&[-DAY, 0, DAY]);
            let mut queue = std::mem::take(&mut self.unanswered);
            for _ in 0..=self.random.below(if is_offline { 4 } else { 1 }) {
                if let Some((kind, task)) = self.choose(&listed, &worked) {
                    let mut command = self.command(kind, &task);
                    command.skew = skew;
                    worked.push(task);
                    queue.push(command);
                }
            }
            if is_offline {
                let journal = &self.world.journal;
                tokio::select! {
                    () = journal.wait_for_answers(ANSWERS_OFFLINE) => {}
                    () = self.world.finish.cancelled() => {}
                }
            }
            for command in queue {
                self.execute(command, true).await;
            }
            let old = worked.len().saturating_sub(RECENT);
            worked.drain(..old);
        }
        for command in std::mem::take(&mut self.unanswered) {
            self.execute(command, false).await;
        }
    }

    fn choose(&mut self, listed: &[Task], worked: &[String]) -> Option<(Kind, String)> {
        let choice = self.random.below(12);
        if choice < 4 && !worked.is_empty() {
            let kinds = [Kind::Reopen, Kind::Reopen, Kind::Complete, Kind::Fail];
            let kind = self.random.pick(&kinds).clone();
            return Some((kind, self.random.pick(worked).clone()));
        }
        if listed.is_empty() {
            return None;
        }
        let task = self.random.pick(listed);
        let kind = match (choice, task.state()) {
            (4, _) => Kind::Fail,
            (5..=8, State::Todo) => Kind::Start,
            _ => Kind::Complete,
        };
        Some((kind, task.name.clone()))
    }

    async fn assign(&mut self, task: &Task, other: &str) {
        let [today, later] = [&self.world.today, &self.world.later];
        let day = (*self.random.pick(&[today, today, today, later])).clone();
        let courier = self.random.pick(&self.world.couriers).clone();
        let list = (self.random.below(5) > 0).then_some(List { courier, day });
        let single = self.random.below(4) == 0;
        let from = if self.random.below(8) == 0 {
            self.random.pick(&self.world.couriers).clone()
        } else {
            task.courier.clone()
        };
        let mut command = self.command(Kind::Assign { from, single }, &task.name);
        let tasks = [&*task.name, other]
            .into_iter()
            .take(if single { 1 } else { 2 });
        command.tasks = tasks.map(|task| (task.to_owned(), list.clone())).collect();
        self.execute(command, false).await;
    }

    /// Exchanges the tasks of two lists, with one more or one less.
    async fn set_lists(&mut self, another: &str) {
        let day = self.world.today.clone();
        let request = ListCourierListsRequest { day: day.clone() };
        let list = |core| self.client.list_courier_lists(core, request.clone());
        let found = until_answered(list).await;
        let couriers = self.random.shuffle(self.world.couriers.clone());
        let known = |courier: String| {
            let list = found.lists.iter().find(|list| list.courier == courier);
            list.cloned().unwrap_or_else(|| CourierList {
                courier,
                etag: found.empty_etag.clone(),
                ..Default::default()
            })
        };
        let mut lists: Vec<_> = couriers.into_iter().take(2).map(known).collect();
        let listed: Vec<_> = lists.iter().flat_map(|list| list.tasks.clone()).collect();
        if listed.len() > MAX_SET {
            return;
        }
        let mut tasks: BTreeMap<_, _> = listed.iter().map(|task| (task.clone(), None)).collect();
        let mut order = self.random.shuffle(listed);
        match self.random.below(3) {
            0 => drop(order.pop()),
            1 if !tasks.contains_key(another) => order.push(another.to_owned()),
            _ => {}
        }
        let count = u64::try_from(order.len()).unwrap();
        let middle = usize::try_from(self.random.below(count + 1)).unwrap();
        let second = order.split_off(middle);
        for (list, order) in lists.iter_mut().zip([order, second]) {
            let (courier, day) = (list.courier.clone(), day.clone());
            let place = Some(List { courier, day });
            tasks.extend(order.iter().map(|task| (task.clone(), place.clone())));
            list.tasks = order;
        }
        let mut command = self.command(Kind::Set { day, lists }, "");
        command.tasks = tasks;
        self.execute(command, false).await;
    }

    async fn cancel(&mut self, order: &Order) {
        let mut command = self.command(Kind::Cancel(order.name.clone()), &order.tasks[0]);
        command.tasks.insert(order.tasks[1].clone(), None);
        self.execute(command, false).await;
    }

    async fn read(&self, task: &str) -> Task {
        let name = task.to_owned();
        let request = GetTaskRequest { name };
        until_answered(|core| self.client.get_task(core, request.clone())).await
    }

    /// Another window, at about the same time of the day before, of the same or of the next.
    fn later(&mut self, [_, before]: Window) -> Window {
        let seconds = 1 + i64::try_from(self.random.below(3600)).unwrap();
        let days = *self.random.pick(&[-DAY, 0, 0, 0, DAY]);
        let before = before + days + seconds * SECOND;
        [before - 3600 * SECOND, before]
    }

    fn recent(&mut self) -> Option<Order> {
        let orders = self.world.journal.orders.lock().unwrap();
        let recent = &orders[orders.len().saturating_sub(RECENT)..];
        (!recent.is_empty()).then(|| self.random.pick(recent).clone())
    }

    fn command(&self, kind: Kind, task: &str) -> Command {
        let occurred = self.world.journal.mark();
        Command {
            client: self.client.name.clone(),
            by: self.client.by,
            courier: self.client.courier.clone(),
            key: uuid::Uuid::now_v7().to_string(),
            kind,
            task: task.to_owned(),
            tasks: [(task.to_owned(), None)].into(),
            occurred,
            skew: 0,
            sent: Vec::new(),
            invoked: occurred,
            answered: i64::MAX,
            outcome: Outcome::Unknown,
        }
    }

    /// Sends a command until it is answered, and records it. One that may give up does so now and then when an
    /// answer was lost, for a while or for ever.
    async fn execute(&mut self, mut command: Command, may_give_up: bool) {
        let world = Arc::clone(&self.world);
        let deadline = Instant::now() + TIMEOUT;
        command.outcome = loop {
            command.sent.push(now().max(command.occurred));
            match self.attempt(&command).await {
                Ok(outcome) => break outcome,
                Err(status) => assert!(Instant::now() < deadline, "{command:?} {status:?}"),
            }
            match self.random.below(6) {
                0 if may_give_up => return self.unanswered.push(command),
                1 if may_give_up => return world.journal.add(command),
                _ => {}
            }
        };
        command.answered = now();
        if command.is_stored() {
            self.past.push(command.clone());
        }
        world.journal.add(command);
        if self.random.below(REPLAYING) == 0 && !self.past.is_empty() {
            let mut again = self.random.pick(&self.past).clone();
            again.outcome = until_answered(|core| self.client.send(core, &again)).await;
            world.journal.replays.lock().unwrap().push(again);
        }
    }

    /// Sends a command once, to any core.
    async fn attempt(&mut self, command: &Command) -> Result<Outcome, Status> {
        let core = usize::try_from(self.random.below(2)).unwrap();
        let sent = self.client.send(core, command).await;
        if sent.is_err() {
            self.world.lost.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(PAUSE).await;
        }
        sent
    }
}
