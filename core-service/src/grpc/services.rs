//! The gRPC services of a core.

use proto::{
    addresses_server::AddressesServer, api_clients_server::ApiClientsServer,
    deliveries_server::DeliveriesServer, events_server::EventsServer,
    master_keys_server::MasterKeysServer, notifications_server::NotificationsServer,
    personal_data_server::PersonalDataServer, price_lists_server::PriceListsServer,
    retail_prices_server::RetailPricesServer, signing_keys_server::SigningKeysServer,
    stores_server::StoresServer, tasks_server::TasksServer, time_slots_server::TimeSlotsServer,
    tokens_server::TokensServer, webhooks_server::WebhooksServer, zones_server::ZonesServer,
};
use tonic::service::RoutesBuilder;

use super::{
    addresses::Addresses, api_clients::ApiClients, authentication::Authentication,
    deliveries::Deliveries, events::Events, master_keys::MasterKeys, notifications::Notifications,
    personal_data::PersonalData, price_lists::PriceLists, retail_prices::RetailPrices,
    signing_keys::SigningKeys, stores::Stores, tasks::Tasks, time_slots::TimeSlots, tokens::Tokens,
    webhooks::Webhooks, zones::Zones,
};

/// Limit of a request message, in bytes; valid messages stay far below it.
const MAX_MESSAGE_SIZE: usize = 4 * 1024 * 1024;

/// All services of a core.
pub(crate) struct Services {
    pub(crate) authentication: Authentication,
    pub(super) addresses: Addresses,
    pub(super) api_clients: ApiClients,
    pub(super) deliveries: Deliveries,
    pub(super) events: Events,
    pub(super) master_keys: MasterKeys,
    pub(super) notifications: Notifications,
    pub(super) personal_data: PersonalData,
    pub(super) price_lists: PriceLists,
    pub(super) retail_prices: RetailPrices,
    pub(super) signing_keys: SigningKeys,
    pub(super) stores: Stores,
    pub(super) tasks: Tasks,
    pub(super) time_slots: TimeSlots,
    pub(super) tokens: Tokens,
    pub(super) webhooks: Webhooks,
    pub(super) zones: Zones,
}

impl Services {
    /// Adds the services to the routes of a server.
    pub(crate) fn add_to(self, routes: &mut RoutesBuilder) {
        macro_rules! server {
            ($server:ident, $service:ident) => {
                $server::new(self.$service).max_decoding_message_size(MAX_MESSAGE_SIZE)
            };
        }
        routes
            .add_service(server!(TokensServer, tokens))
            .add_service(server!(AddressesServer, addresses))
            .add_service(server!(StoresServer, stores))
            .add_service(server!(ApiClientsServer, api_clients))
            .add_service(server!(SigningKeysServer, signing_keys))
            .add_service(server!(MasterKeysServer, master_keys))
            .add_service(server!(DeliveriesServer, deliveries))
            .add_service(server!(TasksServer, tasks))
            .add_service(server!(RetailPricesServer, retail_prices))
            .add_service(server!(PriceListsServer, price_lists))
            .add_service(server!(TimeSlotsServer, time_slots))
            .add_service(server!(WebhooksServer, webhooks))
            .add_service(server!(ZonesServer, zones))
            .add_service(server!(EventsServer, events))
            .add_service(server!(PersonalDataServer, personal_data))
            .add_service(server!(NotificationsServer, notifications));
    }
}
