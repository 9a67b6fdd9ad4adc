//! `/api`: where everything begins.

use std::sync::Arc;

use proto::iri::{self, Collection};
use serde::Serialize;

use crate::{
    json_ld,
    request::Request,
    routes::{Answer, Gateway},
};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entrypoint {
    #[serde(rename = "@context")]
    context: &'static str,
    #[serde(rename = "@id")]
    iri: &'static str,
    #[serde(rename = "@type")]
    ld_type: &'static str,
    delivery: String,
    event: String,
    retail_price: String,
    task: String,
    time_slot: String,
    webhook: String,
}

/// `GET /api`
pub(crate) async fn get(_: Arc<Gateway>, _: Request) -> Answer {
    let of = |collection: Collection| iri::of(collection.segment());
    json_ld::ok(&Entrypoint {
        context: "/api/contexts/Entrypoint",
        iri: "/api",
        ld_type: "Entrypoint",
        delivery: of(Collection::Deliveries),
        event: of(Collection::Events),
        retail_price: of(Collection::RetailPrices),
        task: of(Collection::Tasks),
        time_slot: of(Collection::TimeSlots),
        webhook: of(Collection::Webhooks),
    })
}
