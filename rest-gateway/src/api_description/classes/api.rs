//! The entrypoint, the settings, errors and collections.

use super::{
    deliveries::DELIVERY,
    prices::CALCULATION,
    webhooks::{EVENT, NOTIFICATION, WEBHOOK},
};
use crate::api_description::{
    Class, Field,
    Iri::{Api, Hydra},
    Range::{
        AnyOf, Boolean, Collection, Enum, Integer, Link, Object, Text, VariableRepresentation,
    },
    TypeName, enumerations,
};

pub(crate) static ENTRYPOINT: Class = Class {
    name: "Entrypoint",
    description: "The entrypoint of the API: the collections that can be listed.",
    fields: &[
        Field::new("delivery", Collection(&DELIVERY))
            .with_iri(Api("Entrypoint/delivery"))
            .description("The deliveries of the client's store."),
        Field::new("event", Collection(&EVENT))
            .with_iri(Api("Entrypoint/event"))
            .description("The events of the client's store."),
        Field::new("webhook", Collection(&WEBHOOK))
            .with_iri(Api("Entrypoint/webhook"))
            .description("The client's webhooks."),
    ],
    ..Class::RESOURCE
};

pub(crate) static SETTINGS: Class = Class {
    name: "Settings",
    description: "The platform's settings.",
    fields: &[
        Field::new("brand_name", Text).description("The platform's name."),
        Field::new("country", Text).description("The country code (ISO 3166-1 alpha-2)."),
        Field::new("locale", Text).description("The language of labels (BCP 47)."),
        Field::new("timezone", Text).description("A name in the IANA time zone database."),
        Field::new("currency_code", Text).description("The currency code (ISO 4217)."),
        Field::new("latlng", Text)
            .description("The centre of the platform's maps: latitude, comma, longitude."),
    ],
    ..Class::RESOURCE
};

pub(crate) static ERROR: Class = Class {
    name: "Error",
    iri: Some(Hydra("Error")),
    type_name: TypeName::Iri,
    description: "The failure of a request.",
    fields: &error_fields(CALCULATION.optional()),
    ..Class::EMBEDDED
};

pub(crate) static CONSTRAINT_VIOLATION_LIST: Class = Class {
    name: "ConstraintViolationList",
    type_name: TypeName::Term,
    description: "Every violation in a request.",
    fields: &error_fields(
        Field::new("violations", Object(&CONSTRAINT_VIOLATION))
            .list()
            .description("Everything that is invalid in the request."),
    ),
    ..Class::EMBEDDED
};

/// The members of every error, and one that only this class has.
const fn error_fields(specific: Field) -> [Field; 11] {
    [
        Field::new("hydra:title", Text).description("Always `An error occurred`."),
        Field::new("hydra:description", Text).description("The same as `detail`."),
        Field::new("type", Link(None))
            .with_iri(Api("Error/type"))
            .description("The page that explains the code."),
        Field::new("title", Text).description("For people: the kind of error."),
        Field::new("status", Integer)
            .with_iri(Hydra("statusCode"))
            .description("The HTTP status."),
        Field::new("detail", Text).description("For people: what happened, and what to do."),
        Field::new("code", Enum(&enumerations::ERROR_CODE)),
        Field::new("retryable", Boolean).description("Whether the same request may succeed later."),
        Field::new("requestId", Text).description("The same as the header `X-Request-Id`."),
        Field::new("existing", Link(None))
            .optional()
            .description("The conflicting resource."),
        specific,
    ]
}

pub(crate) static CONSTRAINT_VIOLATION: Class = Class {
    name: "ConstraintViolation",
    description: "A violation in a request.",
    fields: &[
        Field::new("propertyPath", Text)
            .description("The invalid part of the request, such as `dropoff.before`."),
        Field::new("message", Text).description("For people: what is wrong, and what is valid."),
        Field::new("code", Enum(&enumerations::VIOLATION_CODE)),
    ],
    ..Class::EMBEDDED
};

pub(crate) static COLLECTION: Class = Class {
    name: "Collection",
    iri: Some(Hydra("Collection")),
    type_name: TypeName::Iri,
    description: "A page of resources.",
    fields: &[
        Field::new(
            "hydra:member",
            AnyOf(&[&DELIVERY, &WEBHOOK, &EVENT, &NOTIFICATION]),
        )
        .description("The resources on this page.")
        .set(),
        Field::new("hydra:totalItems", Integer)
            .description("The number of resources; only in a list with one page.")
            .optional(),
        Field::new("hydra:view", Object(&COLLECTION_VIEW)),
        Field::new("hydra:search", Object(&IRI_TEMPLATE)).optional(),
        Field::new("firstNumber", Integer).optional().description(
            "In events: the number of the oldest stored event, or of the next one \
                if none is stored.",
        ),
        Field::new("lastNumber", Integer)
            .optional()
            .description("In events: the number of the newest event; 0 before the first."),
    ],
    ..Class::RESOURCE
};

pub(crate) static COLLECTION_VIEW: Class = Class {
    name: "PartialCollectionView",
    iri: Some(Hydra("PartialCollectionView")),
    type_name: TypeName::Iri,
    description: "Links to the other pages.",
    fields: &[
        Field::new("hydra:first", Link(None))
            .description("The first page.")
            .optional(),
        Field::new("hydra:previous", Link(None))
            .description("The previous page; absent on the first.")
            .optional(),
        Field::new("hydra:next", Link(None))
            .description("The next page; absent on the last.")
            .optional(),
        Field::new("hydra:last", Link(None))
            .description("The last page; never sent.")
            .optional(),
    ],
    ..Class::RESOURCE
};

pub(crate) static IRI_TEMPLATE: Class = Class {
    name: "IriTemplate",
    iri: Some(Hydra("IriTemplate")),
    type_name: TypeName::Iri,
    description: "The filters of a list.",
    fields: &[
        Field::new("hydra:template", Text)
            .description("The list's IRI with its filters, each as in `hydra:mapping`."),
        Field::new("hydra:variableRepresentation", VariableRepresentation)
            .description("How values are written: as they are."),
        Field::new("hydra:mapping", Object(&IRI_TEMPLATE_MAPPING))
            .description("The filters.")
            .set(),
    ],
    ..Class::EMBEDDED
};

pub(crate) static IRI_TEMPLATE_MAPPING: Class = Class {
    name: "IriTemplateMapping",
    iri: Some(Hydra("IriTemplateMapping")),
    type_name: TypeName::Term,
    description: "A filter of a list.",
    fields: &[
        Field::new("variable", Text)
            .with_iri(Hydra("variable"))
            .description("The name of the query parameter."),
        Field::new("property", Text)
            .with_iri(Hydra("property"))
            .description("The member that it filters by."),
        Field::new("required", Boolean)
            .description("Always false.")
            .with_iri(Hydra("required")),
    ],
    ..Class::EMBEDDED
};
