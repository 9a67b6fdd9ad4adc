//! Who changes deliveries: shops, people who dispatch, and the phones of couriers.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use proto::{
    AddressDraft, CourierList, CreateDeliveryRequest, DeliveryDraft, GetTaskRequest, LatLng,
    ListCourierListsRequest, ListIncidentsRequest, ListTasksRequest, Task, TaskDraft, task::State,
    task_draft::Address,
};
use tokio_util::sync::CancellationToken;

use super::{
    client::{Client, PAUSE, idempotency, until_answered},
    journal::{Command, Journal, Kind, List, Order, Window, window},
};
use crate::random::Random;

/// The pause of a shop: lists keep what is done, and a change of a list sends all of it to the boards.
const PAUSE_OF_SHOP: Duration = Duration::from_millis(150);

/// The number of last deliveries that are worked on.
const RECENT: usize = 10;

/// The most tasks of a request that sets lists.
const MAX_SET: usize = 900;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

pub(super) struct World {
    pub(super) journal: Journal,
    /// Yesterday, today and tomorrow.
    pub(super) days: [String; 3],
    pub(super) couriers: Vec<String>,
    pub(super) finish: CancellationToken,
    /// Makes each window another one.
    pub(super) windows: AtomicI64,
}

pub(super) struct Actor {
    pub(super) world: Arc<World>,
    pub(super) client: Client,
    pub(super) random: Random,
}

impl Actor {
    /// Creates deliveries, and cancels some.
    pub(super) async fn shop(mut self) {
        while !self.world.finish.is_cancelled() {
            let request = self.creation();
            let create = |core| self.client.create_delivery(core, request.clone());
            let created = Order::of(until_answered(create).await);
            self.world.journal.orders.lock().unwrap().push(created);
            if self.random.below(4) == 0 {
                let order = self.recent().unwrap();
                self.cancel(&order).await;
            }
            tokio::time::sleep(PAUSE_OF_SHOP).await;
        }
    }

    fn creation(&mut self) -> CreateDeliveryRequest {
        let [yesterday, today, tomorrow] = &self.world.days;
        let day = *self.random.pick(&[yesterday, today, today, tomorrow]);
        let task = |hours: [u8; 2], latitude: f64, longitude: f64| {
            let [after, before] = hours.map(|hour| Some(format!("{day}T{hour}:00:00Z")));
            let address = AddressDraft {
                street_address: Some("48 Rue de Rivoli".to_owned()),
                lat_lng: Some(LatLng {
                    latitude,
                    longitude,
                }),
                ..Default::default()
            };
            Some(TaskDraft {
                address: Some(Address::AddressDraft(address)),
                after,
                before,
                ..Default::default()
            })
        };
        CreateDeliveryRequest {
            delivery: Some(DeliveryDraft {
                pickup: task([10, 12], 48.8566, 2.3530),
                dropoff: task([14, 16], 48.8558, 2.3551),
                ..Default::default()
            }),
            idempotency: idempotency(&uuid::Uuid::now_v7().to_string()),
            ..Default::default()
        }
    }

    /// Assigns, reschedules, corrects, closes incidents.
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
        let (task, other) = (&order.tasks[index], &order.tasks[1 - index]);
        let kind = match self.random.below(20) {
            0..=6 => return self.assign(task, other).await,
            7..=8 => return self.set_lists(task).await,
            9..=10 => {
                let window = self.later(window(&self.read(task).await));
                let both = self.random.below(2) == 0;
                Kind::Reschedule { window, both }
            }
            11 => Kind::Reopen,
            12 => return self.cancel(order).await,
            13..=14 => return self.close().await,
            15 => Kind::Report,
            16 => Kind::Start,
            17..=18 => Kind::Complete,
            _ => Kind::Fail,
        };
        let command = self.command(kind, task);
        self.execute(command, false).await;
    }

    /// Works the tasks in its list, late if it was offline.
    pub(super) async fn phone(mut self) {
        let mut worked: Vec<String> = Vec::new();
        let request = ListTasksRequest {
            day: self.world.days[1].clone(),
            states: vec![State::Todo.into(), State::Doing.into()],
            ..Default::default()
        };
        while !self.world.finish.is_cancelled() {
            let list = |core| self.client.list_tasks(core, request.clone());
            let listed = until_answered(list).await.tasks;
            let is_offline = self.random.below(3) == 0;
            let skew = *self.random.pick(&[-DAY, 0, DAY]);
            let mut queue = Vec::new();
            for _ in 0..=self.random.below(if is_offline { 4 } else { 1 }) {
                tokio::time::sleep(PAUSE).await;
                let Some((kind, task)) = self.choose(&listed, &worked) else {
                    continue;
                };
                let mut command = self.command(kind, &task);
                if is_offline {
                    command.sent = Some(Vec::new());
                    command.skew = skew;
                }
                worked.push(task);
                queue.push(command);
            }
            for command in queue {
                self.execute(command, true).await;
            }
            let old = worked.len().saturating_sub(RECENT);
            worked.drain(..old);
        }
    }

    fn choose(&mut self, listed: &[Task], worked: &[String]) -> Option<(Kind, String)> {
        let choice = self.random.below(12);
        if choice < 3 && !worked.is_empty() {
            let kinds = [Kind::Reopen, Kind::Reopen, Kind::Complete, Kind::Fail];
            let kind = self.random.pick(&kinds).clone();
            return Some((kind, self.random.pick(worked).clone()));
        }
        if listed.is_empty() {
            return None;
        }
        let task = self.random.pick(listed);
        let kind = match (choice, task.state()) {
            (3, _) => Kind::Report,
            (4, _) => Kind::Fail,
            (5..=8, State::Todo) => Kind::Start,
            _ => Kind::Complete,
        };
        Some((kind, task.name.clone()))
    }

    async fn assign(&mut self, task: &str, other: &str) {
        let read = self.read(task).await;
        let [_, today, tomorrow] = self.world.days.clone();
        let day = (*self.random.pick(&[&today, &today, &today, &tomorrow])).clone();
        let courier = self.random.pick(&self.world.couriers).clone();
        let list = (self.random.below(5) > 0).then_some(List { courier, day });
        let single = self.random.below(4) == 0;
        let from = if self.random.below(8) == 0 {
            self.random.pick(&self.world.couriers).clone()
        } else {
            read.courier
        };
        let mut command = self.command(Kind::Assign { from, single }, task);
        let tasks = [task, other].into_iter().take(if single { 1 } else { 2 });
        command.tasks = tasks.map(|task| (task.to_owned(), list.clone())).collect();
        self.execute(command, false).await;
    }

    /// Exchanges the tasks of two lists, with one more or one less.
    async fn set_lists(&mut self, another: &str) {
        let day = self.world.days[1].clone();
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

    async fn close(&mut self) {
        let request = ListIncidentsRequest {
            open_only: true,
            ..Default::default()
        };
        let list = |core| self.client.list_incidents(core, request.clone());
        let open = until_answered(list).await.incidents;
        if !open.is_empty() {
            let incident = self.random.pick(&open);
            let command = self.command(Kind::Close(incident.name.clone()), &incident.task);
            self.execute(command, false).await;
        }
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
        let seconds = i64::try_from(self.random.below(3600)).unwrap();
        let days = *self.random.pick(&[-DAY, 0, 0, 0, DAY]);
        let number = self.world.windows.fetch_add(1, Ordering::Relaxed);
        let before = before - before.rem_euclid(SECOND) + days + seconds * SECOND + number;
        [before - 3600 * SECOND, before]
    }

    fn recent(&mut self) -> Option<Order> {
        let orders = self.world.journal.orders.lock().unwrap();
        let recent = &orders[orders.len().saturating_sub(RECENT)..];
        (!recent.is_empty()).then(|| self.random.pick(recent).clone())
    }

    fn command(&self, kind: Kind, task: &str) -> Command {
        Command::new(&self.client.name, kind, task, self.world.journal.mark())
    }

    async fn execute(&mut self, command: Command, may_give_up: bool) {
        let journal = &self.world.journal;
        let executed = self
            .client
            .execute(journal, &mut self.random, command, may_give_up);
        executed.await;
    }
}
