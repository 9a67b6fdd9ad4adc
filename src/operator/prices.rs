//! `delivery prices`: the rules by which a store's deliveries are priced.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};
use proto::{
    ApplyPriceListRequest, CheckPriceListRequest, ExplainPriceRequest, GetPriceListRequest,
    ListPriceListsRequest, PriceList, price_lists_client::PriceListsClient,
};
use rest_gateway::Payload;
use serde::Serialize;

use crate::operator::{
    access::Access,
    definition::{self, Apply, Check, Show},
    explanation, id,
    refusal::{refused, refused_definition, refused_payload},
    reply::{self, Resource},
};

#[derive(Args, Debug)]
pub(crate) struct Prices {
    #[command(flatten)]
    access: Access,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a definition the store's price list
    Apply(Apply),
    /// Say what is wrong with a definition; change nothing
    #[command(after_help = LANGUAGE)]
    Check(Check),
    /// Show the store's price list
    Show(ShowVersion),
    /// List the versions of the store's price list, the last first
    History(Show),
    /// Say what a delivery would cost, and why; create nothing
    Explain(Explain),
}

#[derive(Args, Debug)]
struct ShowVersion {
    #[command(flatten)]
    of: Show,
    /// One of its history; the list in force if not given
    #[arg(long, value_name = "NUMBER")]
    version: Option<u32>,
}

#[derive(Args, Debug)]
struct Explain {
    #[command(flatten)]
    of: Show,
    /// The delivery, JSON as for POST /api/deliveries
    payload: PathBuf,
}

const LANGUAGE: &str = "\
A price list is TOML: currency, tax = { name, rate }, strategy (\"first\" or \"sum\"), promise,
[packages], and the rules in order: [[rule]] with name, when, price and perhaps for = \"task\".

price is one of
  499                       minor units, tax included
  { step = \"distance\", amount = 450, every = 2500, above = 2000 }
                            for each step begun of distance, duration, weight or volume
  { per_package = \"XL\", amount = 1240, from = 2, then = 420 }
  { percent = 11500 }       of the sum so far; 10000 is neutral

when is a condition in CEL, such as: distance <= 3000 && dropoff.weekday != \"Su\"
  distance                  metres
  duration                  seconds
  weight                    grams of both tasks; without one, no rule that asks for it matches
  volume                    of all packages, as [packages] says
  packages                  how many by type: count(packages, \"XL\") > 2, \"XL\" in packages
  pickup, dropoff           address, after, before, weekday (\"Mo\" to \"Su\"), type
  task                      the same, in rules with for = \"task\", which count for each task
  dropoff.address           street_address, postal_code, locality, country, latitude, longitude
  time_slot                 whether a slot was asked for
  tags                      \"cold\" in tags
  store                     the store's name
  in_zone(dropoff.address, \"NAME\")              zones: see delivery zones apply
  hours_until(dropoff), slot_length(dropoff)      hours
  count, size, ceil, floor, duration(\"1h\"), timestamp(\"2026-01-01T00:00:00Z\")
  text.contains(\"a\"), startsWith, endsWith; dropoff.before.getHours(), getMinutes()
  + - * /   == != < <= > >=   && || !   in   ?:   no macros: nothing loops

At most 500 rules, and 4096 bytes a condition.";

impl Prices {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.open("admin").await?;
        let mut price_lists = PriceListsClient::new(core.channel.clone());
        let json = self.access.json;

        match self.command {
            Command::Apply(Apply { file, store }) => {
                let request = core.request(ApplyPriceListRequest {
                    store,
                    definition: definition::read(&file)?,
                });
                let applied = price_lists.apply_price_list(request).await;
                let applied = applied
                    .map_err(|status| refused_definition(&file, &status))?
                    .into_inner();
                definition::warn(&file, &applied.warnings);
                print(json, applied)
            }
            Command::Check(Check { file }) => {
                let request = core.request(CheckPriceListRequest {
                    definition: definition::read(&file)?,
                });
                let checked = price_lists.check_price_list(request).await;
                let checked = checked.map_err(|status| refused_definition(&file, &status))?;
                definition::sound(json, &file, &checked.into_inner().warnings)
            }
            Command::Show(ShowVersion { of, version }) => {
                let store = of.store;
                let request = core.request(GetPriceListRequest { store, version });
                let found = price_lists.get_price_list(request).await;
                print(json, found.map_err(|status| refused(&status))?.into_inner())
            }
            Command::History(Show { store }) => {
                let request = core.request(ListPriceListsRequest { store });
                let listed = price_lists.list_price_lists(request).await;
                let listed = listed.map_err(|status| refused(&status))?.into_inner();
                let versions: Vec<_> = listed.price_lists.iter().map(Version::from).collect();
                reply::many(json, &versions)
            }
            Command::Explain(Explain { of, payload }) => {
                let body = std::fs::read(&payload)
                    .with_context(|| format!("cannot read {}", payload.display()))?;
                let payload = Payload::read(&body);
                let request = core.request(ExplainPriceRequest {
                    store: of.store,
                    delivery: Some(payload.delivery.clone()),
                    violations: payload.violations.clone(),
                });
                let explained = price_lists.explain_price(request).await;
                let explained = explained.map_err(|status| refused_payload(&payload, &status))?;
                explanation::print(json, explained.into_inner())
            }
        }
    }
}

/// A version of a list, without what it says.
#[derive(Serialize)]
struct Version {
    version: u32,
    created_at: Option<String>,
}

impl From<&PriceList> for Version {
    fn from(price_list: &PriceList) -> Self {
        Self {
            version: price_list.version,
            created_at: reply::instant(price_list.create_time.as_ref(), "UTC"),
        }
    }
}

impl Resource for Version {
    fn facts(&self) -> Vec<(&'static str, String)> {
        vec![
            ("version", self.version.to_string()),
            ("applied", self.created_at.clone().unwrap_or_default()),
        ]
    }
}

/// For people the definition as it was applied, for programs what is known about it as well.
fn print(json: bool, price_list: PriceList) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Stored {
        store: String,
        version: u32,
        definition: String,
        warnings: Vec<String>,
        created_at: Option<String>,
    }
    if !json {
        return reply::text(&price_list.definition);
    }
    reply::document(&Stored {
        store: id::of(&price_list.store).to_owned(),
        version: price_list.version,
        created_at: reply::instant(price_list.create_time.as_ref(), "UTC"),
        definition: price_list.definition,
        warnings: price_list.warnings,
    })
}
