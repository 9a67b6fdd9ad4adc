//! For whom a task is changed: dispatch any task, a courier those that are its own, and for late reports those that
//! were.

use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};

use crate::{
    courier::ListKey,
    id::CourierId,
    task::{Actor, Task},
    task_event::TaskEvent,
};

/// How long late reports of a task are taken from the courier that had it.
const LATE: SignedDuration = SignedDuration::from_hours(24);

/// For whom a task is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worker {
    Dispatch,
    /// Dispatch, for a courier whose list has the task.
    OnBehalfOf(CourierId),
    Courier {
        id: CourierId,
        today: Date,
    },
}

/// From when a task was in a list, or in none, until its next placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    pub at: Timestamp,
    pub list: Option<ListKey>,
}

impl Worker {
    pub const fn actor(self) -> Actor {
        match self {
            Self::Dispatch | Self::OnBehalfOf(_) => Actor::Dispatch,
            Self::Courier { .. } => Actor::Courier,
        }
    }

    /// Whose report it is, besides the caller's.
    pub const fn courier_id(self) -> Option<CourierId> {
        match self {
            Self::Dispatch => None,
            Self::OnBehalfOf(id) | Self::Courier { id, .. } => Some(id),
        }
    }

    /// Whether it may change a task that is where it is now.
    pub fn has(self, task: &Task) -> bool {
        let list = task.place.map(|place| place.list);
        match self {
            Self::Dispatch => true,
            Self::OnBehalfOf(id) => list.is_some_and(|list| list.courier_id == id),
            Self::Courier { id, today } => {
                list.is_some_and(|list| list.courier_id == id && list.is_worked_on(today, today))
            }
        }
    }

    /// Whether it may reopen a task: dispatch any, a courier one that it has completed itself. `completion` is the
    /// newest one in the task's history.
    pub fn may_reopen(self, task: &Task, completion: Option<&TaskEvent>) -> bool {
        let Self::Courier { id, .. } = self else {
            return true;
        };
        let is_own =
            |done: &TaskEvent| done.created_at == task.state_since && done.courier_id == Some(id);
        !task.is_done() || completion.is_some_and(is_own)
    }

    /// Whether it is a courier whose own a task was within the last 24 hours. `placements` are those since
    /// [`late_since`] and the one before, oldest first.
    pub fn had(self, placements: &[Placement], now: Timestamp, zone: &TimeZone) -> bool {
        let Self::Courier { id, .. } = self else {
            return false;
        };
        let since = late_since(now);
        let ends = placements.iter().skip(1).map(|next| next.at).chain([now]);
        let day = |instant: Timestamp| instant.to_zoned(zone.clone()).date();
        placements.iter().zip(ends).any(|(placement, until)| {
            let list = placement.list.filter(|list| list.courier_id == id);
            let from = placement.at.max(since);
            from <= until && list.is_some_and(|list| list.is_worked_on(day(from), day(until)))
        })
    }
}

/// Since when a courier must have had a task for its late reports to be taken.
pub fn late_since(now: Timestamp) -> Timestamp {
    now.checked_sub(LATE).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        courier::Place,
        delivery::Delivery,
        device_clock::DeviceTimes,
        fixture,
        id::ApiClientId,
        lifecycle::Command,
        task::TaskKind,
        task_event::{Remarks, TaskReport},
    };

    const TODAY: Date = Date::constant(1970, 1, 10);

    fn at(hours: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours)
    }

    /// Noon of the day.
    fn now() -> Timestamp {
        at(9 * 24 + 12)
    }

    fn hours_ago(hours: i64) -> Timestamp {
        now() - SignedDuration::from_hours(hours)
    }

    fn list(courier_id: CourierId, day: i8) -> ListKey {
        let day = Date::constant(1970, 1, day);
        ListKey { day, courier_id }
    }

    #[test]
    fn who_has_a_task_depends_on_its_list() {
        let (ada, ben) = (CourierId::new(), CourierId::new());
        let of_ada = Worker::Courier {
            id: ada,
            today: TODAY,
        };
        let for_ada = Worker::OnBehalfOf(ada);
        let mut task = fixture::delivery(1000).pickup;
        for (place, expected) in [
            (None, [true, false, false]),
            (Some(list(ben, 10)), [true, false, false]),
            (Some(list(ada, 10)), [true, true, true]),
            (Some(list(ada, 9)), [true, true, true]),
            (Some(list(ada, 8)), [true, true, false]),
            (Some(list(ada, 11)), [true, true, false]),
        ] {
            task.place = place.map(|list| Place { list, position: 0 });
            let has = [Worker::Dispatch, for_ada, of_ada].map(|worker| worker.has(&task));
            assert_eq!(has, expected, "{place:?}");
        }
        let actors = [Worker::Dispatch, for_ada, of_ada].map(Worker::actor);
        assert_eq!(actors, [Actor::Dispatch, Actor::Dispatch, Actor::Courier]);
        let couriers = [Worker::Dispatch, for_ada, of_ada].map(Worker::courier_id);
        assert_eq!(couriers, [None, Some(ada), Some(ada)]);
    }

    /// The event of a completion of the pickup.
    fn complete(delivery: &mut Delivery, worker: Worker, at: Timestamp) -> TaskEvent {
        let report = TaskReport {
            by: worker.actor(),
            api_client_id: ApiClientId::new(),
            courier_id: worker.courier_id(),
            times: DeviceTimes::default(),
            remarks: Remarks::default(),
        };
        let before = delivery.clone();
        let completed = delivery.apply(TaskKind::Pickup, &Command::Complete, report.by, at);
        assert!(completed.unwrap().is_some());
        report.events(&before, delivery, at).remove(0)
    }

    #[test]
    fn a_courier_reopens_what_it_completed_itself() {
        let [ada, ben] =
            [CourierId::new(), CourierId::new()].map(|id| Worker::Courier { id, today: TODAY });
        let id = ada.courier_id().unwrap();
        let mut reopened = fixture::delivery(1000);
        let earlier = complete(&mut reopened, ada, hours_ago(2));
        let reopen = reopened.apply(
            TaskKind::Pickup,
            &Command::Reopen,
            Actor::Dispatch,
            hours_ago(1),
        );
        assert!(reopen.unwrap().is_some());
        for (by, may_ada) in [(ada, true), (ben, false), (Worker::Dispatch, false)] {
            let mut delivery = reopened.clone();
            let done = complete(&mut delivery, by, now());
            let task = &delivery.pickup;
            let cases = [
                (ada, Some(&done), may_ada),
                // An earlier completion, and one of a version without a history.
                (ada, Some(&earlier), false),
                (ada, None, false),
                (Worker::Dispatch, None, true),
                (Worker::OnBehalfOf(id), Some(&done), true),
            ];
            for (worker, completion, expected) in cases {
                let may = worker.may_reopen(task, completion);
                assert_eq!(may, expected, "{by:?} {worker:?} {completion:?}");
            }
        }
        // Which changes nothing.
        assert!(ada.may_reopen(&reopened.pickup, None));
    }

    /// Each row: the placements of a task, by hours ago.
    #[test]
    fn a_courier_had_a_task_that_was_its_own_within_24_hours() {
        let (ada, ben) = (CourierId::new(), CourierId::new());
        let (of_ada, of_ben) = (Some(list(ada, 10)), Some(list(ben, 10)));
        let yesterday = Some(list(ada, 9));
        for (placements, expected) in [
            (vec![], false),
            (vec![(1, of_ben)], false),
            (vec![(2, of_ada), (1, of_ben)], true),
            (vec![(2, of_ada), (1, None)], true),
            (vec![(2, of_ada), (1, None), (0, of_ben)], true),
            (vec![(50, yesterday), (24, None)], true),
            (vec![(50, yesterday), (25, None)], false),
            // Assigned and unassigned at once.
            (vec![(25, yesterday), (25, None), (1, of_ben)], false),
            // In the list since its day is over, for less than 24 hours and for more.
            (vec![(80, Some(list(ada, 8)))], true),
            (vec![(80, Some(list(ada, 7)))], false),
            // Of a day to come, and of one that had come before the task left it.
            (vec![(2, Some(list(ada, 11)))], false),
            (vec![(2, Some(list(ada, 11))), (1, None)], false),
            (vec![(30, of_ada), (1, Some(list(ada, 11)))], true),
            (vec![(30, None), (13, of_ada), (12, of_ben)], true),
            (vec![(30, None), (15, of_ada), (13, of_ben)], false),
        ] {
            let placements: Vec<_> = placements
                .into_iter()
                .map(|(hours, list)| Placement {
                    at: hours_ago(hours),
                    list,
                })
                .collect();
            let had = |worker: Worker| worker.had(&placements, now(), &TimeZone::UTC);
            let of_ada = Worker::Courier {
                id: ada,
                today: TODAY,
            };
            assert_eq!(had(of_ada), expected, "{placements:?}");
            assert!(!had(Worker::Dispatch) && !had(Worker::OnBehalfOf(ada)));
        }
    }
}
