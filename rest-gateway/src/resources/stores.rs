//! `/api/stores`

use proto::{
    GetStoreRequest,
    iri::{self, Collection},
    stores_client::StoresClient,
};
use serde::Serialize;

use crate::{
    core_pool::rpc,
    error::Error,
    representation::json_ld::{self, Node},
    request::{HandlerResult, Request},
    resources::tasks::Address,
};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Store {
    #[serde(flatten)]
    node: Node,
    name: String,
    /// Always true: clients are disabled, not stores.
    enabled: bool,
    address: Option<Address>,
    /// The default time slot.
    time_slot: Option<String>,
    time_slots: Vec<String>,
    /// The codes of the warnings that are errors in this store.
    refused_warnings: Vec<String>,
}

/// `GET /api/stores/{id}`
pub(crate) async fn get(request: Request) -> HandlerResult {
    let name = Collection::Stores.name(&request.parameter);
    let store = request
        .call(GetStoreRequest { name }, rpc!(StoresClient.get_store))
        .await?;

    json_ld::ok("/api/contexts/Store", &Store::try_from(store)?)
}

impl TryFrom<proto::Store> for Store {
    type Error = Error;

    fn try_from(store: proto::Store) -> Result<Self, Error> {
        let time_slots: Vec<_> = store.time_slots.iter().map(|name| iri::of(name)).collect();
        Ok(Self {
            node: Node::new("http://schema.org/Store", Collection::Stores, &store.name),
            name: store.display_name,
            enabled: true,
            address: store.default_address.map(TryInto::try_into).transpose()?,
            time_slot: time_slots.first().cloned(),
            time_slots,
            refused_warnings: store
                .refused_warnings
                .iter()
                .map(|reason| reason.to_ascii_lowercase())
                .collect(),
        })
    }
}
