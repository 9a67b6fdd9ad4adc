//! The client, its shop, and the platform they are on.

use super::{Needs, On, Operation, READ, Returns};
use crate::vocabulary::classes::{
    api::SETTINGS,
    shop::{API_APP, STORE},
};

const SUBJECT: &str = "The shop";

pub(super) static ALL: &[Operation] = &[
    Operation {
        on: On::Path(&API_APP),
        path: "/api/me",
        id: "getMe",
        title: "Reads the client itself",
        subject: SUBJECT,
        needs: Needs::Token,
        returns: Returns::Resource(&API_APP),
        ..READ
    },
    Operation {
        on: On::Resource(&STORE),
        path: "/api/stores/{id}",
        id: "getStore",
        title: "Reads the client's store",
        subject: SUBJECT,
        needs: Needs::Scope("deliveries"),
        returns: Returns::Resource(&STORE),
        ..READ
    },
    Operation {
        on: On::Resource(&SETTINGS),
        path: "/api/settings",
        id: "getSettings",
        title: "Reads what the platform is to all its shops",
        subject: SUBJECT,
        returns: Returns::Resource(&SETTINGS),
        ..READ
    },
];
