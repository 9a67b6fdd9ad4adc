//! `delivery prices`: the rules by which a store's deliveries are priced.

use clap::{Args, Subcommand};
use proto::{
    ApplyPriceListRequest, CheckPriceListRequest, GetPriceListRequest, PriceList,
    price_lists_client::PriceListsClient,
};
use serde::Serialize;

use crate::operator::{
    access::Access,
    definition::{self, Apply, Check, Show},
    id,
    refusal::{refused, refused_definition},
    reply,
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
    Check(Check),
    /// Show the store's price list
    Show(Show),
}

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
            Command::Show(Show { store }) => {
                let request = core.request(GetPriceListRequest { store });
                let found = price_lists.get_price_list(request).await;
                print(json, found.map_err(|status| refused(&status))?.into_inner())
            }
        }
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
