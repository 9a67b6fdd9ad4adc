//! The page as HTML. What people have written is escaped, and cannot turn the text around it.

use std::{collections::BTreeMap, sync::LazyLock};

use http::StatusCode;
use prost_types::Timestamp;
use proto::{
    TrackedDelivery,
    tracked_delivery::{Obstacle, Stage},
};
use serde::Deserialize;

use super::{SCRIPT, STYLE};
use crate::{error::Error, representation::json_ld::StoreTimeZone, resources::error_pages::escape};

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
    /// With `{day}` and `{month}`.
    date: String,
    months: [String; 12],
}

/// The page of a delivery.
pub(super) fn of_delivery(tracked: &TrackedDelivery, language: &str) -> Result<String, Error> {
    let texts = texts(language)?;
    let times = Times {
        texts,
        zone: StoreTimeZone::named(&tracked.time_zone),
    };
    let stage = tracked.stage();
    let refresh = match stage {
        Stage::OnItsWay => Some(SOON),
        Stage::Delivered | Stage::Cancelled => None,
        _ => Some(LATER),
    };
    let headline = match stage {
        Stage::Delivered => texts.delivered.clone(),
        Stage::NotDelivered => texts.not_delivered.clone(),
        Stage::Cancelled => texts.cancelled.clone(),
        _ => times.promise(tracked)?,
    };
    let hint: &str = match (stage, tracked.obstacle()) {
        (Stage::NotDelivered, Obstacle::NobodyThere) => &texts.nobody_there,
        (Stage::NotDelivered, Obstacle::Address) => &texts.wrong_address,
        (Stage::NotDelivered, Obstacle::Refused) => &texts.refused,
        (Stage::NotDelivered, _) => &texts.ask_shop,
        _ => "",
    };
    let call = match &*tracked.store_telephone {
        "" => String::new(),
        number => format!(
            "<a class=\"call\" href=\"tel:{}\">{}</a>",
            attribute(number),
            texts.call_shop
        ),
    };
    let shop = isolated(&tracked.store_display_name);
    let content = [
        format!("<p class=\"shop\">{shop}{call}</p>\n<h1>{headline}</h1>\n"),
        paragraph("hint", hint),
        times.beside_estimate(tracked)?,
        times.steps(tracked)?,
        paragraph("address", &address(tracked)),
    ];
    let title = texts.title.replace(
        "{shop}",
        &attribute(&without_controls(&tracked.store_display_name)),
    );
    Ok(Page {
        language,
        title: &title,
        refresh,
    }
    .render(&content.concat()))
}

/// The page that says that there is none, for a status of an error.
pub(super) fn without_delivery(status: StatusCode, language: &str) -> Result<String, Error> {
    let texts = texts(language)?;
    let (title, hint) = match status {
        StatusCode::GONE => (&texts.ended, &texts.ended_hint),
        _ => (&texts.unknown, &texts.unknown_hint),
    };
    let content = format!("<h1>{title}</h1>\n{}", paragraph("hint", hint));
    Ok(Page {
        language,
        title,
        refresh: None,
    }
    .render(&content))
}

fn texts(language: &str) -> Result<&'static Texts, Error> {
    let texts = TEXTS.get(language);
    texts.ok_or_else(|| Error::internal(format!("there are no texts in {language}")))
}

/// What is around the content.
struct Page<'p> {
    language: &'p str,
    title: &'p str,
    refresh: Option<u32>,
}

impl Page<'_> {
    fn render(&self, content: &str) -> String {
        let refresh = self.refresh.map(|_| {
            format!(
                "<noscript><meta http-equiv=\"refresh\" content=\"{LATER}\"></noscript>\n\
                 <script defer src=\"{}\"></script>\n",
                SCRIPT.url()
            )
        });
        let seconds = self.refresh.map(|seconds| seconds.to_string());
        include_str!("page.html")
            .replace("<!-- language -->", self.language)
            .replace("<!-- style -->", &STYLE.url())
            .replace("<!-- refresh -->", &refresh.unwrap_or_default())
            .replace("<!-- seconds -->", &seconds.unwrap_or_default())
            .replace("<!-- title -->", self.title)
            .replace("<!-- content -->", content)
    }
}

/// The times of a delivery, in its store's zone.
struct Times<'t> {
    texts: &'t Texts,
    zone: StoreTimeZone,
}

impl Times<'_> {
    /// The way of the parcel as far as it is known; of one that does not arrive, without what did not happen.
    fn steps(&self, tracked: &TrackedDelivery) -> Result<String, Error> {
        let (texts, stage) = (self.texts, tracked.stage());
        let does_arrive = stage <= Stage::Delivered;
        let end = match stage {
            Stage::NotDelivered => &texts.not_delivered,
            Stage::Cancelled => &texts.cancelled,
            _ => &texts.delivered,
        };
        let steps = [
            (Stage::Ordered, &texts.ordered, &tracked.order_time),
            (Stage::Collected, &texts.collected, &tracked.collect_time),
            (Stage::OnItsWay, &texts.on_its_way, &tracked.departure_time),
            (Stage::Delivered, end, &tracked.end_time),
        ];
        let reached = steps.map(|(step, _, time)| time.is_some() || (does_arrive && step <= stage));
        let last = reached.iter().rposition(|is_reached| *is_reached);
        let mut lines = vec!["<ol>\n".to_owned()];
        for (index, ((_, name, time), is_reached)) in steps.into_iter().zip(reached).enumerate() {
            if !is_reached && !does_arrive {
                continue;
            }
            let attributes = match last {
                Some(last) if last == index => " class=\"done\" aria-current=\"step\"",
                _ if is_reached => " class=\"done\"",
                _ => "",
            };
            let time = time.as_ref().map(|time| self.moment(time)).transpose()?;
            let time = time.map_or_else(String::new, |time| format!(" {time}"));
            lines.push(format!("<li{attributes}>{name}{time}</li>\n"));
        }
        lines.push("</ol>\n".to_owned());
        Ok(lines.concat())
    }

    /// When the parcel comes, as well as it is known.
    fn promise(&self, tracked: &TrackedDelivery) -> Result<String, Error> {
        let (name, (after, before)) = match &tracked.estimate {
            Some(estimate) => (&self.texts.expected, (&estimate.after, &estimate.before)),
            None => (&self.texts.promised, (&tracked.after, &tracked.before)),
        };
        Ok(format!(
            "{name} {}",
            self.window(after.as_ref(), before.as_ref())?
        ))
    }

    /// What an estimate is made from, and the window that was promised; or that there is none any more.
    fn beside_estimate(&self, tracked: &TrackedDelivery) -> Result<String, Error> {
        let Some(estimate) = &tracked.estimate else {
            let text = if tracked.overdue {
                &*self.texts.no_estimate
            } else {
                ""
            };
            return Ok(paragraph("hint", text));
        };
        let known = estimate.known_time.as_ref();
        let known = known.map(|known| self.element(known, &self.time(known)?));
        let basis = self
            .texts
            .basis
            .replace("{time}", &known.transpose()?.unwrap_or_default());
        let window = self.window(tracked.after.as_ref(), tracked.before.as_ref())?;
        let promised = format!("{} {window}", self.texts.promised);
        Ok(paragraph("hint", &basis) + &paragraph("hint", &promised))
    }

    /// A range of times: a day and two times, or two of both.
    fn window(
        &self,
        after: Option<&Timestamp>,
        before: Option<&Timestamp>,
    ) -> Result<String, Error> {
        let (Some(after), Some(before)) = (after, before) else {
            return Ok(String::new());
        };
        let end = if self.date(after)? == self.date(before)? {
            self.element(before, &self.time(before)?)?
        } else {
            format!(" {}", self.moment(before)?)
        };
        Ok(format!("{}–{end}", self.moment(after)?))
    }

    fn moment(&self, instant: &Timestamp) -> Result<String, Error> {
        let text = format!("{}, {}", self.date(instant)?, self.time(instant)?);
        self.element(instant, &text)
    }

    fn element(&self, instant: &Timestamp, text: &str) -> Result<String, Error> {
        let value = self.zone.write(Some(instant))?;
        Ok(format!("<time datetime=\"{value}\">{text}</time>"))
    }

    fn date(&self, instant: &Timestamp) -> Result<String, Error> {
        let date = self.zone.zoned(Some(instant))?.date();
        let month = usize::from(date.month().unsigned_abs()).saturating_sub(1);
        let month = self.texts.months.get(month).map_or("", String::as_str);
        let text = self.texts.date.replace("{day}", &date.day().to_string());
        Ok(text.replace("{month}", month))
    }

    fn time(&self, instant: &Timestamp) -> Result<String, Error> {
        let time = self.zone.zoned(Some(instant))?.time();
        Ok(format!("{:02}:{:02}", time.hour(), time.minute()))
    }
}

fn address(tracked: &TrackedDelivery) -> String {
    let parts = [&tracked.street, &tracked.address_locality];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts
        .map(|part| isolated(part))
        .collect::<Vec<_>>()
        .join(", ")
}

/// An element, unless it is empty.
fn paragraph(class: &str, html: &str) -> String {
    match html {
        "" => String::new(),
        html => format!("<p class=\"{class}\">{html}</p>\n"),
    }
}

/// A text of a person, in its own direction.
fn isolated(text: &str) -> String {
    let text = escape(&without_controls(text));
    format!("<bdi dir=\"auto\">{text}</bdi>")
}

fn attribute(text: &str) -> String {
    escape(text).replace('"', "&quot;")
}

/// Without the controls of Unicode's bidirectional algorithm, and others.
fn without_controls(text: &str) -> String {
    let is_control = |c: char| {
        let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        turns || c.is_control()
    };
    text.replace(is_control, "")
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
            assert!(texts.date.contains("{day}") && texts.date.contains("{month}"));
            let distinct: BTreeSet<_> = texts.months.iter().collect();
            assert_eq!(distinct.len(), 12);
        }
    }

    #[test]
    fn a_text_of_a_person_is_escaped_and_keeps_its_direction() {
        let text = "a<b>&\"\u{202e}c\u{2066}\n";
        assert_eq!(isolated(text), "<bdi dir=\"auto\">a&lt;b&gt;&amp;\"c</bdi>");
        let in_attribute = attribute(&without_controls(text));
        assert_eq!(in_attribute, "a&lt;b&gt;&amp;&quot;c");
    }

    #[test]
    fn a_window_over_midnight_has_two_dates() {
        let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
        let window = |after: i64, before: i64, language: &str| {
            let times = Times {
                texts: texts(language).unwrap(),
                zone: StoreTimeZone::named("Europe/Paris"),
            };
            times
                .window(at(after).as_ref(), at(before).as_ref())
                .unwrap()
        };
        // 12:00 in Paris.
        let noon = 1_585_821_600;
        assert_eq!(
            window(noon, noon + 3600, "de"),
            "<time datetime=\"2020-04-02T12:00:00+02:00\">2. April, 12:00</time>–\
             <time datetime=\"2020-04-02T13:00:00+02:00\">13:00</time>"
        );
        assert_eq!(
            window(noon, noon + 13 * 3600, "es"),
            "<time datetime=\"2020-04-02T12:00:00+02:00\">2 de abril, 12:00</time>– \
             <time datetime=\"2020-04-03T01:00:00+02:00\">3 de abril, 01:00</time>"
        );
    }
}
