//! The oracle must find each kind of defect in evidence that is altered.

use proto::TaskEvent;

use super::{
    journal::{Command, Kind, Outcome, micros, timestamp},
    oracle::{
        Defect::{self, Gap, Lost, OutOfOrder, Twice, Wrong},
        Evidence, verify,
    },
};

type Alteration = (Defect, &'static str, fn(&mut Evidence));

const ALTERATIONS: [Alteration; 16] = [
    (Lost, "a command", |all| {
        let is_untouched = |task: &&String| !all.histories[*task].iter().any(is_start);
        let mut tasks = all.orders.iter().flat_map(|order| &order.tasks);
        let task = tasks.find(is_untouched).unwrap().clone();
        let command = started(all);
        command.tasks = [(task.clone(), None)].into();
        command.task = task;
    }),
    (Lost, "an event", |all| drop(all.events.remove(2))),
    (Lost, "a notification", |all| drop(all.notified.pop_first())),
    (Twice, "a command", |all| {
        let (history, index) = row(all, "task:started");
        let mut again = history[index].clone();
        for time in [&mut again.create_time, &mut again.occurred_time] {
            time.as_mut().unwrap().nanos += 1000;
        }
        history.insert(index + 1, again);
    }),
    (Twice, "an event", |all| {
        let again = all.events[2].clone();
        all.events.push(again);
    }),
    (Twice, "a delivery", |all| {
        "deliveries/another".clone_into(&mut all.events[2].object);
    }),
    (Twice, "a notification", |all| {
        let ids = all.notified.values_mut().next().unwrap();
        ids.insert("another id".to_owned());
    }),
    (OutOfOrder, "rows", |all| {
        let (history, index) = row(all, "task:started");
        history.swap(index - 1, index);
    }),
    (OutOfOrder, "events", |all| {
        let mut events = all.events.iter();
        let last = events.position(|event| event.event == "delivery.completed");
        let last = last.unwrap();
        let object = &all.events[last].object;
        let mut events = all.events.iter();
        let first = events.position(|event| event.object == *object).unwrap();
        let names = [last, first].map(|index| all.events[index].event.clone());
        [all.events[first].event, all.events[last].event] = names;
    }),
    (Gap, "a number", |all| drop(all.events.remove(2))),
    (Wrong, "a transition", |all| {
        let (history, index) = row(all, "task:done");
        "task:failed".clone_into(&mut history[index].event);
    }),
    (Wrong, "a time", |all| {
        let (history, index) = row(all, "task:started");
        history[index].occurred_time = timestamp(7);
    }),
    (Wrong, "no conflict", |all| {
        let (history, index) = row(all, "task:conflict");
        history.remove(index);
    }),
    (Wrong, "no incident", |all| {
        let (history, index) = row(all, "task:incident-reported");
        history.remove(index);
    }),
    (Wrong, "a refusal", |all| {
        started(all).outcome = Outcome::Refused("NOT_FOUND".to_owned());
    }),
    (Wrong, "a replay", |all| {
        all.replays[0].outcome = Outcome::Unknown;
    }),
];

/// Fails unless each alteration is found.
pub(super) fn assert_found(evidence: &Evidence) {
    for (defect, what, alter) in ALTERATIONS {
        let mut evidence = evidence.clone();
        alter(&mut evidence);
        let findings = verify(&evidence);
        let is_found = findings.defects.contains_key(&defect);
        assert!(is_found, "{what}: no {defect:?} in {findings}");
    }
}

fn is_start(row: &TaskEvent) -> bool {
    ["task:started", "task:reopened"].contains(&&*row.event)
}

/// A history that has a row of an event, and where.
fn row<'a>(all: &'a mut Evidence, event: &str) -> (&'a mut Vec<TaskEvent>, usize) {
    let found = all.histories.values_mut().find_map(|history| {
        let index = history.iter().position(|row| row.event == event)?;
        Some((history, index))
    });
    found.unwrap()
}

/// An acknowledged command that has started a task.
fn started(all: &mut Evidence) -> &mut Command {
    let rows = all.histories.values().flatten();
    let rows: Vec<_> = rows.filter(|row| row.event == "task:started").collect();
    let mut commands = all.commands.iter_mut();
    let found = commands.find(|command| {
        let at = command.invoked..=command.answered;
        let wrote = |row: &&TaskEvent| {
            row.api_client == command.client && at.contains(&micros(row.create_time))
        };
        let is_done = matches!(command.outcome, Outcome::Done(_));
        is_done && matches!(command.kind, Kind::Start) && rows.iter().any(wrote)
    });
    found.unwrap()
}
