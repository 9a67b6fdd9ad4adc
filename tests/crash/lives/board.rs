//! A board: lists tasks and the lists of couriers, then watches, and goes on from its last position at any core.

use std::{collections::BTreeMap, time::Duration};

use proto::{
    CourierList, ListCourierListsRequest, ListTasksRequest, Task, WatchTasksRequest,
    WatchTasksResponse,
};
use tokio::sync::watch;
use tonic::{Status, Streaming};

use super::client::{Client, PAUSE, is_lost, reason, until_answered};
use crate::random::Random;

/// The most messages after which a board opens another stream.
const MAX_MESSAGES: u64 = 200;

/// One board in this many that resumes forgets all instead, and lists again.
const FORGETTING: u64 = 10;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shown {
    pub(super) tasks: BTreeMap<String, Task>,
    /// Those that have tasks, by courier.
    pub(super) lists: BTreeMap<String, CourierList>,
}

/// The copy of a board, and what it saw.
#[derive(Debug, Default)]
pub(super) struct BoardCopy {
    pub(super) shown: Shown,
    position: i64,
    /// How often a stream was opened.
    pub(super) streams: usize,
    /// Messages with an earlier position than the one before.
    pub(super) backward: usize,
}

impl BoardCopy {
    fn apply(&mut self, message: WatchTasksResponse) {
        self.backward += usize::from(message.position < self.position);
        self.position = message.position;
        for task in message.tasks {
            self.shown.tasks.insert(task.name.clone(), task);
        }
        for task in &message.left {
            self.shown.tasks.remove(task);
        }
        for list in message.lists.into_iter().filter_map(|list| list.list) {
            if list.tasks.is_empty() {
                self.shown.lists.remove(&list.courier);
            } else {
                self.shown.lists.insert(list.courier.clone(), list);
            }
        }
    }
}

/// What the lists have, and the position from which to watch them.
pub(super) async fn read(client: &Client, list: &ListTasksRequest) -> (Shown, i64) {
    let day = list.day.clone();
    let request = ListCourierListsRequest { day };
    let found = until_answered(|core| client.list_courier_lists(core, request.clone())).await;
    let mut position = found.position;
    let lists = found.lists.into_iter();
    let mut shown = Shown {
        tasks: BTreeMap::new(),
        lists: lists.map(|list| (list.courier.clone(), list)).collect(),
    };
    let mut request = list.clone();
    loop {
        let page = until_answered(|core| client.list_tasks(core, request.clone())).await;
        if request.page_token.is_empty() {
            position = position.min(page.position);
        }
        let tasks = page.tasks.into_iter();
        shown
            .tasks
            .extend(tasks.map(|task| (task.name.clone(), task)));
        if page.next_page_token.is_empty() {
            return (shown, position);
        }
        request.page_token = page.next_page_token;
    }
}

/// Follows a list until it is aborted.
pub(super) async fn follow(
    client: Client,
    list: ListTasksRequest,
    copy: watch::Sender<BoardCopy>,
    mut random: Random,
) {
    let mut is_listed = false;
    loop {
        if !is_listed || random.below(FORGETTING) == 0 {
            let (shown, position) = read(&client, &list).await;
            copy.send_modify(|copy| {
                copy.shown = shown;
                copy.position = position;
            });
            is_listed = true;
        }
        let request = WatchTasksRequest {
            after_position: Some(copy.borrow().position),
            list: Some(list.clone()),
        };
        let core = usize::try_from(random.below(2)).unwrap();
        let messages = 1 + random.below(MAX_MESSAGES);
        let ended = match client.watch_tasks(core, request).await {
            Ok(stream) => receive(stream, &copy, messages).await,
            Err(status) => Err(status),
        };
        if let Err(status) = ended {
            is_listed = reason(&status) != "POSITION_EXPIRED";
            assert!(!is_listed || is_lost(&status), "{status:?}");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Receives this many messages.
async fn receive(
    mut stream: Streaming<WatchTasksResponse>,
    copy: &watch::Sender<BoardCopy>,
    messages: u64,
) -> Result<(), Status> {
    copy.send_modify(|copy| copy.streams += 1);
    let mut received = 0;
    while received < messages {
        let Some(message) = stream.message().await? else {
            panic!("the stream should not end without a status");
        };
        copy.send_modify(|copy| copy.apply(message));
        received += 1;
    }
    Ok(())
}

/// Waits until a board shows this; returns what it shows at the end.
pub(super) async fn wait_for(
    copy: &mut watch::Receiver<BoardCopy>,
    expected: &Shown,
    timeout: Duration,
) -> Shown {
    let reached = copy.wait_for(|copy| copy.shown == *expected);
    let _ = tokio::time::timeout(timeout, reached).await;
    copy.borrow().shown.clone()
}
