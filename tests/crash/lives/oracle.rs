//! Compares what clients did and learned with the histories of tasks, the event log, and what receivers, lists and boards
//! show.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use proto::{DayList, Event, Incident, Task, TaskEvent, incident, task::State};

use super::{
    board::Shown,
    journal::{Command, Kind, Order, Outcome, micros, window},
    model::{Facts, Life},
    run::Run,
};

/// The most defects that are described.
const MAX_DETAILS: usize = 8;

/// What is left after the last command.
#[derive(Clone, Default)]
pub(super) struct Evidence {
    pub(super) commands: Vec<Command>,
    pub(super) orders: Vec<Order>,
    /// The shop's client.
    pub(super) shop: String,
    /// The couriers of phones.
    pub(super) couriers: BTreeMap<String, String>,
    pub(super) today: String,
    /// By task, as its present form.
    pub(super) histories: BTreeMap<String, Vec<TaskEvent>>,
    pub(super) tasks: BTreeMap<String, Task>,
    pub(super) events: Vec<Event>,
    /// The `webhook-id`s received, by event and delivery.
    pub(super) notified: BTreeMap<[String; 2], BTreeSet<String>>,
    pub(super) incidents: Vec<Incident>,
    /// All lists of all days.
    pub(super) lists: Vec<DayList>,
    pub(super) wrong_etags: usize,
    /// What each board shows, and what the lists have.
    pub(super) boards: Vec<[Shown; 2]>,
    pub(super) backward: usize,
}

/// What no fault may cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Defects {
    /// Acknowledged commands that the history of their task does not have, nor a reason why not.
    pub(super) lost: usize,
    /// Rows of a history that repeat a command.
    pub(super) doubled: usize,
    /// Rows that no command wrote, a refused one, or two.
    pub(super) unexplained: usize,
    /// Histories that are no run of the model.
    pub(super) illegal: usize,
    /// Repeated commands that got another answer than the first one.
    pub(super) repeats: usize,
    /// Refusals that name what the history does not have.
    pub(super) refusals: usize,
    /// Tasks that are not as their history says.
    pub(super) stale: usize,
    /// Deliveries whose logged events are not those that their histories cause, in this order.
    pub(super) events: usize,
    /// Logged events of deliveries that no client created.
    pub(super) unknown_events: usize,
    pub(super) completed_twice: usize,
    /// Events whose number is not their index in the log, counted from 1, and repeated ones.
    pub(super) gaps: usize,
    pub(super) repeated: usize,
    /// Events that were not received, were received under more than one `webhook-id`, or are not logged.
    pub(super) not_notified: usize,
    pub(super) notified_twice: usize,
    pub(super) in_two_lists: usize,
    /// Tasks in lists that say they are elsewhere, and the other way round.
    pub(super) places: usize,
    pub(super) etags: usize,
    /// Incidents that are not reported, open or closed as the histories say.
    pub(super) incidents: usize,
    /// Boards that do not show what the lists have, and positions that went back.
    pub(super) boards: usize,
    pub(super) backward: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    pub(super) deliveries: usize,
    pub(super) acknowledged: usize,
    pub(super) refused: usize,
    pub(super) unknown: usize,
    pub(super) changes: usize,
    pub(super) completed: usize,
    pub(super) events: usize,
    pub(super) incidents: usize,
    pub(super) defects: Defects,
    /// The first defects.
    details: Vec<String>,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} deliveries ({} completed), commands: {} acknowledged, {} refused, {} given up; {} changes, {} events, {} \
             incidents; ",
            self.deliveries,
            self.completed,
            self.acknowledged,
            self.refused,
            self.unknown,
            self.changes,
            self.events,
            self.incidents
        )?;
        if self.defects == Defects::default() {
            return write!(f, "nothing lost, doubled or out of order");
        }
        write!(f, "{:?}\n{}", self.defects, self.details.join("\n"))
    }
}

impl Figures {
    pub(super) fn add(
        &mut self,
        defect: fn(&mut Defects) -> &mut usize,
        detail: impl FnOnce() -> String,
    ) {
        *defect(&mut self.defects) += 1;
        if self.details.len() < MAX_DETAILS {
            self.details.push(detail());
        }
    }
}

pub(super) fn verify(evidence: &Evidence) -> Figures {
    let count = |is: fn(&Outcome) -> bool| {
        let outcomes = evidence.commands.iter().map(|command| &command.outcome);
        outcomes.filter(|outcome| is(outcome)).count()
    };
    let mut figures = Figures {
        deliveries: evidence.orders.len(),
        acknowledged: count(|outcome| matches!(outcome, Outcome::Done(_))),
        refused: count(|outcome| matches!(outcome, Outcome::Refused { .. })),
        unknown: count(|outcome| *outcome == Outcome::Unknown),
        events: evidence.events.len(),
        incidents: evidence.incidents.len(),
        ..Default::default()
    };
    for command in &evidence.commands {
        let repeated = command.repeated.as_ref();
        if repeated.is_some_and(|repeated| *repeated != command.outcome) {
            figures.add(|found| &mut found.repeats, || format!("{command:?}"));
        }
    }
    let facts = facts(evidence);
    let mut by_task = BTreeMap::<_, Vec<_>>::new();
    for (number, command) in evidence.commands.iter().enumerate() {
        for task in command.tasks.keys() {
            by_task.entry(&**task).or_default().push(number);
        }
    }
    let mut logged = BTreeMap::<_, Vec<_>>::new();
    for event in &evidence.events {
        let names = logged.entry(&*event.object).or_default();
        names.push(&*event.event);
    }
    let mut incidents = BTreeMap::new();
    for order in &evidence.orders {
        let of_order = order.tasks.iter().filter_map(|task| by_task.get(&**task));
        let numbers: BTreeSet<_> = of_order.flatten().copied().collect();
        let commands = numbers.iter().map(|number| &evidence.commands[*number]);
        let run = Run::new(order, &evidence.histories, &facts);
        run.check(
            evidence,
            &facts,
            &commands.collect::<Vec<_>>(),
            &mut figures,
        );
        figures.changes += run.changes.len();
        let events = logged.remove(&*order.name).unwrap_or_default();
        check_events(order, &run, &events, &mut figures);
        if let Some(last) = run.last() {
            check_tasks(evidence, order, last, &mut figures);
            for (task, life) in order.tasks.iter().zip(&last.0) {
                let of_task = life.incidents.clone().into_iter();
                incidents.extend(of_task.map(|(text, closed)| ([task.clone(), text], closed)));
            }
        }
    }
    for (object, events) in logged {
        figures.add(
            |found| &mut found.unknown_events,
            || format!("{object}: {events:?}"),
        );
    }
    check_incidents(evidence, incidents, &mut figures);
    check_log(evidence, &mut figures);
    check_lists(evidence, &mut figures);
    for [shown, listed] in &evidence.boards {
        if shown != listed {
            let shown_as = |task: &Task| shown.tasks.get(&task.name);
            let mut tasks = listed.tasks.values();
            let missing = tasks.find(|task| shown_as(task) != Some(*task));
            let detail = || format!("{missing:?}, shown as {:?}", missing.map(shown_as));
            figures.add(|found| &mut found.boards, detail);
        }
    }
    figures.defects.etags = evidence.wrong_etags;
    figures.defects.backward = evidence.backward;
    figures
}

fn facts(evidence: &Evidence) -> Facts {
    let incidents = evidence.incidents.iter();
    let texts: BTreeMap<_, _> = incidents
        .map(|incident| (&*incident.name, &incident.description))
        .collect();
    let closed = evidence.commands.iter().filter_map(|command| {
        let Kind::Close(name) = &command.kind else {
            return None;
        };
        Some((command.key.clone(), (*texts.get(&**name)?).clone()))
    });
    Facts {
        couriers: evidence.couriers.clone(),
        closed: closed.collect(),
    }
}

fn check_events(order: &Order, run: &Run, logged: &[&str], figures: &mut Figures) {
    let count = |name: &str| logged.iter().filter(|event| **event == name).count();
    let completed = count("delivery.completed");
    figures.completed += usize::from(completed > 0);
    if completed > 1 {
        figures.add(|found| &mut found.completed_twice, || order.name.clone());
    }
    if run.last().is_some() && run.events != logged {
        figures.add(
            |found| &mut found.events,
            || format!("{}: {logged:?}, not {:?}", order.name, run.events),
        );
    }
}

/// The tasks as they are must be those of their history.
fn check_tasks(evidence: &Evidence, order: &Order, last: &Life, figures: &mut Figures) {
    for (name, life) in order.tasks.iter().zip(&last.0) {
        let Some(task) = evidence.tasks.get(name) else {
            figures.add(|found| &mut found.stale, || format!("{name} is missing"));
            continue;
        };
        let list = life.list.as_ref();
        let list = list.map_or(("", ""), |list| (&*list.courier, &*list.day));
        let is_todo = life.state == State::Todo;
        let is_present = task.state() == life.state
            && (is_todo || micros(task.state_time) == life.since)
            && task.failure_reason == life.reason
            && window(task) == life.window
            && (&*task.courier, &*task.list_day) == list;
        if !is_present {
            figures.add(
                |found| &mut found.stale,
                || format!("{task:?}, not {life:?}"),
            );
        }
        if task.has_incidents != life.has_incidents() {
            figures.add(
                |found| &mut found.incidents,
                || format!("of {name}: {life:?}"),
            );
        }
    }
}

/// By task and description, with what was done if it is closed.
fn check_incidents(
    evidence: &Evidence,
    mut expected: BTreeMap<[String; 2], Option<String>>,
    figures: &mut Figures,
) {
    for incident in &evidence.incidents {
        let is_closed = incident.state() == incident::State::Closed;
        let closed = is_closed.then(|| incident.closed_with.clone());
        let key = [incident.task.clone(), incident.description.clone()];
        if expected.remove(&key) != Some(closed) {
            figures.add(|found| &mut found.incidents, || format!("{incident:?}"));
        }
    }
    for missing in expected {
        figures.add(|found| &mut found.incidents, || format!("{missing:?}"));
    }
}

fn check_log(evidence: &Evidence, figures: &mut Figures) {
    let mut counts = BTreeMap::<_, usize>::new();
    let mut names = BTreeSet::new();
    for (expected, event) in (1..).zip(&evidence.events) {
        if event.number != expected {
            figures.add(|found| &mut found.gaps, || format!("{expected}: {event:?}"));
        }
        if !names.insert(&event.name) {
            figures.add(|found| &mut found.repeated, || format!("{event:?}"));
        }
        let key = [event.event.clone(), event.object.clone()];
        *counts.entry(key).or_default() += 1;
    }
    for (event, count) in &counts {
        let received = evidence.notified.get(event).map_or(0, BTreeSet::len);
        if received < *count {
            let detail = || format!("{event:?} logged {count} times, received {received} times");
            figures.add(|found| &mut found.not_notified, detail);
        }
    }
    for (event, ids) in &evidence.notified {
        let count = counts.get(event).copied().unwrap_or_default();
        if ids.len() > count {
            let detail = || format!("{event:?} logged {count} times, received as {ids:?}");
            figures.add(|found| &mut found.notified_twice, detail);
        }
    }
}

fn check_lists(evidence: &Evidence, figures: &mut Figures) {
    let mut listed = BTreeSet::new();
    for DayList { day, list } in &evidence.lists {
        let list = list.as_ref().unwrap();
        let mut last = None;
        for name in &list.tasks {
            if !listed.insert(name) {
                figures.add(|found| &mut found.in_two_lists, || name.clone());
            }
            let task = evidence.tasks.get(name);
            let position = task.map(|task| task.list_position);
            let is_there =
                task.is_some_and(|task| task.courier == list.courier && task.list_day == *day);
            if !is_there || position <= last {
                let detail = || format!("{name} of {} on {day}: {task:?}", list.courier);
                figures.add(|found| &mut found.places, detail);
            }
            last = position;
        }
    }
    for (name, task) in &evidence.tasks {
        if !task.courier.is_empty() && !listed.contains(name) {
            figures.add(
                |found| &mut found.places,
                || format!("{name} is in no list"),
            );
        }
    }
}
