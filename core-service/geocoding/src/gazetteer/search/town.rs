//! The town that is named, where no street is.

use super::Search;
use crate::{Answer, Found, Missing, Precision, Reason, Role, Unclear, gazetteer::index::Street};

impl Search<'_> {
    /// The town that is named, where no street is.
    pub(super) fn town(&self, mut similar: Vec<(f64, Street)>) -> rusqlite::Result<Answer> {
        let postcode = self
            .text
            .postcodes
            .iter()
            .find(|postcode| !postcode.localities.is_empty());
        let named = self.text.towns.iter().max_by_key(|town| town.words.len());
        let has_postcode =
            |id: i64| postcode.is_some_and(|postcode| postcode.localities.contains(&id));
        let locality = match (named, postcode) {
            (Some(town), _) => {
                let fitting = town
                    .localities
                    .iter()
                    .find(|locality| has_postcode(locality.id));
                fitting.or(town.localities.first()).cloned()
            }
            (None, Some(postcode)) => self.lookup.locality(postcode.localities[0])?,
            (None, None) => None,
        };
        let Some(locality) = locality else {
            return Ok(Answer::NotFound);
        };
        let mut reasons = Vec::new();
        if let Some(town) = named {
            reasons.push(Reason::Read {
                words: self.text.written(town.words.clone()),
                role: Role::Locality,
            });
        }
        let found = Found {
            formatted: locality.name.clone(),
            postal_code: postcode
                .filter(|_| has_postcode(locality.id))
                .map(|postcode| self.text.written(postcode.words.clone())),
            locality: Some(locality.name.clone()),
            country: Some(locality.country.clone()),
            lat_lng: locality.point,
            precision: Precision::Locality,
            confidence: 1.0,
            reasons,
        };
        if found.precision.meets(self.query.demand) {
            return Ok(Answer::Found(found));
        }
        similar.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let mut candidates = vec![found];
        for (likeness, street) in similar {
            let formatted = self
                .text
                .country
                .format("", &street.name, "", &locality.name);
            if street.locality == locality.id
                && candidates.iter().all(|known| known.formatted != formatted)
            {
                candidates.push(Found {
                    formatted,
                    postal_code: Some(street.postcode).filter(|postcode| !postcode.is_empty()),
                    lat_lng: street.point,
                    precision: Precision::Street,
                    confidence: likeness / 2.0,
                    reasons: Vec::new(),
                    ..candidates[0].clone()
                });
            }
        }
        Ok(Answer::Unclear(Unclear::new(Missing::Street, candidates)))
    }
}
