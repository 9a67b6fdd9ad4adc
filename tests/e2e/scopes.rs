//! The scope that each RPC requires. The list is checked against the proto files: an RPC missing
//! here fails the test.

mod contract;
mod references;
mod resources;
mod text_fields;

use std::{collections::BTreeMap, time::Duration};

use bytes::{Buf, BufMut};
use delivery::Credentials;
use tonic::{
    Code, Request, Status,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    transport::Endpoint,
};
use tonic_types::StatusExt;

use self::contract::Contract;
use crate::harness::{Database, Mismatches, Platform};

/// What a call requires.
enum Requirement {
    Nothing,
    /// A token of any scope.
    Token,
    /// A token with one of these scopes.
    Scope(&'static [&'static str]),
}

use Requirement::{Nothing, Scope, Token};

/// The scopes that read what a scope covers: it, and those that include it.
const READ_DELIVERY: &[&str] = &["deliveries", "dispatch", "dispatch:read", "admin"];
const READ_DISPATCH: &[&str] = &["dispatch", "dispatch:read", "admin"];
const READ_PLATFORM: &[&str] = &["platform:read", "admin"];
const READ_STORE: &[&str] = &["deliveries", "platform:read", "admin"];
const READ_TASK: &[&str] = &[
    "tasks",
    "tasks:all",
    "dispatch",
    "dispatch:read",
    "admin",
    "courier",
];

const RPCS: &[(&str, Requirement)] = &[
    ("Addresses/ImportAddresses", Scope(&["admin"])),
    ("Addresses/SearchAddresses", Scope(&["admin"])),
    ("ApiClients/CreateApiClient", Scope(&["admin"])),
    ("ApiClients/DisableApiClient", Scope(&["admin"])),
    ("ApiClients/GetCurrentApiClient", Token),
    ("ApiClients/ListApiClients", Scope(&["admin"])),
    ("ApiClients/RotateApiClientSecret", Scope(&["admin"])),
    ("Audit/ListAuditEvents", Scope(&["admin"])),
    ("Couriers/AssignTasks", Scope(&["dispatch", "admin"])),
    ("Couriers/CreateCourier", Scope(&["dispatch", "admin"])),
    ("Couriers/GetCourier", Scope(READ_DISPATCH)),
    ("Couriers/ListCourierLists", Scope(READ_DISPATCH)),
    ("Couriers/ListCouriers", Scope(READ_DISPATCH)),
    ("Couriers/SetCourierLists", Scope(&["dispatch", "admin"])),
    ("Couriers/UpdateCourier", Scope(&["dispatch", "admin"])),
    ("Deliveries/AssertDelivery", Scope(&["deliveries"])),
    (
        "Deliveries/CancelDelivery",
        Scope(&["deliveries", "dispatch", "admin"]),
    ),
    ("Deliveries/CreateDelivery", Scope(&["deliveries"])),
    ("Deliveries/GetDelivery", Scope(READ_DELIVERY)),
    ("Deliveries/ListDeliveries", Scope(READ_DELIVERY)),
    ("Deliveries/SearchDeliveries", Scope(READ_DISPATCH)),
    ("Events/GetEvent", Token),
    ("Events/ListEvents", Token),
    ("Events/WatchEvents", Scope(&["tasks:all", "admin"])),
    (
        "Images/GetImage",
        Scope(&[
            "tasks",
            "deliveries",
            "tasks:all",
            "dispatch",
            "dispatch:read",
            "admin",
            "courier",
        ]),
    ),
    (
        "Images/UploadImage",
        Scope(&["dispatch", "admin", "courier"]),
    ),
    ("Incidents/CloseIncident", Scope(&["dispatch", "admin"])),
    (
        "Incidents/ListIncidents",
        Scope(&["tasks", "dispatch", "dispatch:read", "admin", "courier"]),
    ),
    (
        "Incidents/ReportIncident",
        Scope(&["dispatch", "admin", "courier"]),
    ),
    ("MasterKeys/ReencryptSecrets", Scope(&["admin"])),
    ("Notifications/Receive", Scope(&["notifications"])),
    ("Notifications/ReportOutcomes", Scope(&["notifications"])),
    ("PersonalData/EraseDeliveries", Scope(&["admin"])),
    ("PriceLists/ApplyPriceList", Scope(&["admin"])),
    ("PriceLists/CheckPriceList", Scope(&["admin"])),
    ("PriceLists/ExplainPrice", Scope(&["admin"])),
    ("PriceLists/GetPriceList", Scope(&["admin"])),
    ("PriceLists/ListPriceLists", Scope(&["admin"])),
    ("RetailPrices/CalculateRetailPrice", Scope(&["deliveries"])),
    ("RetailPrices/GetRetailPrice", Scope(&["deliveries"])),
    ("SigningKeys/ListSigningKeys", Scope(&["admin"])),
    ("SigningKeys/RevokeSigningKeys", Scope(&["admin"])),
    ("SigningKeys/RotateSigningKey", Scope(&["admin"])),
    ("Stores/CreateStore", Scope(&["admin"])),
    ("Stores/DisableStore", Scope(&["admin"])),
    ("Stores/EnableStore", Scope(&["admin"])),
    ("Stores/GetStore", Scope(READ_STORE)),
    ("Stores/ListStores", Scope(READ_PLATFORM)),
    ("Stores/UpdateStore", Scope(&["admin"])),
    (
        "Tasks/CompleteTask",
        Scope(&["tasks:all", "dispatch", "admin", "courier"]),
    ),
    (
        "Tasks/CompleteTasks",
        Scope(&["dispatch", "admin", "courier"]),
    ),
    ("Tasks/FailTask", Scope(&["dispatch", "admin", "courier"])),
    ("Tasks/GetTask", Scope(READ_TASK)),
    ("Tasks/ListTaskEvents", Scope(READ_TASK)),
    (
        "Tasks/ListTasks",
        Scope(&["tasks:all", "dispatch", "dispatch:read", "admin", "courier"]),
    ),
    ("Tasks/ReopenTask", Scope(&["dispatch", "admin", "courier"])),
    ("Tasks/RescheduleTask", Scope(&["dispatch", "admin"])),
    ("Tasks/StartTask", Scope(&["dispatch", "admin", "courier"])),
    ("Tasks/UpdateTask", Scope(&["dispatch", "admin"])),
    (
        "Tasks/WatchTasks",
        Scope(&["tasks:all", "dispatch", "dispatch:read", "admin"]),
    ),
    ("TimeSlots/ApplyTimeSlot", Scope(&["admin"])),
    ("TimeSlots/CheckTimeSlot", Scope(&["admin"])),
    ("TimeSlots/GetDefaultTimeSlot", Scope(READ_STORE)),
    ("TimeSlots/GetTimeSlot", Scope(&["deliveries"])),
    ("TimeSlots/ListTimeSlotChoices", Scope(&["deliveries"])),
    ("Tokens/IssueToken", Nothing),
    ("Tokens/ListPublicKeys", Nothing),
    ("Tracking/GetTracking", Nothing),
    ("Tracking/GetTrackingLogo", Nothing),
    ("Tracking/RevokeTracking", Scope(&["dispatch", "admin"])),
    ("Webhooks/ConfirmWebhookSecret", Token),
    ("Webhooks/CreateWebhook", Token),
    ("Webhooks/DeleteWebhook", Token),
    ("Webhooks/DisableWebhook", Token),
    ("Webhooks/EnableWebhook", Token),
    ("Webhooks/GetWebhook", Token),
    ("Webhooks/GetWebhookNotification", Token),
    ("Webhooks/ListWebhookNotifications", Token),
    ("Webhooks/ListWebhooks", Token),
    ("Webhooks/RecoverWebhook", Token),
    ("Webhooks/ResendWebhookNotification", Token),
    ("Webhooks/RotateWebhookSecret", Token),
    ("Webhooks/TestWebhook", Token),
    ("Zones/ApplyZones", Scope(&["admin"])),
    ("Zones/CheckZones", Scope(&["admin"])),
    ("Zones/GetZones", Scope(&["admin"])),
];

const SCOPES: [&str; 9] = [
    "deliveries",
    "tasks",
    "tasks:all",
    "dispatch",
    "dispatch:read",
    "notifications",
    "platform:read",
    "admin",
    "courier",
];

/// The scopes of a store's client, and those of the platform's own programs. A courier's client has `courier` alone.
const STORE_SCOPES: &[&str] = SCOPES.split_at(2).0;
const INTERNAL_SCOPES: &[&str] = SCOPES.split_at(2).1.split_at(6).0;

/// Timeout for a response, an error or the first message of a stream.
const TIMEOUT: Duration = Duration::from_secs(30);

#[test]
fn every_rpc_of_the_contract_is_listed() {
    let listed: Vec<_> = RPCS.iter().map(|(rpc, _)| *rpc).collect();

    assert_eq!(listed, Contract::read().rpcs());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_rpc_requires_a_token_with_its_scope() {
    let platform = Platform::start(Database::sqlite()).await;
    let operator = platform.operator().await;
    let shop = operator.create_client(&platform.store, STORE_SCOPES).await;
    let tokens = tokens(&platform, &shop).await;
    let mut mismatches = Mismatches::default();

    for (rpc, required) in RPCS {
        for (case, token, expected) in [
            ("without a token", None, "TOKEN_MISSING"),
            ("with a forged token", Some("a.b.c"), "TOKEN_INVALID"),
        ] {
            let response = call(&platform, rpc, Vec::new(), token).await;
            let case = format!("{rpc} {case}");
            match required {
                Nothing => {
                    mismatches.check(&case, !is_rejected(&response), "the RPC requires no token");
                }
                Token | Scope(_) => mismatches.check_eq(
                    &case,
                    rejection(&response),
                    Some((Code::Unauthenticated, expected.to_owned())),
                ),
            }
        }
        for (scope, token) in &tokens {
            let response = call(&platform, rpc, Vec::new(), Some(token)).await;
            let case = format!("{rpc} with {scope}");
            match required {
                Scope(scopes) if !scopes.contains(scope) => {
                    let expected = (Code::PermissionDenied, "INSUFFICIENT_SCOPE".to_owned());
                    mismatches.check_eq(&case, rejection(&response), Some(expected));
                    let named = response.as_ref().err().and_then(named_scope);
                    let is_named = named.is_some_and(|named| scopes.contains(&named.as_str()));
                    mismatches.check(&case, is_named, "the required scope is not named");
                }
                Nothing | Token | Scope(_) => {
                    mismatches.check(&case, !is_rejected(&response), format!("{response:?}"));
                }
            }
        }
    }

    mismatches.assert_none();
    platform.stop().await;
}

/// The names of all RPCs, without their services.
pub(crate) fn rpcs() -> impl Iterator<Item = &'static str> {
    RPCS.iter()
        .filter_map(|(rpc, _)| Some(rpc.split_once('/')?.1))
}

fn requirement(rpc: &str) -> &'static Requirement {
    let (_, requirement) = RPCS.iter().find(|(listed, _)| *listed == rpc).unwrap();
    requirement
}

/// A token for each scope: of a store's client, or of a program of the platform.
async fn tokens(platform: &Platform, shop: &Credentials) -> BTreeMap<&'static str, String> {
    let operator = platform.operator().await;
    let program = operator.create_client("", INTERNAL_SCOPES).await;
    let courier = operator.create_courier("Ada").await;
    let courier = operator.create_courier_client(&courier).await;
    let mut tokens = BTreeMap::new();
    for scope in SCOPES {
        let credentials = if STORE_SCOPES.contains(&scope) {
            shop
        } else if scope == "courier" {
            &courier
        } else {
            &program
        };
        let client = platform.client_for(credentials, &[scope]).await;
        tokens.insert(scope, client.token().to_owned());
    }
    tokens
}

/// Calls an RPC with an encoded message. An empty message is valid for every message type.
async fn call(
    platform: &Platform,
    rpc: &str,
    message: Vec<u8>,
    token: Option<&str>,
) -> Result<(), Status> {
    let endpoint = Endpoint::from_shared(platform.core_url.clone()).unwrap();
    let mut grpc = Grpc::new(endpoint.connect().await.unwrap());
    grpc.ready().await.unwrap();
    let mut request = Request::new(futures_util::stream::iter([message]));
    if let Some(token) = token {
        let value = format!("Bearer {token}").parse().unwrap();
        request.metadata_mut().insert("authorization", value);
    }
    let path = format!("/delivery.v1.{rpc}").parse().unwrap();
    let response = grpc.streaming(request, path, EncodedMessages);
    let response = tokio::time::timeout(TIMEOUT, response).await.unwrap();
    response.map(|_| ())
}

/// Sends encoded messages of any type, and ignores the content of responses.
struct EncodedMessages;

impl Codec for EncodedMessages {
    type Encode = Vec<u8>;
    type Decode = ();
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for EncodedMessages {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, message: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&message);
        Ok(())
    }
}

impl Decoder for EncodedMessages {
    type Item = ();
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<()>, Status> {
        buffer.advance(buffer.remaining());
        Ok(Some(()))
    }
}

/// The code and reason of an error.
fn rejection(response: &Result<(), Status>) -> Option<(Code, String)> {
    let status = response.as_ref().err()?;
    let reason = status.get_details_error_info()?.reason;
    Some((status.code(), reason))
}

fn is_rejected(response: &Result<(), Status>) -> bool {
    // IssueToken requires no token, but rejects the credentials of an empty message. A program of
    // the platform has no store whose resources it could access.
    rejection(response).is_some_and(|(code, reason)| {
        matches!(code, Code::Unauthenticated | Code::PermissionDenied)
            && !matches!(reason.as_str(), "INVALID_CLIENT" | "NO_STORE")
    })
}

fn named_scope(status: &Status) -> Option<String> {
    let mut info = status.get_details_error_info()?;
    info.metadata.remove("scope")
}
