//! What each scope may do with the resources that a request names: the caller's own, those of
//! others, and those that do not exist; and texts that are no names.

use proto::iri::Collection::{self, Notifications, RetailPrices, Webhooks};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::{
    INTERNAL_SCOPES, READ_PLATFORM, Requirement, SCOPES, STORE_SCOPES, call,
    contract::Contract,
    named_scope, rejection, requirement,
    resources::{Existing, Resources},
    text_fields::{
        Access::{Default, Ignored, OwnStore, ReadByPlatform, Requires, Violation},
        CHECKED_FIRST, EXCEPTIONS, OPTIONAL, REFERENCES,
    },
    tokens,
};
use crate::harness::{Database, Mismatches, Platform, UNKNOWN_ID};

/// The scopes that cover the resources of all stores, if the RPC requires them.
const ALL_STORES: &[&str] = &[
    "admin",
    "dispatch",
    "dispatch:read",
    "platform:read",
    "tasks:all",
];

/// Whose resource a field names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    None,
    /// The caller or its store.
    Caller,
    /// Another client of the same store: only for what clients own.
    OtherClientOfStore,
    /// Another store or its client.
    OtherStore,
}

#[derive(Debug)]
enum Expected {
    /// `PERMISSION_DENIED`, and one of these scopes is named.
    Denied(&'static [&'static str]),
    /// `PERMISSION_DENIED`, because the caller is a program of the platform.
    NoStore,
    /// As if the resource did not exist, with this code.
    Absent(Code),
    /// Like a resource that does not exist, also if that succeeds.
    Ignored,
    Allowed,
}

/// A resource of others is treated exactly like one that does not exist.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_scope_covers_its_resources_and_no_others() {
    let platform = Platform::start(Database::sqlite()).await;
    let operator = platform.operator().await;
    let other_store = operator.create_store("Another shop").await;
    let caller = operator.create_client(&platform.store, STORE_SCOPES).await;
    let other_client = operator.create_client(&platform.store, STORE_SCOPES).await;
    let client_of_other_store = operator.create_client(&other_store, STORE_SCOPES).await;
    let mut owners = Vec::new();
    for (owner, store, client) in [
        (Owner::Caller, &platform.store, &caller),
        (Owner::OtherClientOfStore, &platform.store, &other_client),
        (Owner::OtherStore, &other_store, &client_of_other_store),
    ] {
        owners.push((owner, Resources::create(&platform, store, client).await));
    }
    let existing = Existing::create(&platform).await;
    let contract = Contract::read();
    let mut mismatches = Mismatches::default();

    let mut tokens = tokens(&platform, &caller).await;
    // It has only the tasks in its lists: see the tests of couriers.
    tokens.remove("courier");
    for (scope, token) in tokens {
        for &(field, collection) in REFERENCES {
            let (rpc, _) = field.split_once(' ').unwrap();
            let send = async |name: String| {
                let request = request(&contract, &existing, field, &name);
                Reply::new(call(&platform, rpc, request, Some(&token)).await, &name)
            };
            let absent = send(collection.name(UNKNOWN_ID)).await;
            let mut replies = vec![(Owner::None, absent.clone())];
            for (owner, resources) in &owners {
                if *owner != Owner::OtherClientOfStore
                    || matches!(collection, Webhooks | Notifications)
                {
                    let name = resources.name_for(rpc, collection).await;
                    replies.push((*owner, send(name).await));
                }
            }
            for (owner, reply) in replies {
                let expected = expected(field, scope, owner);
                mismatches.check(
                    format!("{field} of {owner:?} with {scope}"),
                    reply.is(&expected, &absent),
                    format!("got {reply:?}, expected {expected:?}"),
                );
            }
        }
    }

    mismatches.assert_none();
    platform.stop().await;
}

/// With each scope that may name it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_name_is_an_invalid_argument_in_every_field_that_names_a_resource() {
    let platform = Platform::start(Database::sqlite()).await;
    let operator = platform.operator().await;
    let store = operator.create_store("Without a time slot").await;
    let caller = operator.create_client(&store, STORE_SCOPES).await;
    let mut tokens = tokens(&platform, &caller).await;
    tokens.remove("courier");
    let existing = Existing::create(&platform).await;
    let contract = Contract::read();
    let mut mismatches = Mismatches::default();

    for (scope, token) in &tokens {
        for &(field, collection) in REFERENCES {
            let (rpc, _) = field.split_once(' ').unwrap();
            let Expected::Absent(code) = expected(field, scope, Owner::None) else {
                continue;
            };
            let format = match collection {
                RetailPrices => "<token>",
                _ => "<id>, with a UUID in lower case",
            };
            for name in malformed_names(field, collection) {
                let request = request(&contract, &existing, field, &name);
                let response = call(&platform, rpc, request, Some(token)).await;

                let (reason, message) = if code == Code::InvalidArgument {
                    ("VALIDATION_FAILED", "the request is not valid".to_owned())
                } else {
                    let format = collection.name(format);
                    let message = format!("{name} does not exist: a name is {format}");
                    ("INVALID_NAME", message)
                };
                let case = format!("{field} {name:?} with {scope}");
                let expected = (Code::InvalidArgument, reason.to_owned());
                mismatches.check_eq(&case, rejection(&response), Some(expected));
                let status = response.err();
                let status = status.as_ref().map(Status::message);
                mismatches.check_eq(case, status, Some(&*message));
            }
        }
    }
    let rpc = "SigningKeys/RevokeSigningKeys";
    let request = contract.request(rpc, &[("key_id", "")]);
    let response = call(&platform, rpc, request, Some(&tokens["admin"])).await;
    let expected = (Code::InvalidArgument, "VALIDATION_FAILED".to_owned());
    mismatches.check_eq(rpc, rejection(&response), Some(expected));

    mismatches.assert_none();
    platform.stop().await;
}

/// Texts that are no names of a collection: empty, where that does not mean none, of another collection,
/// with more than a name, or with an id of another form.
fn malformed_names(field: &str, collection: Collection) -> Vec<String> {
    let name = collection.name(UNKNOWN_ID);
    let mut names = vec![
        UNKNOWN_ID.to_owned(),
        collection.name(""),
        format!("{name}/"),
        format!("/api/{name}"),
        Collection::Addresses.name(UNKNOWN_ID),
    ];
    if !OPTIONAL.contains(&field) {
        names.push(String::new());
    }
    // A price has a token of any form.
    if collection != RetailPrices {
        let upper_case = UNKNOWN_ID.to_uppercase();
        names.extend(["1", &upper_case].map(|id| collection.name(id)));
    }
    names
}

/// The request of an RPC with a reference, and what the RPC checks before it.
fn request(contract: &Contract, existing: &Existing, field: &str, name: &str) -> Vec<u8> {
    let (rpc, path) = field.split_once(' ').unwrap();
    let checked_first = CHECKED_FIRST.iter().filter(|(of, _)| *of == field);
    let checked_first = checked_first.flat_map(|(_, fields)| *fields);
    let mut fields: Vec<_> = checked_first
        .map(|(path, text)| (*path, existing.text(text)))
        .collect();
    fields.push((path, name));
    contract.request(rpc, &fields)
}

fn expected(field: &str, scope: &str, owner: Owner) -> Expected {
    let (rpc, _) = field.split_once(' ').unwrap();
    let exception = EXCEPTIONS.iter().find(|(listed, _)| *listed == field);
    let access = exception.map_or(Default, |(_, access)| *access);
    let (permitted, all_stores): (_, &[_]) = match (requirement(rpc), access) {
        (_, Requires(scopes)) => (scopes, scopes),
        (Requirement::Scope(scopes), _) => (*scopes, ALL_STORES),
        (_, ReadByPlatform) => (&SCOPES[..], READ_PLATFORM),
        (Requirement::Token | Requirement::Nothing, _) => (&SCOPES[..], &["admin"]),
    };
    if !permitted.contains(&scope) {
        return Expected::Denied(permitted);
    }
    let covers_all_stores = all_stores.contains(&scope) && access != OwnStore;
    match (access, owner) {
        (Ignored, _) => Expected::Ignored,
        _ if INTERNAL_SCOPES.contains(&scope) && !covers_all_stores => Expected::NoStore,
        (_, Owner::Caller) => Expected::Allowed,
        (Violation, _) => Expected::Absent(Code::InvalidArgument),
        (_, Owner::OtherClientOfStore | Owner::OtherStore) if covers_all_stores => {
            Expected::Allowed
        }
        _ => Expected::Absent(Code::NotFound),
    }
}

/// A response, with the name in the request replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reply {
    code: Code,
    /// The scope that is missing.
    scope: Option<String>,
    error: String,
}

impl Reply {
    fn new(response: Result<(), Status>, name: &str) -> Self {
        let Err(status) = response else {
            return Self {
                code: Code::Ok,
                scope: None,
                error: String::new(),
            };
        };
        let details = status.get_error_details();
        let error = format!("{}: {details:?}", status.message());
        Self {
            code: status.code(),
            scope: named_scope(&status),
            error: error.replace(name, "<name>"),
        }
    }

    /// `absent` is the reply to a name that does not exist.
    fn is(&self, expected: &Expected, absent: &Self) -> bool {
        let is_denied = matches!(self.code, Code::Unauthenticated | Code::PermissionDenied);
        match expected {
            Expected::Denied(scopes) => {
                let scope = self.scope.as_deref();
                self.code == Code::PermissionDenied
                    && scope.is_some_and(|scope| scopes.contains(&scope))
            }
            Expected::NoStore => {
                self.code == Code::PermissionDenied && self.scope.is_none() && self == absent
            }
            Expected::Absent(code) => self.code == *code && self == absent,
            Expected::Ignored => !is_denied && self == absent,
            Expected::Allowed => !is_denied && self.code != Code::NotFound && self != absent,
        }
    }
}
