//! `delivery time-slots`: the time slots that stores offer.

use clap::Subcommand;
use proto::{ApplyTimeSlotRequest, CheckTimeSlotRequest, GetDefaultTimeSlotRequest, TimeSlot, iri};

use crate::cli::{
    access::CoreCommand,
    definition::{self, Apply, Check, StoreFlag},
    errors::definition_error,
    id,
    output::{View, instant},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Apply a definition as the store's default time slot
    #[command(after_help = TIME_SLOT_HELP)]
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
  opening_hours = [\"Mo-Su 12:00-14:00\", \"Mo-Su 14:00-17:00\"]
                            1 to 32 entries in the syntax of OpenStreetMap's opening_hours, such
                            as \"Mo-Fr 09:00-12:00; PH off\"; each is evaluated by itself
  interval = \"2 days\"       how far ahead slots are offered: 1 minute to 3 months of calendar time

and optionally
  prior_notice = \"1 hour\"   before the start of a slot
  same_day_cutoff = \"11:00\" after it, no slot of the same day is offered
  previous_day_cutoff = \"18:00\"
                            after it, no slot of the next day is offered
  working_days_only = true  no weekends and no public holidays of the store's country
  slot_length = \"1 hour\"    cuts the opening hours into slots: 5 minutes to 1 day
  closed = [\"2026-12-24\", \"2026-12-31/2027-01-02\"]
                            dates, and first and last dates
  capacity = 10             deliveries per slot; implies slots = \"offered\"
  slots = \"any\"             which times shops may send:
                              any: every timeSlot and every before
                              offered: an offered slot as timeSlot; every before, which does
                                not count towards capacity
                              required: the dropoff must have an offered slot as timeSlot

Durations are a whole number and a unit: minutes, hours, days, weeks, months. Times are in the
store's time zone.";

impl CoreCommand<Command> {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.connect("admin").await?;
        let json = self.access.json;

        match self.command {
            Command::Apply(Apply { file, store }) => {
                let message = ApplyTimeSlotRequest {
                    store,
                    definition: definition::read(&file)?,
                    idempotency: None,
                };
                let explain = |status: &_| definition_error(&file, status);
                let applied = core.write_explained(message, explain).await?;
                print(json, applied)
            }
            Command::Check(Check { file }) => {
                let definition = definition::read(&file)?;
                let request = CheckTimeSlotRequest { definition };
                let explain = |status: &_| definition_error(&file, status);
                core.call_explained(request, explain).await?;
                definition::print_valid(json, &file, &[])
            }
            Command::Show(StoreFlag { store }) => {
                let request = GetDefaultTimeSlotRequest { store };
                print(json, core.call(request).await?)
            }
        }
    }
}

fn print(json: bool, time_slot: TimeSlot) -> anyhow::Result<()> {
    let metadata = View::default()
        .json("id", id::of(&time_slot.name))
        .json("iri", iri::of(&time_slot.name))
        .json("store", id::of(&time_slot.store))
        .json("name", time_slot.display_name)
        .json("updated_at", instant(time_slot.update_time, "UTC"));
    definition::print_applied(json, &time_slot.definition, metadata)
}
