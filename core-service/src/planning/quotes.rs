//! Quotes: retail prices encrypted into their own resource names, and accepted when a delivery is
//! created.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use domain::{
    delivery::{Delivery, DistanceSource, Route},
    id::{DeliveryId, StoreId},
    money::Price,
    quote::{DeliveryFingerprint, Quote, QuotedField},
    store,
    task::TaskKind,
    violation::Violations,
};
use jiff::Timestamp;
use prost::Message as _;
use proto::iri::Collection;
use uuid::Uuid;

use super::planner::Planner;
use crate::{error::Error, messages, secrets::secret_box::Purpose};

/// Limit of the matched rules that a name contains.
const MAX_RULES: usize = 10;

#[derive(Clone, PartialEq, prost::Message)]
struct QuotePayload {
    /// UUID, by which the quote is used only once.
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    /// Without `name`.
    #[prost(message, optional, tag = "2")]
    retail_price: Option<proto::RetailPrice>,
    /// Microseconds since 1970.
    #[prost(int64, tag = "3")]
    calculated_at: i64,
    #[prost(bytes = "vec", tag = "4")]
    fingerprint: Vec<u8>,
}

/// What the quote that a draft names is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuoteUse {
    /// Its price is charged, and its terms bind.
    Charged,
    /// The price is calculated again, even if the quote has expired. One that is not the store's is a
    /// violation.
    Replaced,
}

/// Why the quote that a draft names cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnusableQuote {
    Expired,
    /// Altered, of another store, or not a quote; clients must not be able to tell which.
    Unknown,
}

struct DecryptedQuote {
    quote: Quote,
    retail_price: proto::RetailPrice,
    is_expired: bool,
}

impl Planner {
    /// Sets the name of a retail price: the price itself, encrypted for its store. The name has to
    /// fit into a URL, so it contains only the matched rules of the calculation.
    pub(crate) fn issue_quote(
        &self,
        delivery: &Delivery,
        mut retail_price: proto::RetailPrice,
    ) -> proto::RetailPrice {
        let mut encoded = retail_price.clone();
        encoded.calculation.retain(|outcome| outcome.matched);
        encoded.calculation.truncate(MAX_RULES);
        let payload = QuotePayload {
            id: Uuid::now_v7().as_bytes().to_vec(),
            retail_price: Some(encoded),
            calculated_at: delivery.created_at.as_microsecond(),
            fingerprint: DeliveryFingerprint::of(delivery).to_bytes(),
        };
        let encrypted = self.secret_box.encrypt(
            Purpose::RetailPrice,
            delivery.store_id.0.as_bytes(),
            &payload.encode_to_vec(),
        );
        retail_price.name = Collection::RetailPrices.name(BASE64_URL_SAFE_NO_PAD.encode(encrypted));
        retail_price
    }

    /// None if the quote is altered, of another store, or expired.
    pub(crate) fn read_quote(&self, store_id: StoreId, name: &str) -> Option<proto::RetailPrice> {
        self.decrypt_quote(store_id, name)
            .filter(|decrypted| !decrypted.is_expired)
            .map(|decrypted| decrypted.retail_price)
    }

    /// Looks up the quote that a draft names. None if the price is replaced.
    pub(crate) fn look_up_quote(
        &self,
        store_id: StoreId,
        name: &str,
        quote_use: QuoteUse,
    ) -> Result<Option<Quote>, UnusableQuote> {
        let decrypted = self
            .decrypt_quote(store_id, name)
            .ok_or(UnusableQuote::Unknown)?;
        match quote_use {
            QuoteUse::Replaced => Ok(None),
            QuoteUse::Charged if decrypted.is_expired => Err(UnusableQuote::Expired),
            QuoteUse::Charged => Ok(Some(decrypted.quote)),
        }
    }

    fn decrypt_quote(&self, store_id: StoreId, name: &str) -> Option<DecryptedQuote> {
        let token = Collection::RetailPrices.last_segment(name)?;
        let encrypted = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
        let plaintext = self
            .secret_box
            .decrypt(Purpose::RetailPrice, store_id.0.as_bytes(), &encrypted)
            .ok()?;
        let payload = QuotePayload::decode(plaintext.as_slice()).ok()?;
        let retail_price = proto::RetailPrice {
            name: name.to_owned(),
            ..payload.retail_price?
        };
        let expires_at = messages::instant(retail_price.expire_time.as_ref()?)?;
        let price = retail_price.price.as_ref()?;
        let quote = Quote {
            id: Uuid::from_slice(&payload.id).ok()?,
            name: name.to_owned(),
            price: Price {
                net: price.net_amount,
                tax: price.tax_amount,
                currency: store::parse_currency(&price.currency_code).ok()?,
            },
            route: Route {
                distance_meters: retail_price.distance_meters,
                duration_seconds: retail_price.duration_seconds,
                source: read_distance_source(retail_price.distance_source())?,
            },
            calculated_at: Timestamp::from_microsecond(payload.calculated_at).ok()?,
            fingerprint: DeliveryFingerprint::from_bytes(&payload.fingerprint)?,
        };
        Some(DecryptedQuote {
            quote,
            retail_price,
            is_expired: self.clock.now() >= expires_at,
        })
    }
}

/// None if the source is not specified.
fn read_distance_source(source: proto::DistanceSource) -> Option<DistanceSource> {
    match source {
        proto::DistanceSource::StraightLine => Some(DistanceSource::StraightLine),
        proto::DistanceSource::Osrm => Some(DistanceSource::Osrm),
        proto::DistanceSource::Unspecified => None,
    }
}

const FIELD: &str = "retail_price";
const PRICE_EXPIRED: &str = "PRICE_EXPIRED";
const EXPIRED: &str = "the retail price has expired; calculate it again";

impl UnusableQuote {
    pub(crate) fn add_violation(self, violations: &mut Violations) {
        match self {
            Self::Expired => violations.add(FIELD, PRICE_EXPIRED, EXPIRED),
            Self::Unknown => violations.add(
                FIELD,
                "UNKNOWN_PRICE",
                "is not a retail price of this store: send the @id in the response of POST /api/retail_prices/calculate",
            ),
        }
    }
}

impl From<UnusableQuote> for Error {
    fn from(unusable: UnusableQuote) -> Self {
        if unusable == UnusableQuote::Expired {
            return Self::Conflict(PRICE_EXPIRED, EXPIRED.to_owned());
        }
        let mut violations = Violations::new();
        unusable.add_violation(&mut violations);
        Self::Invalid(violations)
    }
}

/// Fails if a delivery differs from the quoted one, by the field names of the draft. `has_pickup_end`
/// tells whether the draft has the end of the pickup.
pub(crate) fn check_delivery(
    quote: &Quote,
    delivery: &Delivery,
    has_pickup_end: bool,
) -> Result<(), Error> {
    let fingerprint = DeliveryFingerprint::of(delivery);
    let differences = quote.fingerprint.differences(&fingerprint);
    let mut violations = Violations::new();
    for (kind, part) in &differences {
        let differs = |part| differences.contains(&(*kind, part));
        let is_implied = match part {
            // The default start of a window follows from its end.
            QuotedField::After => differs(QuotedField::Before),
            // The end of a pickup for which none is given follows from the dropoff's end and the route.
            QuotedField::Before if *kind == TaskKind::Pickup && !has_pickup_end => {
                differences.iter().any(|(kind, field)| {
                    *field == QuotedField::Address
                        || (*kind == TaskKind::Dropoff && *field == QuotedField::Before)
                })
            }
            _ => false,
        };
        if is_implied {
            continue;
        }
        let (task, has_slot) = match kind {
            TaskKind::Pickup => ("pickup", delivery.pickup.has_time_slot),
            TaskKind::Dropoff => ("dropoff", delivery.dropoff.has_time_slot),
        };
        let part = match part {
            QuotedField::Address => "address",
            QuotedField::Before if has_slot => "time_slot",
            QuotedField::Before => "before",
            QuotedField::After => "after",
            QuotedField::Weight => "weight",
            QuotedField::Packages => "packages",
            QuotedField::Tags => "tags",
        };
        violations.add(
            format!("{task}.{part}"),
            "DIFFERS",
            "differs from the delivery that the price was calculated for",
        );
    }
    if violations.is_empty() {
        Ok(())
    } else {
        Err(Error::PriceMismatch(violations))
    }
}

pub(crate) fn already_used(delivery_id: DeliveryId) -> Error {
    let delivery = proto::iri::of(&Collection::Deliveries.name(delivery_id));
    Error::Conflict(
        "PRICE_USED",
        format!("the retail price was already used for {delivery}; calculate it again"),
    )
}
