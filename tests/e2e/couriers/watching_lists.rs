//! `WatchTasks`: a board that reads lists once, and then applies what it is sent, shows what the lists have.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use proto::{
    AssignTasksRequest, CourierList, DayList, ListCourierListsRequest, ListTasksRequest,
    ReopenTaskRequest, Task, WatchTasksResponse, task::State,
};
use tonic::{Code, Status};

use super::{
    Desk, Order, TODAY, TOMORROW, TaskChanges, assignment, on, orders,
    watching::{TIMEOUT, first},
    with_tasks,
};
use crate::harness::{ApiClient, Platform, iri};

const YESTERDAY: &str = "2020-04-01";
/// How many changes boards follow.
const CHANGES: usize = 40;

/// What a board shows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shown {
    pub(super) tasks: BTreeMap<String, Task>,
    /// Those that have tasks, by courier.
    pub(super) lists: BTreeMap<String, CourierList>,
}

/// A program that has read a list, and follows it.
pub(super) struct Board {
    list: ListTasksRequest,
    pub(super) shown: Shown,
    pub(super) position: i64,
    pub(super) changes: Option<TaskChanges>,
    day: String,
    empty_etag: String,
}

impl Board {
    /// Reads a list, page by page, and does not follow it yet.
    pub(super) async fn read(desk: &Desk, list: &ListTasksRequest) -> Self {
        let day = list.day.clone();
        let of_couriers = desk
            .list_courier_lists(ListCourierListsRequest { day })
            .await;
        let of_couriers = of_couriers.unwrap();
        let lists = of_couriers.lists.into_iter();
        let lists = lists.filter(|found| has_list_of(list, &found.courier));
        let lists = lists.map(|found| (found.courier.clone(), found)).collect();
        let (mut tasks, mut position) = (BTreeMap::new(), of_couriers.position);
        let mut request = list.clone();
        request.page_size = Some(5);
        loop {
            let page = desk.list_tasks(request.clone()).await.unwrap();
            if request.page_token.is_empty() {
                position = position.min(page.position);
            }
            tasks.extend(page.tasks.into_iter().map(|task| (task.name.clone(), task)));
            if page.next_page_token.is_empty() {
                break;
            }
            request.page_token = page.next_page_token;
        }
        Self {
            list: ListTasksRequest {
                day: of_couriers.day.clone(),
                ..list.clone()
            },
            shown: Shown { tasks, lists },
            position,
            changes: None,
            day: of_couriers.day,
            empty_etag: of_couriers.empty_etag,
        }
    }

    pub(super) async fn follow(desk: &Desk, list: &ListTasksRequest) -> Self {
        let mut board = Self::read(desk, list).await;
        board.watch(desk).await;
        board
    }

    /// Follows the list from the last position on, in place of the stream before.
    pub(super) async fn watch(&mut self, desk: &Desk) {
        let changes = desk.watch(Some(self.position), &self.list).await;
        let changes = self.changes.insert(changes.unwrap());
        let first = first(changes).await;
        let expected = WatchTasksResponse {
            position: first.position,
            ..Default::default()
        };
        assert_eq!(first, expected);
        self.apply(first);
    }

    /// Receives changes until it shows what the lists have now.
    pub(super) async fn catch_up(&mut self, desk: &Desk) {
        let expected = Self::read(desk, &self.list).await.shown;
        let receiving = async {
            while self.shown != expected {
                let message = self.changes.as_mut().unwrap().message().await.unwrap();
                self.apply(message.expect("the stream should not end"));
            }
        };
        let received = tokio::time::timeout(TIMEOUT, receiving).await;
        let Self { list, shown, .. } = self;
        assert!(received.is_ok(), "{list:?}: {shown:#?}\nnot {expected:#?}");
    }

    fn apply(&mut self, message: WatchTasksResponse) {
        assert!(message.position >= self.position, "{message:?}");
        self.position = message.position;
        for task in message.tasks {
            assert!(!message.left.contains(&task.name), "{task:?}");
            self.shown.tasks.insert(task.name.clone(), task);
        }
        for task in &message.left {
            self.shown.tasks.remove(task);
        }
        for DayList { day, list } in message.lists {
            let list = list.unwrap();
            assert!(has_list_of(&self.list, &list.courier), "{list:?}");
            assert_eq!(day, self.day, "{list:?}");
            if list.tasks.is_empty() {
                assert_eq!(list.etag, self.empty_etag, "{list:?}");
                self.shown.lists.remove(&list.courier);
            } else {
                self.shown.lists.insert(list.courier.clone(), list);
            }
        }
    }
}

/// "With `courier` only its list, with `unassigned` none."
fn has_list_of(list: &ListTasksRequest, courier: &str) -> bool {
    !list.unassigned && (list.courier.is_empty() || list.courier == courier)
}

/// Fails unless a change moves tasks from one list into another.
async fn assert_moves(
    desk: &Desk,
    moved: &[&String],
    [from, to]: [&mut Board; 2],
    change: impl Future<Output = ()>,
) {
    let is_in = |board: &Board, task: &String| board.shown.tasks.contains_key(task);
    for task in moved {
        assert!(is_in(from, task) && !is_in(to, task), "{task}");
    }
    change.await;
    from.catch_up(desk).await;
    to.catch_up(desk).await;
    for task in moved {
        assert!(!is_in(from, task) && is_in(to, task), "{task}");
    }
}

/// Changes that look random, and are the same in each run.
struct RandomWork {
    state: u64,
    /// One is empty: none.
    couriers: [String; 3],
    orders: Vec<Order>,
}

impl RandomWork {
    fn below(&mut self, limit: usize) -> usize {
        // A linear congruential generator, with Knuth's constants.
        let product = self.state.wrapping_mul(6_364_136_223_846_793_005);
        self.state = product.wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.state >> 33).unwrap() % limit
    }

    /// Makes a change, unless it is refused.
    async fn change(&mut self, desk: &Desk, client: &ApiClient) {
        if self.orders.len() < 3 || self.below(6) == 0 {
            let day = [YESTERDAY, TODAY, TOMORROW][self.below(3)];
            self.orders.push(Order::on(client, day).await);
            return;
        }
        let limits = [8, self.orders.len(), 2, 2, self.couriers.len()];
        let [kind, order, task, day, courier] = limits.map(|limit| self.below(limit));
        let order = &self.orders[order];
        let day = [TODAY, TOMORROW][day];
        let task = desk.task([&order.pickup, &order.dropoff][task]).await;
        let refused = match (kind, task.state()) {
            (0, _) => {
                let cancelled = client.delete(iri(&order.delivery)).await;
                assert!([204, 409].contains(&cancelled.status), "{cancelled:?}");
                None
            }
            (1 | 2, _) => {
                let request = AssignTasksRequest {
                    day: day.to_owned(),
                    single: kind == 1,
                    ..assignment(&[&task.name], &task.courier, &self.couriers[courier])
                };
                desk.assign_tasks(request).await.err()
            }
            // Each list gets what another one has, in another order.
            (3, _) => {
                let lists = desk.lists(TODAY).await.lists;
                let next = lists.iter().cycle().skip(1);
                let exchanged = lists.iter().zip(next).map(|(list, next)| {
                    let tasks: Vec<_> = next.tasks.iter().rev().cloned().collect();
                    with_tasks(list, &tasks)
                });
                desk.set(TODAY, exchanged.collect()).await.err()
            }
            (4, _) | (_, State::Failed | State::Cancelled | State::Unspecified) => {
                let slot = format!("{day} 20:00-21:00");
                desk.reschedule(&order.dropoff, &slot, true).await.err()
            }
            (_, State::Todo) => {
                desk.start(&task.name).await;
                None
            }
            (5, State::Doing) => {
                desk.fail(&task.name).await;
                None
            }
            (_, State::Doing) => {
                desk.complete(&task.name).await;
                None
            }
            (_, State::Done) => {
                let request = ReopenTaskRequest {
                    name: task.name,
                    ..Default::default()
                };
                desk.reopen_task(request).await.err()
            }
        };
        let code = refused.as_ref().map_or(Code::Ok, Status::code);
        let codes = [Code::Ok, Code::FailedPrecondition, Code::InvalidArgument];
        assert!(codes.contains(&code), "{refused:?}");
    }
}

/// Changes are made at two cores in turn, which may be one, and followed at the other one after a few.
async fn follow_random_changes(platform: &Platform, desks: [&Desk; 2], clients: [&ApiClient; 2]) {
    let [ada, ben] = [desks[0].courier("Ada").await, desks[0].courier("Ben").await];
    let mut work = RandomWork {
        state: 1234,
        couriers: [ada, ben, String::new()],
        orders: Vec::new(),
    };
    let mut boards = Vec::new();
    for list in [
        on(TOMORROW),
        ListTasksRequest {
            include_overdue: true,
            ..on(TODAY)
        },
        ListTasksRequest {
            unassigned: true,
            ..on(TODAY)
        },
        ListTasksRequest {
            courier: work.couriers[0].clone(),
            include_overdue: true,
            ..on(TODAY)
        },
        ListTasksRequest {
            states: vec![State::Todo.into(), State::Failed.into()],
            ..on(TODAY)
        },
    ] {
        boards.push(Board::follow(desks[0], &list).await);
    }
    let mut visible = 0;
    for round in 0..CHANGES {
        platform.advance(SignedDuration::from_secs(30));
        let before: Vec<_> = boards.iter().map(|board| board.shown.clone()).collect();

        work.change(desks[round % 2], clients[round % 2]).await;

        for board in &mut boards {
            if round % 4 == 0 {
                board.watch(desks[round / 4 % 2]).await;
            }
            board.catch_up(desks[(round + 1) % 2]).await;
        }
        visible += usize::from(boards.iter().map(|board| &board.shown).ne(&before));
    }
    assert!(visible > CHANGES / 2, "only {visible} changes were visible");
}

on_both_databases! {
    async fn a_rescheduled_task_leaves_the_list_of_its_day(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let [order]: [Order; 1] = orders(&client).await;
        let mut today = Board::follow(&desk, &on(TODAY)).await;
        let mut tomorrow = Board::follow(&desk, &on(TOMORROW)).await;

        let reschedule = async { desk.reschedule(&order.dropoff, "2020-04-03 20:00-21:00", false).await.unwrap(); };
        assert_moves(&desk, &[&order.dropoff], [&mut today, &mut tomorrow], reschedule).await;

        assert!(today.shown.tasks.contains_key(&order.pickup));
    }

    async fn an_assigned_task_leaves_the_unassigned_ones_and_returns_to_them(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let [order]: [Order; 1] = orders(&client).await;
        let both = [&order.pickup, &order.dropoff];
        let unassigned = ListTasksRequest { unassigned: true, ..on(TODAY) };
        let mut unassigned = Board::follow(&desk, &unassigned).await;
        let of_ada = ListTasksRequest { courier: ada.clone(), ..on(TODAY) };
        let mut of_ada = Board::follow(&desk, &of_ada).await;

        let assign = async { desk.assign(&[&order.pickup], "", &ada).await; };
        assert_moves(&desk, &both, [&mut unassigned, &mut of_ada], assign).await;

        let unassign = async { desk.assign(&[&order.pickup], &ada, "").await; };
        assert_moves(&desk, &both, [&mut of_ada, &mut unassigned], unassign).await;
    }

    async fn a_moved_task_leaves_the_list_of_its_courier_and_of_its_day(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [order]: [Order; 1] = orders(&client).await;
        let both = [&order.pickup, &order.dropoff];
        desk.assign(&[&order.pickup], "", &ada).await;
        let of = |courier: &String, day: &str| ListTasksRequest { courier: courier.clone(), ..on(day) };
        let mut of_ada = Board::follow(&desk, &of(&ada, TODAY)).await;
        let mut of_ben = Board::follow(&desk, &of(&ben, TODAY)).await;
        let mut tomorrow = Board::follow(&desk, &of(&ben, TOMORROW)).await;

        let to_ben = async { desk.assign(&[&order.pickup], &ada, &ben).await; };
        assert_moves(&desk, &both, [&mut of_ada, &mut of_ben], to_ben).await;

        let request = AssignTasksRequest { day: TOMORROW.to_owned(), ..assignment(&[&order.pickup], &ben, &ben) };
        let to_tomorrow = async { desk.assign_tasks(request).await.unwrap(); };
        assert_moves(&desk, &both, [&mut of_ben, &mut tomorrow], to_tomorrow).await;
    }

    async fn a_task_leaves_a_list_that_has_not_its_state(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let [order]: [Order; 1] = orders(&client).await;
        let in_state = |state: State| ListTasksRequest { states: vec![state.into()], ..on(TODAY) };
        let mut todo = Board::follow(&desk, &in_state(State::Todo)).await;
        let mut doing = Board::follow(&desk, &in_state(State::Doing)).await;
        let mut done = Board::follow(&desk, &in_state(State::Done)).await;

        let start = async { desk.start(&order.pickup).await; };
        assert_moves(&desk, &[&order.pickup], [&mut todo, &mut doing], start).await;

        let complete = async { desk.complete(&order.pickup).await; };
        assert_moves(&desk, &[&order.pickup], [&mut doing, &mut done], complete).await;
    }

    async fn a_completed_task_leaves_the_overdue_ones(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let order = Order::on(&client, YESTERDAY).await;
        let overdue = ListTasksRequest { include_overdue: true, ..on(TODAY) };
        let mut overdue = Board::follow(&desk, &overdue).await;
        let done = ListTasksRequest { states: vec![State::Done.into()], ..on(YESTERDAY) };
        let mut done = Board::follow(&desk, &done).await;

        let complete = async { desk.complete(&order.dropoff).await; };
        assert_moves(&desk, &[&order.dropoff], [&mut overdue, &mut done], complete).await;

        let request = ReopenTaskRequest { name: order.dropoff.clone(), ..Default::default() };
        let reopen = async { desk.reopen_task(request).await.unwrap(); };
        assert_moves(&desk, &[&order.dropoff], [&mut done, &mut overdue], reopen).await;
    }

    async fn a_board_shows_what_the_lists_have_after_each_change(platform: &Platform) {
        let client = platform.client().await;
        let desks = [Desk::authorized(platform).await, Desk::authorized(platform).await];
        Box::pin(follow_random_changes(platform, desks.each_ref(), [&client, &client])).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_board_shows_what_the_lists_have_whichever_core_it_follows() {
    let Some(platforms) = Platform::start_two().await else {
        return;
    };
    let [first, second] = &platforms;
    let desks = [
        Desk::authorized(first).await,
        Desk::authorized(second).await,
    ];
    let clients = [first.client().await, second.client().await];

    let following = follow_random_changes(first, desks.each_ref(), clients.each_ref());
    Box::pin(following).await;
    Platform::stop_both(platforms).await;
}
