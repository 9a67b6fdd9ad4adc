//! The text fields of requests, and what each names. The lists are checked against the proto files: a field
//! missing here fails the test.

use std::collections::BTreeSet;

use proto::iri::Collection::{
    self, Addresses, ApiClients, Couriers, Deliveries, Events, Images, Incidents, Notifications,
    RetailPrices, Stores, Tasks, TimeSlots, Webhooks,
};

use super::{
    READ_DISPATCH, READ_PLATFORM,
    contract::Contract,
    resources::{COURIER, EMPTY_ETAG, TASK},
};

/// Which resources an RPC finds by a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// With `admin`, and with another scope of the platform if the RPC requires it: of every store. With another
    /// permitted scope: the caller's own.
    Default,
    /// The field itself requires one of these scopes, which cover every store.
    Requires(&'static [&'static str]),
    /// With `platform:read` or `admin`: of every store. With another scope: the caller's own.
    ReadByPlatform,
    /// Those of the caller's store, with every scope.
    OwnStore,
    /// The caller's own; any other value is one violation of the request among several.
    Violation,
    /// None: every value has the same response.
    Ignored,
}

use Access::{Ignored, OwnStore, ReadByPlatform, Requires, Violation};

/// The text fields that name resources: the RPC, the path, and what is named.
pub(super) const REFERENCES: &[(&str, Collection)] = &[
    ("Addresses/SearchAddresses store", Stores),
    ("ApiClients/CreateApiClient courier", Couriers),
    ("ApiClients/CreateApiClient store", Stores),
    ("ApiClients/DisableApiClient name", ApiClients),
    ("ApiClients/ListApiClients store", Stores),
    ("ApiClients/RotateApiClientSecret name", ApiClients),
    ("Audit/ListAuditEvents api_client", ApiClients),
    ("Audit/ListAuditEvents store", Stores),
    ("Couriers/AssignTasks courier", Couriers),
    ("Couriers/AssignTasks moves.expected_courier", Couriers),
    ("Couriers/AssignTasks moves.task", Tasks),
    ("Couriers/GetCourier name", Couriers),
    ("Couriers/SetCourierLists lists.courier", Couriers),
    ("Couriers/SetCourierLists lists.tasks", Tasks),
    ("Couriers/UpdateCourier name", Couriers),
    (
        "Deliveries/AssertDelivery delivery.retail_price",
        RetailPrices,
    ),
    ("Deliveries/AssertDelivery store", Stores),
    ("Deliveries/CancelDelivery name", Deliveries),
    ("Deliveries/CancelDelivery report.on_behalf_of", Couriers),
    (
        "Deliveries/CreateDelivery delivery.retail_price",
        RetailPrices,
    ),
    ("Deliveries/CreateDelivery store", Stores),
    ("Deliveries/GetDelivery name", Deliveries),
    ("Deliveries/ListDeliveries store", Stores),
    ("Events/GetEvent name", Events),
    ("Events/ListEvents store", Stores),
    ("Images/GetImage name", Images),
    ("Images/UploadImage parent", Tasks),
    ("Images/UploadImage report.on_behalf_of", Couriers),
    ("Incidents/CloseIncident name", Incidents),
    ("Incidents/ListIncidents task", Tasks),
    ("Incidents/ReportIncident report.on_behalf_of", Couriers),
    ("Incidents/ReportIncident task", Tasks),
    ("Notifications/ReportOutcomes outcomes.name", Notifications),
    ("PersonalData/EraseDeliveries delivery", Deliveries),
    ("PriceLists/ApplyPriceList store", Stores),
    (
        "PriceLists/ExplainPrice delivery.retail_price",
        RetailPrices,
    ),
    ("PriceLists/ExplainPrice name", Deliveries),
    ("PriceLists/ExplainPrice store", Stores),
    ("PriceLists/GetPriceList store", Stores),
    ("PriceLists/ListPriceLists store", Stores),
    (
        "RetailPrices/CalculateRetailPrice delivery.retail_price",
        RetailPrices,
    ),
    ("RetailPrices/CalculateRetailPrice store", Stores),
    ("RetailPrices/GetRetailPrice name", RetailPrices),
    ("Stores/DisableStore name", Stores),
    ("Stores/EnableStore name", Stores),
    ("Stores/GetStore name", Stores),
    ("Stores/UpdateStore name", Stores),
    ("Tasks/CompleteTask name", Tasks),
    ("Tasks/CompleteTask report.on_behalf_of", Couriers),
    ("Tasks/CompleteTasks report.on_behalf_of", Couriers),
    ("Tasks/CompleteTasks tasks", Tasks),
    ("Tasks/FailTask name", Tasks),
    ("Tasks/FailTask report.on_behalf_of", Couriers),
    ("Tasks/GetTask name", Tasks),
    ("Tasks/ListTaskEvents task", Tasks),
    ("Tasks/ListTasks courier", Couriers),
    ("Tasks/ListTasks store", Stores),
    ("Tasks/ReopenTask name", Tasks),
    ("Tasks/ReopenTask report.on_behalf_of", Couriers),
    ("Tasks/RescheduleTask name", Tasks),
    ("Tasks/RescheduleTask report.on_behalf_of", Couriers),
    ("Tasks/StartTask name", Tasks),
    ("Tasks/StartTask report.on_behalf_of", Couriers),
    ("Tasks/UpdateTask report.on_behalf_of", Couriers),
    ("Tasks/UpdateTask task.address.name", Addresses),
    ("Tasks/UpdateTask task.courier", Couriers),
    ("Tasks/UpdateTask task.delivery", Deliveries),
    ("Tasks/UpdateTask task.images", Images),
    ("Tasks/UpdateTask task.name", Tasks),
    ("Tasks/UpdateTask task.other_task", Tasks),
    ("Tasks/UpdateTask task.store", Stores),
    ("Tasks/WatchTasks list.courier", Couriers),
    ("Tasks/WatchTasks list.store", Stores),
    ("TimeSlots/ApplyTimeSlot store", Stores),
    ("TimeSlots/GetDefaultTimeSlot store", Stores),
    ("TimeSlots/GetTimeSlot name", TimeSlots),
    ("TimeSlots/ListTimeSlotChoices name", TimeSlots),
    ("TimeSlots/ListTimeSlotChoices store", Stores),
    ("Tracking/RevokeTracking name", Deliveries),
    ("Webhooks/ConfirmWebhookSecret name", Webhooks),
    ("Webhooks/DeleteWebhook name", Webhooks),
    ("Webhooks/DisableWebhook name", Webhooks),
    ("Webhooks/EnableWebhook name", Webhooks),
    ("Webhooks/GetWebhook name", Webhooks),
    ("Webhooks/GetWebhookNotification name", Notifications),
    ("Webhooks/ListWebhookNotifications webhook", Webhooks),
    ("Webhooks/ListWebhooks store", Stores),
    ("Webhooks/RecoverWebhook name", Webhooks),
    ("Webhooks/ResendWebhookNotification name", Notifications),
    ("Webhooks/RotateWebhookSecret name", Webhooks),
    ("Webhooks/TestWebhook name", Webhooks),
];

const DISPATCH: Access = Requires(&["dispatch", "admin"]);

/// The references with another access than the default.
pub(super) const EXCEPTIONS: &[(&str, Access)] = &[
    ("Audit/ListAuditEvents api_client", Ignored),
    ("Audit/ListAuditEvents store", Ignored),
    ("Couriers/AssignTasks moves.expected_courier", Ignored),
    ("Deliveries/AssertDelivery delivery.retail_price", Violation),
    ("Deliveries/AssertDelivery store", Requires(READ_DISPATCH)),
    ("Deliveries/CancelDelivery report.on_behalf_of", Ignored),
    ("Deliveries/CreateDelivery delivery.retail_price", Violation),
    (
        "Deliveries/CreateDelivery store",
        Requires(&["dispatch", "admin"]),
    ),
    ("Deliveries/ListDeliveries store", Requires(READ_DISPATCH)),
    ("Events/GetEvent name", OwnStore),
    ("Events/ListEvents store", Requires(&["admin"])),
    ("Images/UploadImage report.on_behalf_of", DISPATCH),
    ("Incidents/ReportIncident report.on_behalf_of", DISPATCH),
    ("Notifications/ReportOutcomes outcomes.name", Ignored),
    ("PriceLists/ExplainPrice delivery.retail_price", Ignored),
    (
        "RetailPrices/CalculateRetailPrice delivery.retail_price",
        Violation,
    ),
    (
        "RetailPrices/CalculateRetailPrice store",
        Requires(READ_DISPATCH),
    ),
    ("Tasks/CompleteTask report.on_behalf_of", DISPATCH),
    ("Tasks/CompleteTasks report.on_behalf_of", Ignored),
    ("Tasks/CompleteTasks tasks", Ignored),
    ("Tasks/FailTask report.on_behalf_of", DISPATCH),
    ("Tasks/ListTasks courier", Ignored),
    ("Tasks/ReopenTask report.on_behalf_of", DISPATCH),
    ("Tasks/RescheduleTask report.on_behalf_of", DISPATCH),
    ("Tasks/StartTask report.on_behalf_of", DISPATCH),
    ("Tasks/UpdateTask report.on_behalf_of", Ignored),
    ("Tasks/UpdateTask task.address.name", Ignored),
    ("Tasks/UpdateTask task.courier", Ignored),
    ("Tasks/UpdateTask task.delivery", Ignored),
    ("Tasks/UpdateTask task.images", Ignored),
    ("Tasks/UpdateTask task.other_task", Ignored),
    ("Tasks/UpdateTask task.store", Ignored),
    ("Tasks/WatchTasks list.courier", Ignored),
    ("Tasks/WatchTasks list.store", Ignored),
    (
        "TimeSlots/ListTimeSlotChoices store",
        Requires(READ_DISPATCH),
    ),
    ("Webhooks/GetWebhook name", ReadByPlatform),
    ("Webhooks/GetWebhookNotification name", ReadByPlatform),
    ("Webhooks/ListWebhookNotifications webhook", ReadByPlatform),
    ("Webhooks/ListWebhooks store", Requires(READ_PLATFORM)),
];

/// The text fields that name no resource with an owner, whichever message has them.
const OTHER_TEXTS: &str = "
    accept_language address_country address_locality address_text after api_key api_secret
    before changed_by closed_with comments contact_name country_code courier_display_name created_from created_until currency_code
    day definition description detail display_name dropoff_from dropoff_until etag event
    external_reference failure_reason field file_name key key_id lease_token list_day notes page_token paths place_name postal_code reason resource
    response_body rpc scopes states store_display_name street_address tags telephone text time_slot time_zone
    tls_version token type url value zone
";

/// The references that name nothing if they are empty.
pub(super) const OPTIONAL: &[&str] = &[
    "ApiClients/CreateApiClient courier",
    "ApiClients/CreateApiClient store",
    "ApiClients/ListApiClients store",
    "Couriers/AssignTasks courier",
    "Deliveries/AssertDelivery store",
    "Deliveries/CancelDelivery report.on_behalf_of",
    "Deliveries/CreateDelivery store",
    "Deliveries/ListDeliveries store",
    "Events/ListEvents store",
    "Images/UploadImage report.on_behalf_of",
    "Incidents/ListIncidents task",
    "Incidents/ReportIncident report.on_behalf_of",
    "PriceLists/ExplainPrice name",
    "RetailPrices/CalculateRetailPrice store",
    "Tasks/CompleteTask report.on_behalf_of",
    "Tasks/CompleteTasks report.on_behalf_of",
    "Tasks/FailTask report.on_behalf_of",
    "Tasks/ReopenTask report.on_behalf_of",
    "Tasks/RescheduleTask report.on_behalf_of",
    "Tasks/StartTask report.on_behalf_of",
    "Tasks/ListTasks store",
    "TimeSlots/ListTimeSlotChoices name",
    "TimeSlots/ListTimeSlotChoices store",
    "Webhooks/ListWebhooks store",
];

/// What an RPC checks before it looks up what a field names: other fields, with these texts or those of `Existing`.
pub(super) const CHECKED_FIRST: &[(&str, &[(&str, &str)])] = &[
    (
        "Addresses/SearchAddresses store",
        &[("text", "44 Rue de Rivoli, 75004 Paris")],
    ),
    ("Couriers/AssignTasks courier", &[("moves.task", TASK)]),
    (
        "Couriers/AssignTasks moves.expected_courier",
        &[("moves.task", TASK)],
    ),
    (
        "Couriers/SetCourierLists lists.courier",
        &[("day", "2020-04-02"), ("lists.etag", EMPTY_ETAG)],
    ),
    (
        "Couriers/SetCourierLists lists.tasks",
        &[
            ("day", "2020-04-02"),
            ("lists.courier", COURIER),
            ("lists.etag", EMPTY_ETAG),
        ],
    ),
    (
        "Images/UploadImage report.on_behalf_of",
        &[("parent", TASK)],
    ),
    (
        "Incidents/ReportIncident report.on_behalf_of",
        &[("task", TASK)],
    ),
    ("Tasks/CompleteTask report.on_behalf_of", &[("name", TASK)]),
    ("Tasks/FailTask report.on_behalf_of", &[("name", TASK)]),
    ("Tasks/ReopenTask report.on_behalf_of", &[("name", TASK)]),
    (
        "Tasks/RescheduleTask report.on_behalf_of",
        &[("name", TASK)],
    ),
    ("Tasks/StartTask report.on_behalf_of", &[("name", TASK)]),
];

#[test]
fn every_text_field_of_a_request_is_listed() {
    let contract = Contract::read();
    let (mut references, mut others) = (BTreeSet::new(), BTreeSet::new());
    for rpc in contract.rpcs() {
        for path in contract.text_fields(rpc) {
            let name = path.rsplit('.').next().unwrap();
            if OTHER_TEXTS.split_whitespace().any(|other| other == name) {
                others.insert(name.to_owned());
            } else {
                references.insert(format!("{rpc} {path}"));
            }
        }
    }

    let listed: Vec<_> = REFERENCES.iter().map(|(field, _)| *field).collect();
    assert_eq!(references.into_iter().collect::<Vec<_>>(), listed);
    for (field, _) in EXCEPTIONS {
        assert!(listed.contains(field), "{field}");
    }
    let listed: Vec<_> = OTHER_TEXTS.split_whitespace().collect();
    assert_eq!(others.into_iter().collect::<Vec<_>>(), listed);
}
