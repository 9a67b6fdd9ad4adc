//! `delivery prices`: price lists and their explanation.

use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;
use process::number;
use proto::{
    ApplyPriceListRequest, CheckPriceListRequest, ExplainPriceRequest, GetPriceListRequest,
    ListPriceListsRequest, Price, PriceExplanation, PriceList, RuleOutcome,
    iri::{self, Collection},
};
use rest_gateway::{Currency, ViolationCollector, read_delivery_draft};
use serde_json::{Value, json};

use crate::cli::{
    access::CoreCommand,
    definition::{self, Apply, Check, StoreFlag},
    deliveries,
    errors::{definition_error, payload_error},
    id,
    output::{self, View, enum_name, non_empty},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Apply a definition as the store's price list
    #[command(after_help = PRICE_LIST_HELP)]
    Apply(Apply),
    /// Check a definition without applying it
    #[command(after_help = PRICE_LIST_HELP)]
    Check(Check),
    /// Show the store's price list
    Show {
        #[command(flatten)]
        store: StoreFlag,
        /// Version; by default the current one
        #[arg(long, value_name = "NUMBER", value_parser = number::at_least(1_u32, 3))]
        version: Option<u32>,
    },
    /// List the versions of the store's price list, newest first
    History(StoreFlag),
    /// Calculate the price of a delivery, with the result of every rule; or say why a delivery has its price, or none
    Explain {
        /// Store
        #[arg(long, value_name = "ID", value_parser = id::parser(Collection::Stores))]
        #[arg(required_unless_present = "delivery")]
        store: Option<String>,
        /// Delivery file, JSON as in POST /api/deliveries
        #[arg(required_unless_present = "delivery")]
        payload: Option<PathBuf>,
        /// IRI (/api/deliveries/<id>), ID, its first 8 characters or more, or external reference of an existing delivery,
        /// whose price is explained by the price list with which it was created
        #[arg(long, value_name = "DELIVERY", conflicts_with_all = ["store", "payload"])]
        delivery: Option<String>,
    },
}

const PRICE_LIST_HELP: &str = "\
A price list is TOML: currency, tax = { name, rate }, strategy (\"first\" or \"sum\"), quote_expiry,
[packages], and the rules in order: [[rule]] with name, when, price and optionally for = \"task\".

price is one of
  499                       minor units, tax included
  { step = \"distance\", amount = 450, every = 2500, above = 2000 }
                            per started step of distance, duration, weight or volume
  { per_package = \"XL\", amount = 1240, from = 2, then = 420 }
  { percent = 11500 }       of the sum so far, in hundredths of a percent; 10000 has no effect

when is a condition in CEL, such as: distance <= 3000 && dropoff.weekday != \"Su\"
  distance                  metres
  duration                  seconds
  weight                    grams of both tasks; without a weight, rules that use it do not match
  volume                    of all packages, by the volumes in [packages]
  packages                  counts by type: count(packages, \"XL\") > 2, \"XL\" in packages
  pickup, dropoff           address, after, before, weekday (\"Mo\" to \"Su\"), type
  task                      the same, in rules with for = \"task\", which apply to each task
  dropoff.address           street_address, postal_code, locality, country, latitude, longitude
  time_slot                 whether a time slot was chosen
  tags                      \"cold\" in tags
  store                     the store's name
  in_zone(dropoff.address, \"NAME\")              zones: see delivery zones apply
  hours_until(dropoff), slot_length(dropoff)      hours
  count, size, ceil, floor, duration(\"1h\"), timestamp(\"2026-01-01T00:00:00Z\")
  text.contains(\"a\"), startsWith, endsWith; dropoff.before.getHours(), getMinutes()
  + - * /   == != < <= > >=   && || !   in   ?:   (no macros)

At most 500 rules, and 4096 bytes per condition.";

impl CoreCommand<Command> {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let existing = match &self.command {
            Command::Explain {
                delivery: Some(text),
                ..
            } => {
                let core = self.access.connect("dispatch:read").await?;
                Some(deliveries::find(&core, text).await?)
            }
            _ => None,
        };
        let core = self.access.connect("admin").await?;
        let json = self.access.json;

        match self.command {
            Command::Apply(Apply { file, store }) => {
                let message = ApplyPriceListRequest {
                    store,
                    definition: definition::read(&file)?,
                    idempotency: None,
                };
                let explain = |status: &_| definition_error(&file, status);
                let applied = core.write_explained(message, explain).await?;
                definition::warn(&file, &applied.warnings);
                print(json, applied)
            }
            Command::Check(Check { file }) => {
                let definition = definition::read(&file)?;
                let request = CheckPriceListRequest { definition };
                let explain = |status: &_| definition_error(&file, status);
                let checked = core.call_explained(request, explain).await?;
                definition::print_valid(json, &file, &checked.warnings)
            }
            Command::Show { store, version } => {
                let store = store.store;
                let request = GetPriceListRequest { store, version };
                print(json, core.call(request).await?)
            }
            Command::History(StoreFlag { store }) => {
                let request = ListPriceListsRequest { store };
                let listed = core.call(request).await?;
                output::many(json, listed.price_lists.iter().map(view))
            }
            Command::Explain { store, payload, .. } => {
                if let Some(delivery) = existing {
                    let request = ExplainPriceRequest {
                        name: delivery.name,
                        ..ExplainPriceRequest::default()
                    };
                    return output::one(json, explanation_of_existing(&core.call(request).await?));
                }
                let payload = payload.context("a delivery file is required")?;
                let body = std::fs::read(&payload)
                    .with_context(|| format!("cannot read {}", payload.display()))?;
                let mut collector = ViolationCollector::default();
                let delivery = read_delivery_draft(&body, &mut collector);
                let request = ExplainPriceRequest {
                    store: store.context("a store is required")?,
                    delivery: Some(delivery),
                    violations: collector.to_proto(),
                    name: String::new(),
                };
                let explain = |status: &_| payload_error(&collector, status);
                let explained = core.call_explained(request, explain).await?;
                output::one(json, explanation_view(&explained))
            }
        }
    }
}

/// A version of a price list, without its definition.
fn view(price_list: &PriceList) -> View {
    let applied_at = output::instant(price_list.create_time, "UTC");
    View::default()
        .field("version", price_list.version)
        .named("created_at", "applied", applied_at)
}

fn print(json: bool, price_list: PriceList) -> anyhow::Result<()> {
    let metadata = view(&price_list)
        .json("store", id::of(&price_list.store))
        .json("warnings", price_list.warnings);
    definition::print_applied(json, &price_list.definition, metadata)
}

/// The printed form of an explanation: the rules in their order, and the price. Distances are in metres, durations in seconds.
fn explanation_view(explained: &PriceExplanation) -> View {
    let currency = &*explained.currency_code;
    let rule = |rule: &RuleOutcome| {
        View::default()
            .field("rule", &*rule.rule)
            .json("matched", rule.matched)
            .text("matched", if rule.matched { "yes" } else { "no" })
            .json("amount", rule.amount)
            .text("amount", decimal(rule.amount, currency))
            .field("reason", &*rule.reason)
    };
    let rules = explained.calculation.iter().map(rule).collect();
    let price = explained.price.as_ref();
    let (distance, duration) = (explained.distance_meters, explained.duration_seconds);
    let source = enum_name(
        explained.distance_source().as_str_name(),
        "DISTANCE_SOURCE_",
    );
    View::default()
        .list("calculation", rules)
        .json("price", price.map(price_json))
        .text("price", price_text(price, currency))
        .json("currency", currency)
        .json("distance", distance)
        .text("distance", format!("{distance} m ({source})"))
        .json("duration", duration)
        .text("duration", format!("{duration} s"))
        .json("distance_source", source)
}

/// The printed form of why an existing delivery has its price, or none.
fn explanation_of_existing(explained: &PriceExplanation) -> View {
    let calculated = explained.calculated_price.as_ref();
    let quote = non_empty(&*explained.retail_price);
    let view = explanation_view(explained)
        .named(
            "price_list_version",
            "price list",
            explained.price_list_version,
        )
        .json("quote", quote.as_deref().map(iri::of))
        .json("calculated_price", calculated.map(price_json));
    let because = match quote {
        Some(_) => "a quote set the price",
        None if explained.price.as_ref() == calculated => return view,
        None => "the tasks or the zones have changed since",
    };
    view.text(
        "calculated",
        price_text(calculated, &explained.currency_code),
    )
    .text("note", because)
}

fn price_json(price: &Price) -> Value {
    json!({ "amount": gross(price), "net": price.net_amount, "tax": price.tax_amount })
}

fn price_text(price: Option<&Price>, currency: &str) -> String {
    let Some(price) = price else {
        return "none".to_owned();
    };
    let tax = decimal(price.tax_amount, currency);
    let amount = decimal(gross(price), currency);
    format!("{amount} {currency}, of which {tax} tax")
}

fn gross(price: &Price) -> i64 {
    price.net_amount.saturating_add(price.tax_amount)
}

/// Formats an amount of minor units: 499 is 4.99 EUR, 499 JPY and 0.499 KWD.
fn decimal(amount: i64, currency: &str) -> String {
    let exponent = Currency::from_code(currency)
        .and_then(Currency::exponent)
        .unwrap_or(0);
    let digits = usize::from(exponent);
    let sign = if amount < 0 { "-" } else { "" };
    let padded = format!("{:0width$}", amount.unsigned_abs(), width = digits + 1);
    let (whole, fraction) = padded.split_at(padded.len() - digits);
    if digits == 0 {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_has_its_currencys_decimals() {
        for (amount, currency, expected) in [
            (499, "EUR", "4.99"),
            (5, "EUR", "0.05"),
            (-5, "EUR", "-0.05"),
            (0, "EUR", "0.00"),
            (499, "JPY", "499"),
            (499, "KWD", "0.499"),
            (i64::MIN, "EUR", "-92233720368547758.08"),
        ] {
            assert_eq!(decimal(amount, currency), expected);
        }
    }
}
