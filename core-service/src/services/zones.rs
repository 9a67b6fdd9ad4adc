//! Zones: applied and read by operators.

use domain::{
    api_client::Scope,
    definition::Mistake,
    zone::{self, Area},
};
use storage::zones::StoredZones;
use tonic::{Request, Response};

use super::{Reply, Services};
use crate::{
    auth::caller::Caller, error::Error, idempotency::begin_or_replay, messages,
    planning::definitions,
};

#[tonic::async_trait]
impl proto::zones_server::Zones for Services {
    async fn apply_zones(
        &self,
        request: Request<proto::ApplyZonesRequest>,
    ) -> Reply<proto::ZoneSet> {
        let (caller, request) = Caller::with_scope(request, Scope::Admin)?;

        let applied = self.insert_zones(&caller, request).await?;
        caller.audit("ApplyZones", "zones", &applied);
        Ok(applied)
    }

    async fn check_zones(
        &self,
        request: Request<proto::CheckZonesRequest>,
    ) -> Reply<proto::CheckZonesResponse> {
        let (_, request) = Caller::with_scope(request, Scope::Admin)?;

        let zones = parse(&request.definition)?;

        Ok(Response::new(proto::CheckZonesResponse {
            zones: zones
                .iter()
                .map(|(name, area)| message(name, area))
                .collect(),
        }))
    }

    async fn get_zones(&self, request: Request<proto::GetZonesRequest>) -> Reply<proto::ZoneSet> {
        let (_, request) = Caller::with_scope(request, Scope::Admin)?;

        let current = storage::zones::find_current(self.storage.reader())
            .await
            .map_err(Error::from)?;
        let found = match (current, request.display_name) {
            (None, None) => return Ok(Response::new(proto::ZoneSet::default())),
            (Some(all), None) => all,
            (Some(all), Some(name)) if all.zones.has(&name) => StoredZones {
                zones: all.zones.only(&name),
                ..all
            },
            (_, Some(name)) => {
                let name = format!("the zone {name:?}");
                return Err(Error::NotFound(name).into());
            }
        };

        Ok(Response::new(zone_set(&found)))
    }
}

impl Services {
    /// Applies zones, or replays the response to an earlier request.
    async fn insert_zones(
        &self,
        caller: &Caller,
        request: proto::ApplyZonesRequest,
    ) -> Result<Response<proto::ZoneSet>, Error> {
        let request_key = begin_or_replay!(self, caller, "ApplyZones", "", request.idempotency);
        let zones = parse(&request.definition)?;
        let (now, audit) = (self.clock.now(), caller.audit.clone());
        let applied = self
            .idempotency
            .write(request_key, move |transaction| async move {
                let current = storage::zones::find_current(&transaction).await?;
                let (version, zones) = match current {
                    Some(current) => (current.version + 1, current.zones.merged_with(&zones)),
                    None => (1, zones),
                };
                zones.check_size().map_err(invalid)?;
                let stored = StoredZones {
                    version,
                    zones,
                    created_at: now,
                };
                storage::zones::insert(&transaction, &stored).await?;
                audit.record(&transaction, None, "zones").await?;
                Ok(zone_set(&stored))
            })
            .await;
        self.definitions().invalidate();
        applied
    }
}

fn parse(definition: &str) -> Result<zone::Zones, Error> {
    zone::Zones::parse(definition).map_err(invalid)
}

fn invalid(mistake: Mistake) -> Error {
    definitions::invalid(vec![mistake])
}

fn zone_set(stored: &StoredZones) -> proto::ZoneSet {
    proto::ZoneSet {
        version: u32::try_from(stored.version).unwrap_or(u32::MAX),
        zones: stored
            .zones
            .iter()
            .map(|(name, area)| message(name, area))
            .collect(),
        definition: stored.zones.to_geo_json(),
        create_time: Some(messages::timestamp(stored.created_at)),
    }
}

fn message(name: &str, area: &Area) -> proto::Zone {
    let zone::Bounds {
        south,
        west,
        north,
        east,
    } = area.bounds();
    proto::Zone {
        display_name: name.to_owned(),
        positions: u32::try_from(area.position_count()).unwrap_or(u32::MAX),
        south,
        west,
        north,
        east,
    }
}
