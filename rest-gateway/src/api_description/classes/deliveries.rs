//! Deliveries, tasks, addresses and packages.

use super::prices::{DISTANCE_SOURCE, PRICE, QUOTE};
use crate::api_description::{
    Class, Field,
    Iri::{Api, SchemaOrg},
    Presence,
    Range::{Decimal, Enum, Instant, Integer, Json, Object, Text, Url},
    TypeName, enumerations,
};

/// The JSON Schema of a time in a request.
const TIME_SCHEMA: &str = r#"{"type": ["string", "null"], "maxLength": 128}"#;

/// The control characters that texts must not contain, for a character class of a JSON Schema.
macro_rules! control_characters {
    () => {
        r"\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f"
    };
}

/// The JSON Schema of a text in a request: its type, and its maximum length in characters.
macro_rules! text_schema {
    ($type:literal, $max:literal) => {
        concat!(
            r#"{"type": "#,
            $type,
            r#", "maxLength": "#,
            $max,
            r#", "pattern": "^[^"#,
            control_characters!(),
            r#"]*$"}"#
        )
    };
    ($max:literal) => {
        text_schema!(r#"["string", "null"]"#, $max)
    };
}

pub(crate) static DELIVERY: Class = Class {
    name: "Delivery",
    iri: Some(SchemaOrg("ParcelDelivery")),
    type_name: TypeName::Iri,
    id_presence: Presence::Optional,
    description: "The transport of a parcel from its pickup to its dropoff.",
    fields: &[
        Field::ID.optional(),
        Field::new("pickup", Object(&TASK))
            .accepts(
                r##"{"anyOf": [{"$ref": "#/components/schemas/PickupDraft"}, {"type": "null"}]}"##,
            )
            .description(
                "Where and when to pick up the parcel; by default, at the store's address.",
            ),
        Field::new("dropoff", Object(&TASK))
            .required()
            .accepts(r##"{"$ref": "#/components/schemas/DropoffDraft"}"##)
            .description("Where and when to drop off the parcel."),
        Field::new("distance", Integer).description("The length of the route in metres."),
        Field::new("duration", Integer).description("The travel time in seconds."),
        DISTANCE_SOURCE,
        Field::new("trackingUrl", Url)
            .schema_org()
            .nullable()
            .description("The page for tracking the parcel."),
        Field::new("price", Object(&PRICE))
            .nullable()
            .description("The price, if the store has a price list."),
        QUOTE.write_only().accepts(
            r#"{
                "type": ["string", "null"],
                "pattern": "^(/api/)?retail_prices/[A-Za-z0-9_-]{64,}$"
            }"#,
        ),
        Field::new("cancelledAt", Instant).description("When the delivery was cancelled; null if it is not.").nullable(),
        Field::new("externalReference", Text)
            .nullable()
            .accepts(text_schema!(200))
            .description(
                "The store's own reference, such as an order number; unique in the \
                store.",
            ),
        Field::new("warnings", Object(&WARNING))
            .list()
            .optional()
            .description(
                "In the response that creates or validates the delivery: what is valid in the request, \
                but may be a mistake.",
            ),
    ],
};

pub(crate) static WARNING: Class = Class {
    name: "RequestWarning",
    description: "A part of a valid request that may be a mistake: a misspelled member, a time in the past or \
        a vague address.",
    fields: &[
        Field::new("propertyPath", Text)
            .description("The part of the request, such as `dropoff.weigth`."),
        Field::new("message", Text).description("For people: what may be wrong."),
        Field::new("code", Enum(&enumerations::WARNING_CODE)),
    ],
    ..Class::EMBEDDED
};

pub(crate) static TASK: Class = Class {
    name: "Task",
    id_presence: Presence::Optional,
    description: "One of the two stops of a delivery.",
    fields: &[
        Field::ID.optional(),
        Field::new("type", Enum(&enumerations::TASK_TYPE)),
        Field::new("status", Enum(&enumerations::TASK_STATUS)),
        Field::new("address", Object(&ADDRESS))
            .schema_org()
            .accepts(concat!(
                r#"{"anyOf": ["#,
                text_schema!(500),
                r##", {"$ref": "#/components/schemas/AddressDraft"}]}"##
            ))
            .description(
                "The address; a string or an object in requests. Required in a dropoff. A pickup \
                without `streetAddress` and location is at the default address, with the given \
                contact.",
            ),
        Field::new("after", Instant)
            .accepts(TIME_SCHEMA)
            .description("The earliest time; in requests, in the syntax of `before`."),
        Field::new("before", Instant)
            .accepts(TIME_SCHEMA)
            .description("The latest time. In requests an instant, a local time in the store's time \
                zone, or a duration from now: `2026-11-25T17:30:00+01:00`, `tomorrow 17:30`, `+2h`, \
                `+1h30`, `in 2 hours`, also in everyday phrases of English, French, German, Spanish \
                and Italian. What has two meanings is refused with the forms to write; a day named \
                twice must agree, as in `thursday 22 october 18:00`."),
        Field::new("timeSlot", Text)
            .with_iri(Api("Task/timeSlot"))
            .write_only()
            .accepts(TIME_SCHEMA)
            .description("The `value` of a time slot choice, or a date and a time range; instead \
                of `before`. A store may accept only choices, and may require one in a dropoff."),
        Field::new("doneAfter", Instant)
            .accepts(TIME_SCHEMA)
            .description("The former name of `after`."),
        Field::new("doneBefore", Instant)
            .accepts(TIME_SCHEMA)
            .description("The former name of `before`."),
        Field::new("comments", Text)
            .accepts(text_schema!(5000))
            .description("Comments for the courier; may be empty."),
        Field::new("weight", Integer)
            .nullable()
            .accepts(r#"{"type": ["integer", "null"], "minimum": 0, "maximum": 100000000}"#)
            .description("The weight in grams."),
        Field::new("packages", Object(&PACKAGE))
            .set()
            .accepts(
                r##"{
                    "type": ["array", "null"],
                    "items": {"$ref": "#/components/schemas/TaskPackageDraft"},
                    "maxItems": 100
                }"##,
            )
            .description("The packages, by type."),
        Field::new("tags", Text)
            .set()
            .accepts(concat!(
                r#"{"anyOf": [{"type": ["array", "null"], "items": "#,
                text_schema!(r#""string""#, 64),
                r#", "maxItems": 50}, {
                        "type": "string",
                        "pattern": "^\\s*(\\S{1,64}(\\s+\\S{1,64}){0,49})?\\s*$"
                    }]}"#
            ))
            .description(
                "Tags of the store; in requests, also one string of tags separated by spaces.",
            ),
        Field::new("metadata", Json)
            .accepts(concat!(
                r#"{
                        "type": ["object", "null"],
                        "maxProperties": 50,
                        "propertyNames": {
                            "maxLength": 64,
                            "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$"
                        },
                        "additionalProperties": "#,
                text_schema!(500),
                "}"
            ))
            .description("Strings under keys chosen by the client, stored unchanged."),
        Field::new("createdAt", Instant).description("When the task was created; null in a preview.")
            .with_iri(SchemaOrg("dateCreated"))
            .nullable(),
        Field::new("updatedAt", Instant).description("When the task was last changed; null in a preview.")
            .with_iri(SchemaOrg("dateModified"))
            .nullable(),
        Field::new("cancelledAt", Instant).description("When the delivery was cancelled; null if it is not.").nullable(),
    ],
    ..Class::RESOURCE
};

pub(crate) static ADDRESS: Class = Class {
    name: "Address",
    iri: Some(SchemaOrg("Place")),
    type_name: TypeName::Iri,
    id_presence: Presence::Optional,
    description: "A postal address with its location and contact. Its `@id` identifies it, but \
        cannot be read: an address is part of its task or store.",
    fields: &[
        Field::new("geo", Object(&GEO_COORDINATES))
            .schema_org()
            .writable()
            .description("The location; in requests, `latLng` takes precedence."),
        Field::new("streetAddress", Text)
            .schema_org()
            .accepts(text_schema!(500))
            .description("The complete postal address in one string."),
        Field::new("latLng", Decimal)
            .list()
            .write_only()
            .accepts(r##"{"anyOf": [{"$ref": "#/components/schemas/LatLng"}, {"type": "null"}]}"##)
            .description("The location, latitude first. An address with `latLng` is not geocoded."),
        Field::new("telephone", Text)
            .schema_org()
            .nullable()
            .accepts(
                r#"{"anyOf": [{"type": ["string", "null"], "maxLength": 64}, {"const": false}]}"#,
            )
            .description(
                "In E.164 format; in requests, also in the national format of the store's country. \
                An extension is dropped.",
            ),
        Field::NAME
            .description("The name of the place, such as a company.")
            .nullable()
            .accepts(text_schema!(200)),
        Field::new("contactName", Text)
            .nullable()
            .accepts(text_schema!(200))
            .description("The contact's name."),
        Field::new("description", Text)
            .schema_org()
            .nullable()
            .accepts(text_schema!(5000))
            .description("Directions for the courier, such as an access code."),
        Field::new("postalCode", Text)
            .description("The postcode.")
            .schema_org()
            .nullable()
            .accepts(text_schema!(200)),
        Field::new("addressLocality", Text)
            .schema_org()
            .nullable()
            .accepts(text_schema!(200))
            .description("The town or city."),
        Field::new("addressCountry", Text)
            .schema_org()
            .nullable()
            .accepts(r#"{"type": ["string", "null"], "pattern": "^\\s*([A-Za-z]{2})?\\s*$"}"#)
            .description("The country code (ISO 3166-1 alpha-2)."),
    ],
};

pub(crate) static GEO_COORDINATES: Class = Class {
    name: "GeoCoordinates",
    iri: Some(SchemaOrg("GeoCoordinates")),
    type_name: TypeName::Term,
    description: "A location (WGS 84).",
    fields: &[
        Field::new("latitude", Decimal)
            .description("Degrees north of the equator.")
            .schema_org()
            .required()
            .accepts(r#"{"type": "number", "minimum": -90, "maximum": 90}"#),
        Field::new("longitude", Decimal)
            .description("Degrees east of Greenwich.")
            .schema_org()
            .required()
            .accepts(r#"{"type": "number", "minimum": -180, "maximum": 180}"#),
    ],
    ..Class::EMBEDDED
};

pub(crate) static PACKAGE: Class = Class {
    name: "Package",
    description: "Packages of one type.",
    fields: &[
        Field::new("type", Text)
            .required()
            .accepts(concat!(
                r#"{"type": "string", "maxLength": 200, "pattern": "^[^"#,
                control_characters!(),
                r"]*[^\\s",
                control_characters!(),
                "][^",
                control_characters!(),
                r#"]*$"}"#
            ))
            .description("A type of the store's price list, such as `XL`."),
        Field::new("quantity", Integer)
            .description("The number of packages.")
            .required()
            .accepts(r#"{"type": "integer", "minimum": 1, "maximum": 10000}"#),
    ],
    ..Class::EMBEDDED
};
