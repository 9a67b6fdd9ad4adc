//! The table of every class whose objects answers contain, and of every field they have.

use super::{
    Class, Field,
    Iri::{Hydra, Own, Schema},
    Named,
    Range::{
        AnyOf, Boolean, Collection, DayOfWeek, Decimal, Instant, Integer, Json, Link, Object, Text,
        Url,
    },
};

/// Every class.
pub(super) static ALL: &[&Class] = &[
    &ENTRYPOINT,
    &DELIVERY,
    &TASK,
    &PLACE,
    &GEO_COORDINATES,
    &PACKAGE,
    &PRICE,
    &TAX,
    &RETAIL_PRICE,
    &RULE_OUTCOME,
    &TIME_SLOT_CHOICES,
    &TIME_SLOT_CHOICE,
    &TIME_SLOT,
    &OPENING_HOURS,
    &WEBHOOK,
    &API_APP,
    &STORE,
    &SETTINGS,
    &ERROR,
    &CONSTRAINT_VIOLATION_LIST,
    &CONSTRAINT_VIOLATION,
    &COLLECTION,
    &COLLECTION_VIEW,
];

const ID: Field = Field::new("id", Text)
    .means(Schema("identifier"))
    .about("The last part of `@id`.");

const NAME: Field = Field::new("name", Text).schema();

pub(super) static ENTRYPOINT: Class = Class {
    name: "Entrypoint",
    iri: Own("Entrypoint"),
    named: Named::Term,
    about: "Where everything begins.",
    fields: &[
        Field::new("delivery", Collection(&DELIVERY))
            .means(Own("Entrypoint/delivery"))
            .about("The deliveries of the client's store."),
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
        Field::new("store", Collection(&STORE))
            .means(Own("Entrypoint/store"))
            .about("The client's store."),
    ],
};

pub(super) static DELIVERY: Class = Class {
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
        Field::new("cancelledAt", Instant),
    ],
};

pub(super) static TASK: Class = Class {
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

static PLACE: Class = Class {
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

static GEO_COORDINATES: Class = Class {
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

static PACKAGE: Class = Class {
    name: "Package",
    iri: Own("Package"),
    named: Named::Not,
    about: "Packages of one type.",
    fields: &[
        Field::new("type", Text).writeable().required(),
        Field::new("quantity", Integer).writeable().required(),
    ],
};

static PRICE: Class = Class {
    name: "Price",
    iri: Own("Price"),
    named: Named::Not,
    about: "An amount of money and the tax on it.",
    fields: PRICE_FIELDS,
};

const PRICE_FIELDS: &[Field] = &[AMOUNT, CURRENCY, TAX_OF_IT];
const AMOUNT: Field = Field::new("amount", Integer).about("In the currency's minor unit.");
const CURRENCY: Field = Field::new("currency", Text).schema().about("ISO 4217.");
const TAX_OF_IT: Field = Field::new("tax", Object(&TAX));

static TAX: Class = Class {
    name: "Tax",
    iri: Own("Tax"),
    named: Named::Not,
    about: "The tax part of a price.",
    fields: &[
        AMOUNT,
        Field::new("included", Boolean).about("Whether the price's amount includes it."),
    ],
};

pub(super) static RETAIL_PRICE: Class = Class {
    name: "RetailPrice",
    iri: Own("RetailPrice"),
    named: Named::Term,
    about: "What a delivery would cost.",
    fields: &[
        AMOUNT,
        CURRENCY,
        TAX_OF_IT,
        Field::new("expiresAt", Instant).means(Schema("expires")),
        Field::new("distance", Integer).about("Metres."),
        Field::new("duration", Integer).about("Seconds."),
        CALCULATION,
    ],
};

const CALCULATION: Field = Field::new("calculation", Object(&RULE_OUTCOME))
    .list()
    .about("How each rule of the price list fared.");

static RULE_OUTCOME: Class = Class {
    name: "RuleOutcome",
    iri: Own("RuleOutcome"),
    named: Named::Not,
    about: "How a rule of a price list fared.",
    fields: &[
        Field::new("rule", Text).about("The rule's name."),
        Field::new("matched", Boolean),
        Field::new("reason", Text),
        AMOUNT,
    ],
};

pub(super) static TIME_SLOT_CHOICES: Class = Class {
    name: "TimeSlotChoices",
    iri: Own("TimeSlotChoices"),
    named: Named::Term,
    about: "The time slots that are offered now.",
    fields: &[Field::new("choices", Object(&TIME_SLOT_CHOICE)).list()],
};

static TIME_SLOT_CHOICE: Class = Class {
    name: "TimeSlotChoice",
    iri: Own("TimeSlotChoice"),
    named: Named::Term,
    about: "A time slot that is offered.",
    fields: &[
        Field::new("value", Text)
            .schema()
            .about("An ISO 8601 interval in UTC: a task's `timeSlot`."),
        Field::new("label", Text).about("The interval in words, for people."),
    ],
};

pub(super) static TIME_SLOT: Class = Class {
    name: "TimeSlot",
    iri: Own("TimeSlot"),
    named: Named::Term,
    about: "When a store offers deliveries.",
    fields: &[
        ID,
        NAME,
        Field::new("interval", Text).about("How far ahead, such as `2 days`."),
        Field::new("priorNotice", Text).about("How long before a slot begins, such as `1 hour`."),
        Field::new("workingDaysOnly", Boolean),
        Field::new("openingHoursSpecification", Object(&OPENING_HOURS))
            .schema()
            .list(),
    ],
};

static OPENING_HOURS: Class = Class {
    name: "OpeningHoursSpecification",
    iri: Schema("OpeningHoursSpecification"),
    named: Named::Term,
    about: "A range of times on some days of the week.",
    fields: &[
        Field::new("opens", Text).schema(),
        Field::new("closes", Text).schema(),
        Field::new("dayOfWeek", DayOfWeek).schema().set(),
        Field::new("validFrom", Text).schema(),
        Field::new("validThrough", Text).schema(),
    ],
};

pub(super) static WEBHOOK: Class = Class {
    name: "Webhook",
    iri: Own("Webhook"),
    named: Named::Term,
    about: "Where a client is told of an event.",
    fields: &[
        ID,
        Field::new("url", Url).schema().writeable().required(),
        Field::new("event", Text)
            .writeable()
            .required()
            .about("Such as `delivery.completed`."),
        Field::new("secret", Text).about("The key of the signatures; only when it was created."),
    ],
};

pub(super) static API_APP: Class = Class {
    name: "ApiApp",
    iri: Schema("SoftwareApplication"),
    named: Named::Iri,
    about: "A program that calls the API.",
    fields: &[
        ID,
        NAME,
        Field::new("store", Link(Some(&STORE))),
        Field::new("shop", Link(None)).about("Always null."),
    ],
};

pub(super) static STORE: Class = Class {
    name: "Store",
    iri: Schema("Store"),
    named: Named::Iri,
    about: "A shop.",
    fields: &[
        ID,
        NAME,
        Field::new("enabled", Boolean),
        Field::new("address", Object(&PLACE)).schema(),
        Field::new("timeSlot", Link(Some(&TIME_SLOT))).about("The default one."),
        Field::new("timeSlots", Link(Some(&TIME_SLOT))).set(),
    ],
};

pub(super) static SETTINGS: Class = Class {
    name: "Settings",
    iri: Own("Settings"),
    named: Named::Term,
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

const FAILURE: [Field; 9] = [
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
];

static ERROR: Class = Class {
    name: "Error",
    iri: Hydra("Error"),
    named: Named::Iri,
    about: "Why a request failed.",
    fields: &{
        let [
            title,
            about,
            kind,
            short,
            status,
            detail,
            code,
            retryable,
            id,
        ] = FAILURE;
        [
            title,
            about,
            kind,
            short,
            status,
            detail,
            code,
            retryable,
            id,
            CALCULATION,
        ]
    },
};

pub(super) static CONSTRAINT_VIOLATION_LIST: Class = Class {
    name: "ConstraintViolationList",
    iri: Own("ConstraintViolationList"),
    named: Named::Term,
    about: "Every rule that a request breaks.",
    fields: &{
        let [
            title,
            about,
            kind,
            short,
            status,
            detail,
            code,
            retryable,
            id,
        ] = FAILURE;
        let violations = Field::new("violations", Object(&CONSTRAINT_VIOLATION)).list();
        [
            title, about, kind, short, status, detail, code, retryable, id, violations,
        ]
    },
};

static CONSTRAINT_VIOLATION: Class = Class {
    name: "ConstraintViolation",
    iri: Own("ConstraintViolation"),
    named: Named::Not,
    about: "A rule that a request breaks.",
    fields: &[
        Field::new("propertyPath", Text).about("Which part of the request, in its own words."),
        Field::new("message", Text),
        Field::new("code", Text),
    ],
};

pub(super) static COLLECTION: Class = Class {
    name: "Collection",
    iri: Hydra("Collection"),
    named: Named::Iri,
    about: "Resources, a page at a time.",
    fields: &[
        Field::new("hydra:member", AnyOf(&[&DELIVERY, &WEBHOOK]))
            .means(Hydra("member"))
            .set(),
        Field::new("hydra:totalItems", Integer).means(Hydra("totalItems")),
        Field::new("hydra:view", Object(&COLLECTION_VIEW)).means(Hydra("view")),
    ],
};

pub(super) static COLLECTION_VIEW: Class = Class {
    name: "PartialCollectionView",
    iri: Hydra("PartialCollectionView"),
    named: Named::Iri,
    about: "Where the other pages are.",
    fields: &[
        Field::new("hydra:first", Link(None)).means(Hydra("first")),
        Field::new("hydra:previous", Link(None)).means(Hydra("previous")),
        Field::new("hydra:next", Link(None)).means(Hydra("next")),
        Field::new("hydra:last", Link(None)).means(Hydra("last")),
    ],
};
