//! `WatchTasks`: how its stream begins, continues at a position and ends, and that it has every change.

use std::{collections::HashMap, time::Duration};

use futures_util::future::join;
use jiff::SignedDuration;
use proto::{
    Address, AssignTasksRequest, LatLng, ListCourierListsRequest, ListTasksRequest,
    ReopenTaskRequest, Task, WatchTasksResponse, task::State,
};
use serde_json::json;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::{
    Desk, Order, TODAY, TOMORROW, TaskChanges, assert_violations, assignment, on, orders, tasks,
    watching_lists::Board,
};
use crate::harness::{Database, Platform, UNKNOWN_ID, eventually, iri};

/// Far longer than a change takes to arrive, or a stream to begin or to end.
pub(super) const TIMEOUT: Duration = Duration::from_mins(1);

/// The first message of a stream.
pub(super) async fn first(changes: &mut TaskChanges) -> WatchTasksResponse {
    let first = tokio::time::timeout(TIMEOUT, changes.message()).await;
    let first = first.expect("the first message should arrive");
    first.unwrap().expect("the stream should not end")
}

/// Waits until core ends a stream, and returns the code, the reason and the message.
async fn end(changes: &mut TaskChanges) -> (Code, Option<String>, String) {
    let ended = async {
        loop {
            match changes.message().await {
                Ok(message) => assert!(message.is_some(), "the stream should end with a status"),
                Err(status) => break status,
            }
        }
    };
    let ended = tokio::time::timeout(TIMEOUT, ended).await;
    let status = ended.expect("the stream should end");
    (status.code(), reason(&status), status.message().to_owned())
}

fn reason(status: &Status) -> Option<String> {
    Some(status.get_details_error_info()?.reason)
}

/// How the stream ends of a client whose token is no longer valid.
fn invalid() -> (Code, Option<String>, String) {
    (
        Code::Unauthenticated,
        Some("TOKEN_INVALID".to_owned()),
        "the access token is not valid".to_owned(),
    )
}

/// The field and the text of each violation.
fn violations(refused: &Status) -> Vec<(String, String)> {
    let found = refused.get_details_bad_request().into_iter();
    let found = found.flat_map(|details| details.field_violations);
    found.map(|one| (one.field, one.description)).collect()
}

on_both_databases! {
    async fn the_first_message_has_only_the_position_of_a_list_that_did_not_change_since(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let mut board = Board::follow(&desk, &on(TODAY)).await;
        let before = board.position;
        orders::<2>(&client).await;
        board.catch_up(&desk).await;

        let mut request = ListTasksRequest { page_size: Some(1), ..on(TODAY) };
        let mut positions = Vec::new();
        loop {
            let page = desk.list_tasks(request.clone()).await.unwrap();
            positions.push(page.position);
            if page.next_page_token.is_empty() {
                break;
            }
            request.page_token = page.next_page_token;
        }

        let position = positions[0];
        assert!(position > before, "{position} {before}");
        assert_eq!(positions, [position, 0, 0, 0]);
        let lists = desk.list_courier_lists(ListCourierListsRequest { day: TODAY.to_owned() }).await;
        assert_eq!(lists.unwrap().position, position);
        let expected = WatchTasksResponse { position, ..Default::default() };
        for (after, list) in [
            (None, ListTasksRequest::default()),
            (None, on(TODAY)),
            (Some(position), on(TODAY)),
        ] {
            let mut changes = desk.watch(after, &list).await.unwrap();
            assert_eq!(first(&mut changes).await, expected, "{after:?} {list:?}");
        }
    }

    /// Made before the stream is opened, and after; also to a program that may not read the lists of couriers.
    async fn every_change_since_a_list_was_read_arrives(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let program = platform.operator().await.create_client("", &["tasks:all"]).await;
        let program = Desk::with(platform, &program, "tasks:all").await;
        let ada = desk.courier("Ada").await;
        let prepare = async || {
            let prepared: [Order; 10] = orders(&client).await;
            let [reopened, unassigned, one, two, ..] = &prepared;
            desk.complete(&reopened.pickup).await;
            let conflicts = desk.assign(&[&unassigned.pickup, &one.pickup, &two.pickup], "", &ada).await;
            assert_eq!(conflicts, [""; 0]);
            prepared
        };
        // Returns the tasks that look different then in a list.
        let change = async |[reopened, unassigned, one, two, assigned, rest @ ..]: &[Order; 10]| {
            let [started, completed, failed, cancelled, rescheduled] = rest;
            let reopen = ReopenTaskRequest { name: reopened.pickup.clone(), ..Default::default() };
            desk.reopen_task(reopen).await.unwrap();
            assert_eq!(desk.assign(&[&unassigned.pickup], &ada, "").await, [""; 0]);
            let to_start = AssignTasksRequest { position: Some(0), ..assignment(&[&two.pickup], &ada, &ada) };
            desk.assign_tasks(to_start).await.unwrap();
            assert_eq!(desk.assign(&[&assigned.pickup], "", &ada).await, [""; 0]);
            desk.start(&started.pickup).await;
            desk.complete(&completed.dropoff).await;
            desk.fail(&failed.pickup).await;
            client.delete(iri(&cancelled.delivery)).await.expect(204);
            desk.reschedule(&rescheduled.dropoff, "2020-04-02 20:00-21:00", false).await.unwrap();
            let [created]: [Order; 1] = orders(&client).await;
            let mut changed = tasks(&[reopened, unassigned, one, two, assigned, &created]);
            changed.extend(tasks(&[started, completed, failed, cancelled]));
            changed.push(rescheduled.dropoff.clone());
            changed
        };
        let [earlier, later] = [prepare().await, prepare().await];
        let mut board = Board::read(&desk, &on(TODAY)).await;
        let unassigned = ListTasksRequest { unassigned: true, ..on(TODAY) };
        let mut unassigned = Board::read(&desk, &unassigned).await;
        let read = board.shown.clone();

        platform.advance(SignedDuration::from_mins(1));
        let mut changed = change(&earlier).await;
        board.watch(&desk).await;
        unassigned.watch(&program).await;
        for board in [&mut board, &mut unassigned] {
            board.catch_up(&desk).await;
        }
        platform.advance(SignedDuration::from_mins(1));
        changed.extend(change(&later).await);
        for board in [&mut board, &mut unassigned] {
            board.catch_up(&desk).await;
        }

        for task in changed {
            assert_ne!(board.shown.tasks.get(&task), read.tasks.get(&task), "{task}");
        }
        assert_ne!(board.shown.lists, read.lists);
    }

    /// Those that it leaves and comes into, to who follows them: all of the day, a courier's, or none.
    async fn a_moved_task_changes_lists_of_couriers(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let other = Desk::authorized(platform).await;
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [first, second]: [Order; 2] = orders(&client).await;
        desk.assign(&[&first.pickup, &second.pickup], "", &ada).await;
        let of = |courier: &String| ListTasksRequest { courier: courier.clone(), ..on(TODAY) };
        let unassigned = ListTasksRequest { unassigned: true, ..on(TODAY) };
        let mut boards = Vec::new();
        for list in [ListTasksRequest::default(), of(&ada), of(&ben), unassigned, on(TOMORROW)] {
            boards.push(Board::follow(&desk, &list).await);
        }

        for (order, from, to, day) in [
            (&second, &*ada, &*ben, TODAY),
            // The list becomes empty.
            (&first, &*ada, "", ""),
            (&second, &*ben, &*ben, TOMORROW),
            (&first, "", &*ada, TODAY),
            (&second, &*ben, &*ben, TODAY),
        ] {
            platform.advance(SignedDuration::from_mins(1));
            let request = AssignTasksRequest { day: day.to_owned(), ..assignment(&[&order.pickup], from, to) };
            assert_eq!(other.assign_tasks(request).await.unwrap().conflicts, [""; 0]);
            for board in &mut boards {
                board.catch_up(&desk).await;
            }
        }

        for list in boards[0].shown.lists.values() {
            assert_eq!(list.changed_by, other.api_client);
        }
        let counts = boards.iter().map(|board| board.shown.lists.len());
        assert_eq!(counts.collect::<Vec<_>>(), [2, 1, 1, 0, 0]);
    }

    async fn an_erased_delivery_arrives_without_its_personal_data(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let task = |time_slot: &str| json!({
            "address": {
                "streetAddress": "24 Rue de la Roquette, 75011 Paris", "latLng": [48.853_123, 2.369_876],
                "name": "Chez Zoé", "contactName": "Zoé Martin", "telephone": "+33612345678", "description": "Code 7",
            },
            "timeSlot": time_slot,
            "comments": "Ring at Zoé's", "tags": ["zoe"], "metadata": { "customer": "Zoé" },
        });
        let draft = json!({ "pickup": task("2020-04-02 12:00-14:00"), "dropoff": task("2020-04-02 18:00-19:00") });
        let delivery = client.create_delivery(draft).await;
        let mut board = Board::follow(&desk, &on(TODAY)).await;
        let before = board.shown.tasks.clone();
        assert_eq!(before.len(), 2);

        let printed = platform.run_delivery_json(&["erase", "--delivery", iri(&delivery)]).await;

        assert_eq!(printed, json!([{ "delivery": iri(&delivery) }]));
        board.catch_up(&desk).await;
        for (name, task) in before {
            assert_eq!(task.comments, "Ring at Zoé's");
            let address = Address {
                street_address: "(erased)".to_owned(),
                lat_lng: Some(LatLng { latitude: 48.85, longitude: 2.37 }),
                place_name: None,
                contact_name: None,
                telephone: None,
                description: None,
                ..task.address.clone().unwrap()
            };
            let expected = Task {
                address: Some(address),
                comments: String::new(),
                tags: vec![],
                metadata: HashMap::new(),
                ..task
            };
            assert_eq!(board.shown.tasks[&name], expected);
        }
    }

    async fn a_position_that_does_not_exist_is_rejected(platform: &Platform) {
        let desk = Desk::authorized(platform).await;
        let newest = Board::read(&desk, &on(TODAY)).await.position;
        for position in [-1, newest + 1, i64::MAX] {
            let refused = desk.watch(Some(position), &on(TODAY)).await.err().unwrap();
            assert_violations(&refused, &["after_position"]);
        }
    }

    /// Then the client lists again: "a position of more than 24 hours ago".
    async fn a_position_expires_after_24_hours_and_a_new_list_is_followed(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let mut board = Board::follow(&desk, &on(TODAY)).await;
        let mut late = Board::read(&desk, &on(TODAY)).await;
        let expiring = late.position;
        let [order, _]: [Order; 2] = orders(&client).await;
        board.catch_up(&desk).await;

        platform.advance(SignedDuration::from_hours(23));
        let desk = Desk::authorized(platform).await;
        late.watch(&desk).await;
        late.catch_up(&desk).await;
        platform.advance(SignedDuration::from_hours(1) + SignedDuration::from_secs(1));

        let desk = Desk::authorized(platform).await;
        let expired = eventually(TIMEOUT, "the position does not expire", async || {
            // Expiry is checked when the clock changes.
            platform.advance(SignedDuration::from_millis(1));
            let refused = desk.watch(Some(expiring), &on(TODAY)).await.err();
            // Core may not have noticed yet that the streams of earlier attempts are closed.
            refused.filter(|refused| refused.code() != Code::ResourceExhausted)
        });
        let refused = expired.await;
        assert_eq!((refused.code(), reason(&refused).as_deref()), (Code::OutOfRange, Some("POSITION_EXPIRED")));
        assert!(refused.message().starts_with("the task changes up to "), "{}", refused.message());
        // Also if nothing has changed for so long.
        let mut board = Board::follow(&desk, &on(TODAY)).await;
        desk.start(&order.pickup).await;
        board.catch_up(&desk).await;
        assert_eq!(board.shown.tasks[&order.pickup].state(), State::Doing);
    }

    async fn a_list_is_refused_as_it_is_when_it_is_read(platform: &Platform) {
        let desk = Desk::authorized(platform).await;
        let courier = format!("couriers/{UNKNOWN_ID}");
        for list in [
            on("tomorrow"),
            on("2020-04-31"),
            ListTasksRequest { courier: "ada".to_owned(), ..on(TODAY) },
            ListTasksRequest { courier, unassigned: true, ..on(TODAY) },
            ListTasksRequest { states: vec![99], ..on(TODAY) },
            ListTasksRequest { courier: "ada".to_owned(), states: vec![99], ..on("tomorrow") },
        ] {
            let read = desk.list_tasks(list.clone()).await.unwrap_err();
            let mut expected = violations(&read);
            for (field, _) in &mut expected {
                field.insert_str(0, "list.");
            }

            let refused = desk.watch(None, &list).await.err().unwrap();

            assert_eq!(read.code(), Code::InvalidArgument, "{list:?}");
            assert_eq!(
                (refused.code(), refused.message(), reason(&refused), violations(&refused)),
                (read.code(), read.message(), reason(&read), expected),
                "{list:?}"
            );
        }
    }

    async fn neither_a_shop_nor_a_courier_may_watch(platform: &Platform) {
        let ada = Desk::authorized(platform).await.courier("Ada").await;
        let phone = platform.operator().await.create_courier_client(&ada).await;
        let of_ada = ListTasksRequest { courier: ada, ..on(TODAY) };
        for (credentials, scope) in [(&platform.demo_client, "tasks"), (&phone, "courier")] {
            let caller = Desk::with(platform, credentials, scope).await;
            for list in [&on(TODAY), &of_ada] {
                let refused = caller.watch(None, list).await.err().unwrap();
                let expected = (Code::PermissionDenied, Some("INSUFFICIENT_SCOPE".to_owned()));
                assert_eq!((refused.code(), reason(&refused)), expected, "{scope} {list:?}");
            }
        }
    }

    async fn the_stream_of_a_disabled_client_ends_and_others_do_not(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let operator = platform.operator().await;
        let disabled = operator.create_client("", &["dispatch"]).await;
        let watcher = Desk::with(platform, &disabled, "dispatch").await;
        let mut changes = watcher.watch(None, &on(TODAY)).await.unwrap();
        let mut board = Board::follow(&desk, &on(TODAY)).await;

        operator.disable_client(&disabled).await;

        assert_eq!(end(&mut changes).await, invalid());
        orders::<1>(&client).await;
        board.catch_up(&desk).await;
        assert_eq!(board.shown.tasks.len(), 2);
    }

    /// The client continues at its position with a new token.
    async fn a_stream_ends_when_its_token_expires(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let mut board = Board::follow(&desk, &on(TODAY)).await;
        orders::<1>(&client).await;
        board.catch_up(&desk).await;

        platform.advance(SignedDuration::from_hours(1));

        let (code, reason, message) = end(board.changes.as_mut().unwrap()).await;
        assert_eq!((code, reason.as_deref()), (Code::Unauthenticated, Some("TOKEN_EXPIRED")));
        assert_eq!(message, "the access token has expired; get a new one");
        orders::<1>(&platform.client().await).await;
        let desk = Desk::authorized(platform).await;
        board.watch(&desk).await;
        board.catch_up(&desk).await;
        assert_eq!(board.shown.tasks.len(), 4);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_as_unavailable_when_core_shuts_down() {
    let platform = Platform::start(Database::sqlite()).await;
    let desk = Desk::authorized(&platform).await;
    let mut changes = desk.watch(None, &on(TODAY)).await.unwrap();

    let ((code, _, message), ()) = join(end(&mut changes), platform.stop()).await;

    let expected = "this core is shutting down; call another one, or this one again";
    assert_eq!((code, &*message), (Code::Unavailable, expected));
}

/// The other core has cached the client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stream_of_a_client_that_was_disabled_at_another_core_ends() {
    let Some([first, second]) = Platform::start_two().await else {
        return;
    };
    let operator = first.operator().await;
    let disabled = operator.create_client("", &["dispatch"]).await;
    let watcher = Desk::with(&second, &disabled, "dispatch").await;
    let mut changes = watcher.watch(None, &on(TODAY)).await.unwrap();

    operator.disable_client(&disabled).await;

    assert_eq!(end(&mut changes).await, invalid());
    Platform::stop_both([first, second]).await;
}
