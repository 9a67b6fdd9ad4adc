//! What requests about couriers' lists ask for.

use std::collections::BTreeSet;

use domain::{
    courier::ListKey,
    courier_lists::{Expected, Move, RequestedList},
    id::{CourierId, TaskId},
    violation::Violations,
};
use jiff::civil::Date;
use proto::iri::Collection;

use crate::{error::Error, messages};

const MAX_LISTS: usize = 100;
const MAX_TASKS: usize = 1000;
const MAX_MOVES: usize = 100;

/// The lists as they shall be, and their day.
pub(super) fn read_lists(
    request: &proto::SetCourierListsRequest,
    today: Date,
) -> Result<(Date, Vec<RequestedList>), Error> {
    let mut violations = Violations::new();
    if request.day.is_empty() {
        violations.add("day", "REQUIRED", "is required");
    }
    let day = messages::read_day(&request.day, today, &mut violations);
    let tasks = request.lists.iter().map(|list| list.tasks.len());
    if request.lists.is_empty() {
        violations.add("lists", "REQUIRED", "at least one is required");
    } else if request.lists.len() > MAX_LISTS || tasks.sum::<usize>() > MAX_TASKS {
        let limit = format!("must be at most {MAX_LISTS} lists with {MAX_TASKS} tasks together");
        violations.add("lists", "TOO_MANY", limit);
        return Err(Error::Invalid(violations));
    }

    let (mut couriers, mut tasks) = (BTreeSet::new(), BTreeSet::new());
    let mut requested = Vec::new();
    for (index, list) in request.lists.iter().enumerate() {
        let courier_id = CourierId(messages::id_in(Collection::Couriers, &list.courier)?);
        if !couriers.insert(courier_id) {
            let field = format!("lists[{index}].courier");
            violations.add(field, "DUPLICATE", "is in another list of the request, too");
        }
        if list.etag.is_empty() {
            violations.add(format!("lists[{index}].etag"), "REQUIRED", "is required");
        }
        let mut order = Vec::new();
        for (number, name) in list.tasks.iter().enumerate() {
            let id = TaskId(messages::id_in(Collection::Tasks, name)?);
            if !tasks.insert(id) {
                let field = format!("lists[{index}].tasks[{number}]");
                violations.add(field, "DUPLICATE", "is in the request twice");
            }
            order.push(id);
        }
        requested.push(RequestedList {
            key: ListKey { day, courier_id },
            etag: list.etag.clone(),
            tasks: order,
        });
    }
    Error::check(violations)?;
    Ok((day, requested))
}

/// The tasks to move, and the day of their lists, if it is given.
pub(super) fn read_moves(
    request: &proto::AssignTasksRequest,
    today: Date,
) -> Result<(Vec<Move>, Option<Date>), Error> {
    let mut violations = messages::read_violations(request.violations.clone());
    let is_given = !request.day.is_empty();
    let day = is_given.then(|| messages::read_day(&request.day, today, &mut violations));
    let count = request.moves.len();
    if !(1..=MAX_MOVES).contains(&count) {
        let description = format!("must be 1 to {MAX_MOVES}, not {count}");
        violations.add("moves", "OUT_OF_RANGE", description);
        return Err(Error::Invalid(violations));
    }
    let (mut moves, mut named) = (Vec::new(), BTreeSet::new());
    for (index, requested) in request.moves.iter().enumerate() {
        let task = TaskId(messages::id_in(Collection::Tasks, &requested.task)?);
        let expected = match requested.expected_courier.as_deref() {
            None => Expected::Anything,
            Some("") => Expected::Courier(None),
            Some(name) => {
                let id = messages::id_in(Collection::Couriers, name)?;
                Expected::Courier(Some(CourierId(id)))
            }
        };
        if !named.insert(task) {
            let field = format!("moves[{index}].task");
            violations.add(field, "DUPLICATE", "is in the request twice");
        }
        moves.push(Move { task, expected });
    }
    Error::check(violations)?;
    Ok((moves, day))
}
