//! Labels of windows in the client's language: days by ICU, the phrases around them by a table.

use std::cell::OnceCell;

use icu_calendar::{Date, Gregorian};
use icu_datetime::{FixedCalendarDateTimeFormatter, fieldsets::MDE};
use icu_locale_core::Locale;
use jiff::Zoned;

use crate::task::TimeWindow;

/// A language of labels. To add one, add a row to the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Language {
    /// BCP 47.
    tag: &'static str,
    today: &'static str,
    tomorrow: &'static str,
    /// With the placeholders `{day}`, `{start}` and `{end}`.
    template: &'static str,
}

macro_rules! languages {
    ($($tag:literal $today:literal $tomorrow:literal $template:literal;)+) => {
        [$(Language { tag: $tag, today: $today, tomorrow: $tomorrow, template: $template }),+]
    };
}

const LANGUAGES: [Language; 6] = languages! {
    "en" "today" "tomorrow" "{day} between {start} and {end}";
    "fr" "aujourd'hui" "demain" "{day} entre {start} et {end}";
    "de" "heute" "morgen" "{day} zwischen {start} und {end}";
    "es" "hoy" "mañana" "{day} de {start} a {end}";
    "it" "oggi" "domani" "{day} tra le ore {start} e le ore {end}";
    "nl" "vandaag" "morgen" "{day} tussen {start} en {end}";
};
const ENGLISH: Language = LANGUAGES[0];

impl Language {
    /// The tags of all languages.
    pub fn tags() -> [&'static str; LANGUAGES.len()] {
        LANGUAGES.map(Self::tag)
    }

    /// The language with one of [`Language::tags`], otherwise English.
    pub fn with_tag(tag: Option<&str>) -> Self {
        let mut all = LANGUAGES.into_iter();
        all.find(|language| Some(language.tag) == tag)
            .unwrap_or(ENGLISH)
    }

    /// BCP 47.
    pub fn tag(self) -> &'static str {
        self.tag
    }
}

type DayFormatter = FixedCalendarDateTimeFormatter<Gregorian, MDE>;

thread_local! {
    /// In the order of [`LANGUAGES`]. To make a formatter takes most of the time of a label.
    static DAY_FORMATTERS: [OnceCell<Option<DayFormatter>>; LANGUAGES.len()] =
        const { [const { OnceCell::new() }; LANGUAGES.len()] };
}

/// A window's label in the time zone of `now`: "Today between 12:00 and 14:00"; days other than
/// today and tomorrow have weekday and date.
pub fn label(window: TimeWindow, now: &Zoned, language: Language) -> String {
    let start = window.after.to_zoned(now.time_zone().clone());
    let end = window.before.to_zoned(now.time_zone().clone());
    let day = if start.date() == now.date() {
        language.today.to_owned()
    } else if now.date().tomorrow().is_ok_and(|day| day == start.date()) {
        language.tomorrow.to_owned()
    } else {
        weekday_and_date(&start, language)
    };

    let time = |at: &Zoned| at.strftime("%H:%M").to_string();
    let label = language
        .template
        .replace("{day}", &day)
        .replace("{start}", &time(&start))
        .replace("{end}", &time(&end));
    let mut letters = label.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

fn weekday_and_date(day: &Zoned, language: Language) -> String {
    let part = |part: i8| u8::try_from(part).unwrap_or_default();
    let date = Date::try_new_gregorian(day.year().into(), part(day.month()), part(day.day())).ok();
    let formatted = DAY_FORMATTERS.with(|formatters| {
        let position = LANGUAGES.iter().position(|row| *row == language)?;
        let formatter = formatters[position].get_or_init(|| {
            let locale = language.tag.parse().unwrap_or(Locale::UNKNOWN);
            DayFormatter::try_new((&locale).into(), MDE::long()).ok()
        });
        Some(formatter.as_ref()?.format(&date?).to_string())
    });
    // Not reached: ICU has data for every row of the table, and for every day.
    formatted.unwrap_or_else(|| day.date().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time_slot::window;

    fn labels(slot: &str, now: &str) -> Vec<String> {
        let now: Zoned = now.parse().unwrap();
        let window = window::parse(slot, now.time_zone()).unwrap();
        LANGUAGES
            .map(|language| label(window, &now, language))
            .to_vec()
    }

    #[test]
    fn labels_name_today_and_tomorrow() {
        assert_eq!(
            labels("2020-04-02 12:00-14:00", "2020-04-02T11:00[Europe/Paris]"),
            [
                "Today between 12:00 and 14:00",
                "Aujourd'hui entre 12:00 et 14:00",
                "Heute zwischen 12:00 und 14:00",
                "Hoy de 12:00 a 14:00",
                "Oggi tra le ore 12:00 e le ore 14:00",
                "Vandaag tussen 12:00 en 14:00",
            ]
        );
        assert_eq!(
            labels("2020-04-03 09:00-24:00", "2020-04-02T23:59[Europe/Paris]"),
            [
                "Tomorrow between 09:00 and 00:00",
                "Demain entre 09:00 et 00:00",
                "Morgen zwischen 09:00 und 00:00",
                "Mañana de 09:00 a 00:00",
                "Domani tra le ore 09:00 e le ore 00:00",
                "Morgen tussen 09:00 en 00:00",
            ]
        );
    }

    #[test]
    fn labels_after_tomorrow_have_weekday_and_date() {
        assert_eq!(
            labels("2020-04-04 12:00-14:00", "2020-04-02T11:00[Europe/Paris]"),
            [
                "Saturday, April 4 between 12:00 and 14:00",
                "Samedi 4 avril entre 12:00 et 14:00",
                "Samstag, 4. April zwischen 12:00 und 14:00",
                "Sábado, 4 de abril de 12:00 a 14:00",
                "Sabato 4 aprile tra le ore 12:00 e le ore 14:00",
                "Zaterdag 4 april tussen 12:00 en 14:00",
            ]
        );
    }

    #[test]
    fn a_label_has_local_times_on_days_with_a_clock_change() {
        for (slot, now, expected) in [
            (
                "2026-03-29 01:00-04:00",
                "2026-03-28T12:00[Europe/Paris]",
                "Tomorrow between 01:00 and 04:00",
            ),
            (
                "2026-10-25 02:00-02:30",
                "2026-10-25T00:00[Europe/Paris]",
                "Today between 02:00 and 02:30",
            ),
            (
                "2026-11-01 00:30-03:00",
                "2026-10-31T23:00[America/New_York]",
                "Tomorrow between 00:30 and 03:00",
            ),
            (
                "2026-10-04 01:30-02:00",
                "2026-10-04T00:00[Australia/Lord_Howe]",
                "Today between 01:30 and 02:30",
            ),
            (
                "2026-10-04 01:30-02:00",
                "2026-10-04T00:00[Asia/Kolkata]",
                "Today between 01:30 and 02:00",
            ),
        ] {
            assert_eq!(labels(slot, now)[0], expected, "{slot}");
        }
    }

    #[test]
    fn a_language_has_its_tag() {
        for tag in Language::tags() {
            assert_eq!(Language::with_tag(Some(tag)).tag(), tag);
        }
        assert_eq!(Language::with_tag(Some("xx")).tag(), "en");
        assert_eq!(Language::with_tag(None).tag(), "en");
    }
}
