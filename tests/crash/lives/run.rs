//! The histories of a delivery's tasks as one run of the model, and the commands that wrote it.

use std::collections::BTreeMap;

use proto::{TaskEvent, task::State, task_event::Actor};

use super::{
    journal::{Command, Kind, Order, Outcome, micros},
    model::{Facts, Life, Rows, TaskLife},
    oracle::{Evidence, Figures},
};

pub(super) struct Run<'a> {
    order: &'a Order,
    /// When each was made, and what it wrote.
    pub(super) changes: Vec<(i64, Rows<'a>)>,
    /// The delivery at first, and after each change that the model permits.
    lives: Vec<Life>,
    is_in_order: bool,
    pub(super) events: Vec<&'static str>,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        order: &'a Order,
        histories: &'a BTreeMap<String, Vec<TaskEvent>>,
        facts: &Facts,
    ) -> Self {
        let mut changes = BTreeMap::<_, Rows>::new();
        let mut is_in_order = true;
        for (index, task) in order.tasks.iter().enumerate() {
            let rows = histories.get(task).map(Vec::as_slice).unwrap_or_default();
            let times = rows.iter().map(|row| micros(row.create_time));
            let created = rows.first().filter(|row| row.event == "task:created");
            let created = created.map(|row| micros(row.create_time));
            is_in_order &= created == Some(order.created) && times.is_sorted_by(|a, b| a < b);
            for row in rows.iter().skip(1) {
                changes.entry(micros(row.create_time)).or_default()[index] = Some(row);
            }
        }
        let mut run = Self {
            order,
            changes: changes.into_iter().collect(),
            lives: vec![Life::new(order)],
            is_in_order,
            events: vec!["delivery.created"],
        };
        for (at, rows) in &run.changes {
            let mut life = run.lives[run.lives.len() - 1].clone();
            let Some(events) = life.apply(*at, rows, facts) else {
                break;
            };
            run.events.extend(events);
            run.lives.push(life);
        }
        run
    }

    /// The delivery at last, if the model permits all.
    pub(super) fn last(&self) -> Option<&Life> {
        let is_legal = self.is_in_order && self.lives.len() == self.changes.len() + 1;
        self.lives.last().filter(|_| is_legal)
    }

    /// Finds the one command that wrote each row, and what explains those that wrote none.
    pub(super) fn check(
        &self,
        evidence: &Evidence,
        facts: &Facts,
        commands: &[&Command],
        figures: &mut Figures,
    ) {
        let writers: Vec<_> = self
            .changes
            .iter()
            .map(|(_, rows)| [0, 1].map(|index| self.writer(index, rows[index], commands, figures)))
            .collect();
        if self.last().is_none() {
            let change = self.changes.get(self.lives.len() - 1);
            let detail = || format!("after {:?}: {change:?}", self.lives.last());
            figures.add(|found| &mut found.illegal, detail);
            return;
        }
        for (number, command) in commands.iter().enumerate() {
            let wrote = |of_change: &[Option<usize>; 2]| of_change.contains(&Some(number));
            let written = [0, 1].map(|index| {
                let of_task = writers
                    .iter()
                    .filter(|of_change| of_change[index] == Some(number));
                of_task.count()
            });
            if written.iter().any(|count| *count > 1) {
                figures.add(|found| &mut found.doubled, || format!("{command:?}"));
            }
            let decision = Decision {
                command,
                index: usize::from(command.task == self.order.tasks[1]),
                written,
                before: writers
                    .iter()
                    .position(wrote)
                    .map(|change| &self.lives[change]),
                lives: self.lives_during(command, commands, &writers),
            };
            let detail = || format!("{command:?} {:?}", decision.lives);
            match &command.outcome {
                Outcome::Unknown => {}
                Outcome::Done(_) => {
                    let is_explained = decision.is_explained(&self.order.tasks, facts);
                    if !is_explained || !decision.is_shown() {
                        figures.add(|found| &mut found.lost, detail);
                    }
                }
                Outcome::Refused { reason, message } => {
                    if !decision.is_justified(evidence, reason, message) {
                        figures.add(|found| &mut found.refusals, detail);
                    }
                }
            }
        }
    }

    /// The number of the command that wrote a row.
    fn writer(
        &self,
        index: usize,
        row: Option<&TaskEvent>,
        commands: &[&Command],
        figures: &mut Figures,
    ) -> Option<usize> {
        // A reschedule wrote the closing of all incidents.
        let row = row.filter(|row| row.event != "task:incident-closed" || !row.notes.is_empty())?;
        let numbers = 0..commands.len();
        let found = numbers.filter(|number| self.has_written(commands[*number], index, row));
        let found: Vec<_> = found.collect();
        if found.len() != 1 {
            let detail = || format!("written by {}: {row:?}", found.len());
            figures.add(|found| &mut found.unexplained, detail);
        }
        found.first().copied()
    }

    /// The states of the delivery in which a command may have been decided: after all changes that were answered before it
    /// was sent, before all that were made after it was answered.
    fn lives_during(
        &self,
        command: &Command,
        commands: &[&Command],
        writers: &[[Option<usize>; 2]],
    ) -> &[Life] {
        let answered = |of_change: &[Option<usize>; 2]| {
            let writer = of_change.iter().flatten().next();
            writer.map_or(i64::MAX, |number| commands[*number].answered)
        };
        let before = |of_change: &[Option<usize>; 2]| answered(of_change) < command.invoked;
        let first = writers
            .iter()
            .rposition(before)
            .map_or(0, |index| index + 1);
        let made = self
            .changes
            .iter()
            .filter(|(at, _)| *at <= command.answered);
        let last = made.count().max(first);
        &self.lives[first..=last]
    }

    fn has_written(&self, command: &Command, index: usize, row: &TaskEvent) -> bool {
        let task = &self.order.tasks[index];
        let at = micros(row.create_time);
        let is_its_time = (command.invoked..=command.answered).contains(&at);
        let is_refused = matches!(command.outcome, Outcome::Refused { .. });
        if command.client != row.api_client || !is_its_time || is_refused {
            return false;
        }
        let target = command.tasks.get(task);
        let occurred = micros(row.occurred_time);
        let has_occurred = match &command.sent {
            None => occurred == command.occurred,
            Some(sent) => sent
                .iter()
                .any(|sent| at - occurred == sent - command.occurred),
        };
        let is_named = |name: &str| target.is_some() && row.event == name && has_occurred;
        let has_notes = row.notes == command.key;
        match &command.kind {
            Kind::Start => is_named("task:started"),
            Kind::Complete => is_named("task:done") && has_notes,
            Kind::Fail => is_named("task:failed") && has_notes,
            Kind::Reopen => is_named("task:reopened"),
            Kind::Cancel(_) => is_named("task:cancelled"),
            Kind::Report => is_named("task:incident-reported") && has_notes,
            Kind::Close(_) => target.is_some() && row.event == "task:incident-closed" && has_notes,
            Kind::Reschedule { window, both } => {
                let is_its_window = [micros(row.after), micros(row.before)] == *window;
                let is_moved = if target.is_some() {
                    is_its_window
                } else {
                    *both
                };
                row.event == "task:rescheduled" && has_occurred && is_moved
            }
            Kind::Assign { .. } | Kind::Set { .. } => match target {
                Some(Some(list)) => {
                    row.event == "task:assigned"
                        && [&row.courier, &row.list_day] == [&list.courier, &list.day]
                }
                Some(None) => row.event == "task:unassigned",
                None => false,
            },
        }
    }
}

/// An answer to a command, and what the history has of it.
struct Decision<'a> {
    command: &'a Command,
    /// Of the task that it names.
    index: usize,
    /// How many rows it wrote in the history of each task.
    written: [usize; 2],
    /// The delivery before its change.
    before: Option<&'a Life>,
    /// What it may have found.
    lives: &'a [Life],
}

impl Decision<'_> {
    /// Whether an acknowledged command is in the history once, or found everything as it asks for.
    fn is_explained(&self, tasks: &[String; 2], facts: &Facts) -> bool {
        let command = self.command;
        if let (Kind::Reschedule { both, .. }, Some(before)) = (&command.kind, self.before) {
            let is_other_moved = *both && before.0[1 - self.index].state != State::Done;
            let mut expected = [usize::from(is_other_moved); 2];
            expected[self.index] = 1;
            return self.written == expected;
        }
        (0..2).all(|index| {
            let Some(target) = command.tasks.get(&tasks[index]) else {
                return true;
            };
            let is_found = |life: &Life| match &command.kind {
                Kind::Close(_) => {
                    let incident = facts.closed.get(&command.key);
                    let closed = incident.and_then(|text| life.0[index].incidents.get(text));
                    closed.is_some_and(Option::is_some)
                }
                Kind::Assign { .. } | Kind::Set { .. } => {
                    !life.0[index].is_open() || life.0[index].list == *target
                }
                kind => life.has_reached(kind, index),
            };
            self.written[index] == 1 || self.lives.iter().any(is_found)
        })
    }

    /// Whether the task had the state that the answer shows, since the same time.
    fn is_shown(&self) -> bool {
        let Outcome::Done(Some((state, since))) = self.command.outcome else {
            return true;
        };
        let mut tasks = self.lives.iter().map(|life| &life.0[self.index]);
        tasks.any(|task| task.state == state && (state == State::Todo || task.since == since))
    }

    /// Whether the command could be refused for this reason.
    fn is_justified(&self, evidence: &Evidence, reason: &str, message: &str) -> bool {
        let (kind, client) = (&self.command.kind, &*self.command.client);
        let courier = evidence.couriers.get(client);
        let by = match courier {
            Some(_) => Actor::Courier,
            None if client == evidence.shop => Actor::Shop,
            None => Actor::Dispatch,
        };
        self.lives.iter().any(|life| {
            let (task, other) = (&life.0[self.index], &life.0[1 - self.index]);
            match (reason, kind) {
                ("TASK_STATE", _) => {
                    let is_cancelling = matches!(kind, Kind::Cancel(_));
                    let is_named =
                        is_named(message, task) || is_cancelling && is_named(message, other);
                    is_named && life.refuses(kind, self.index, by, client)
                }
                ("NOT_FOUND" | "NOT_ASSIGNED", _) => {
                    let day = task.list.as_ref().map(|list| &list.day);
                    let is_its_own = courier == task.courier() && day == Some(&evidence.today);
                    by == Actor::Courier && !is_its_own
                }
                ("VALIDATION_FAILED", Kind::Reschedule { window, both }) => {
                    life.refuses_window(self.index, *window, *both)
                }
                ("LISTS_CHANGED", Kind::Set { .. } | Kind::Reschedule { .. }) => true,
                ("CONFLICT", Kind::Assign { from, single }) => {
                    let from = Some(from).filter(|from| !from.is_empty());
                    let is_elsewhere = !single && other.is_open() && other.courier() != from;
                    let is_moved = self.lives.len() > 1;
                    !task.is_open() || task.courier() != from || is_elsewhere || is_moved
                }
                _ => false,
            }
        })
    }
}

/// Whether a refusal names the state of a task: `the pickup is DONE since <time>, set by courier`.
fn is_named(message: &str, task: &TaskLife) -> bool {
    let Some((rest, actor)) = message.rsplit_once(", set by ") else {
        return false;
    };
    let Some((rest, time)) = rest.rsplit_once(" since ") else {
        return false;
    };
    let time = time
        .parse::<jiff::Timestamp>()
        .map(jiff::Timestamp::as_second);
    let is_time = time.is_ok_and(|time| time == task.since.div_euclid(1_000_000));
    let is_actor = task.by.as_str_name() == format!("ACTOR_{}", actor.to_uppercase());
    let state = task.state.as_str_name().trim_start_matches("STATE_");
    // Rescheduling both tasks leaves TODO as it was.
    rest.ends_with(state) && (task.state == State::Todo || is_actor && is_time)
}
