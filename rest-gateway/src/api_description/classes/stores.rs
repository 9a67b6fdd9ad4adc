//! Stores, their API clients and time slots.

use super::deliveries::ADDRESS;
use crate::api_description::{
    Class, Field,
    Iri::SchemaOrg,
    Range::{Boolean, DayOfWeek, Link, Object, Text},
    TypeName,
};

pub(crate) static API_APP: Class = Class {
    name: "ApiApp",
    iri: Some(SchemaOrg("SoftwareApplication")),
    type_name: TypeName::Iri,
    description: "An API client.",
    fields: &[
        Field::ID,
        Field::NAME,
        Field::new("store", Link(Some(&STORE)))
            .nullable()
            .description("Null for the platform's own programs."),
        Field::new("shop", Link(None))
            .nullable()
            .description("Always null."),
    ],
    ..Class::RESOURCE
};

pub(crate) static STORE: Class = Class {
    name: "Store",
    iri: Some(SchemaOrg("Store")),
    type_name: TypeName::Iri,
    description: "A store.",
    fields: &[
        Field::ID,
        Field::NAME,
        Field::new("enabled", Boolean).description("Always true."),
        Field::new("address", Object(&ADDRESS))
            .schema_org()
            .nullable(),
        Field::new("timeSlot", Link(Some(&TIME_SLOT)))
            .nullable()
            .description("The default time slot."),
        Field::new("timeSlots", Link(Some(&TIME_SLOT)))
            .description("All time slots of the store.")
            .set(),
    ],
    ..Class::RESOURCE
};

pub(crate) static TIME_SLOT: Class = Class {
    name: "TimeSlot",
    description: "The times at which a store offers deliveries.",
    fields: &[
        Field::ID,
        Field::NAME,
        Field::new("interval", Text)
            .description("How far ahead choices are offered, such as `2 days`."),
        Field::new("priorNotice", Text).nullable().description(
            "The minimum time between the order and the start of a choice, such as \
                `1 hour`.",
        ),
        Field::new("workingDaysOnly", Boolean)
            .description("Whether choices are on working days only."),
        Field::new("openingHoursSpecification", Object(&OPENING_HOURS))
            .description("The opening hours, then the closed dates.")
            .schema_org()
            .list(),
    ],
    ..Class::RESOURCE
};

pub(crate) static OPENING_HOURS: Class = Class {
    name: "OpeningHoursSpecification",
    iri: Some(SchemaOrg("OpeningHoursSpecification")),
    type_name: TypeName::Term,
    description: "A time range on days of the week, or a range of closed dates.",
    fields: &[
        Field::new("opens", Text)
            .description("The start of the time range, such as `10:00`.")
            .schema_org(),
        Field::new("closes", Text)
            .description("The end of the time range, such as `11:00`.")
            .schema_org(),
        Field::new("dayOfWeek", DayOfWeek)
            .description("The days of the week; none in a row of closed dates.")
            .schema_org()
            .set(),
        Field::new("validFrom", Text)
            .schema_org()
            .nullable()
            .description("The first of the closed dates; null in a row of the regular week."),
        Field::new("validThrough", Text)
            .schema_org()
            .nullable()
            .description("The last of the closed dates; null in a row of the regular week."),
    ],
    ..Class::EMBEDDED
};

pub(crate) static TIME_SLOT_CHOICES: Class = Class {
    name: "TimeSlotChoices",
    description: "The choices a time slot offers now.",
    fields: &[Field::new("choices", Object(&TIME_SLOT_CHOICE))
        .description("The choices, earliest first.")
        .list()],
    ..Class::RESOURCE
};

pub(crate) static TIME_SLOT_CHOICE: Class = Class {
    name: "TimeSlotChoice",
    type_name: TypeName::Term,
    description: "A time interval to choose.",
    fields: &[
        Field::new("value", Text)
            .schema_org()
            .description("An ISO 8601 interval in UTC, to send as a task's `timeSlot`."),
        Field::new("label", Text).description("The interval in the response's language."),
    ],
    ..Class::EMBEDDED
};
