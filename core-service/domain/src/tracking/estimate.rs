//! When a parcel will probably arrive: a range, from where its courier was last and the stops until there. There is no
//! router and no position of the courier in it, so it says how old it is.

use jiff::{SignedDuration, Timestamp, civil::Date};

use crate::{
    delivery::Delivery,
    task::{Task, TaskState},
};

/// Further away, too much can change.
const MAX_STOPS: usize = 8;
const MAX_WIDTH: SignedDuration = SignedDuration::from_mins(60);

/// How much longer the way is than a straight line.
const DETOUR: f64 = 1.3;
/// Meters per second: 15 km/h.
const SPEED: f64 = 15.0 / 3.6;
/// At each stop, this one among them.
const STOP: SignedDuration = SignedDuration::from_mins(4);

const EARLIER: SignedDuration = SignedDuration::from_mins(3);
const LATER_PER_STOP: SignedDuration = SignedDuration::from_mins(2);

/// Ranges begin and end at multiples of this, in seconds: they keep still, and show no precision that they do not have.
const ROUNDING: i64 = 300;

/// How long after its end a range is still shown.
const MAX_OVERDUE: SignedDuration = SignedDuration::from_mins(10);

/// When a parcel will probably arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimate {
    Between {
        from: Timestamp,
        until: Timestamp,
        /// When the courier was last known to be somewhere.
        known_at: Timestamp,
    },
    /// It should have arrived.
    Overdue,
}

impl Estimate {
    /// Whether there may be one: the parcel is with the courier who brings it today.
    pub fn may_be(delivery: &Delivery, today: Date) -> bool {
        let place = delivery.dropoff.place;
        let is_today = place.is_some_and(|place| place.list.day == today);
        is_today && delivery.pickup.is_done() && is_open(&delivery.dropoff)
    }

    /// The list is that of the dropoff. `None` if nothing better is known than the window. See [`Estimate::may_be`].
    pub fn of(delivery: &Delivery, list: &[Task], now: Timestamp) -> Option<Self> {
        let dropoff = &delivery.dropoff;
        let place = dropoff.place?;
        let visited = list.iter().filter(|task| is_visited(task));
        let here = visited.max_by_key(|task| (task.state_since, task.id))?;
        let position = |task: &Task| task.place.map(|place| place.position);
        let is_before = |task: &&Task| is_open(task) && position(task) < Some(place.position);
        let mut stops: Vec<_> = list.iter().filter(is_before).collect();
        if stops.len() > MAX_STOPS {
            return None;
        }
        stops.sort_unstable_by_key(|task| position(task));
        stops.push(dropoff);

        // A stop that is started: the courier left the last one later than it was done.
        let next = stops.first()?;
        let known_at = match next.state {
            TaskState::Doing => here.state_since.max(next.state_since),
            _ => here.state_since,
        };
        let count = i32::try_from(stops.len()).ok()?;
        let way = SignedDuration::from_secs(seconds(here, &stops)) + STOP * count;
        // A parcel is not handed over before its window.
        let arrival = known_at.checked_add(way).ok()?.max(dropoff.window.after);
        let from = rounded(arrival.checked_sub(EARLIER).ok()?, 0)?;
        let latest = arrival.checked_add(way / 4 + LATER_PER_STOP * count);
        let until = rounded(latest.ok()?, ROUNDING - 1)?;
        if until.duration_since(from) > MAX_WIDTH {
            return None;
        }
        if now.duration_since(until) > MAX_OVERDUE {
            return Some(Self::Overdue);
        }
        Some(Self::Between {
            from,
            until,
            known_at,
        })
    }
}

fn is_open(task: &Task) -> bool {
    matches!(task.state, TaskState::Todo | TaskState::Doing)
}

fn is_visited(task: &Task) -> bool {
    matches!(task.state, TaskState::Done | TaskState::Failed(_))
}

/// Of the way from a stop by others to the last of them.
fn seconds(from: &Task, stops: &[&Task]) -> i64 {
    let mut here = from.address.lat_lng;
    let mut meters = 0.0;
    for stop in stops {
        meters += here.distance_meters(stop.address.lat_lng);
        here = stop.address.lat_lng;
    }
    #[expect(clippy::cast_possible_truncation, reason = "a distance on the earth")]
    let seconds = (meters * DETOUR / SPEED) as i64;
    seconds
}

fn rounded(instant: Timestamp, up: i64) -> Option<Timestamp> {
    let multiple = (instant.as_second() + up).div_euclid(ROUNDING);
    Timestamp::from_second(multiple * ROUNDING).ok()
}

#[cfg(test)]
mod tests;
