//! The oracle finds nothing in a life as it should be, and each kind of defect in an altered one.

use std::collections::BTreeSet;

use proto::{
    CourierList, DayList, Event, Incident, Task, TaskEvent, incident, task::State,
    task_event::Actor,
};

use super::{
    board::Shown,
    journal::{Command, Kind, List, Order, Outcome, timestamp},
    oracle::{Defects, Evidence, verify},
};

const SECOND: i64 = 1_000_000;
const DESK: &str = "api_apps/desk";
const PHONE: &str = "api_apps/phone";
const PICKUP: &str = "tasks/pickup";
const DROPOFF: &str = "tasks/dropoff";
const ADA: &str = "couriers/ada";
const DAY: &str = "2026-12-01";

/// One after the other, each a second after the one before, with the row that it writes.
fn command(evidence: &mut Evidence, client: &str, kind: Kind, task: &str, event: &str) -> i64 {
    let at = (2 + i64::try_from(evidence.commands.len()).unwrap()) * SECOND;
    let mut command = Command::new(client, kind, task, at - 10);
    command.answered = at + 10;
    let state = match event {
        "task:started" => Some(State::Doing),
        "task:done" => Some(State::Done),
        _ => None,
    };
    command.outcome = Outcome::Done(state.map(|state| (state, at)));
    let row = row(event, at, &command);
    evidence.histories.get_mut(task).unwrap().push(row);
    evidence.commands.push(command);
    at
}

fn row(event: &str, at: i64, command: &Command) -> TaskEvent {
    let has_notes = !["task:started", "task:assigned"].contains(&event);
    let actor = if command.client == DESK {
        Actor::Dispatch
    } else {
        Actor::Courier
    };
    TaskEvent {
        event: event.to_owned(),
        create_time: timestamp(at),
        occurred_time: timestamp(command.occurred),
        notes: has_notes.then(|| command.key.clone()).unwrap_or_default(),
        actor: actor.into(),
        api_client: command.client.clone(),
        ..Default::default()
    }
}

/// A delivery that is assigned and completed, with an incident and a refusal.
fn evidence() -> Evidence {
    let windows = [[7 * SECOND, 8 * SECOND], [8 * SECOND, 9 * SECOND]];
    let mut evidence = Evidence {
        orders: vec![Order {
            name: "deliveries/one".to_owned(),
            created: SECOND,
            tasks: [PICKUP, DROPOFF].map(str::to_owned),
            windows,
        }],
        couriers: [(PHONE.to_owned(), ADA.to_owned())].into(),
        today: DAY.to_owned(),
        ..Default::default()
    };
    for task in [PICKUP, DROPOFF] {
        let created = TaskEvent {
            event: "task:created".to_owned(),
            create_time: timestamp(SECOND),
            ..Default::default()
        };
        evidence.histories.insert(task.to_owned(), vec![created]);
    }
    let assign = Kind::Assign {
        from: String::new(),
        single: false,
    };
    command(&mut evidence, DESK, assign, PICKUP, "task:assigned");
    let list = Some(List {
        courier: ADA.to_owned(),
        day: DAY.to_owned(),
    });
    let tasks = [PICKUP, DROPOFF].map(|task| (task.to_owned(), list.clone()));
    evidence.commands[0].tasks = tasks.into();
    let assigned = evidence
        .histories
        .get_mut(PICKUP)
        .unwrap()
        .last_mut()
        .unwrap();
    (assigned.courier, assigned.list_day) = (ADA.to_owned(), DAY.to_owned());
    let assigned = assigned.clone();
    evidence.histories.get_mut(DROPOFF).unwrap().push(assigned);

    command(&mut evidence, PHONE, Kind::Start, PICKUP, "task:started");
    let picked = command(&mut evidence, PHONE, Kind::Complete, PICKUP, "task:done");
    let reported = "task:incident-reported";
    command(&mut evidence, PHONE, Kind::Report, DROPOFF, reported);
    let close = Kind::Close("incidents/wet".to_owned());
    command(&mut evidence, DESK, close, DROPOFF, "task:incident-closed");
    let dropped = command(&mut evidence, PHONE, Kind::Complete, DROPOFF, "task:done");
    let mut late = Command::new(PHONE, Kind::Start, PICKUP, dropped + SECOND);
    late.answered = late.invoked + 10;
    late.outcome = Outcome::Refused {
        reason: "TASK_STATE".to_owned(),
        message: "the pickup is DONE since 1970-01-01T01:00:04+01:00, set by courier".to_owned(),
    };
    evidence.commands.push(late);
    evidence.incidents = vec![Incident {
        name: "incidents/wet".to_owned(),
        task: DROPOFF.to_owned(),
        description: evidence.commands[3].key.clone(),
        state: incident::State::Closed.into(),
        closed_with: evidence.commands[4].key.clone(),
        ..Default::default()
    }];

    leave(&mut evidence, [picked, dropped]);
    evidence
}

/// What is left of it: tasks that are done since these times, events, lists, and what a board shows.
fn leave(evidence: &mut Evidence, done: [i64; 2]) {
    let windows = evidence.orders[0].windows;
    for (index, name) in [PICKUP, DROPOFF].into_iter().enumerate() {
        let task = Task {
            name: name.to_owned(),
            state: State::Done.into(),
            state_time: timestamp(done[index]),
            after: timestamp(windows[index][0]),
            before: timestamp(windows[index][1]),
            courier: ADA.to_owned(),
            list_day: DAY.to_owned(),
            list_position: u32::try_from(index).unwrap(),
            ..Default::default()
        };
        evidence.tasks.insert(name.to_owned(), task);
    }
    let names = ["created", "assigned", "started", "picked", "completed"];
    for (number, name) in (1..).zip(names) {
        let event = Event {
            name: format!("events/{number}"),
            number,
            event: format!("delivery.{name}"),
            object: "deliveries/one".to_owned(),
            ..Default::default()
        };
        let key = [event.event.clone(), event.object.clone()];
        let ids = BTreeSet::from([format!("id of {name}")]);
        evidence.notified.insert(key, ids);
        evidence.events.push(event);
    }
    let list = CourierList {
        courier: ADA.to_owned(),
        tasks: [PICKUP, DROPOFF].map(str::to_owned).into(),
        ..Default::default()
    };
    let shown = Shown {
        tasks: evidence.tasks.clone(),
        lists: [(ADA.to_owned(), list.clone())].into(),
    };
    evidence.boards = vec![[shown.clone(), shown]];
    evidence.lists = vec![DayList {
        day: DAY.to_owned(),
        list: Some(list),
    }];
}

fn history<'a>(evidence: &'a mut Evidence, task: &str) -> &'a mut Vec<TaskEvent> {
    evidence.histories.get_mut(task).unwrap()
}

/// Fails unless the oracle finds the defect in the altered evidence.
#[track_caller]
fn assert_found(alter: fn(&mut Evidence), defect: fn(&Defects) -> usize) {
    let mut evidence = evidence();
    alter(&mut evidence);
    let figures = verify(&evidence);
    assert!(defect(&figures.defects) > 0, "{figures}");
}

#[test]
fn a_life_as_it_should_be_has_no_defect() {
    let figures = verify(&evidence());
    assert_eq!(figures.defects, Defects::default(), "{figures}");
    let counts = [figures.acknowledged, figures.refused, figures.completed];
    assert_eq!(counts, [6, 1, 1]);
}

#[test]
fn rows_that_are_lost_doubled_reordered_or_wrong_are_found() {
    // The model permits a task to be done that was not started.
    assert_found(
        |all| drop(history(all, PICKUP).remove(2)),
        |found| found.lost,
    );
    assert_found(|all| drop(history(all, PICKUP).pop()), |found| found.lost);
    assert_found(
        |all| drop(history(all, DROPOFF).remove(3)),
        |found| found.lost,
    );
    assert_found(
        |all| drop(history(all, DROPOFF).remove(1)),
        |found| found.illegal,
    );
    let repeat: fn(&mut Evidence) = |all| {
        let again = history(all, PICKUP)[2].clone();
        history(all, PICKUP).insert(3, again);
    };
    assert_found(repeat, |found| found.illegal);
    // The model permits this: it is unassigned in between.
    let repeat: fn(&mut Evidence) = |all| {
        let rows = history(all, PICKUP);
        for (index, after) in [(2, 3), (3, 5)] {
            let mut again = rows[1].clone();
            again.create_time = timestamp(2 * SECOND + after);
            rows.insert(index, again);
        }
        rows[2].event = "task:unassigned".to_owned();
    };
    assert_found(repeat, |found| found.doubled);
    assert_found(|all| history(all, PICKUP).swap(2, 3), |found| found.illegal);
    let exchange: fn(&mut Evidence) = |all| {
        let rows = history(all, PICKUP);
        let times = [rows[2].create_time, rows[3].create_time];
        rows.swap(2, 3);
        [rows[2].create_time, rows[3].create_time] = times;
    };
    assert_found(exchange, |found| found.illegal);
    assert_found(exchange, |found| found.unexplained);
    let rename: fn(&mut Evidence) = |all| history(all, PICKUP)[3].event = "task:failed".to_owned();
    assert_found(rename, |found| found.unexplained);
    let misdate: fn(&mut Evidence) = |all| history(all, PICKUP)[2].occurred_time = timestamp(7);
    assert_found(misdate, |found| found.unexplained);
}

#[test]
fn answers_that_differ_when_repeated_and_refusals_that_are_wrong_are_found() {
    fn refuse(all: &mut Evidence, number: usize, message: &str) {
        let (reason, message) = ("TASK_STATE".to_owned(), message.to_owned());
        all.commands[number].outcome = Outcome::Refused { reason, message };
    }
    assert_found(|all| refuse(all, 1, ""), |found| found.unexplained);
    let repeat: fn(&mut Evidence) = |all| all.commands[1].repeated = Some(Outcome::Done(None));
    assert_found(repeat, |found| found.repeats);
    for message in [
        "the pickup is FAILED since 1970-01-01T00:00:04+00:00, set by courier",
        "the pickup is DONE since 1970-01-01T00:00:05+00:00, set by courier",
        "the pickup is DONE since 1970-01-01T00:00:04+00:00, set by dispatch",
    ] {
        let mut evidence = evidence();
        refuse(&mut evidence, 6, message);
        assert_eq!(verify(&evidence).defects.refusals, 1, "{message}");
    }
}

#[test]
fn events_that_are_lost_doubled_reordered_or_wrong_are_found() {
    let lose: fn(&mut Evidence) = |all| drop(all.events.remove(2));
    assert_found(lose, |found| found.events);
    assert_found(lose, |found| found.gaps);
    let repeat: fn(&mut Evidence) = |all| {
        let mut again = all.events[4].clone();
        again.number = 6;
        all.events.push(again);
    };
    assert_found(repeat, |found| found.events);
    assert_found(repeat, |found| found.repeated);
    assert_found(repeat, |found| found.completed_twice);
    assert_found(repeat, |found| found.not_notified);
    let reorder: fn(&mut Evidence) = |all| {
        all.events.swap(2, 3);
        (all.events[2].number, all.events[3].number) = (3, 4);
    };
    assert_found(reorder, |found| found.events);
    let rename: fn(&mut Evidence) = |all| all.events[3].event = "delivery.dropped".to_owned();
    assert_found(rename, |found| found.events);
    assert_found(rename, |found| found.not_notified);
    assert_found(rename, |found| found.notified_twice);
    let misplace: fn(&mut Evidence) = |all| all.events[0].object = "deliveries/two".to_owned();
    assert_found(misplace, |found| found.unknown_events);
    let renumber: fn(&mut Evidence) = |all| {
        let ids = all.notified.values_mut().next().unwrap();
        ids.insert("another id".to_owned());
    };
    assert_found(renumber, |found| found.notified_twice);
}

#[test]
fn tasks_incidents_lists_and_boards_that_do_not_agree_are_found() {
    fn dropoff(all: &mut Evidence) -> &mut Task {
        all.tasks.get_mut(DROPOFF).unwrap()
    }
    fn list(all: &mut Evidence) -> &mut CourierList {
        all.lists[0].list.as_mut().unwrap()
    }
    assert_found(
        |all| dropoff(all).set_state(State::Doing),
        |found| found.stale,
    );
    assert_found(|all| dropoff(all).courier.clear(), |found| found.stale);
    assert_found(
        |all| dropoff(all).has_incidents = true,
        |found| found.incidents,
    );
    assert_found(
        |all| all.incidents[0].set_state(incident::State::Open),
        |found| found.incidents,
    );
    assert_found(
        |all| all.incidents[0].closed_with.clear(),
        |found| found.incidents,
    );
    assert_found(
        |all| all.incidents.push(Incident::default()),
        |found| found.incidents,
    );
    assert_found(
        |all| list(all).tasks.push(PICKUP.to_owned()),
        |found| found.in_two_lists,
    );
    assert_found(|all| list(all).tasks.reverse(), |found| found.places);
    assert_found(|all| list(all).tasks.clear(), |found| found.places);
    assert_found(|all| all.boards[0][0].tasks.clear(), |found| found.boards);
}
