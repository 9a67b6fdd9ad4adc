//! Tracking: what the holder of a delivery's link sees of it, without a token. Dispatch revokes links.

use domain::{
    api_client::Scope,
    brand::Colour,
    delivery::Delivery,
    id::{DeliveryId, TaskId},
    store::Store,
    task::{Task, TaskState},
    task_event::TaskEvent,
    tracking::{self, Obstacle, Stage, Tracked, TrackingToken, estimate::Estimate},
};
use jiff::{SignedDuration, Timestamp};
use proto::{
    iri::Collection,
    tracked_delivery::{
        Estimate as EstimateMessage, Obstacle as ObstacleMessage, Stage as StageMessage,
    },
};
use storage::courier_lists::Selection;
use tonic::{Request, Response};

use super::{Reply, Services};
use crate::{
    auth::caller::{Caller, Effect},
    error::Error,
    messages::{self, timestamp},
};

/// The page shows the last one of each kind.
const MAX_EVENTS: u64 = 20;

/// How long an estimate is shown before the courier's list is read again, for all readers of a page.
const KEPT: SignedDuration = SignedDuration::from_secs(15);

/// How many estimates are kept.
const MAX_ESTIMATES: u64 = 10_000;

/// The estimates of deliveries, by the dropoff, each with when it was made.
pub(crate) struct Estimates(moka::sync::Cache<TaskId, (Timestamp, Option<Estimate>)>);

impl Default for Estimates {
    fn default() -> Self {
        Self(moka::sync::Cache::new(MAX_ESTIMATES))
    }
}

/// What a link leads to.
struct Page {
    store: Store,
    delivery: Delivery,
}

#[tonic::async_trait]
impl proto::tracking_server::Tracking for Services {
    async fn get_tracking(
        &self,
        request: Request<proto::GetTrackingRequest>,
    ) -> Reply<proto::TrackedDelivery> {
        let token = request.into_inner().token;
        Ok(Response::new(self.track(&token).await?))
    }

    async fn get_tracking_logo(
        &self,
        request: Request<proto::GetTrackingLogoRequest>,
    ) -> Reply<proto::TrackingLogo> {
        let page = self.find_page(&request.into_inner().token).await?;
        let logo = storage::stores::find_logo(self.storage.reader(), page.store.id).await;
        let logo = logo.map_err(Error::from)?;
        let logo = logo.ok_or_else(|| Error::NotFound("the logo of this store".to_owned()))?;
        Ok(Response::new(proto::TrackingLogo {
            media_type: logo.media_type().to_owned(),
            content: logo.content().to_owned(),
            version: logo.version(),
        }))
    }

    async fn revoke_tracking(
        &self,
        request: Request<proto::RevokeTrackingRequest>,
    ) -> Reply<proto::Delivery> {
        let (caller, request) = Caller::with_scope(request, Scope::Dispatch)?;
        let name = request.name;

        let revoke = |id| self.revoke_link(&caller, DeliveryId(id));
        let (revoked, effect) =
            messages::find_resource(Collection::Deliveries, &name, revoke).await?;

        caller.audit_effect("RevokeTracking", &name, effect);
        Ok(Response::new(revoked))
    }
}

impl Services {
    async fn track(&self, token: &str) -> Result<proto::TrackedDelivery, Error> {
        let Page { store, delivery } = self.find_page(token).await?;
        let history = self.history_of(&delivery).await?;
        let estimate = self.estimate(&delivery).await?;
        Ok(message(Tracked::of(&delivery, &history), estimate, store))
    }

    /// Fails if the link leads nowhere, or not any more.
    async fn find_page(&self, token: &str) -> Result<Page, Error> {
        // The token is in no log.
        let unknown = || Error::NotFound("this tracking link".to_owned());
        let token = TrackingToken::parse(token).ok_or_else(unknown)?;
        let found = storage::tasks::find_of_any_store(&self.storage, token.dropoff_id);
        let (store, task) = found.await?.ok_or_else(unknown)?;
        let reader = self.storage.reader();
        let delivery = storage::deliveries::find(reader, store.id, task.delivery_id).await?;
        let delivery = delivery.filter(|delivery| token.is_of(delivery));
        let delivery = delivery.ok_or_else(unknown)?;
        // Once the secret is right: others must not fill the limiter.
        self.rate_limits.check_tracking_link(&token)?;
        if !store.has_tracking || tracking::is_over(&delivery, self.clock.now()) {
            let message = "this tracking link is no longer valid".to_owned();
            return Err(Error::Conflict("TRACKING_ENDED", message));
        }
        Ok(Page { store, delivery })
    }

    async fn estimate(&self, delivery: &Delivery) -> Result<Option<Estimate>, Error> {
        let place = delivery.dropoff.place;
        let place = place.filter(|_| Estimate::may_be(delivery, self.today()));
        let Some(place) = place else {
            return Ok(None);
        };
        let (id, now) = (delivery.dropoff.id, self.clock.now());
        let kept = self.estimates.0.get(&id);
        let is_new = |(made_at, _): &(Timestamp, _)| now.duration_since(*made_at).abs() < KEPT;
        if let Some((_, estimate)) = kept.filter(is_new) {
            return Ok(estimate);
        }
        let list = Selection::Lists([place.list].into());
        let list = storage::courier_lists::tasks(self.storage.reader(), &list).await?;
        let list: Vec<_> = list.into_iter().map(|(_, task)| task).collect();
        let estimate = Estimate::of(delivery, &list, now);
        self.estimates.0.insert(id, (now, estimate));
        Ok(estimate)
    }

    /// Counts the estimate of a dropoff that a page showed last, once it is done.
    pub(super) fn count_estimate(&self, dropoff: TaskId) {
        if let Some((_, Some(Estimate::Between { from, until, .. }))) =
            self.estimates.0.remove(&dropoff)
        {
            self.metrics.count_estimate(from..=until, self.clock.now());
        }
    }

    /// What the page shows of the history of its tasks, as far as something happened to them.
    async fn history_of(&self, delivery: &Delivery) -> Result<Vec<TaskEvent>, Error> {
        let has_begun =
            |task: &&Task| !matches!(task.state, TaskState::Todo | TaskState::Cancelled);
        let mut history = Vec::new();
        for task in [&delivery.pickup, &delivery.dropoff]
            .into_iter()
            .filter(has_begun)
        {
            let (reader, store_id) = (self.storage.reader(), delivery.store_id);
            let newest = storage::task_events::newest(
                reader,
                store_id,
                task.id,
                tracking::SHOWN,
                MAX_EVENTS,
            );
            history.extend(newest.await?);
        }
        Ok(history)
    }

    /// None if the delivery does not exist.
    async fn revoke_link(
        &self,
        caller: &Caller,
        id: DeliveryId,
    ) -> Result<Option<(proto::Delivery, Effect)>, Error> {
        let Some(store) = self.find_store_of(id).await? else {
            return Ok(None);
        };
        let (store_id, now) = (store.id, self.clock.now());
        let audit = caller.audit.clone();
        let revoke = self.storage.write(move |transaction| async move {
            let revoke = storage::deliveries::revoke_tracking(&transaction, store_id, id, now);
            let is_changed = revoke.await?;
            if is_changed {
                let name = Collection::Deliveries.name(id);
                audit.record(&transaction, Some(store_id), name).await?;
            }
            let delivery = storage::deliveries::find(&transaction, store_id, id).await?;
            Ok::<_, Error>((delivery, is_changed))
        });
        let (delivery, is_changed) = revoke.await?;
        let effect = if is_changed {
            Effect::Changed
        } else {
            Effect::Unchanged
        };
        let public_url = &self.config.public_url;
        let shown = |delivery| messages::delivery_with_store(delivery, &store, public_url);
        Ok(delivery.map(|delivery| (shown(delivery), effect)))
    }
}

fn message(tracked: Tracked, estimate: Option<Estimate>, store: Store) -> proto::TrackedDelivery {
    let stage = match tracked.stage {
        Stage::Ordered => StageMessage::Ordered,
        Stage::Collected => StageMessage::Collected,
        Stage::OnItsWay => StageMessage::OnItsWay,
        Stage::Delivered => StageMessage::Delivered,
        Stage::NotDelivered(_) => StageMessage::NotDelivered,
        Stage::Cancelled => StageMessage::Cancelled,
    };
    let obstacle = match tracked.stage {
        Stage::NotDelivered(Obstacle::NobodyThere) => ObstacleMessage::NobodyThere,
        Stage::NotDelivered(Obstacle::Address) => ObstacleMessage::Address,
        Stage::NotDelivered(Obstacle::Refused) => ObstacleMessage::Refused,
        Stage::NotDelivered(Obstacle::Other) => ObstacleMessage::Other,
        _ => ObstacleMessage::Unspecified,
    };
    proto::TrackedDelivery {
        stage: stage.into(),
        obstacle: obstacle.into(),
        order_time: Some(timestamp(tracked.ordered_at)),
        collect_time: tracked.collected_at.map(timestamp),
        departure_time: tracked.on_its_way_at.map(timestamp),
        end_time: tracked.ended_at.map(timestamp),
        after: tracked.window.map(|window| timestamp(window.after)),
        before: tracked.window.map(|window| timestamp(window.before)),
        street: tracked.street.unwrap_or_default(),
        address_locality: tracked.locality.unwrap_or_default(),
        time_zone: store.time_zone_name().to_owned(),
        store_colour: store.brand.colour.map_or(0, Colour::number),
        logo_version: store.brand.logo_version.unwrap_or_default(),
        store_display_name: store.display_name,
        store_telephone: store.telephone.unwrap_or_default(),
        estimate: match estimate {
            None | Some(Estimate::Overdue) => None,
            Some(Estimate::Between {
                from,
                until,
                known_at,
            }) => Some(EstimateMessage {
                after: Some(timestamp(from)),
                before: Some(timestamp(until)),
                known_time: Some(timestamp(known_at)),
            }),
        },
        overdue: estimate == Some(Estimate::Overdue),
    }
}
