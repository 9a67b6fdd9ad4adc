//! Bookings of time slots with a limited capacity, counted in the transaction that books.

use std::collections::HashMap;

use domain::{
    delivery::Booking,
    id::{StoreId, TimeSlotId},
    task::TimeWindow,
};
use sea_orm::Value;

use super::entity::Instant;
use crate::prelude::*;

/// The number of bookings of each choice of a time slot that ends after an instant.
pub async fn counts(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    time_slot_id: TimeSlotId,
    after: Timestamp,
) -> Result<HashMap<TimeWindow, u32>, Error> {
    let select = "SELECT starts_at, ends_at, booked FROM slot_bookings
        WHERE store_id = $1 AND time_slot_id = $2 AND ends_at > $3";
    let after = Instant::from(after).into();
    let parameters = [store_id.0.into(), time_slot_id.0.into(), after];
    let rows = rows::query(connection, select, parameters).await?;
    rows.iter()
        .map(|row| {
            let instant = |index| row.try_get_by_index::<Instant>(index);
            let window = TimeWindow {
                after: instant(0)?.try_into()?,
                before: instant(1)?.try_into()?,
            };
            let booked: i64 = row.try_get_by_index(2)?;
            Ok((window, u32::try_from(booked).unwrap_or(u32::MAX)))
        })
        .collect()
}

/// Books a choice unless it is full: one conditional statement, so that concurrent bookings never
/// exceed the capacity. Returns whether it was booked.
pub async fn book(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    booking: Booking,
    capacity: u32,
) -> Result<bool, Error> {
    let book = "INSERT INTO slot_bookings (store_id, time_slot_id, starts_at, ends_at, booked)
        VALUES ($1, $2, $3, $4, 1)
        ON CONFLICT (store_id, time_slot_id, starts_at, ends_at) DO UPDATE
            SET booked = slot_bookings.booked + 1 WHERE slot_bookings.booked < $5";
    let capacity = i64::from(capacity).into();
    let values = key(store_id, booking).into_iter().chain([capacity]);
    Ok(rows::execute(transaction, book, values).await? > 0)
}

fn key(store_id: StoreId, booking: Booking) -> [Value; 4] {
    [
        store_id.0.into(),
        booking.time_slot_id.0.into(),
        Instant::from(booking.window.after).into(),
        Instant::from(booking.window.before).into(),
    ]
}

/// Releases a booking.
pub async fn release(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    booking: Booking,
) -> Result<(), Error> {
    let release = "UPDATE slot_bookings SET booked = booked - 1
        WHERE store_id = $1 AND time_slot_id = $2 AND starts_at = $3 AND ends_at = $4 AND booked > 0";
    rows::run(transaction, release, key(store_id, booking)).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Storage, fixture};

    /// The choice from a second since 1970 to ten seconds later.
    fn window(starts_at: i64) -> TimeWindow {
        let instant = |second| Timestamp::from_second(second).unwrap();
        TimeWindow {
            after: instant(starts_at),
            before: instant(starts_at + 10),
        }
    }

    async fn is_booked(
        storage: &Storage,
        store_id: StoreId,
        booking: Booking,
        capacity: u32,
    ) -> bool {
        let booked = storage.write(move |transaction| async move {
            book(&transaction, store_id, booking, capacity).await
        });
        booked.await.unwrap()
    }

    #[tokio::test]
    async fn choices_of_a_slot_that_end_after_an_instant_are_counted() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let (store_id, time_slot_id) = (StoreId::new(), TimeSlotId::new());
            let others = [
                (StoreId::new(), time_slot_id),
                (store_id, TimeSlotId::new()),
            ];
            for (store_id, time_slot_id) in [(store_id, time_slot_id)].into_iter().chain(others) {
                for starts_at in [0, 1, 1] {
                    let booking = Booking {
                        time_slot_id,
                        window: window(starts_at),
                    };
                    assert!(is_booked(&storage, store_id, booking, 2).await);
                }
            }

            for (after, expected) in [
                (9, vec![(window(0), 1), (window(1), 2)]),
                (10, vec![(window(1), 2)]),
                (11, vec![]),
            ] {
                let after = Timestamp::from_second(after).unwrap();
                let counts = counts(storage.reader(), store_id, time_slot_id, after).await;
                assert_eq!(counts.unwrap(), HashMap::from_iter(expected), "{after}");
            }
        }
    }

    #[tokio::test]
    async fn a_choice_is_booked_up_to_its_capacity_and_again_after_its_release() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let (store_id, time_slot_id) = (StoreId::new(), TimeSlotId::new());
            let [booking, other] = [0, 1].map(|starts_at| Booking {
                time_slot_id,
                window: window(starts_at),
            });
            assert!(is_booked(&storage, store_id, other, 2).await);
            for is_free in [true, true, false] {
                let is_booked = is_booked(&storage, store_id, booking, 2).await;
                assert_eq!(is_booked, is_free);
            }

            let released = storage.write(move |transaction| async move {
                release(&transaction, store_id, booking).await
            });
            released.await.unwrap();

            let (reader, after) = (storage.reader(), Timestamp::UNIX_EPOCH);
            let left = counts(reader, store_id, time_slot_id, after).await;
            let expected = HashMap::from([(window(0), 1), (window(1), 1)]);
            assert_eq!(left.unwrap(), expected);
            for is_free in [true, false] {
                let is_booked = is_booked(&storage, store_id, booking, 2).await;
                assert_eq!(is_booked, is_free);
            }
        }
    }
}
