//! The phrases of all languages by their meaning: English, French, German, Spanish and Italian, in
//! this order. English has only those that the strict grammar lacks, units, and `ago`. The names of
//! months and weekdays are in `names`.

use super::super::error::Error;
use super::super::parsed_time::TimeOfDay;
use std::ops::RangeInclusive;

use PhraseKind::{
    Ago, AgoOrBefore, AgoPrefix, And, At, Before, BeforeAt, Filler, FillerUnlessAfterDuration,
    FillerUnlessAfterNumber, FromNow, Hour, In, LastSuffix, NextSuffix, Number, OClock, OfMonth,
    Replacement, ThisEvening, TomorrowOrMorning, TuesdayOrMarch, TuesdayOrOf, Unit, Within,
    WithinOrBefore, WithinOrBeforeAt,
};

/// A part of the day that the text names.
#[derive(Debug)]
pub(super) struct PartOfDay {
    /// Its phrase in the original.
    pub(super) text: String,
    pub(super) hours: RangeInclusive<i64>,
    /// The time of day if none is given.
    pub(super) default: Option<TimeOfDay>,
}

impl PartOfDay {
    /// Says that a time of day is needed, within the hours.
    pub(super) fn error(&self) -> Error {
        Error::PartOfDay {
            part: self.text.clone(),
            first_hour: *self.hours.start(),
            last_hour: *self.hours.end(),
        }
    }
}

/// What a phrase means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PhraseKind {
    /// Replaced by these words of the strict grammar.
    Replacement(&'static str),
    /// Ignored: `on`, `the`.
    Filler,
    /// Ignored, but rejected after a duration of clock units: `15 minutes at 18:00`.
    FillerUnlessAfterDuration,
    /// Ignored, but rejected after a duration: `2 hours before`.
    Before,
    /// Ignored within a duration.
    And,
    /// Ignored, except after a number: German `am`, which is a meridiem there.
    FillerUnlessAfterNumber,
    /// A time follows, possibly only an hour: `um 10`.
    At,
    /// Both `Before` and `At`: `avant 18 heures`.
    BeforeAt,
    /// A duration from now follows.
    In,
    /// A duration from now or a day follows.
    Within,
    /// `Within`, but not before hours, which may be a time of day: French `d'ici`.
    WithinOrBefore,
    /// `BeforeAt` before an hour with an `h`, otherwise `WithinOrBefore`: French `d'ici à`.
    WithinOrBeforeAt,
    /// A duration before now follows: `il y a`.
    AgoPrefix,
    /// `AgoPrefix` with a duration after it, otherwise `BeforeAt`: German `vor`.
    AgoOrBefore,
    /// A duration from now precedes: `2 hours from now`.
    FromNow,
    /// A duration before now precedes: `2 hours ago`.
    Ago,
    /// A number in a duration: `an`, `zwei`.
    Number(&'static str),
    Unit(&'static str),
    /// Hours in a duration, or the hour of the day after a preposition: `à 10 heures`.
    Hour,
    /// The number before it is an hour of the day: `10 Uhr`.
    OClock,
    /// The weekday or unit before it is the next one: `lundi prochain`.
    NextSuffix,
    /// The weekday or unit before it is the last one.
    LastSuffix,
    /// The evening of today, at this hour unless a time of day is given: `tonight`.
    ThisEvening(i64),
    /// A part of the day; a time of day from the one hour to the other must be given.
    PartOfDay(i64, i64),
    /// German `morgen`: the morning of a day just named, otherwise tomorrow.
    TomorrowOrMorning,
    /// `di`: ignored before a day or a part of it in Italian, otherwise Tuesday in German.
    TuesdayOrOf,
    /// `mar`: the rest of the text decides between Tuesday and March.
    TuesdayOrMarch,
    /// Ignored between a day and its month: `4th of december`.
    OfMonth,
}

pub(super) const MORNING: PhraseKind = PhraseKind::PartOfDay(0, 11);
const AFTERNOON: PhraseKind = PhraseKind::PartOfDay(12, 19);
const EVENING: PhraseKind = PhraseKind::PartOfDay(16, 23);
const NIGHT: PhraseKind = PhraseKind::PartOfDay(18, 23);

/// These contain no amount such as `+1 day`, because an amount would be a duration.
const DAY_AFTER_TOMORROW: PhraseKind = PhraseKind::Replacement("tomorrow next day");
const DAY_BEFORE_YESTERDAY: PhraseKind = PhraseKind::Replacement("yesterday last day");

/// The words of each phrase are as `dictionary::fold` returns them, in lower case and without accents
/// except in single letters such as `à`, with one space between them. A phrase may occur twice only
/// if one of the two is a number.
pub(super) const PHRASES: &[(PhraseKind, &str)] = table! {
    Filler => "the";
    Filler => "le, la, les, du, de, ce, cette";
    Filler => "spatestens, den, dem, der, des";
    Filler => "para, para el, el, los, del, este, esta";
    Filler => "per, per il, il, lo, questo, questa";
    TuesdayOrOf => "di";
    OfMonth => "of";
    FillerUnlessAfterDuration => "on";
    FillerUnlessAfterNumber => "am";
    And => "and, et, und, y, e";

    Before => "vor dem, antes de, antes del, entro il, prima di, prima del";
    BeforeAt => "by, before, avant, jusqu'a, bis, bis um, bis zum, antes de las, antes de la, entro le, prima delle";
    At => "at, pour, à, um, spatestens um, a las, a la, para las, alle, alle ore, all', per le";
    In => "in, dans, en, tra, fra";
    Within => "within, innerhalb von, dentro de, entro";
    WithinOrBefore => "d'ici";
    WithinOrBeforeAt => "d'ici à";
    FromNow => "from now";
    Ago => "ago, fa";
    AgoPrefix => "il y a, hace";
    AgoOrBefore => "vor";
    NextSuffix => "prochain, prochaine, que viene, prossimo, prossima";
    LastSuffix => "dernier, derniere, passe, passee, pasado, pasada, scorso, scorsa";
    Replacement("next") => "nachsten, nachster, nachste, nachstes, kommenden, proximo, proxima";
    Replacement("this") => "diesen, diese, dieser";
    Replacement("last") => "letzten, letzte, letzter";
    Replacement("this week") => "cette semaine, esta semana, questa settimana";

    Replacement("now") => "maintenant, jetzt, ahora, adesso";
    Replacement("today") => "aujourd'hui, heute, hoy, oggi";
    Replacement("tomorrow") => "demain, manana, domani";
    Replacement("yesterday") => "hier, gestern, ayer, ieri";
    TomorrowOrMorning => "morgen";
    DAY_AFTER_TOMORROW => "day after tomorrow, the day after tomorrow, apres-demain, apres demain";
    DAY_AFTER_TOMORROW => "ubermorgen, pasado manana, dopodomani";
    DAY_BEFORE_YESTERDAY => "avant-hier, vorgestern, anteayer, l'altro ieri";

    Replacement("noon") => "midi, mittag, mittags, mediodia, al mediodia, mezzogiorno, a mezzogiorno";
    Replacement("midnight") => "minuit, mitternacht, medianoche, mezzanotte, a mezzanotte";
    Replacement("23:59") => "end of day, the end of day, end of the day";
    Replacement("23:59") => "fin de journee, fin de la journee, la fin de journee";
    Replacement("23:59") => "ende des tages, tagesende, fin del dia, final del dia, al final del dia";
    Replacement("23:59") => "fine giornata, fine della giornata";
    MORNING => "morning, this morning, in the morning";
    MORNING => "matin, le matin, du matin, ce matin, dans la matinee";
    MORNING => "fruh, morgens, am morgen, vormittag, vormittags, am vormittag";
    MORNING => "por la manana, de la manana, esta manana";
    MORNING => "mattina, di mattina, del mattino, questa mattina, stamattina";
    AFTERNOON => "afternoon, this afternoon, in the afternoon";
    AFTERNOON => "apres-midi, l'apres-midi, de l'apres-midi, dans l'apres-midi, cet apres-midi";
    AFTERNOON => "nachmittag, nachmittags, am nachmittag";
    AFTERNOON => "tarde, por la tarde, de la tarde, esta tarde";
    AFTERNOON => "pomeriggio, di pomeriggio, del pomeriggio, nel pomeriggio, questo pomeriggio";
    EVENING => "evening, in the evening, soir, le soir, du soir, dans la soiree";
    EVENING => "abend, abends, am abend, sera, di sera, della sera";
    NIGHT => "night, at night, nacht, nachts, noche, por la noche, de la noche, notte, di notte";
    ThisEvening(20) => "this evening, d'ici ce soir, ce soir, heute abend, questa sera, stasera";
    ThisEvening(22) => "tonight, cette nuit, heute nacht, esta noche, stanotte";

    OClock => "o'clock, uhr";
    Hour => "heure, heures, hora, horas, ora, ore";
    Unit("second") => "second";
    Unit("seconds") => "seconds, sec, secs, seconde, secondes, sekunde, sekunden";
    Unit("seconds") => "segundo, segundos, secondo, secondi";
    Unit("minutes") => "minute, minutes, min, mins, mn, minuten, minuto, minutos, minuti";
    Unit("hours") => "hour, hours, stunde, stunden, std";
    Unit("day") => "day, tag, dia, giorno";
    Unit("days") => "days, jour, jours, tage, tagen, dias, giorni";
    Unit("week") => "week, semaine, woche, semana, settimana";
    Unit("weeks") => "weeks, semaines, wochen, semanas, settimane";
    Unit("fortnights") => "fortnight, fortnights";
    Unit("months") => "month, months, mois, monat, monate, monaten, mes, meses, mese, mesi";
    Unit("years") => "year, years, an, ans, annee, annees, jahr, jahre, jahren, ano, anos, anno, anni";
    Replacement("1 hour") => "un'ora";
    Replacement("30 minutes") => "half an hour, une demi-heure, une demi heure";
    Replacement("30 minutes") => "einer halben stunde, media hora, mezz'ora";
    Replacement("15 minutes") => "quarter of an hour, un quart d'heure";
    Replacement("15 minutes") => "einer viertelstunde, un cuarto de hora, un quarto d'ora";

    TuesdayOrMarch => "mar";
    Replacement("tuesday") => "tues";
    Replacement("thursday") => "thur, thurs";
    Replacement("saturday") => "sonnabend";
    Replacement("september") => "setiembre";

    Number("1") => "a, an, one, un, une, ein, eine, einem, einer, einen, una, uno";
    Number("2") => "two, deux, zwei, dos, due";
    Number("3") => "three, trois, drei, tres, tre";
    Number("4") => "four, quatre, vier, cuatro, quattro";
    Number("5") => "five, cinq, funf, cinco, cinque";
    Number("6") => "six, sechs, seis, sei";
    Number("7") => "seven, sept, sieben, siete, sette";
    Number("8") => "eight, huit, acht, ocho, otto";
    Number("9") => "nine, neuf, neun, nueve, nove";
    Number("10") => "ten, dix, zehn, diez, dieci";
    Number("11") => "eleven, onze, elf, once, undici";
    Number("12") => "twelve, douze, zwolf, doce, dodici";
    Number("15") => "fifteen, quinze, funfzehn, quince, quindici";
    Number("20") => "twenty, vingt, zwanzig, veinte, venti";
    Number("30") => "thirty, trente, dreissig, treinta, trenta";
    Number("45") => "forty-five, quarante-cinq, funfundvierzig";
};
