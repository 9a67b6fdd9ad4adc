//! Deliveries and what is in them.

use super::{
    ID, NAME,
    prices::{PRICE, PROMISE},
};
use crate::vocabulary::{
    Class, Field,
    Iri::{Own, Schema},
    Named,
    Range::{Decimal, Instant, Integer, Json, Object, Text, Url},
};

pub(in crate::vocabulary) static DELIVERY: Class = Class {
    name: "Delivery",
    iri: Schema("ParcelDelivery"),
    named: Named::Iri,
    about: "A parcel's way, from its pickup to its dropoff.",
    fields: &[
        ID,
        Field::new("pickup", Object(&TASK))
            .writeable()
            .about("Where and when the parcel is fetched; at the default address if absent."),
        Field::new("dropoff", Object(&TASK))
            .writeable()
            .required()
            .about("Where and when the parcel is brought."),
        Field::new("distance", Integer).about("Metres."),
        Field::new("duration", Integer).about("Seconds."),
        Field::new("trackingUrl", Url)
            .schema()
            .about("A page that shows where the parcel is."),
        Field::new("price", Object(&PRICE)).about("What it costs, if the store has prices."),
        PROMISE.write_only(),
        Field::new("cancelledAt", Instant),
        Field::new("externalReference", Text)
            .writeable()
            .about("What the store calls it, such as an order's number; unique in the store."),
    ],
};

pub(in crate::vocabulary) static TASK: Class = Class {
    name: "Task",
    iri: Own("Task"),
    named: Named::Term,
    about: "One of the two stops of a delivery.",
    fields: &[
        ID,
        Field::new("type", Text).about("`PICKUP` or `DROPOFF`."),
        Field::new("status", Text).about("`TODO` or `DONE`."),
        Field::new("address", Object(&PLACE))
            .schema()
            .writeable()
            .required()
            .about("Where; a text or an object in requests."),
        Field::new("after", Instant).writeable(),
        Field::new("before", Instant)
            .writeable()
            .about("The latest time; also in words, such as `tomorrow 13:00`, in requests."),
        Field::new("timeSlot", Text)
            .means(Own("Task/timeSlot"))
            .write_only()
            .about("A time slot's `value`, or a date and a range of times; instead of `before`."),
        Field::new("doneAfter", Instant)
            .writeable()
            .about("The old name of `after`."),
        Field::new("doneBefore", Instant)
            .writeable()
            .about("The old name of `before`."),
        Field::new("comments", Text).writeable(),
        Field::new("weight", Integer).writeable().about("Grams."),
        Field::new("packages", Object(&PACKAGE)).set().writeable(),
        Field::new("tags", Text).set().writeable(),
        Field::new("metadata", Json)
            .writeable()
            .about("What the client wants to find here again: texts under keys of its own."),
        Field::new("createdAt", Instant).means(Schema("dateCreated")),
        Field::new("updatedAt", Instant).means(Schema("dateModified")),
        Field::new("cancelledAt", Instant),
    ],
};

pub(in crate::vocabulary) static PLACE: Class = Class {
    name: "Address",
    iri: Schema("Place"),
    named: Named::Iri,
    about: "Where a courier goes, and whom to ask for.",
    fields: &[
        Field::new("geo", Object(&GEO_COORDINATES))
            .schema()
            .writeable(),
        Field::new("streetAddress", Text)
            .schema()
            .writeable()
            .required()
            .about("The whole postal address, in one text."),
        Field::new("latLng", Decimal)
            .list()
            .write_only()
            .about("Latitude, then longitude: the location, which is then not looked up."),
        Field::new("telephone", Text)
            .schema()
            .writeable()
            .about("International format (E.164)."),
        NAME.writeable(),
        Field::new("contactName", Text).writeable(),
        Field::new("description", Text)
            .schema()
            .writeable()
            .about("For the courier, such as an access note."),
        Field::new("postalCode", Text).schema().writeable(),
        Field::new("addressLocality", Text).schema().writeable(),
        Field::new("addressCountry", Text).schema().writeable(),
    ],
};

pub(in crate::vocabulary) static GEO_COORDINATES: Class = Class {
    name: "GeoCoordinates",
    iri: Schema("GeoCoordinates"),
    named: Named::Term,
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
    about: "Packages of one type.",
    fields: &[
        Field::new("type", Text).writeable().required(),
        Field::new("quantity", Integer).writeable().required(),
    ],
};
