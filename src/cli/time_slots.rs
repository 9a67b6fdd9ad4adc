//! `delivery time-slots`: the time slots that stores offer.

use clap::{Args, Subcommand};
use proto::{
    ApplyTimeSlotRequest, CheckTimeSlotRequest, GetDefaultTimeSlotRequest, TimeSlot, iri,
    time_slots_client::TimeSlotsClient,
};
use serde::Serialize;

use crate::cli::{
    access::Access,
    definition::{self, Apply, Check, StoreFlag},
    errors::{call_error, definition_error},
    id, output,
};

#[derive(Args, Debug)]
pub(crate) struct TimeSlots {
    #[command(flatten)]
    access: Access,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Apply a definition as the store's default time slot
    Apply(Apply),
    /// Check a definition without applying it
    #[command(after_help = TIME_SLOT_HELP)]
    Check(Check),
    /// Show the store's default time slot
    Show(StoreFlag),
}

const TIME_SLOT_HELP: &str = "\
A time slot is TOML:
  name = \"Tour\"
  opening_hours = [\"Mo-Fr 09:00-12:00\"]   OpenStreetMap's syntax; each entry is a slot
  interval = \"2 days\"                    how far ahead a slot may start

and optionally:
  prior_notice = \"1 hour\"                how long before its start a slot must be booked
  same_day_cutoff = \"11:00\"              after it, no more slots of today
  previous_day_cutoff = \"18:00\"          after it, no more slots of tomorrow
  working_days_only = true               no weekends and public holidays of the store's country
  slot_length = \"1 hour\"                 divides each entry of opening_hours
  closed = [\"2026-12-24/2026-12-28\"]     dates without slots
  capacity = 10                          deliveries per slot; implies slots = \"offered\"
  slots = \"any\"                          which times shops may send:
                                           any: every timeSlot and every before
                                           offered: as timeSlot only offered slots; every before,
                                             which no capacity limits
                                           required: only an offered slot as the dropoff's timeSlot";

impl TimeSlots {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.connect("admin").await?;
        let time_slots = || TimeSlotsClient::new(core.channel.clone());
        let json = self.access.json;

        match self.command {
            Command::Apply(Apply { file, store }) => {
                let message = ApplyTimeSlotRequest {
                    store,
                    definition: definition::read(&file)?,
                    idempotency: None,
                };
                let explain = |status: &_| definition_error(&file, status);
                let applied = core
                    .write(message, explain, async |request| {
                        time_slots().apply_time_slot(request).await
                    })
                    .await?;
                print(json, applied)
            }
            Command::Check(Check { file }) => {
                let request = core.request(CheckTimeSlotRequest {
                    definition: definition::read(&file)?,
                });
                let checked = time_slots().check_time_slot(request).await;
                checked.map_err(|status| definition_error(&file, &status))?;
                definition::print_valid(json, &file, &[])
            }
            Command::Show(StoreFlag { store }) => {
                let request = core.request(GetDefaultTimeSlotRequest { store });
                let found = time_slots().get_default_time_slot(request).await;
                print(
                    json,
                    found.map_err(|status| call_error(&status))?.into_inner(),
                )
            }
        }
    }
}

/// Prints the definition as applied; with `--json`, its metadata too.
fn print(json: bool, time_slot: TimeSlot) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Stored {
        id: String,
        iri: String,
        store: String,
        name: String,
        definition: String,
        updated_at: Option<String>,
    }
    if !json {
        return output::text(&time_slot.definition);
    }
    output::document(&Stored {
        id: id::of(&time_slot.name).to_owned(),
        iri: iri::of(&time_slot.name),
        store: id::of(&time_slot.store).to_owned(),
        name: time_slot.display_name,
        updated_at: output::instant(time_slot.update_time.as_ref(), "UTC"),
        definition: time_slot.definition,
    })
}
