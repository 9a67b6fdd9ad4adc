//! `/api/time_slots`

use std::sync::Arc;

use http::{
    HeaderValue,
    header::{ACCEPT_LANGUAGE, CONTENT_LANGUAGE, VARY},
};
use proto::{ListTimeSlotChoicesRequest, time_slots_client::TimeSlotsClient};
use serde::Serialize;

use crate::{
    core::Repeat,
    error::Error,
    json_ld,
    request::Request,
    routes::{Answer, Gateway},
};

#[derive(Debug, Serialize)]
struct TimeSlotChoices {
    #[serde(rename = "@context")]
    context: &'static str,
    #[serde(rename = "@id")]
    iri: &'static str,
    #[serde(rename = "@type")]
    ld_type: &'static str,
    choices: Vec<TimeSlotChoice>,
}

#[derive(Debug, Serialize)]
struct TimeSlotChoice {
    #[serde(rename = "@type")]
    ld_type: &'static str,
    value: String,
    label: String,
}

/// `GET /api/time_slots/choices`
pub(crate) async fn list_choices(gateway: Arc<Gateway>, request: Request) -> Answer {
    let message = ListTimeSlotChoicesRequest {
        name: String::new(),
        accept_language: accept_language(&request),
    };
    let response = gateway
        .core
        .call(
            request.call()?,
            Repeat::Harmless,
            message,
            |core, message| async {
                TimeSlotsClient::new(core)
                    .list_time_slot_choices(message)
                    .await
            },
        )
        .await?;

    let choices = response.choices.into_iter().map(TimeSlotChoice::try_from);
    let mut answer = json_ld::ok(&TimeSlotChoices {
        context: "/api/contexts/TimeSlotChoices",
        iri: "/api/time_slots/choices",
        ld_type: "TimeSlotChoices",
        choices: choices.collect::<Result<_, _>>()?,
    })?;
    let headers = answer.headers_mut();
    headers.append(VARY, HeaderValue::from_static("accept-language"));
    if let Ok(language) = HeaderValue::from_str(&response.language)
        && !language.is_empty()
    {
        headers.insert(CONTENT_LANGUAGE, language);
    }
    Ok(answer)
}

/// The header's lines as one, which is the same (RFC 9110 §5.3).
fn accept_language(request: &Request) -> String {
    let lines = request.headers().get_all(ACCEPT_LANGUAGE).iter();
    let lines: Vec<_> = lines.filter_map(|line| line.to_str().ok()).collect();
    lines.join(", ")
}

impl TryFrom<proto::TimeSlotChoice> for TimeSlotChoice {
    type Error = Error;

    fn try_from(choice: proto::TimeSlotChoice) -> Result<Self, Error> {
        let start = json_ld::timestamp(choice.start_time.as_ref())?;
        let end = json_ld::timestamp(choice.end_time.as_ref())?;
        Ok(Self {
            ld_type: "TimeSlotChoice",
            value: format!("{start:.0}/{end:.0}"),
            label: choice.label,
        })
    }
}
