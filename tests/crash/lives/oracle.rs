//! Compares what clients did and learned with the histories of tasks, the event log, and what tasks, incidents and
//! receivers show.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use proto::{Event, Incident, Task, TaskEvent, incident, task::State};

use super::{
    journal::{Command, Order, Outcome, micros, window},
    model::Life,
    run::Run,
};

/// The most defects of a kind that are described.
const MAX_DETAILS: usize = 4;

/// What is left after the last command.
#[derive(Clone, Default)]
pub(super) struct Evidence {
    pub(super) commands: Vec<Command>,
    /// Repeated commands with their second outcomes.
    pub(super) replays: Vec<Command>,
    pub(super) orders: Vec<Order>,
    /// The day whose lists couriers work on.
    pub(super) today: String,
    /// By task, as its present form.
    pub(super) histories: BTreeMap<String, Vec<TaskEvent>>,
    pub(super) tasks: BTreeMap<String, Task>,
    pub(super) events: Vec<Event>,
    /// The `webhook-id`s received, by event and delivery.
    pub(super) notified: BTreeMap<[String; 2], BTreeSet<String>>,
    pub(super) incidents: Vec<Incident>,
}

/// What no fault may cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Defect {
    /// Acknowledged and in no history, caused and not logged, logged and not received.
    Lost,
    /// Written by one command, or caused by one change, and found more often.
    Twice,
    OutOfOrder,
    /// In the numbers of the log.
    Gap,
    /// Changes that no command made or the model does not permit, answers and present states that the history does not
    /// justify.
    Wrong,
}

#[derive(Default)]
pub(super) struct Findings {
    /// How often something was seen, for a report.
    pub(super) seen: BTreeMap<&'static str, usize>,
    pub(super) defects: BTreeMap<Defect, Vec<String>>,
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = self
            .seen
            .iter()
            .map(|(what, count)| format!("{count} {what}"));
        let seen: Vec<_> = seen.collect();
        write!(f, "{}", seen.join(", "))?;
        if self.defects.is_empty() {
            return write!(f, "; nothing lost, twice, out of order or missing");
        }
        for (defect, details) in &self.defects {
            write!(f, "\n{defect:?}: {}", details.len())?;
            for detail in details.iter().take(MAX_DETAILS) {
                write!(f, "\n    {detail}")?;
            }
        }
        Ok(())
    }
}

impl Findings {
    pub(super) fn add(&mut self, defect: Defect, detail: String) {
        self.defects.entry(defect).or_default().push(detail);
    }

    pub(super) fn count(&mut self, what: &'static str, count: usize) {
        *self.seen.entry(what).or_default() += count;
    }

    /// Adds what is missing of the expected, and what is there more often.
    fn compare<T: Clone + Ord + fmt::Debug>(&mut self, what: &str, sets: [Vec<T>; 2]) {
        let mut balance = BTreeMap::<T, isize>::new();
        for (items, weight) in std::iter::zip(sets, [1, -1]) {
            for item in items {
                *balance.entry(item).or_default() += weight;
            }
        }
        for (item, balance) in balance {
            let detail = format!("{what}: {item:?}");
            match balance {
                1.. => self.add(Defect::Lost, detail),
                ..0 => self.add(Defect::Twice, detail),
                0 => {}
            }
        }
    }
}

pub(super) fn verify(evidence: &Evidence) -> Findings {
    let mut findings = Findings::default();
    let mut outcomes = BTreeMap::new();
    let mut by_task = BTreeMap::<_, Vec<_>>::new();
    for (number, command) in evidence.commands.iter().enumerate() {
        outcomes.insert(&*command.key, &command.outcome);
        for task in command.tasks.keys() {
            by_task.entry(&**task).or_default().push(number);
        }
        let outcome = match command.outcome {
            Outcome::Unknown => "given up",
            Outcome::Done(_) => "acknowledged",
            Outcome::Refused(_) => "refused",
        };
        findings.count(outcome, 1);
    }
    for replay in &evidence.replays {
        findings.count("replayed", 1);
        if outcomes.get(&*replay.key) != Some(&&replay.outcome) {
            let first = outcomes.get(&*replay.key);
            findings.add(Defect::Wrong, format!("{replay:?}, at first {first:?}"));
        }
    }

    let mut logged = BTreeMap::<_, Vec<_>>::new();
    for event in &evidence.events {
        logged
            .entry(&*event.object)
            .or_default()
            .push(&*event.event);
    }
    let mut incidents = Vec::new();
    for order in &evidence.orders {
        let of_order = order.tasks.iter().filter_map(|task| by_task.get(&**task));
        let numbers: BTreeSet<_> = of_order.flatten().copied().collect();
        let commands = numbers.iter().map(|number| &evidence.commands[*number]);
        let run = Run::new(order, evidence, commands.collect());
        run.check(&mut findings);
        let events = logged.remove(&*order.name).unwrap_or_default();
        check_events(&run, &events, &mut findings);
        if let Some(last) = run.last() {
            check_tasks(evidence, order, last, &mut findings);
            for (task, life) in order.tasks.iter().zip(&last.tasks) {
                let incident = |text: &String, is_closed| (task.clone(), text.clone(), is_closed);
                incidents.extend(life.open.iter().map(|text| incident(text, false)));
                incidents.extend(life.closed.iter().map(|text| incident(text, true)));
            }
        }
    }
    // Each conflict has an incident, as has each report that was taken late.
    let conflicts = findings.seen.get("conflicts").copied().unwrap_or_default();
    let late = evidence.incidents.len().saturating_sub(conflicts);
    findings.count("late reports", late);
    findings.compare("of no order", [Vec::new(), logged.into_keys().collect()]);
    let found = evidence.incidents.iter().map(|incident| {
        let is_closed = incident.state() == incident::State::Closed;
        let (task, text) = (incident.task.clone(), incident.description.clone());
        (task, text, is_closed)
    });
    findings.compare("incident", [incidents, found.collect()]);
    check_log(evidence, &mut findings);
    findings
}

/// The log must have what the changes of a delivery have caused, in their order.
fn check_events(run: &Run, logged: &[&str], findings: &mut Findings) {
    findings.count("deliveries", 1);
    let completed = logged.iter().filter(|name| **name == "delivery.completed");
    findings.count("completed", completed.count());
    if run.last().is_none() || run.events == logged {
        return;
    }
    let sorted = |events: &[&str]| {
        let mut events: Vec<_> = events.iter().map(|&event| event.to_owned()).collect();
        events.sort_unstable();
        events
    };
    let sets = [sorted(&run.events), sorted(logged)];
    let name = &run.order.name;
    if sets[0] == sets[1] {
        let detail = format!("{name}: {logged:?}, not {:?}", run.events);
        findings.add(Defect::OutOfOrder, detail);
    }
    findings.compare(name, sets);
}

/// The tasks as they are must be those of their history.
fn check_tasks(evidence: &Evidence, order: &Order, last: &Life, findings: &mut Findings) {
    for (name, life) in order.tasks.iter().zip(&last.tasks) {
        let Some(task) = evidence.tasks.get(name) else {
            findings.add(Defect::Lost, name.clone());
            continue;
        };
        let place = life.list.as_ref();
        let place = place.map_or(("", ""), |list| (&*list.courier, &*list.day));
        let is_todo = life.state == State::Todo;
        let is_present = task.state() == life.state
            && (is_todo || micros(task.state_time) == life.since)
            && task.failure_reason == life.reason
            && window(task) == life.window
            && (&*task.courier, &*task.list_day) == place
            && task.has_incidents != life.open.is_empty();
        if !is_present {
            findings.add(Defect::Wrong, format!("{task:?}, not {life:?}"));
        }
    }
}

/// The numbers of the log have no gap, and each of its events was received under one id.
fn check_log(evidence: &Evidence, findings: &mut Findings) {
    for (expected, event) in (1..).zip(&evidence.events) {
        if event.number != expected {
            findings.add(Defect::Gap, format!("{expected}: {event:?}"));
        }
    }
    let names = evidence.events.iter().map(|event| &event.name);
    let distinct: BTreeSet<_> = names.clone().collect();
    let distinct = distinct.into_iter().collect();
    findings.compare("event", [distinct, names.collect()]);
    let logged = evidence.events.iter();
    let logged = logged.map(|event| [event.event.clone(), event.object.clone()]);
    let received = evidence.notified.iter();
    let received = received.flat_map(|(event, ids)| ids.iter().map(|_| event.clone()));
    findings.compare("notification", [logged.collect(), received.collect()]);
}
