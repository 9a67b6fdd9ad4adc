//! Definitions (TOML) that an operator, or someone who is none, tries to apply over gRPC.

use delivery::Credentials;
use proto::{
    ApplyPriceListRequest, ApplyTimeSlotRequest, ApplyZonesRequest, GetZonesRequest,
    IssueTokenRequest, PriceList, TimeSlot, ZoneSet, price_lists_client::PriceListsClient,
    time_slots_client::TimeSlotsClient, tokens_client::TokensClient, zones_client::ZonesClient,
};
use tonic::{Request, Status, transport::Channel};
use tonic_types::StatusExt;

use super::{Platform, operator};

/// Someone who applies definitions, and is told why if they are refused.
pub(crate) struct Definitions {
    channel: Channel,
    token: String,
}

impl Definitions {
    /// The operator.
    pub(crate) async fn of_the_operator(platform: &Platform) -> Self {
        let (channel, token) = operator::connect(platform, &["admin"]).await;
        Self { channel, token }
    }

    /// Any API client, with all its scopes that are asked for.
    pub(crate) async fn of(
        platform: &Platform,
        credentials: &Credentials,
        scopes: &[&str],
    ) -> Self {
        let (channel, _) = operator::connect(platform, &["admin"]).await;
        let token = TokensClient::new(channel.clone())
            .issue_token(IssueTokenRequest {
                api_key: credentials.api_key.clone(),
                api_secret: credentials.api_secret.clone(),
                scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            })
            .await
            .unwrap()
            .into_inner();
        Self {
            channel,
            token: token.access_token,
        }
    }

    pub(crate) async fn apply_time_slot(
        &self,
        store: &str,
        definition: &str,
    ) -> Result<TimeSlot, Status> {
        let request = Request::new(ApplyTimeSlotRequest {
            store: store.to_owned(),
            definition: definition.to_owned(),
        });
        let applied = TimeSlotsClient::new(self.channel.clone())
            .apply_time_slot(operator::bearing(&self.token, request))
            .await?;
        Ok(applied.into_inner())
    }

    pub(crate) async fn apply_zones(&self, definition: &str) -> Result<ZoneSet, Status> {
        let request = Request::new(ApplyZonesRequest {
            definition: definition.to_owned(),
        });
        let applied = ZonesClient::new(self.channel.clone())
            .apply_zones(operator::bearing(&self.token, request))
            .await?;
        Ok(applied.into_inner())
    }

    /// All zones, or the one of a name.
    pub(crate) async fn zones(&self, name: Option<&str>) -> Result<ZoneSet, Status> {
        let request = Request::new(GetZonesRequest {
            display_name: name.map(str::to_owned),
        });
        let found = ZonesClient::new(self.channel.clone())
            .get_zones(operator::bearing(&self.token, request))
            .await?;
        Ok(found.into_inner())
    }

    pub(crate) async fn apply_price_list(
        &self,
        store: &str,
        definition: &str,
    ) -> Result<PriceList, Status> {
        let request = Request::new(ApplyPriceListRequest {
            store: store.to_owned(),
            definition: definition.to_owned(),
        });
        let applied = PriceListsClient::new(self.channel.clone())
            .apply_price_list(operator::bearing(&self.token, request))
            .await?;
        Ok(applied.into_inner())
    }
}

/// The field of every violation that a refusal lists.
pub(crate) fn violated_fields(status: &Status) -> Vec<String> {
    status
        .get_details_bad_request()
        .into_iter()
        .flat_map(|details| details.field_violations)
        .map(|violation| violation.field)
        .collect()
}

/// GeoJSON of a box: west, south, east, north.
pub(crate) fn zone(name: &str, [west, south, east, north]: [f64; 4]) -> String {
    let corners = [
        [west, south],
        [east, south],
        [east, north],
        [west, north],
        [west, south],
    ]
    .map(|[longitude, latitude]| format!("[{longitude}, {latitude}]"))
    .join(", ");
    format!(
        "{{\"type\": \"FeatureCollection\",\n \"features\": [\n\
         {{\"type\": \"Feature\", \"properties\": {{\"name\": \"{name}\"}},\n\
         \"geometry\": {{\"type\": \"Polygon\",\n\
         \"coordinates\": [[{corners}]]}}}}]}}"
    )
}
