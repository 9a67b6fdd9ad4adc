//! `delivery prices`: price lists and their explanation.

use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;
use process::number;
use proto::{
    ApplyPriceListRequest, CheckPriceListRequest, ExplainPriceRequest, GetPriceListRequest,
    ListPriceListsRequest, Price, PriceExplanation, PriceList, RuleOutcome,
};
use rest_gateway::{Currency, ViolationCollector, read_delivery_draft};
use serde_json::json;

use crate::cli::{
    access::CoreCommand,
    definition::{self, Apply, Check, StoreFlag},
    errors::{definition_error, payload_error},
    id,
    output::{self, View, enum_name},
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
    /// Calculate the price of a delivery, with the result of every rule
    Explain {
        #[command(flatten)]
        store: StoreFlag,
        /// Delivery file, JSON as in POST /api/deliveries
        payload: PathBuf,
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
            Command::Explain { store, payload } => {
                let body = std::fs::read(&payload)
                    .with_context(|| format!("cannot read {}", payload.display()))?;
                let mut collector = ViolationCollector::default();
                let delivery = read_delivery_draft(&body, &mut collector);
                let request = ExplainPriceRequest {
                    store: store.store,
                    delivery: Some(delivery),
                    violations: collector.to_proto(),
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
    let amount = |price: &Price| price.net_amount.saturating_add(price.tax_amount);
    let price = explained.price.as_ref();
    let price_json = price.map(|price| {
        json!({ "amount": amount(price), "net": price.net_amount, "tax": price.tax_amount })
    });
    let price_text = price.map(|price| {
        let tax = decimal(price.tax_amount, currency);
        let amount = decimal(amount(price), currency);
        format!("{amount} {currency}, of which {tax} tax")
    });
    let (distance, duration) = (explained.distance_meters, explained.duration_seconds);
    let source = enum_name(
        explained.distance_source().as_str_name(),
        "DISTANCE_SOURCE_",
    );
    View::default()
        .list("calculation", rules)
        .json("price", price_json)
        .text("price", price_text.as_deref().unwrap_or("none"))
        .json("currency", currency)
        .json("distance", distance)
        .text("distance", format!("{distance} m ({source})"))
        .json("duration", duration)
        .text("duration", format!("{duration} s"))
        .json("distance_source", source)
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
