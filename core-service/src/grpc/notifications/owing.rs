//! What an event brings about: written with its cause, told once it is committed.

use domain::{
    event::EventName,
    id::{DeliveryId, StoreId},
};
use jiff::Timestamp;

use super::{
    LEASE,
    streams::{Seat, Streams},
};
use storage::DatabaseTransaction;

use crate::{error::Error, grpc::Core};

/// What is owed by a transaction, if it commits. To be handed to [`Core::tell`] then; if it is
/// dropped instead, nothing is lost, only late.
#[derive(Debug, Default)]
pub(crate) struct Owing {
    born: Vec<Seat>,
    is_any_pending: bool,
}

/// Writes events of a delivery and the notifications owed for them: leased to a stream of this
/// process where one has room, else pending.
pub(crate) async fn owe(
    transaction: &DatabaseTransaction,
    streams: &Streams,
    (store_id, delivery_id): (StoreId, DeliveryId),
    events: &[EventName],
    now: Timestamp,
) -> Result<Owing, Error> {
    let owed =
        storage::notifications::record_events(transaction, store_id, delivery_id, events, now)
            .await?;
    if owed.is_empty() {
        return Ok(Owing::default());
    }
    let seats: Vec<_> = owed.iter().map(|owed| streams.reserve(owed)).collect();
    let owed: Vec<_> = owed
        .into_iter()
        .zip(&seats)
        .map(|(owed, seat)| (owed, seat.as_ref().map(|seat| seat.lease_token)))
        .collect();
    let is_any_pending = storage::notifications::insert(transaction, &owed, LEASE, now).await?;
    Ok(Owing {
        born: seats.into_iter().flatten().collect(),
        is_any_pending,
    })
}

impl Core {
    /// Sends what was born leased, and says that there is something to claim. Only after the
    /// commit.
    pub(crate) fn tell(&self, owing: Owing) {
        for seat in owing.born {
            seat.send();
        }
        if owing.is_any_pending {
            self.bell.send_replace(());
        }
    }
}
