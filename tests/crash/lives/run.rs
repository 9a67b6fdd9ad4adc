//! The histories of a delivery's tasks as one run of the model, and the commands that wrote it.

use std::collections::BTreeMap;

use proto::{TaskEvent, task::State, task_event::Actor};

use super::{
    journal::{Command, Kind, Order, Outcome, micros},
    model::{Life, Rows},
    oracle::{Defect, Evidence, Findings},
};

pub(super) struct Run<'a> {
    pub(super) order: &'a Order,
    /// Those that concern the delivery.
    commands: Vec<&'a Command>,
    /// When each was made, and what it wrote.
    changes: Vec<(i64, Rows<'a>)>,
    /// The delivery at first, and after each change that the model permits.
    lives: Vec<Life>,
    pub(super) events: Vec<&'static str>,
    is_in_order: bool,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        order: &'a Order,
        evidence: &'a Evidence,
        commands: Vec<&'a Command>,
    ) -> Self {
        let mut changes = BTreeMap::<_, Rows>::new();
        let mut is_in_order = true;
        for (index, task) in order.tasks.iter().enumerate() {
            let rows = evidence.histories.get(task).map(Vec::as_slice);
            let rows = rows.unwrap_or_default();
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
            commands,
            changes: changes.into_iter().collect(),
            lives: vec![Life::new(order, &evidence.today)],
            events: vec!["delivery.created"],
            is_in_order,
        };
        for (at, rows) in &run.changes {
            let mut life = run.lives[run.lives.len() - 1].clone();
            let Some(events) = life.apply(*at, rows) else {
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
        self.lives.last().filter(|last| is_legal && !last.is_due())
    }

    /// Finds the one command that wrote each row, and what explains those that wrote none.
    pub(super) fn check(&self, findings: &mut Findings) {
        if !self.is_in_order {
            findings.add(Defect::OutOfOrder, self.order.name.clone());
        }
        let writers: Vec<_> = self
            .changes
            .iter()
            .map(|(_, rows)| [0, 1].map(|index| self.writer(index, rows[index], findings)))
            .collect();
        let written = |number: usize| {
            [0, 1].map(|index| {
                let of_task = writers.iter().map(|of_change| of_change[index]);
                of_task.filter(|writer| *writer == Some(number)).count()
            })
        };
        for (number, command) in self.commands.iter().enumerate() {
            if written(number).iter().any(|count| *count > 1) {
                findings.add(Defect::Twice, format!("{command:?}"));
            }
        }
        if self.last().is_none() {
            let change = self.changes.get(self.lives.len() - 1);
            let detail = format!("after {:?}: {change:?}", self.lives.last());
            findings.add(Defect::Wrong, detail);
            return;
        }
        for (number, command) in self.commands.iter().enumerate() {
            let wrote = |of_change: &[Option<usize>; 2]| of_change.contains(&Some(number));
            let decision = Decision {
                command,
                order: self.order,
                index: usize::from(command.task == self.order.tasks[1]),
                written: written(number),
                before: writers
                    .iter()
                    .position(wrote)
                    .map(|change| &self.lives[change]),
                lives: self.lives_during(command, &writers),
            };
            if let Some(defect) = decision.defect() {
                findings.add(defect, format!("{command:?} {:?}", decision.lives));
            }
        }
    }

    /// The number of the command that wrote a row.
    fn writer(
        &self,
        index: usize,
        row: Option<&TaskEvent>,
        findings: &mut Findings,
    ) -> Option<usize> {
        let row = row?;
        match &*row.event {
            // They belong to the row before.
            "task:incident-closed" | "task:incident-reported" => return None,
            "task:conflict" => findings.count("conflicts", 1),
            _ => {}
        }
        let numbers = 0..self.commands.len();
        let found = numbers.filter(|number| self.has_written(self.commands[*number], index, row));
        let found: Vec<_> = found.collect();
        if found.len() != 1 {
            let detail = format!("written by {}: {row:?}", found.len());
            findings.add(Defect::Wrong, detail);
        }
        found.first().copied()
    }

    /// The states of the delivery in which a command may have been decided: after all changes that were answered before it
    /// was sent, before all that were made after it was answered.
    fn lives_during(&self, command: &Command, writers: &[[Option<usize>; 2]]) -> &[Life] {
        let answered = |of_change: &[Option<usize>; 2]| {
            let writer = of_change.iter().flatten().next();
            writer.map_or(i64::MAX, |number| self.commands[*number].answered)
        };
        let before = |of_change: &[Option<usize>; 2]| answered(of_change) < command.invoked;
        let first = writers
            .iter()
            .rposition(before)
            .map_or(0, |index| index + 1);
        let made = self.changes.iter();
        let made = made.filter(|(at, _)| *at <= command.answered);
        let last = made.count().max(first);
        &self.lives[first..=last]
    }

    fn has_written(&self, command: &Command, index: usize, row: &TaskEvent) -> bool {
        let at = micros(row.create_time);
        let target = command.tasks.get(&self.order.tasks[index]);
        let is_its_time = (command.invoked..=command.answered).contains(&at);
        let is_its_answer = match &command.outcome {
            Outcome::Unknown => true,
            Outcome::Done(_) => row.event != "task:conflict",
            Outcome::Refused(reason) => row.event == "task:conflict" && reason == "TASK_STATE",
        };
        let is_its_client = command.client == row.api_client && command.by == row.actor();
        if !is_its_client || !is_its_time || !is_its_answer {
            return false;
        }
        if matches!(command.kind, Kind::Assign { .. } | Kind::Set { .. }) {
            return target.is_some_and(|target| match target {
                Some(list) => {
                    row.event == "task:assigned"
                        && [&row.courier, &row.list_day] == [&list.courier, &list.day]
                }
                None => row.event == "task:unassigned",
            });
        }
        let since = at - micros(row.occurred_time);
        let mut sent = command.sent.iter();
        let has_occurred = sent.any(|sent| since == sent - command.occurred);
        let is_reported = has_occurred && command.courier == row.courier;
        let is_conflict = row.event == "task:conflict";
        let is_failure = !row.failure_reason.is_empty();
        let is_end = row.notes == command.key;
        let is_it = match &command.kind {
            Kind::Start => row.event == "task:started",
            Kind::Complete => is_end && (row.event == "task:done" || is_conflict && !is_failure),
            Kind::Fail => is_end && (row.event == "task:failed" || is_conflict && is_failure),
            Kind::Reopen => row.event == "task:reopened",
            Kind::Cancel(_) => row.event == "task:cancelled",
            Kind::Reschedule { window, both } => {
                let is_its_window = [micros(row.after), micros(row.before)] == *window;
                let is_moved = if target.is_some() {
                    is_its_window
                } else {
                    *both
                };
                return row.event == "task:rescheduled" && is_reported && is_moved;
            }
            Kind::Assign { .. } | Kind::Set { .. } => false,
        };
        is_it && is_reported && target.is_some()
    }
}

/// An answer to a command, and what the history has of it.
struct Decision<'a> {
    command: &'a Command,
    order: &'a Order,
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
    fn defect(&self) -> Option<Defect> {
        let (command, index) = (self.command, self.index);
        match &command.outcome {
            Outcome::Unknown => None,
            Outcome::Done(shown) => {
                let mut tasks = self.lives.iter().map(|life| &life.tasks[index]);
                let is_shown = shown.is_none_or(|(state, since)| {
                    let is_todo = state == State::Todo;
                    tasks.any(|task| task.state == state && (is_todo || task.since == since))
                });
                (!self.is_explained() || !is_shown).then_some(Defect::Lost)
            }
            Outcome::Refused(reason) => {
                let is_kept = command.by == Actor::Courier && command.is_end();
                if is_kept && reason == "TASK_STATE" && self.written[index] == 0 {
                    return Some(Defect::Lost);
                }
                let is_justified = |life| self.is_justified(life, reason);
                let is_justified = self.lives.iter().any(is_justified);
                (!is_justified).then_some(Defect::Wrong)
            }
        }
    }

    /// Whether an acknowledged command is in the history, or found everything as it asks for.
    fn is_explained(&self) -> bool {
        let command = self.command;
        if let (Kind::Reschedule { both, .. }, Some(before)) = (&command.kind, self.before) {
            let is_other_moved = *both && before.tasks[1 - self.index].state != State::Done;
            let mut expected = [usize::from(is_other_moved); 2];
            expected[self.index] = 1;
            return self.written == expected;
        }
        let is_placing = matches!(command.kind, Kind::Assign { .. } | Kind::Set { .. });
        (0..2).all(|index| {
            let Some(target) = command.tasks.get(&self.order.tasks[index]) else {
                return true;
            };
            let is_found = |life: &Life| {
                let is_there = is_placing && life.tasks[index].list == *target;
                is_there || life.has_reached(command, index)
            };
            self.written[index] > 0 || self.lives.iter().any(is_found)
        })
    }

    /// Whether a delivery in this state can be the reason of a refusal.
    fn is_justified(&self, life: &Life, reason: &str) -> bool {
        let (command, index) = (self.command, self.index);
        let (task, other) = (&life.tasks[index], &life.tasks[1 - index]);
        let courier = &*command.courier;
        let is_not_its_own = command.by == Actor::Courier && !life.is_own(index, courier);
        let is_for_another =
            command.by == Actor::Dispatch && !courier.is_empty() && task.courier() != courier;
        match (reason, &command.kind) {
            ("TASK_STATE", _) => life.refuses(command, index),
            ("NOT_FOUND", _) => is_not_its_own && !(command.is_end() && task.is_had_by(courier)),
            ("NOT_ASSIGNED", _) => is_not_its_own && !command.is_end() || is_for_another,
            ("VALIDATION_FAILED", Kind::Reschedule { window, both }) => {
                is_for_another || life.refuses_window(index, *window, *both)
            }
            ("VALIDATION_FAILED", _) => is_for_another,
            ("LISTS_CHANGED", Kind::Set { .. }) => true,
            ("LISTS_CHANGED", Kind::Reschedule { .. }) => self.lives.len() > 1,
            ("CONFLICT", Kind::Assign { from, single }) => {
                let is_elsewhere = !single && other.is_open() && other.courier() != from;
                let is_moved = self.lives.len() > 1;
                !task.is_open() || task.courier() != from || is_elsewhere || is_moved
            }
            _ => false,
        }
    }
}
