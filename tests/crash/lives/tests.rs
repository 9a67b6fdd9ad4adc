//! The oracle finds nothing in a life as it should be, and each kind of defect in an altered one.

use std::collections::BTreeSet;

use proto::{
    CourierList, DayList, Event, Incident, Task, TaskEvent, task::State, task_event::Actor,
};

use super::{
    journal::{Command, Kind, List, Order, Outcome, timestamp},
    oracle::{Defect, Evidence, verify},
};

const SECOND: i64 = 1_000_000;
const PICKUP: &str = "tasks/pickup";
const DROPOFF: &str = "tasks/dropoff";
const TASKS: [&str; 2] = [PICKUP, DROPOFF];
const ADA: &str = "couriers/ada";
const BEN: &str = "couriers/ben";
const DAY: &str = "2026-12-01";

/// A row for the history of a task, and the command that wrote it; each second another one.
fn write(evidence: &mut Evidence, courier: &str, kind: Kind, [task, event]: [&str; 2]) -> i64 {
    let at = (2 + i64::try_from(evidence.commands.len()).unwrap()) * SECOND;
    let (client, by) = match courier {
        "" => ("api_apps/desk", Actor::Dispatch),
        _ => (courier, Actor::Courier),
    };
    let command = Command {
        client: client.to_owned(),
        by,
        courier: courier.to_owned(),
        key: format!("key of {at}"),
        kind,
        task: task.to_owned(),
        tasks: [(task.to_owned(), None)].into(),
        occurred: at - 10,
        skew: 0,
        sent: vec![at],
        invoked: at - 10,
        answered: at + 10,
        outcome: Outcome::Done(None),
    };
    let row = TaskEvent {
        event: event.to_owned(),
        create_time: timestamp(at),
        occurred_time: timestamp(command.occurred),
        notes: command.key.clone(),
        actor: by.into(),
        api_client: client.to_owned(),
        courier: courier.to_owned(),
        ..Default::default()
    };
    history(evidence, task).push(row);
    evidence.commands.push(command);
    at
}

/// Puts a task into a courier's list.
fn assign(evidence: &mut Evidence, task: &str, courier: &str) {
    let kind = Kind::Assign {
        from: String::new(),
        single: true,
    };
    write(evidence, "", kind, [task, "task:assigned"]);
    let list = List {
        courier: courier.to_owned(),
        day: DAY.to_owned(),
    };
    let command = evidence.commands.last_mut().unwrap();
    command.tasks.insert(task.to_owned(), Some(list));
    let row = history(evidence, task).last_mut().unwrap();
    (row.courier, row.list_day) = (courier.to_owned(), DAY.to_owned());
}

/// The incident of the last row.
fn report(evidence: &mut Evidence, task: &str, text: &str) {
    let mut row = history(evidence, task).last().unwrap().clone();
    row.event = "task:incident-reported".to_owned();
    row.notes = text.to_owned();
    row.create_time.as_mut().unwrap().nanos += 1000;
    history(evidence, task).push(row);
    evidence.incidents.push(Incident {
        task: task.to_owned(),
        description: text.to_owned(),
        ..Default::default()
    });
}

/// A delivery of which Ada has completed the pickup, and late also the dropoff, which Ben reports as failed.
fn evidence() -> Evidence {
    let windows = [[7 * SECOND, 8 * SECOND], [8 * SECOND, 9 * SECOND]];
    let mut evidence = Evidence {
        orders: vec![Order {
            name: "deliveries/one".to_owned(),
            created: SECOND,
            tasks: TASKS.map(str::to_owned),
            windows,
        }],
        today: DAY.to_owned(),
        ..Default::default()
    };
    for task in TASKS {
        let created = TaskEvent {
            event: "task:created".to_owned(),
            create_time: timestamp(SECOND),
            ..Default::default()
        };
        evidence.histories.insert(task.to_owned(), vec![created]);
    }
    let all = &mut evidence;
    assign(all, PICKUP, ADA);
    assign(all, DROPOFF, ADA);
    write(all, ADA, Kind::Start, [PICKUP, "task:started"]);
    let picked = write(all, ADA, Kind::Complete, [PICKUP, "task:done"]);
    assign(all, DROPOFF, BEN);
    let dropped = write(all, ADA, Kind::Complete, [DROPOFF, "task:done"]);
    report(all, DROPOFF, "DONE was reported late");
    write(all, BEN, Kind::Fail, [DROPOFF, "task:conflict"]);
    history(all, DROPOFF).last_mut().unwrap().failure_reason = "REFUSED".to_owned();
    report(all, DROPOFF, "FAILED was reported");
    all.commands.last_mut().unwrap().outcome = Outcome::Refused("TASK_STATE".to_owned());
    all.replays = all.commands.clone();

    for (index, [courier, since]) in [[ADA, &picked.to_string()], [BEN, &dropped.to_string()]]
        .into_iter()
        .enumerate()
    {
        let name = TASKS[index].to_owned();
        let task = Task {
            name: name.clone(),
            state: State::Done.into(),
            state_time: timestamp(since.parse().unwrap()),
            after: timestamp(windows[index][0]),
            before: timestamp(windows[index][1]),
            courier: courier.to_owned(),
            list_day: DAY.to_owned(),
            has_incidents: index == 1,
            ..Default::default()
        };
        let list = CourierList {
            courier: courier.to_owned(),
            tasks: vec![name.clone()],
            ..Default::default()
        };
        evidence.tasks.insert(name, task);
        evidence.lists.push(DayList {
            day: DAY.to_owned(),
            list: Some(list),
        });
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
    evidence
}

fn history<'a>(evidence: &'a mut Evidence, task: &str) -> &'a mut Vec<TaskEvent> {
    evidence.histories.get_mut(task).unwrap()
}

#[test]
fn a_life_as_it_should_be_has_no_defect() {
    let findings = verify(&evidence());
    assert!(findings.defects.is_empty(), "{findings}");
    let seen =
        ["acknowledged", "refused", "conflicts", "incidents"].map(|what| findings.seen[what]);
    assert_eq!(seen, [6, 1, 1, 2], "{findings}");
}

#[test]
fn what_is_lost_twice_out_of_order_or_wrong_is_found() {
    use Defect::{Gap, Lost, OutOfOrder, Twice, Wrong};
    let cases: [(Defect, &str, fn(&mut Evidence)); 19] = [
        (Lost, "start", |all| drop(history(all, PICKUP).remove(2))),
        (Lost, "completion", |all| drop(history(all, PICKUP).pop())),
        (Lost, "conflict", |all| history(all, DROPOFF).truncate(5)),
        (Wrong, "assignment", |all| {
            history(all, DROPOFF).remove(1);
        }),
        (Wrong, "incident of a late report", |all| {
            history(all, DROPOFF).remove(4);
        }),
        (Wrong, "incident of a conflict", |all| {
            history(all, DROPOFF).pop();
        }),
        (Twice, "completion", |all| {
            let mut again = history(all, PICKUP)[3].clone();
            again.create_time.as_mut().unwrap().nanos += 1000;
            again.occurred_time.as_mut().unwrap().nanos += 1000;
            history(all, PICKUP).push(again);
        }),
        (OutOfOrder, "rows", |all| history(all, PICKUP).swap(2, 3)),
        (Wrong, "event", |all| {
            history(all, PICKUP)[3].event = "task:failed".to_owned();
        }),
        (Wrong, "time", |all| {
            history(all, PICKUP)[2].occurred_time = timestamp(7);
        }),
        (Wrong, "replay", |all| {
            let done = Some((State::Doing, SECOND));
            all.replays[2].outcome = Outcome::Done(done);
        }),
        (Wrong, "refusal", |all| {
            all.commands[2].outcome = Outcome::Refused("NOT_FOUND".to_owned());
        }),
        (Lost, "logged event", |all| drop(all.events.remove(2))),
        (Gap, "number", |all| drop(all.events.remove(2))),
        (Twice, "logged event", |all| {
            let again = all.events[4].clone();
            all.events.push(again);
        }),
        (OutOfOrder, "logged events", |all| all.events.swap(2, 3)),
        (Twice, "delivery", |all| {
            all.events[0].object = "deliveries/two".to_owned();
        }),
        (Twice, "notification", |all| {
            let ids = all.notified.values_mut().next().unwrap();
            ids.insert("another id".to_owned());
        }),
        (Wrong, "task", |all| {
            all.tasks.get_mut(DROPOFF).unwrap().set_state(State::Doing);
        }),
    ];
    for (defect, what, alter) in cases {
        let mut evidence = evidence();
        alter(&mut evidence);
        let findings = verify(&evidence);
        let is_found = findings.defects.contains_key(&defect);
        assert!(is_found, "{what}: {defect:?} in {findings}");
    }
}
