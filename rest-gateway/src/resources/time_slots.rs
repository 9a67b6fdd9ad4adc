//! `/api/time_slots`

use proto::{
    GetTimeSlotRequest, ListTimeSlotChoicesRequest,
    iri::{self, Collection},
    opening_hours::Day,
    time_slots_client::TimeSlotsClient,
};
use serde::Serialize;

use crate::{
    api_description::DAYS,
    core_pool::rpc,
    error::Error,
    representation::{
        json_ld::{self, Node},
        language::{self, AcceptLanguage},
    },
    request::{HandlerResult, Request},
};

#[derive(Debug, Serialize)]
struct TimeSlotChoices {
    #[serde(flatten)]
    node: Node,
    choices: Vec<TimeSlotChoice>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "@type")]
struct TimeSlotChoice {
    value: String,
    label: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TimeSlot {
    #[serde(flatten)]
    node: Node,
    name: String,
    interval: String,
    prior_notice: Option<String>,
    working_days_only: bool,
    opening_hours_specification: Vec<OpeningHoursSpecification>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "@type", rename_all = "camelCase")]
struct OpeningHoursSpecification {
    opens: String,
    closes: String,
    day_of_week: Vec<&'static str>,
    /// The first and last date of a closed period.
    valid_from: Option<String>,
    valid_through: Option<String>,
}

/// `GET /api/time_slots/{id}`
pub(crate) async fn get(request: Request) -> HandlerResult {
    let name = Collection::TimeSlots.name(&request.parameter);
    let message = GetTimeSlotRequest { name };
    let time_slot = request
        .call(message, rpc!(TimeSlotsClient.get_time_slot))
        .await?;

    json_ld::ok("/api/contexts/TimeSlot", &TimeSlot::from(time_slot))
}

/// `GET /api/time_slots/choices`: of the default time slot.
pub(crate) async fn list_default_choices(request: Request) -> HandlerResult {
    let iri = "/api/time_slots/choices".to_owned();
    list(request, iri, String::new()).await
}

/// `GET /api/time_slots/{id}/choices`
pub(crate) async fn list_choices(request: Request) -> HandlerResult {
    let name = Collection::TimeSlots.name(&request.parameter);
    let iri = format!("{}/choices", iri::of(&name));
    list(request, iri, name).await
}

async fn list(request: Request, iri: String, name: String) -> HandlerResult {
    let message = ListTimeSlotChoicesRequest {
        name,
        accept_language: AcceptLanguage::of(request.headers()).joined(),
        store: String::new(),
    };
    let listed = request
        .call(message, rpc!(TimeSlotsClient.list_time_slot_choices))
        .await?;

    let shown = listed.choices.into_iter().map(TimeSlotChoice::try_from);
    let choices = TimeSlotChoices {
        node: Node::with_iri("TimeSlotChoices", iri),
        choices: shown.collect::<Result<_, _>>()?,
    };
    let response = json_ld::ok("/api/contexts/TimeSlotChoices", &choices)?;
    Ok(language::declare(response, Some(&listed.language)))
}

impl TryFrom<proto::TimeSlotChoice> for TimeSlotChoice {
    type Error = Error;

    fn try_from(choice: proto::TimeSlotChoice) -> Result<Self, Error> {
        let start = json_ld::timestamp(choice.start_time.as_ref())?;
        let end = json_ld::timestamp(choice.end_time.as_ref())?;
        Ok(Self {
            value: format!("{start:.0}/{end:.0}"),
            label: choice.label,
        })
    }
}

impl From<proto::TimeSlot> for TimeSlot {
    fn from(time_slot: proto::TimeSlot) -> Self {
        Self {
            node: Node::new("TimeSlot", Collection::TimeSlots, &time_slot.name),
            name: time_slot.display_name,
            interval: time_slot.interval,
            prior_notice: time_slot.prior_notice,
            working_days_only: time_slot.working_days_only,
            opening_hours_specification: time_slot
                .opening_hours
                .into_iter()
                .map(Into::into)
                .collect(),
        }
    }
}

impl From<proto::OpeningHours> for OpeningHoursSpecification {
    fn from(hours: proto::OpeningHours) -> Self {
        Self {
            day_of_week: hours.days().filter_map(day_of_week).collect(),
            opens: hours.opens,
            closes: hours.closes,
            valid_from: hours.valid_from,
            valid_through: hours.valid_through,
        }
    }
}

/// None for [`Day::Unspecified`].
fn day_of_week(day: Day) -> Option<&'static str> {
    let index = (day as usize).checked_sub(Day::Monday as usize)?;
    DAYS.get(index).copied()
}
