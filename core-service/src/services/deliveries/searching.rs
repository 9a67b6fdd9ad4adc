//! Searches the deliveries of all stores.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use domain::{
    delivery_search::{Content, DeliverySearch},
    id::{DeliveryId, StoreId},
    violation::Violations,
};
use jiff::{Timestamp, ToSpan as _};
use storage::{delivery_search, pages::Start};
use uuid::Uuid;

use super::{filters, reading::text_bytes};
use crate::{
    error::Error,
    messages::{pages, timestamp},
    planning::validation,
    services::Services,
};

const MAX_HITS: usize = 30;
/// One more, which shows whether there are others.
const LIMIT: usize = MAX_HITS + 1;

/// Deliveries whose addresses are read together, and how often at most. No index has the texts of addresses: each
/// create would pay for it.
const BATCH: usize = 500;
const MAX_BATCHES: usize = 20;

/// The days whose addresses are searched: from yesterday on.
const DAYS_AHEAD: i64 = 7;

/// What was found by the content of addresses.
struct Found {
    deliveries: BTreeMap<(Timestamp, DeliveryId), StoreId>,
    from: Timestamp,
    until: Timestamp,
}

impl Services {
    pub(super) async fn search(
        &self,
        text: &str,
    ) -> Result<proto::SearchDeliveriesResponse, Error> {
        let mut violations = Violations::new();
        let text = validation::required_name("text", text, &mut violations);
        Error::check(violations)?;
        let search = DeliverySearch::parse(&text, self.config.platform.country.as_str());

        let reader = self.storage.reader();
        let mut keys = BTreeSet::new();
        if let Some(ids) = &search.ids {
            keys.extend(delivery_search::by_ids(reader, ids, LIMIT).await?);
        }
        if let Some(reference) = &search.external_reference {
            let found = delivery_search::by_external_reference(reader, reference, LIMIT);
            keys.extend(found.await?);
        }
        let mut response = proto::SearchDeliveriesResponse::default();
        if let Some(content) = &search.content {
            let found = self.search_content(content).await?;
            let deliveries = found.deliveries.iter();
            keys.extend(deliveries.map(|((_, id), store_id)| (*store_id, *id)));
            response.searched_from = Some(timestamp(found.from));
            response.searched_until = Some(timestamp(found.until));
        }
        let mut deliveries = storage::deliveries::find_all(reader, keys).await?;
        deliveries.sort_unstable_by_key(|delivery| Reverse((delivery.created_at, delivery.id)));
        response.has_more = deliveries.len() > MAX_HITS;
        deliveries.truncate(MAX_HITS);
        response.has_more |= pages::shorten(&mut deliveries, Start::Newest, text_bytes);
        response.deliveries = self.with_stores(deliveries).await?;
        Ok(response)
    }

    /// Searches the addresses of deliveries, of each period those whose dropoff ends last first, until there are enough
    /// hits, or too many deliveries.
    async fn search_content(&self, content: &Content) -> Result<Found, Error> {
        let periods = self.searched_periods()?;
        let mut found = Found {
            deliveries: BTreeMap::new(),
            from: periods[0][1],
            until: periods[0][1],
        };
        let mut batches = 0;
        for [from, until] in periods {
            // No delivery has the nil id, the least one.
            let mut before = (until, DeliveryId(Uuid::nil()));
            loop {
                if batches == MAX_BATCHES || found.deliveries.len() >= LIMIT {
                    found.from = found.from.min(before.0);
                    return Ok(found);
                }
                batches += 1;
                let batch = delivery_search::addresses(self.storage.reader(), from, before, BATCH);
                let batch = batch.await?;
                let Some(last) = batch.iter().map(|searched| searched.position).min() else {
                    break;
                };
                before = last;
                for searched in batch {
                    if content.is_in(&searched.address) {
                        let (_, id) = searched.position;
                        let key = (searched.created_at, id);
                        found.deliveries.insert(key, searched.store_id);
                    }
                }
            }
            found.from = found.from.min(from);
            found.until = until;
        }
        Ok(found)
    }

    /// Yesterday until tomorrow, which people ask for most, then each of the days after.
    fn searched_periods(&self) -> Result<Vec<[Timestamp; 2]>, Error> {
        let today = self.today();
        let zone = &self.config.platform.timezone;
        let day = |days: i64| today.checked_add(days.days()).ok();
        let period = |first, last| filters::bounds(day(first)?, day(last)?, zone);
        let days_ahead = (2..=DAYS_AHEAD).map(|days| period(days, days));
        let periods = std::iter::once(period(-1, 1)).chain(days_ahead).collect();
        let out_of_range = || Error::Bug("the clock is out of range".to_owned());
        Option::<Vec<_>>::ok_or_else(periods, out_of_range)
    }
}
