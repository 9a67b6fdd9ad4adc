//! A shop, when it delivers, its programs, and where they are told of events.

use super::{ID, NAME, deliveries::PLACE};
use crate::vocabulary::{
    Class, Field,
    Iri::{Own, Schema},
    Named, Presence,
    Range::{Boolean, DayOfWeek, Instant, Integer, Link, Object, Text, Url},
};

pub(in crate::vocabulary) static API_APP: Class = Class {
    name: "ApiApp",
    iri: Schema("SoftwareApplication"),
    named: Named::Iri,
    identified: Presence::Always,
    about: "A program that calls the API.",
    fields: &[
        ID,
        NAME,
        Field::new("store", Link(Some(&STORE)))
            .nullable()
            .about("Null for the platform's own programs."),
        Field::new("shop", Link(None))
            .nullable()
            .about("Always null."),
    ],
};

pub(in crate::vocabulary) static STORE: Class = Class {
    name: "Store",
    iri: Schema("Store"),
    named: Named::Iri,
    identified: Presence::Always,
    about: "A shop.",
    fields: &[
        ID,
        NAME,
        Field::new("enabled", Boolean),
        Field::new("address", Object(&PLACE)).schema().nullable(),
        Field::new("timeSlot", Link(Some(&TIME_SLOT)))
            .nullable()
            .about("The default one."),
        Field::new("timeSlots", Link(Some(&TIME_SLOT))).set(),
    ],
};

pub(in crate::vocabulary) static TIME_SLOT: Class = Class {
    name: "TimeSlot",
    iri: Own("TimeSlot"),
    named: Named::Term,
    identified: Presence::Always,
    about: "When a store offers deliveries.",
    fields: &[
        ID,
        NAME,
        Field::new("interval", Text).about("How far ahead, such as `2 days`."),
        Field::new("priorNotice", Text)
            .nullable()
            .about("How long before a slot begins, such as `1 hour`."),
        Field::new("workingDaysOnly", Boolean),
        Field::new("openingHoursSpecification", Object(&OPENING_HOURS))
            .schema()
            .list(),
    ],
};

pub(in crate::vocabulary) static OPENING_HOURS: Class = Class {
    name: "OpeningHoursSpecification",
    iri: Schema("OpeningHoursSpecification"),
    named: Named::Term,
    identified: Presence::Never,
    about: "A range of times on some days of the week.",
    fields: &[
        Field::new("opens", Text).schema(),
        Field::new("closes", Text).schema(),
        Field::new("dayOfWeek", DayOfWeek).schema().set(),
        Field::new("validFrom", Text)
            .schema()
            .nullable()
            .about("The first of the dates on which it is closed."),
        Field::new("validThrough", Text)
            .schema()
            .nullable()
            .about("The last of them."),
    ],
};

pub(in crate::vocabulary) static TIME_SLOT_CHOICES: Class = Class {
    name: "TimeSlotChoices",
    iri: Own("TimeSlotChoices"),
    named: Named::Term,
    identified: Presence::Always,
    about: "The time slots that are offered now.",
    fields: &[Field::new("choices", Object(&TIME_SLOT_CHOICE)).list()],
};

pub(in crate::vocabulary) static TIME_SLOT_CHOICE: Class = Class {
    name: "TimeSlotChoice",
    iri: Own("TimeSlotChoice"),
    named: Named::Term,
    identified: Presence::Never,
    about: "A time slot that is offered.",
    fields: &[
        Field::new("value", Text)
            .schema()
            .about("An ISO 8601 interval in UTC: a task's `timeSlot`."),
        Field::new("label", Text).about("The interval in words, for people."),
    ],
};

pub(in crate::vocabulary) static WEBHOOK: Class = Class {
    name: "Webhook",
    iri: Own("Webhook"),
    named: Named::Term,
    identified: Presence::Always,
    about: "Where a client is told of an event.",
    fields: &[
        ID,
        Field::new("url", Url).schema().writeable().required(),
        Field::new("event", Text)
            .writeable()
            .required()
            .sent_as(
                r#"{
                    "type": "string",
                    "enum": ["delivery.completed", "delivery.picked", "delivery.cancelled"]
                }"#,
            )
            .about("Such as `delivery.completed`."),
        Field::new("secret", Text)
            .sometimes()
            .about("The key of the signatures; only when it was made."),
        Field::new("secretOverlapEndsAt", Instant)
            .nullable()
            .about("Until when the secrets before are good too; null if there are none."),
        Field::new("enabled", Boolean),
        Field::new("disabledAt", Instant).nullable(),
        Field::new("disabledReason", Text)
            .nullable()
            .about("`client`, `operator`, `gone` (it answered 410) or `failing`."),
    ],
};

pub(in crate::vocabulary) static EVENT: Class = Class {
    name: "Event",
    iri: Own("Event"),
    named: Named::Term,
    identified: Presence::Always,
    about: "Something that happened.",
    fields: &[
        ID,
        Field::new("number", Integer)
            .about("Its place among the store's events: 1, 2, 3 and so on, without gaps."),
        EVENT_NAME,
        EVENT_OBJECT,
        Field::new("createdAt", Instant).means(Schema("dateCreated")),
    ],
};

pub(super) const EVENT_NAME: Field =
    Field::new("event", Text).about("Such as `delivery.completed`.");
pub(super) const EVENT_OBJECT: Field =
    Field::new("object", Link(None)).about("What it happened to.");

pub(in crate::vocabulary) static SECRET_ROTATION: Class = Class {
    name: "SecretRotation",
    iri: Own("SecretRotation"),
    named: Named::Not,
    identified: Presence::Never,
    about: "How a webhook's secret is to be replaced.",
    fields: &[Field::new("overlap", Integer)
        .write_only()
        .sent_as(
            r#"{"type": ["integer", "null"], "minimum": 0, "maximum": 604800, "default": 86400}"#,
        )
        .about(
            "How many seconds the old secret is good beside the new one: 0 to 604800, else 86400.",
        )],
};
