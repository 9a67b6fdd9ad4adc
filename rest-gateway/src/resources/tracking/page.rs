//! What `templates/tracking.html` shows. What people have written cannot turn the text around it.

use std::{collections::BTreeMap, sync::LazyLock};

use askama::Template;
use http::StatusCode;
use pages::without_controls;
use prost_types::Timestamp;
use proto::{
    TrackedDelivery,
    tracked_delivery::{Obstacle, Stage},
};
use serde::Deserialize;

use super::{SCRIPT, STYLE};
use crate::{error::Error, representation::json_ld::StoreTimeZone};

/// The seconds until the page looks for a change.
const SOON: u32 = 15;
const LATER: u32 = 60;

/// The texts of the page, by language.
static TEXTS: LazyLock<BTreeMap<String, Texts>> = LazyLock::new(|| {
    let texts = serde_json::from_str(include_str!("texts.json"));
    texts.expect("a test parses it")
});

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Texts {
    /// With `{shop}`.
    title: String,
    promised: String,
    expected: String,
    /// With `{time}`.
    basis: String,
    no_estimate: String,
    ordered: String,
    collected: String,
    on_its_way: String,
    delivered: String,
    not_delivered: String,
    cancelled: String,
    nobody_there: String,
    wrong_address: String,
    refused: String,
    ask_shop: String,
    call_shop: String,
    unknown: String,
    unknown_hint: String,
    ended: String,
    ended_hint: String,
}

impl Texts {
    fn of_stage(&self, stage: Stage) -> &str {
        match stage {
            Stage::Unspecified | Stage::Ordered => &self.ordered,
            Stage::Collected => &self.collected,
            Stage::OnItsWay => &self.on_its_way,
            Stage::Delivered => &self.delivered,
            Stage::NotDelivered => &self.not_delivered,
            Stage::Cancelled => &self.cancelled,
        }
    }

    /// What the recipient can do about a parcel that was not delivered.
    fn of_obstacle(&self, tracked: &TrackedDelivery) -> &str {
        match (tracked.stage(), tracked.obstacle()) {
            (Stage::NotDelivered, Obstacle::NobodyThere) => &self.nobody_there,
            (Stage::NotDelivered, Obstacle::Address) => &self.wrong_address,
            (Stage::NotDelivered, Obstacle::Refused) => &self.refused,
            (Stage::NotDelivered, _) => &self.ask_shop,
            _ => "",
        }
    }
}

#[derive(Template)]
#[template(path = "tracking.html")]
struct Page<'p> {
    language: &'p str,
    texts: &'p Texts,
    title: String,
    /// Until the page looks for a change; without it, it does not.
    seconds: Option<u32>,
    headline: &'p str,
    /// Beside the headline.
    window: Option<Window>,
    hint: String,
    parcel: Option<Parcel<'p>>,
}

struct Parcel<'p> {
    shop: String,
    telephone: &'p str,
    /// 0 for the platform's own.
    colour: u32,
    logo: Option<String>,
    /// What was promised, if something else is expected.
    promised_beside: Option<Window>,
    steps: Vec<Step<'p>>,
    address: Vec<String>,
}

struct Step<'p> {
    name: &'p str,
    time: Option<Moment>,
    /// `done`; `stopped` if the parcel does not arrive; empty if it is to come.
    class: &'static str,
    /// Of those that are reached.
    is_last: bool,
}

struct Window {
    after: Moment,
    before: Moment,
}

/// An instant as it is written in the store's zone.
struct Moment {
    datetime: String,
    date: String,
    time: String,
}

/// The page of a delivery.
pub(super) fn of_delivery(
    tracked: &TrackedDelivery,
    token: &str,
    language: &str,
) -> Result<String, Error> {
    let texts = texts(language)?;
    let times = Times {
        texts,
        language,
        zone: StoreTimeZone::named(&tracked.time_zone),
    };
    let stage = tracked.stage();
    let seconds = match stage {
        Stage::OnItsWay => Some(SOON),
        Stage::Delivered | Stage::Cancelled => None,
        _ => Some(LATER),
    };
    let (mut headline, mut hint) = (texts.of_stage(stage), texts.of_obstacle(tracked).to_owned());
    let (mut window, mut promised) = (None, None);
    if stage < Stage::Delivered {
        promised = times.window(tracked.after.as_ref(), tracked.before.as_ref())?;
        if let Some(estimate) = &tracked.estimate {
            headline = &texts.expected;
            window = times.window(estimate.after.as_ref(), estimate.before.as_ref())?;
            let known = times.moment(estimate.known_time.as_ref())?;
            hint = texts.basis.replace("{time}", &known.time);
        } else if promised.is_some() {
            headline = &texts.promised;
            window = promised.take();
        }
        if tracked.overdue {
            hint.clone_from(&texts.no_estimate);
        }
    }
    let version = &tracked.logo_version;
    let shop = without_controls(&tracked.store_display_name);
    let address = [&tracked.street, &tracked.address_locality].into_iter();
    let page = Page {
        language,
        texts,
        title: texts.title.replace("{shop}", &shop),
        seconds,
        headline,
        window,
        hint,
        parcel: Some(Parcel {
            shop,
            telephone: &tracked.store_telephone,
            colour: tracked.store_colour,
            logo: (!version.is_empty()).then(|| format!("{token}/files/logo?{version}")),
            promised_beside: promised,
            steps: times.steps(tracked)?,
            address: address
                .filter(|part| !part.is_empty())
                .map(|part| without_controls(part))
                .collect(),
        }),
    };
    page.render().map_err(Error::internal)
}

/// The page that says that there is none, for a status of an error.
pub(super) fn without_delivery(status: StatusCode, language: &str) -> Result<String, Error> {
    let texts = texts(language)?;
    let (title, hint) = match status {
        StatusCode::GONE => (&texts.ended, &texts.ended_hint),
        _ => (&texts.unknown, &texts.unknown_hint),
    };
    let page = Page {
        language,
        texts,
        title: title.clone(),
        seconds: None,
        headline: title,
        window: None,
        hint: hint.clone(),
        parcel: None,
    };
    page.render().map_err(Error::internal)
}

fn texts(language: &str) -> Result<&'static Texts, Error> {
    let texts = TEXTS.get(language);
    texts.ok_or_else(|| Error::internal(format!("there are no texts in {language}")))
}

/// The times of a delivery, in its store's zone.
struct Times<'t> {
    language: &'t str,
    texts: &'t Texts,
    zone: StoreTimeZone,
}

impl<'t> Times<'t> {
    /// The way of the parcel as far as it is known; of one that does not arrive, without what did not happen.
    fn steps(&self, tracked: &TrackedDelivery) -> Result<Vec<Step<'t>>, Error> {
        let stage = tracked.stage();
        let does_arrive = stage <= Stage::Delivered;
        let end = stage.max(Stage::Delivered);
        let mut steps = Vec::new();
        for (step, time) in [
            (Stage::Ordered, &tracked.order_time),
            (Stage::Collected, &tracked.collect_time),
            (Stage::OnItsWay, &tracked.departure_time),
            (end, &tracked.end_time),
        ] {
            let is_reached = time.is_some() || (does_arrive && step <= stage);
            if is_reached || does_arrive {
                let time = time.as_ref().map(|time| self.moment(Some(time)));
                steps.push(Step {
                    name: self.texts.of_stage(step),
                    time: time.transpose()?,
                    class: match step {
                        Stage::NotDelivered | Stage::Cancelled => "stopped",
                        _ if is_reached => "done",
                        _ => "",
                    },
                    is_last: false,
                });
            }
        }
        if let Some(last) = steps.iter_mut().rfind(|step| !step.class.is_empty()) {
            last.is_last = true;
        }
        Ok(steps)
    }

    fn window(
        &self,
        after: Option<&Timestamp>,
        before: Option<&Timestamp>,
    ) -> Result<Option<Window>, Error> {
        if after.is_none() || before.is_none() {
            return Ok(None);
        }
        let (after, before) = (self.moment(after)?, self.moment(before)?);
        Ok(Some(Window { after, before }))
    }

    fn moment(&self, instant: Option<&Timestamp>) -> Result<Moment, Error> {
        let at = self.zone.zoned(instant)?;
        Ok(Moment {
            datetime: self.zone.write(instant)?,
            date: pages::date(&at, self.language),
            time: pages::time(&at),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proto::language::LANGUAGES;

    use super::*;

    #[test]
    fn there_are_texts_in_every_language() {
        let languages: BTreeSet<_> = TEXTS.keys().map(String::as_str).collect();
        assert_eq!(languages, LANGUAGES.into_iter().collect());
        for texts in TEXTS.values() {
            assert!(texts.title.contains("{shop}"));
        }
    }

    #[test]
    fn a_window_over_midnight_has_two_dates() {
        let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
        let page = |after: i64, before: i64, language: &str| {
            let tracked = TrackedDelivery {
                order_time: at(after),
                after: at(after),
                before: at(before),
                time_zone: "Europe/Paris".to_owned(),
                ..TrackedDelivery::default()
            };
            of_delivery(&tracked, "token", language).unwrap()
        };
        // 12:00 in Paris.
        let noon = 1_585_821_600;
        assert!(page(noon, noon + 3600, "de").contains(
            "<time datetime=\"2020-04-02T12:00:00+02:00\">2. April, 12:00</time>–\
             <time datetime=\"2020-04-02T13:00:00+02:00\">13:00</time></h1>"
        ));
        assert!(page(noon, noon + 13 * 3600, "es").contains(
            "<time datetime=\"2020-04-02T12:00:00+02:00\">2 de abril, 12:00</time>– \
             <time datetime=\"2020-04-03T01:00:00+02:00\">3 de abril, 01:00</time></h1>"
        ));
    }
}
