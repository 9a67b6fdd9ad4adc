//! Promised prices: sealed into their own name, opened again, and claimed by an order.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use domain::{
    delivery::{DeliveryPlan, Route},
    id::{DeliveryId, StoreId},
    money::Price,
    retail_price::{Basis, Part, Promise},
    store::{self, Store},
    task::TaskKind,
    violation::Violations,
};
use jiff::Timestamp;
use prost::Message as _;
use proto::iri::Collection;
use uuid::Uuid;

use super::{Core, messages, planning::Planned};

use crate::{error::Error, vault::Purpose};

/// How many rules that counted a price's name carries at most.
const MOST_KEPT: usize = 10;

/// What is sealed into the name of a price.
#[derive(Clone, PartialEq, prost::Message)]
struct Sealed {
    /// A UUID; by it the price is used once.
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    /// Without its name.
    #[prost(message, optional, tag = "2")]
    retail_price: Option<proto::RetailPrice>,
    /// Microseconds since 1970.
    #[prost(int64, tag = "3")]
    calculated_at: i64,
    #[prost(bytes = "vec", tag = "4")]
    basis: Vec<u8>,
}

/// What an order says of a price it was promised.
#[derive(Debug)]
pub(super) enum Claim {
    None,
    Good(Box<Promise>),
    Expired,
    /// Altered, another store's, or no price at all: which, is not said.
    Unknown,
}

/// A price and what it was promised for.
struct Opened {
    promise: Promise,
    retail_price: proto::RetailPrice,
    is_expired: bool,
}

impl Core {
    /// Gives a price the name that carries the price itself, readable by its store alone. Of the
    /// calculation it keeps what counted: a name has to fit into a URL, whatever the list's
    /// length.
    pub(super) fn promise(
        &self,
        store: &Store,
        planned: &Planned,
        mut retail_price: proto::RetailPrice,
    ) -> proto::RetailPrice {
        let mut kept = retail_price.clone();
        kept.calculation.retain(|outcome| outcome.matched);
        kept.calculation.truncate(MOST_KEPT);
        let sealed = Sealed {
            id: Uuid::now_v7().as_bytes().to_vec(),
            retail_price: Some(kept),
            calculated_at: planned.now.timestamp().as_microsecond(),
            basis: Basis::of(&planned.plan).to_bytes(),
        };
        let sealed = self.vault.seal(
            Purpose::RetailPrice,
            store.id.0.as_bytes(),
            &sealed.encode_to_vec(),
        );
        retail_price.name = Collection::RetailPrices.name(BASE64_URL_SAFE_NO_PAD.encode(sealed));
        retail_price
    }

    /// None if it is altered, another store's, or has expired.
    pub(super) fn read_promise(&self, store_id: StoreId, name: &str) -> Option<proto::RetailPrice> {
        self.open(store_id, name)
            .filter(|opened| !opened.is_expired)
            .map(|opened| opened.retail_price)
    }

    /// What an order claims by the name of a price.
    pub(super) fn read_claim(&self, store_id: StoreId, name: Option<&str>) -> Claim {
        let Some(name) = name else {
            return Claim::None;
        };
        match self.open(store_id, name) {
            Some(opened) if opened.is_expired => Claim::Expired,
            Some(opened) => Claim::Good(Box::new(opened.promise)),
            None => Claim::Unknown,
        }
    }

    fn open(&self, store_id: StoreId, name: &str) -> Option<Opened> {
        let token = Collection::RetailPrices.member(name)?;
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
        let plain = self
            .vault
            .unseal(Purpose::RetailPrice, store_id.0.as_bytes(), &sealed)
            .ok()?;
        let sealed = Sealed::decode(plain.as_slice()).ok()?;
        let retail_price = proto::RetailPrice {
            name: name.to_owned(),
            ..sealed.retail_price?
        };
        let expires_at = messages::instant(retail_price.expire_time.as_ref()?)?;
        let price = retail_price.price.as_ref()?;
        let promise = Promise {
            id: Uuid::from_slice(&sealed.id).ok()?,
            name: name.to_owned(),
            price: Price {
                net: price.net_amount,
                tax: price.tax_amount,
                currency: store::parse_currency(&price.currency_code).ok()?,
            },
            route: Route {
                meters: retail_price.distance_meters,
                seconds: retail_price.duration_seconds,
                source: messages::read_distance_source(retail_price.distance_source())?,
            },
            calculated_at: Timestamp::from_microsecond(sealed.calculated_at).ok()?,
            basis: Basis::from_bytes(&sealed.basis)?,
        };
        Some(Opened {
            promise,
            retail_price,
            is_expired: self.clock.now() >= expires_at,
        })
    }
}

const FIELD: &str = "retail_price";

impl Claim {
    /// The promise, if it can be kept.
    pub(super) fn promise(&self) -> Option<&Promise> {
        match self {
            Self::Good(promise) => Some(promise),
            Self::None | Self::Expired | Self::Unknown => None,
        }
    }

    /// Adds what is wrong with it to what is wrong with the order.
    pub(super) fn check(&self, violations: &mut Violations) {
        match self {
            Self::None | Self::Good(_) => {}
            Self::Expired => violations.add(FIELD, PRICE_EXPIRED, EXPIRED),
            Self::Unknown => violations.add(
                FIELD,
                "UNKNOWN_PRICE",
                "is no price that was promised to this store",
            ),
        }
    }

    /// Fails if it cannot be kept for a plan that is sound otherwise.
    pub(super) fn keep(self, plan: &DeliveryPlan, of: &Said) -> Result<Option<Promise>, Error> {
        match self {
            Self::None => Ok(None),
            Self::Good(promise) => {
                let violations = differences(&promise.basis, plan, of);
                if violations.is_empty() {
                    Ok(Some(*promise))
                } else {
                    Err(Error::PriceMismatch(violations))
                }
            }
            Self::Expired => Err(Error::Conflict {
                reason: PRICE_EXPIRED,
                message: EXPIRED.to_owned(),
            }),
            Self::Unknown => {
                let mut violations = Violations::new();
                self.check(&mut violations);
                Err(Error::Invalid(violations))
            }
        }
    }
}

const PRICE_EXPIRED: &str = "PRICE_EXPIRED";
const EXPIRED: &str = "the promised price has expired; calculate it again";

/// What an order's client said of its times.
pub(super) struct Said {
    /// Whether the pickup has times of its own.
    pub(super) pickup: bool,
    pub(super) pickup_slot: bool,
    pub(super) dropoff_slot: bool,
}

/// In what an order differs from what a price was promised for, in the order's own words.
fn differences(promised: &Basis, plan: &DeliveryPlan, said: &Said) -> Violations {
    let differences = promised.differences(&Basis::of(plan));
    let mut violations = Violations::new();
    for (kind, part) in &differences {
        let is = |part| differences.contains(&(*kind, part));
        let follows = match part {
            // A window begins a set time before its end, unless somebody says otherwise …
            Part::After => is(Part::Before),
            // … and a pickup without times ends as the dropoff and the way demand.
            Part::Before if *kind == TaskKind::Pickup && !said.pickup => differences.len() > 2,
            _ => false,
        };
        if follows {
            continue;
        }
        let (task, has_slot) = match kind {
            TaskKind::Pickup => ("pickup", said.pickup_slot),
            TaskKind::Dropoff => ("dropoff", said.dropoff_slot),
        };
        let part = match part {
            Part::Address => "address",
            Part::Before if has_slot => "time_slot",
            Part::Before => "before",
            Part::After => "after",
            Part::Weight => "weight",
            Part::Packages => "packages",
            Part::Tags => "tags",
        };
        violations.add(
            format!("{task}.{part}"),
            "DIFFERS",
            "is not what the price was promised for",
        );
    }
    violations
}

/// A promise that another order was quicker with.
pub(super) fn used(delivery_id: DeliveryId) -> Error {
    let delivery = proto::iri::of(&Collection::Deliveries.name(delivery_id));
    Error::Conflict {
        reason: "PRICE_USED",
        message: format!("the promised price was used for {delivery}; calculate it again"),
    }
}
