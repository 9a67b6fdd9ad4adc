//! Handwritten histories of a delivery.

use serde_json::json;

use super::{
    super::{
        answer::Rejection,
        linearizability::{
            Operation,
            by_hand::{assert_linearizable, assert_not_linearizable, known, unknown},
        },
    },
    Command::{Cancel, Complete, ReadDelivery, ReadTask},
    Delivery, Response, State, Task, TaskState, TaskView,
};

const PICKUP: Task = Task::Pickup;
const DROPOFF: Task = Task::Dropoff;

/// A delivery created at 12:00.
fn delivery() -> Delivery {
    let task = TaskState {
        is_done: false,
        updated_at: Some("12:00".to_owned()),
    };
    Delivery {
        iri: "/api/deliveries/1".to_owned(),
        tasks: ["/api/tasks/1".to_owned(), "/api/tasks/2".to_owned()],
        created: State {
            tasks: [task.clone(), task],
            cancelled_at: None,
        },
    }
}

/// A task that was last changed at a time.
fn task(status: &str, updated_at: &str) -> TaskView {
    TaskView {
        status: status.to_owned(),
        updated_at: updated_at.to_owned(),
        cancelled_at: None,
    }
}

fn done(updated_at: &str) -> Response {
    Response::Task(task("DONE", updated_at))
}

fn to_do() -> Response {
    Response::Task(task("TODO", "12:00"))
}

/// A cancelled delivery with both tasks in `TODO`.
fn cancelled(at: &str) -> Response {
    let mut task = task("TODO", at);
    task.cancelled_at = Some(at.to_owned());
    Response::Delivery {
        tasks: [task.clone(), task],
        cancelled_at: Some(at.to_owned()),
    }
}

/// The rejection of a command because of the state of a task.
fn rejected(state: &str) -> Response {
    let detail = format!("the pickup is {state} since 12:00, set by the shop");
    Response::Rejected(Rejection {
        status: 409,
        code: "task_state".to_owned(),
        body: json!({ "detail": detail }).to_string(),
    })
}

#[test]
fn an_acknowledged_completion_that_a_later_read_does_not_show_is_a_lost_update() {
    let read = |begin, response| {
        [
            known(1..=4, Complete(PICKUP), done("12:01")),
            known(begin..=6, ReadTask(PICKUP), response),
        ]
    };
    assert_linearizable(&delivery(), &read(5, done("12:01")));
    assert_not_linearizable(&delivery(), &read(5, to_do()));
    assert_linearizable(&delivery(), &read(3, to_do()));
}

#[test]
fn a_repeated_completion_that_changes_the_task_is_an_error() {
    let completions = |second| {
        [
            known(1..=2, Complete(PICKUP), done("12:01")),
            known(3..=4, Complete(PICKUP), done(second)),
        ]
    };
    assert_linearizable(&delivery(), &completions("12:01"));
    assert_not_linearizable(&delivery(), &completions("12:02"));
}

#[test]
fn a_delivery_is_cancelled_or_started_but_never_both() {
    let race = |cancelled, completed| {
        [
            known(1..=4, Cancel, cancelled),
            known(2..=3, Complete(DROPOFF), completed),
        ]
    };
    for (cancelled, completed) in [
        (Response::Cancelled, rejected("CANCELLED")),
        (rejected("DONE"), done("12:01")),
    ] {
        assert_linearizable(&delivery(), &race(cancelled, completed));
    }
    for (cancelled, completed) in [
        (Response::Cancelled, done("12:01")),
        (Response::Cancelled, rejected("DONE")),
        (rejected("CANCELLED"), done("12:01")),
        (rejected("DONE"), rejected("CANCELLED")),
        (rejected("DONE"), rejected("DONE")),
    ] {
        assert_not_linearizable(&delivery(), &race(cancelled, completed));
    }
}

#[test]
fn a_cancelled_delivery_keeps_its_status_and_time() {
    let history = |second| {
        [
            known(1..=2, Cancel, Response::Cancelled),
            known(3..=4, ReadDelivery, cancelled("12:01")),
            known(5..=6, Cancel, Response::Cancelled),
            known(7..=8, ReadDelivery, second),
        ]
    };
    assert_linearizable(&delivery(), &history(cancelled("12:01")));
    assert_not_linearizable(&delivery(), &history(cancelled("12:02")));
    let not_cancelled = Response::Delivery {
        tasks: [task("TODO", "12:01"), task("TODO", "12:01")],
        cancelled_at: None,
    };
    assert_not_linearizable(&delivery(), &history(not_cancelled));
}

#[test]
fn a_rejection_needs_a_completion_which_may_have_got_no_response() {
    let mut history: Vec<Operation<Delivery>> = vec![
        known(1..=2, ReadTask(PICKUP), to_do()),
        known(5..=6, Cancel, rejected("DONE")),
        known(7..=8, ReadTask(PICKUP), done("12:01")),
    ];
    assert_not_linearizable(&delivery(), &history);
    history.push(unknown(3, Complete(DROPOFF)));
    assert_not_linearizable(&delivery(), &history);
    history.push(unknown(3, Complete(PICKUP)));
    assert_linearizable(&delivery(), &history);
}
