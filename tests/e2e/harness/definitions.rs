//! Applies definitions (TOML, GeoJSON) over gRPC, as the operator or as any API client.

use delivery::Credentials;
use proto::{
    ApplyPriceListRequest, ApplyTimeSlotRequest, ApplyZonesRequest, GetZonesRequest, PriceList,
    TimeSlot, ZoneSet, price_lists_client::PriceListsClient, time_slots_client::TimeSlotsClient,
    zones_client::ZonesClient,
};
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt;

use super::{Platform, grpc};

/// A time slot: noon to two, offered for two days.
pub(crate) const TIME_SLOT: &str = r#"name = "Tour"
opening_hours = ["Mo-Su 12:00-14:00"]
interval = "2 days"
"#;

/// A price list with the same price for every delivery.
pub(crate) const PRICE_LIST: &str = r#"currency = "EUR"
tax = { name = "VAT", rate = 2000 }
strategy = "first"

[[rule]]
name = "All"
when = "distance >= 0"
price = 499
"#;

/// Applies definitions and returns the errors of invalid ones.
pub(crate) struct Definitions {
    channel: Channel,
    token: String,
}

impl Definitions {
    pub(crate) fn new(channel: Channel, token: String) -> Self {
        Self { channel, token }
    }

    /// As the operator.
    pub(crate) async fn as_operator(platform: &Platform) -> Self {
        let (channel, token) = platform.connect(&["admin"]).await;
        Self::new(channel, token)
    }

    /// As any API client, with a token for these scopes.
    pub(crate) async fn as_client(
        platform: &Platform,
        credentials: &Credentials,
        scopes: &[&str],
    ) -> Self {
        let (channel, token) = grpc::connect(&platform.core_url, credentials, scopes).await;
        Self::new(channel, token)
    }

    pub(crate) async fn apply_time_slot(
        &self,
        store: &str,
        definition: &str,
    ) -> Result<TimeSlot, Status> {
        let request = ApplyTimeSlotRequest {
            store: store.to_owned(),
            definition: definition.to_owned(),
            idempotency: None,
        };
        let applied = TimeSlotsClient::new(self.channel.clone())
            .apply_time_slot(grpc::with_token(&self.token, request))
            .await?;
        Ok(applied.into_inner())
    }

    pub(crate) async fn apply_zones(&self, definition: &str) -> Result<ZoneSet, Status> {
        let request = ApplyZonesRequest {
            definition: definition.to_owned(),
            idempotency: None,
        };
        let applied = ZonesClient::new(self.channel.clone())
            .apply_zones(grpc::with_token(&self.token, request))
            .await?;
        Ok(applied.into_inner())
    }

    /// All zones, or the one with this name.
    pub(crate) async fn zones(&self, name: Option<&str>) -> Result<ZoneSet, Status> {
        let request = GetZonesRequest {
            display_name: name.map(str::to_owned),
        };
        let found = ZonesClient::new(self.channel.clone())
            .get_zones(grpc::with_token(&self.token, request))
            .await?;
        Ok(found.into_inner())
    }

    pub(crate) async fn apply_price_list(
        &self,
        store: &str,
        definition: &str,
    ) -> Result<PriceList, Status> {
        let request = ApplyPriceListRequest {
            store: store.to_owned(),
            definition: definition.to_owned(),
            idempotency: None,
        };
        let applied = PriceListsClient::new(self.channel.clone())
            .apply_price_list(grpc::with_token(&self.token, request))
            .await?;
        Ok(applied.into_inner())
    }
}

/// The field of every violation in a status.
pub(crate) fn violation_fields(status: &Status) -> Vec<String> {
    status
        .get_details_bad_request()
        .into_iter()
        .flat_map(|details| details.field_violations)
        .map(|violation| violation.field)
        .collect()
}

/// Asserts that a definition was rejected for mistakes in exactly these lines.
#[track_caller]
pub(crate) fn assert_mistakes(rejected: &Status, lines: &[&str], definition: &str) {
    assert_eq!(rejected.code(), Code::InvalidArgument, "{definition}");
    let fields = violation_fields(rejected);
    let found = fields.iter().map(|field| field.split_once(':').unwrap().0);
    let found: Vec<_> = found.collect();
    assert_eq!(found, lines, "{fields:?} {definition}");
}

/// GeoJSON of a box: west, south, east, north.
pub(crate) fn zone(name: &str, [west, south, east, north]: [f64; 4]) -> String {
    let positions = [
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
         \"coordinates\": [[{positions}]]}}}}]}}"
    )
}
