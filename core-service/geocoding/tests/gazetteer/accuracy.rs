//! Asking a gazetteer, and counting how often it is right.

use std::{fmt, time::Instant};

use domain::address::LatLng;
use geocoding::{Answer, Gazetteer, Query};

use crate::{city::Region, disturbing::disturb, random::Random};

/// A text, and the house that is meant by it; none if there is no such street.
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) meant: Option<LatLng>,
    pub(crate) near: Option<LatLng>,
}

/// Shares, from 0 to 1, and times.
pub(crate) struct Accuracy {
    /// Of disturbed addresses: the right house.
    pub(crate) right: f64,
    /// Of disturbed addresses: another house.
    pub(crate) wrong: f64,
    /// Of streets that do not exist: not found.
    pub(crate) refused: f64,
    /// Of all questions, sorted.
    pub(crate) micros: Vec<u128>,
    /// Some of the mistakes.
    pub(crate) mistakes: Vec<String>,
}

/// As many houses, disturbed, and as many in streets that do not exist.
pub(crate) fn questions(random: &mut Random, region: &Region, count: usize) -> Vec<Question> {
    let mut questions = Vec::with_capacity(2 * count);
    for _ in 0..count {
        let address = &region.addresses[random.below(region.addresses.len())];
        let disturbed = disturb(random, address, region.is_common(&address.street));
        let degrees = |degrees: f64| format!("{degrees:.6}").parse().unwrap();
        let point = LatLng::new(degrees(address.latitude), degrees(address.longitude)).unwrap();
        questions.push(Question {
            text: disturbed.text,
            meant: Some(point),
            near: disturbed.needs_area.then_some(point),
        });

        let nowhere = region.nowhere(random);
        questions.push(Question {
            text: format!(
                "{} {}, {} {}",
                nowhere.number, nowhere.street, nowhere.postcode, nowhere.town
            ),
            meant: None,
            near: None,
        });
    }
    questions
}

pub(crate) fn measure(gazetteer: &Gazetteer, questions: &[Question]) -> Accuracy {
    let (mut houses, mut right, mut wrong) = (0_u32, 0_u32, 0_u32);
    let (mut nowhere, mut refused) = (0_u32, 0_u32);
    let mut micros = Vec::new();
    let mut mistakes = Vec::new();
    for question in questions {
        let query = Query {
            near: question.near,
            ..Query::new(&question.text)
        };
        let answer = gazetteer.search(&query).unwrap();
        // The fastest of three: other programs run beside this one.
        let fastest = (0..3).map(|_| {
            let start = Instant::now();
            gazetteer.search(&query).unwrap();
            start.elapsed().as_micros()
        });
        micros.extend(fastest.min());

        let found = match &answer {
            Answer::Found(found) => Some(found.lat_lng),
            _ => None,
        };
        let is_right = found == question.meant;
        if question.meant.is_some() {
            houses += 1;
            right += u32::from(is_right);
            wrong += u32::from(!is_right && found.is_some());
        } else {
            nowhere += 1;
            refused += u32::from(is_right);
        }
        if !is_right {
            let told = match answer {
                Answer::Found(found) => found.formatted,
                Answer::Unclear(unclear) => unclear.to_string(),
                Answer::NotFound => "nothing".to_owned(),
            };
            mistakes.push(format!("{}: {told}", question.text));
        }
    }
    micros.sort_unstable();
    let share = |part: u32, all: u32| f64::from(part) / f64::from(all.max(1));
    Accuracy {
        right: share(right, houses),
        wrong: share(wrong, houses),
        refused: share(refused, nowhere),
        micros,
        mistakes,
    }
}

impl fmt::Display for Accuracy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:.2} % right, {:.2} % another house, {:.2} % of streets that do not exist refused",
            self.right * 100.0,
            self.wrong * 100.0,
            self.refused * 100.0
        )?;
        let at = |percent: usize| self.micros[(self.micros.len() - 1) * percent / 100];
        writeln!(
            f,
            "p50 {} µs, p99 {} µs, most {} µs",
            at(50),
            at(99),
            at(100)
        )?;
        for mistake in self.mistakes.iter().take(40) {
            writeln!(f, "  {mistake}")?;
        }
        Ok(())
    }
}
