//! What the API itself consists of: where it begins, its settings, failures and collections.

use super::{
    deliveries::{DELIVERY, TASK},
    notifications::NOTIFICATION,
    prices::{CALCULATION, RETAIL_PRICE},
    shop::{EVENT, TIME_SLOT, WEBHOOK},
};
use crate::vocabulary::{
    Class, Field,
    Iri::{Hydra, Own},
    Named, Presence,
    Range::{AnyOf, Boolean, Collection, Integer, Link, Object, Text},
};

pub(in crate::vocabulary) static ENTRYPOINT: Class = Class {
    name: "Entrypoint",
    iri: Own("Entrypoint"),
    named: Named::Term,
    identified: Presence::Always,
    about: "Where everything begins.",
    fields: &[
        Field::new("delivery", Collection(&DELIVERY))
            .means(Own("Entrypoint/delivery"))
            .about("The deliveries of the client's store."),
        Field::new("event", Collection(&EVENT))
            .means(Own("Entrypoint/event"))
            .about("What happened in the client's store."),
        Field::new("retailPrice", Collection(&RETAIL_PRICE))
            .means(Own("Entrypoint/retailPrice"))
            .about("The prices of deliveries."),
        Field::new("task", Collection(&TASK))
            .means(Own("Entrypoint/task"))
            .about("The tasks of deliveries."),
        Field::new("timeSlot", Collection(&TIME_SLOT))
            .means(Own("Entrypoint/timeSlot"))
            .about("When deliveries are offered."),
        Field::new("webhook", Collection(&WEBHOOK))
            .means(Own("Entrypoint/webhook"))
            .about("The client's webhooks."),
    ],
};

pub(in crate::vocabulary) static SETTINGS: Class = Class {
    name: "Settings",
    iri: Own("Settings"),
    named: Named::Term,
    identified: Presence::Always,
    about: "What the platform is to all its shops.",
    fields: &[
        Field::new("brand_name", Text).about("The platform's name."),
        Field::new("country", Text).about("ISO 3166-1 alpha-2."),
        Field::new("locale", Text).about("BCP 47."),
        Field::new("timezone", Text).about("A name of the IANA time zone database."),
        Field::new("currency_code", Text).about("ISO 4217."),
        Field::new("latlng", Text).about("Where its maps begin: latitude, comma, longitude."),
    ],
};

pub(in crate::vocabulary) static ERROR: Class = Class {
    name: "Error",
    iri: Hydra("Error"),
    named: Named::Iri,
    identified: Presence::Never,
    about: "Why a request failed.",
    fields: &failure_with(CALCULATION.sometimes()),
};

pub(in crate::vocabulary) static CONSTRAINT_VIOLATION_LIST: Class = Class {
    name: "ConstraintViolationList",
    iri: Own("ConstraintViolationList"),
    named: Named::Term,
    identified: Presence::Never,
    about: "Every rule that a request breaks.",
    fields: &failure_with(Field::new("violations", Object(&CONSTRAINT_VIOLATION)).list()),
};

/// What every failure can have, and then what only some have.
const fn failure_with(last: Field) -> [Field; 11] {
    [
        Field::new("hydra:title", Text).means(Hydra("title")),
        Field::new("hydra:description", Text).means(Hydra("description")),
        Field::new("type", Link(None))
            .means(Own("Error/type"))
            .about("A page that explains the code."),
        Field::new("title", Text),
        Field::new("status", Integer)
            .means(Hydra("statusCode"))
            .about("The HTTP status."),
        Field::new("detail", Text),
        Field::new("code", Text).about("What programs tell failures apart by."),
        Field::new("retryable", Boolean).about("Whether the same request may succeed later."),
        Field::new("requestId", Text),
        Field::new("existing", Link(None))
            .sometimes()
            .about("The resource that stands in the way, if there is one."),
        last,
    ]
}

pub(in crate::vocabulary) static CONSTRAINT_VIOLATION: Class = Class {
    name: "ConstraintViolation",
    iri: Own("ConstraintViolation"),
    named: Named::Not,
    identified: Presence::Never,
    about: "A rule that a request breaks.",
    fields: &[
        Field::new("propertyPath", Text).about("Which part of the request, in its own words."),
        Field::new("message", Text),
        Field::new("code", Text),
    ],
};

pub(in crate::vocabulary) static COLLECTION: Class = Class {
    name: "Collection",
    iri: Hydra("Collection"),
    named: Named::Iri,
    identified: Presence::Always,
    about: "Resources, a page at a time.",
    fields: &[
        Field::new(
            "hydra:member",
            AnyOf(&[&DELIVERY, &WEBHOOK, &EVENT, &NOTIFICATION]),
        )
        .means(Hydra("member"))
        .set(),
        Field::new("hydra:totalItems", Integer)
            .means(Hydra("totalItems"))
            .sometimes(),
        Field::new("hydra:view", Object(&COLLECTION_VIEW)).means(Hydra("view")),
        Field::new("firstNumber", Integer)
            .sometimes()
            .about("Of events: the number of the oldest that is kept, or that the next will have."),
        Field::new("lastNumber", Integer)
            .sometimes()
            .about("Of events: the number of the newest; 0 before the first."),
    ],
};

pub(in crate::vocabulary) static COLLECTION_VIEW: Class = Class {
    name: "PartialCollectionView",
    iri: Hydra("PartialCollectionView"),
    named: Named::Iri,
    identified: Presence::Always,
    about: "Where the other pages are.",
    fields: &[
        Field::new("hydra:first", Link(None))
            .means(Hydra("first"))
            .sometimes(),
        Field::new("hydra:previous", Link(None))
            .means(Hydra("previous"))
            .sometimes(),
        Field::new("hydra:next", Link(None))
            .means(Hydra("next"))
            .sometimes(),
        Field::new("hydra:last", Link(None))
            .means(Hydra("last"))
            .sometimes(),
    ],
};
