//! The sequencer: assigns numbers to committed events, in one transaction at a time.
//!
//! An event gets two numbers: `number` counts the events of its store, `position` those of all
//! stores. The sequencer's row is locked while a batch is numbered, and the counters change in the
//! same transaction. If a core crashes before the commit, nothing is numbered. An event that is
//! committed late gets a later number than events that were committed before it, even if it was
//! created earlier.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use crate::{entity::Instant as StoredInstant, prelude::*};

/// What waits for a sequencer.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is what one query has found"
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Changes of tasks, for their positions.
    pub changes: bool,
    /// Events, for their numbers.
    pub events: bool,
    /// Numbered events, for the notifications of new deliveries.
    pub notifications: bool,
    /// Pending notifications, for their attempt. Not for the sequencer: it polls for what else a core waits for.
    pub is_any_due: bool,
}

impl Waiting {
    /// For the sequencer.
    pub fn is_anything(self) -> bool {
        self.changes || self.events || self.notifications
    }
}

/// Where the sequencer's queues begin, as a core knows from looking: what was before has been numbered or moved. While a
/// transaction with an old snapshot is open, such as a dump, `PostgreSQL` keeps that, and a scan from the beginning reads
/// all of it.
#[derive(Clone, Copy, Debug)]
pub struct QueueHeads {
    /// The creation of the earliest event, in microseconds since 1970.
    pub(crate) event: i64,
    /// The id of the first change of tasks.
    pub(crate) change: i64,
    /// What was true some time ago, and must be so long ago that all transactions of then have ended.
    mark: Option<Mark>,
    /// When a scan began at the beginning.
    beginning_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Instant,
    now: Timestamp,
    /// The highest id that was given to a change.
    last_change: i64,
    /// By the database's clock, in microseconds since 1970.
    database_now: i64,
}

/// More than a transaction takes from the creation of its event, or from the id of its change, to its commit:
/// [`WRITE_TIMEOUT`](crate::storage::WRITE_TIMEOUT) is less. Also more than the clocks of cores differ.
const LATEST_COMMIT: Duration = Duration::from_secs(15);

/// How often a core looks from the beginning: for what was committed later still.
const FROM_BEGINNING: Duration = Duration::from_mins(5);

impl QueueHeads {
    pub const BEGINNING: Self = Self {
        event: i64::MIN,
        change: i64::MIN,
        mark: None,
        beginning_at: None,
    };

    /// From where to look now: from the beginning from time to time, and when the clock was set back.
    fn or_beginning(self, now: Timestamp, at: Instant) -> Self {
        let is_recent = |since| at.saturating_duration_since(since) < FROM_BEGINNING;
        let is_set_back = self.mark.is_some_and(|mark| now < mark.now);
        if self.beginning_at.is_some_and(is_recent) && !is_set_back {
            return self;
        }
        Self {
            beginning_at: Some(at),
            ..Self::BEGINNING
        }
    }

    /// Moves the heads to what was found, but not past the mark: before that, nothing is added any more.
    fn advance(&mut self, found: &Found, now: Timestamp, at: Instant) {
        if let Some(mark) = self.mark {
            // A standby that lacks the last ids became the primary: it gives them again.
            if found.last_change < mark.last_change {
                *self = Self::BEGINNING;
                return;
            }
            // A commit that waits for a standby, or of a core that hangs, takes any time.
            let is_open = found
                .oldest_writer
                .is_some_and(|begun| begun <= mark.database_now);
            if is_open || at.saturating_duration_since(mark.at) < LATEST_COMMIT {
                return;
            }
            let settled = mark.now.saturating_sub(LATEST_COMMIT);
            let settled = settled.unwrap_or(Timestamp::MIN).as_microsecond();
            self.event = std::cmp::min(found.event.unwrap_or(i64::MAX), settled);
            self.change = std::cmp::min(found.change.unwrap_or(i64::MAX), mark.last_change + 1);
        }
        self.mark = Some(Mark {
            at,
            now,
            last_change: found.last_change,
            database_now: found.database_now,
        });
    }
}

/// What a core finds in the queues.
struct Found {
    change: Option<i64>,
    event: Option<i64>,
    /// The highest id that was given to a change.
    last_change: i64,
    /// When the oldest transaction began that has written, by the database's clock, and its time now.
    oldest_writer: Option<i64>,
    database_now: i64,
}

/// One statement: an idle core executes it all the time. Moves the heads.
pub async fn waiting(
    connection: &impl ConnectionTrait,
    heads: &mut QueueHeads,
    now: Timestamp,
) -> Result<Waiting, Error> {
    look(connection, heads, now, Instant::now()).await
}

/// Like [`waiting`], at an instant.
async fn look(
    connection: &impl ConnectionTrait,
    heads: &mut QueueHeads,
    now: Timestamp,
    at: Instant,
) -> Result<Waiting, Error> {
    let mut from = heads.or_beginning(now, at);
    let select = statement(connection.get_database_backend());
    let values = [
        from.change.into(),
        from.event.into(),
        StoredInstant::from(now).into(),
    ];
    let asked = Instant::now();
    let rows = rows::query(connection, &select, values).await?;
    let Some(row) = rows.first() else {
        return Ok(Waiting::default());
    };
    let found = Found {
        change: row.try_get_by_index(0)?,
        event: row.try_get_by_index(1)?,
        last_change: row.try_get_by_index(4)?,
        oldest_writer: row.try_get_by_index(5)?,
        database_now: row.try_get_by_index(6)?,
    };
    // The statement may have waited: the ids are of its end.
    from.advance(&found, now, at + asked.elapsed());
    *heads = from;
    Ok(Waiting {
        changes: found.change.is_some(),
        events: found.event.is_some(),
        notifications: row.try_get_by_index(2)?,
        is_any_due: row.try_get_by_index(3)?,
    })
}

/// The statement of [`look`]. The parameters are the heads of changes and events, and now.
fn statement(backend: DbBackend) -> String {
    let of_backend = match backend {
        DbBackend::Postgres => {
            "(SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM task_change_queue_id_seq),
            (SELECT CAST(date_part('epoch', min(xact_start)) * 1000000 AS bigint) FROM pg_stat_activity
                WHERE backend_xid IS NOT NULL AND datname = current_database()),
            CAST(date_part('epoch', now()) * 1000000 AS bigint)"
        }
        // It keeps nothing that was deleted, and has one writer.
        _ => "0, NULL, 0",
    };
    format!(
        "SELECT (SELECT MIN(id) FROM task_change_queue WHERE id >= $1),
        (SELECT MIN(created_at) FROM events WHERE number IS NULL AND created_at >= $2),
        EXISTS (SELECT 1 FROM notified_positions, event_sequencers WHERE position < last_position),
        EXISTS (SELECT 1 FROM webhooks WHERE disabled_at IS NULL AND next_due_at <= $3),
        {of_backend}"
    )
}

/// Assigns numbers to committed events, oldest first. Returns how many; `None` if another core is
/// assigning numbers, which may not see the newest events.
pub async fn assign_numbers(
    transaction: &impl ConnectionTrait,
    limit: usize,
    heads: QueueHeads,
) -> Result<Option<usize>, Error> {
    let lock = match transaction.get_database_backend() {
        DbBackend::Postgres => "FOR UPDATE SKIP LOCKED",
        _ => "",
    };
    let select = format!("SELECT last_position FROM event_sequencers {lock}");
    let found: Option<i64> = rows::find_value(transaction, &select, []).await?;
    let Some(last_position) = found else {
        return Ok(None);
    };

    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let parameters = [
        last_position.into(),
        limit.into(),
        heads.event.into(),
        heads.change.into(),
    ];
    let numbered = rows::execute(transaction, ASSIGN_NUMBERS, parameters).await?;
    if numbered > 0 {
        rows::run(transaction, COUNT, [last_position.into()]).await?;
        let update = "UPDATE event_sequencers SET last_position = last_position + $1";
        let count = i64::try_from(numbered).unwrap_or(i64::MAX);
        rows::run(transaction, update, [count.into()]).await?;
    }
    Ok(Some(usize::try_from(numbered).unwrap_or(usize::MAX)))
}

/// Numbers the oldest events, but those of a delivery whose event `delivery.created` waits for its number. The
/// parameters are the last position, the limit, and the heads of events and changes.
const ASSIGN_NUMBERS: &str = "\
    UPDATE events SET number = numbered.number, position = numbered.position
    FROM (
        SELECT batch.store_id, batch.id,
            COALESCE(
                (SELECT last_number FROM event_counters WHERE store_id = batch.store_id), 0
            ) + ROW_NUMBER() OVER (
                PARTITION BY batch.store_id ORDER BY batch.created_at, batch.id
            ) AS number,
            $1 + ROW_NUMBER() OVER (ORDER BY batch.created_at, batch.id) AS position
        FROM (
            SELECT store_id, id, created_at FROM events
            WHERE number IS NULL AND created_at >= $3
                AND object_id NOT IN (
                    SELECT delivery_id FROM task_change_queue WHERE id >= $4 AND is_creation
                )
            ORDER BY created_at, id LIMIT $2
        ) AS batch
    ) AS numbered
    WHERE events.store_id = numbered.store_id AND events.id = numbered.id";

/// Updates the counters of the stores whose events have positions after the last one.
const COUNT: &str = "\
    INSERT INTO event_counters (store_id, last_number, retained_after)
    SELECT store_id, MAX(number), 0 FROM events WHERE position > $1 GROUP BY store_id
    ON CONFLICT (store_id) DO UPDATE SET last_number = excluded.last_number";
