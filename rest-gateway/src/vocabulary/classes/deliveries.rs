//! Deliveries and what is in them.

use super::{
    ID, NAME,
    prices::{DISTANCE_SOURCE, PRICE, PROMISE},
};
use crate::vocabulary::{
    Class, Field,
    Iri::{Own, Schema},
    Named, Presence,
    Range::{Decimal, Instant, Integer, Json, Object, Text, Url},
};

/// Any text that the grammar of times knows.
const TIME: &str = r#"{"type": ["string", "null"], "maxLength": 128}"#;

pub(in crate::vocabulary) static DELIVERY: Class = Class {
    name: "Delivery",
    iri: Schema("ParcelDelivery"),
    named: Named::Iri,
    identified: Presence::Sometimes,
    about: "A parcel's way, from its pickup to its dropoff.",
    fields: &[
        ID.sometimes(),
        Field::new("pickup", Object(&TASK))
            .writeable()
            .sent_as(
                r##"{"oneOf": [{"$ref": "#/components/schemas/TaskDraft"}, {"type": "null"}]}"##,
            )
            .about("Where and when the parcel is fetched; at the default address if absent."),
        Field::new("dropoff", Object(&TASK))
            .writeable()
            .required()
            .sent_as(
                r##"{
                    "$ref": "#/components/schemas/TaskDraft",
                    "required": ["address"],
                    "anyOf": [
                        {"required": ["before"]},
                        {"required": ["timeSlot"]},
                        {"required": ["doneBefore"]}
                    ]
                }"##,
            )
            .about("Where and when the parcel is brought."),
        Field::new("distance", Integer).about("Metres."),
        Field::new("duration", Integer).about("Seconds."),
        DISTANCE_SOURCE,
        Field::new("trackingUrl", Url)
            .schema()
            .nullable()
            .about("A page that shows where the parcel is."),
        Field::new("price", Object(&PRICE))
            .nullable()
            .about("What it costs, if the store has prices."),
        PROMISE.write_only(),
        Field::new("cancelledAt", Instant).nullable(),
        Field::new("externalReference", Text)
            .writeable()
            .nullable()
            .about("What the store calls it, such as an order's number; unique in the store."),
    ],
};

pub(in crate::vocabulary) static TASK: Class = Class {
    name: "Task",
    iri: Own("Task"),
    named: Named::Term,
    identified: Presence::Sometimes,
    about: "One of the two stops of a delivery.",
    fields: &[
        ID.sometimes(),
        Field::new("type", Text)
            .one_of(&["PICKUP", "DROPOFF"])
            .about("`PICKUP` or `DROPOFF`."),
        Field::new("status", Text)
            .one_of(&["TODO", "DONE"])
            .about("`TODO` or `DONE`."),
        Field::new("address", Object(&PLACE))
            .schema()
            .writeable()
            .sent_as(
                r##"{
                    "oneOf": [
                        {"type": "string", "minLength": 1, "maxLength": 500},
                        {"$ref": "#/components/schemas/AddressDraft"},
                        {"type": "null"}
                    ]
                }"##,
            )
            .about("Where; a text or an object in requests. A dropoff must have one."),
        Field::new("after", Instant)
            .writeable()
            .sent_as(TIME)
            .about("The earliest time; also in words in requests."),
        Field::new("before", Instant)
            .writeable()
            .sent_as(TIME)
            .about("The latest time; also in words, such as `tomorrow 13:00`, in requests."),
        Field::new("timeSlot", Text)
            .means(Own("Task/timeSlot"))
            .write_only()
            .sent_as(r#"{"type": ["string", "null"]}"#)
            .about("A time slot's `value`, or a date and a range of times; instead of `before`."),
        Field::new("doneAfter", Instant)
            .writeable()
            .sent_as(TIME)
            .about("The old name of `after`."),
        Field::new("doneBefore", Instant)
            .writeable()
            .sent_as(TIME)
            .about("The old name of `before`."),
        Field::new("comments", Text)
            .writeable()
            .sent_as(r#"{"type": ["string", "null"], "maxLength": 5000}"#)
            .about("For the courier; empty if there are none."),
        Field::new("weight", Integer)
            .writeable()
            .nullable()
            .sent_as(r#"{"type": ["integer", "null"], "minimum": 0, "maximum": 100000000}"#)
            .about("Grams."),
        Field::new("packages", Object(&PACKAGE))
            .set()
            .writeable()
            .sent_as(
                r##"{
                    "type": ["array", "null"],
                    "items": {"$ref": "#/components/schemas/PackageDraft"},
                    "maxItems": 100
                }"##,
            )
            .about("What is to be carried, by type."),
        Field::new("tags", Text)
            .set()
            .writeable()
            .sent_as(
                r#"{
                    "oneOf": [
                        {"type": "array", "items": {"type": "string", "maxLength": 64}, "maxItems": 50},
                        {"type": "string"},
                        {"type": "null"}
                    ]
                }"#,
            )
            .about("Words of the shop's; also in one text, separated by spaces, in requests."),
        Field::new("metadata", Json)
            .writeable()
            .sent_as(
                r#"{
                    "type": ["object", "null"],
                    "additionalProperties": {"type": "string"},
                    "maxProperties": 50
                }"#,
            )
            .about("What the client wants to find here again: texts under keys of its own."),
        Field::new("createdAt", Instant)
            .means(Schema("dateCreated"))
            .nullable(),
        Field::new("updatedAt", Instant)
            .means(Schema("dateModified"))
            .nullable(),
        Field::new("cancelledAt", Instant).nullable(),
    ],
};

pub(in crate::vocabulary) static PLACE: Class = Class {
    name: "Address",
    iri: Schema("Place"),
    named: Named::Iri,
    identified: Presence::Sometimes,
    about: "Where a courier goes, and whom to ask for.",
    fields: &[
        Field::new("geo", Object(&GEO_COORDINATES))
            .schema()
            .writeable()
            .about("The point; `latLng` goes first in requests."),
        Field::new("streetAddress", Text)
            .schema()
            .writeable()
            .about("The whole postal address, in one text."),
        Field::new("latLng", Decimal)
            .list()
            .write_only()
            .sent_as(
                r#"{
                    "type": ["array", "null"],
                    "prefixItems": [
                        {"type": "number", "minimum": -90, "maximum": 90},
                        {"type": "number", "minimum": -180, "maximum": 180}
                    ],
                    "items": false,
                    "minItems": 2
                }"#,
            )
            .about("Latitude, then longitude: the location, which is then not looked up."),
        Field::new("telephone", Text)
            .schema()
            .writeable()
            .nullable()
            .sent_as(r#"{"oneOf": [{"type": ["string", "null"]}, {"const": false}]}"#)
            .about(
                "International format (E.164); in requests also as it is dialled in the country.",
            ),
        NAME.writeable().nullable(),
        Field::new("contactName", Text)
            .writeable()
            .nullable()
            .about("Whom to ask for."),
        Field::new("description", Text)
            .schema()
            .writeable()
            .nullable()
            .about("For the courier, such as an access note."),
        Field::new("postalCode", Text)
            .schema()
            .writeable()
            .nullable(),
        Field::new("addressLocality", Text)
            .schema()
            .writeable()
            .nullable()
            .about("The town."),
        Field::new("addressCountry", Text)
            .schema()
            .writeable()
            .nullable()
            .about("ISO 3166-1 alpha-2."),
    ],
};

pub(in crate::vocabulary) static GEO_COORDINATES: Class = Class {
    name: "GeoCoordinates",
    iri: Schema("GeoCoordinates"),
    named: Named::Term,
    identified: Presence::Never,
    about: "A point (WGS 84).",
    fields: &[
        Field::new("latitude", Decimal)
            .schema()
            .writeable()
            .required(),
        Field::new("longitude", Decimal)
            .schema()
            .writeable()
            .required(),
    ],
};

pub(in crate::vocabulary) static PACKAGE: Class = Class {
    name: "Package",
    iri: Own("Package"),
    named: Named::Not,
    identified: Presence::Never,
    about: "Packages of one type.",
    fields: &[
        Field::new("type", Text)
            .writeable()
            .required()
            .sent_as(r#"{"type": "string", "minLength": 1, "maxLength": 64}"#)
            .about("A type of the store's price list, such as `XL`."),
        Field::new("quantity", Integer)
            .writeable()
            .required()
            .sent_as(r#"{"type": "integer", "minimum": 1, "maximum": 10000}"#),
    ],
};
