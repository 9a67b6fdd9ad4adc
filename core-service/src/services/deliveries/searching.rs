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
    /// The newest ones.
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

    /// Searches the addresses of deliveries, those whose dropoff ends last first, until there are no more or too many.
    async fn search_content(&self, content: &Content) -> Result<Found, Error> {
        let [from, until] = self.searched_period()?;
        let mut deliveries = BTreeMap::new();
        // No delivery has the nil id, the least one.
        let mut before = (until, DeliveryId(Uuid::nil()));
        let mut searched_from = None;
        for _ in 0..MAX_BATCHES {
            let batch = delivery_search::addresses(self.storage.reader(), from, before, BATCH);
            let batch = batch.await?;
            let Some(last) = batch.iter().map(|searched| searched.position).min() else {
                searched_from = Some(from);
                break;
            };
            before = last;
            for searched in batch {
                if content.is_in(&searched.address) {
                    let (_, id) = searched.position;
                    deliveries.insert((searched.created_at, id), searched.store_id);
                }
            }
            while deliveries.len() > LIMIT {
                deliveries.pop_first();
            }
        }
        Ok(Found {
            deliveries,
            from: searched_from.unwrap_or(before.0),
            until,
        })
    }

    fn searched_period(&self) -> Result<[Timestamp; 2], Error> {
        let today = self.today();
        let last = today.checked_add(DAYS_AHEAD.days());
        let days = today.yesterday().ok().zip(last.ok());
        let zone = &self.config.platform.timezone;
        let bounds = days.and_then(|(first, last)| filters::bounds(first, last, zone));
        bounds.ok_or_else(|| Error::Bug("the clock is out of range".to_owned()))
    }
}
