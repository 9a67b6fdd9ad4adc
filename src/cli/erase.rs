//! `delivery erase`: erases the personal data of deliveries.

use std::collections::BTreeSet;

use clap::Args;
use proto::{
    EraseDeliveriesRequest,
    erase_deliveries_request::Selection,
    iri::{self, Collection},
};

use crate::cli::{
    access::Access,
    id,
    output::{self, View},
};

/// How many calls that find nothing there are between two lines of progress.
const CALLS_PER_LINE: usize = 100;

#[derive(Args, Debug)]
pub(crate) struct Erase {
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    selection: SelectionArgs,
    /// Only list the deliveries
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct SelectionArgs {
    /// IRI (/api/deliveries/<id>) or ID of a delivery
    #[arg(long, value_name = "ID", value_parser = id::parser(Collection::Deliveries))]
    delivery: Option<String>,
    /// Telephone number, international or of the platform's country: erases every delivery with this
    /// number in the address of a task
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    telephone: Option<String>,
}

impl Erase {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.connect("admin").await?;
        let SelectionArgs {
            delivery,
            telephone,
        } = self.selection;
        let selection = delivery
            .map(Selection::Delivery)
            .or(telephone.map(Selection::Telephone));

        let mut erased = BTreeSet::new();
        let mut page_token = String::new();
        for calls in 1.. {
            // Without an idempotency key: erasing again changes nothing.
            let request = EraseDeliveriesRequest {
                selection: selection.clone(),
                dry_run: self.dry_run,
                page_token,
            };
            let response = core.call(request).await?;
            let has_found = !response.deliveries.is_empty();
            erased.extend(response.deliveries);
            page_token = response.next_page_token;
            if page_token.is_empty() {
                break;
            }
            if has_found || calls % CALLS_PER_LINE == 0 {
                eprintln!("searching: {} deliveries found", erased.len());
            }
        }
        let row = |name: &String| View::default().field("delivery", iri::of(name));
        output::many(self.access.json, erased.iter().map(row))
    }
}
