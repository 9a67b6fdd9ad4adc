//! Finds the town of a query whose street is not found.

use super::{
    Search,
    match_locality::recognized,
    parsed_query::{ParsedPostcode, ParsedTown},
};
use crate::{
    GeocodeMatch, GeocodeResult, Mismatch, PartialMatch, Precision, gazetteer::index::Locality,
    tokenizer::is_same_name,
};

impl Search<'_> {
    pub(super) fn town(&self) -> rusqlite::Result<GeocodeResult> {
        let postcode = self
            .parsed
            .postcodes
            .iter()
            .find(|postcode| !postcode.localities.is_empty());
        let town = self.parsed.towns.iter().max_by_key(|town| town.words.len());
        let has_postcode =
            |id: i64| postcode.is_some_and(|postcode| postcode.localities.contains(&id));
        let locality = match (town, postcode) {
            (Some(town), _) => {
                let with_postcode = town
                    .localities
                    .iter()
                    .find(|locality| has_postcode(locality.id));
                with_postcode.or(town.localities.first()).cloned()
            }
            (None, Some(postcode)) => match self.locality_of_short_name(postcode)? {
                Some(locality) => Some(locality),
                None => self.lookup.locality(postcode.localities[0])?,
            },
            (None, None) => None,
        };
        let Some(locality) = locality else {
            return Ok(GeocodeResult::NotFound);
        };
        let reason = town.map(|town| recognized(&self.parsed, "town", &town.words));
        let found = GeocodeMatch {
            formatted: locality.name.clone(),
            postal_code: postcode
                .filter(|_| has_postcode(locality.id))
                .map(|postcode| self.parsed.original(&postcode.words)),
            locality: Some(locality.name.clone()),
            country: Some(locality.country.clone()),
            lat_lng: locality.point,
            precision: Precision::Locality,
            confidence: 1.0,
            is_in_nearest_town: false,
            reasons: reason.into_iter().collect(),
        };
        if let Some(contradiction) = self.contradiction(town, postcode)? {
            return Ok(PartialMatch::new(contradiction, vec![found]).into());
        }
        if found.precision.meets(self.query.required) {
            return Ok(GeocodeResult::Found(found));
        }
        Ok(PartialMatch::new(Mismatch::Street, vec![found]).into())
    }

    /// The mismatch of a postcode and a town that does not have it, or of the unknown words after a
    /// postcode without a town.
    fn contradiction(
        &self,
        town: Option<&ParsedTown>,
        postcode: Option<&ParsedPostcode>,
    ) -> rusqlite::Result<Option<Mismatch>> {
        let Some(postcode) = postcode else {
            return Ok(None);
        };
        let town = match town {
            Some(town) => {
                let mut localities = town.localities.iter();
                let has_postcode =
                    localities.any(|locality| postcode.localities.contains(&locality.id));
                (!has_postcode).then(|| town.words.clone())
            }
            None if self.locality_of_short_name(postcode)?.is_some() => None,
            None => self.parsed.unknown_words_after(&postcode.words),
        };
        Ok(town.map(|town| Mismatch::Contradiction {
            postcode: self.parsed.original(&postcode.words),
            town: self.parsed.original(&town),
        }))
    }

    /// The locality of a postcode, if the words after the postcode are a part of its name.
    fn locality_of_short_name(
        &self,
        postcode: &ParsedPostcode,
    ) -> rusqlite::Result<Option<Locality>> {
        let words = self.parsed.name_after(&postcode.words);
        if words.is_empty() {
            return Ok(None);
        }
        let name = self.parsed.original(&words);
        for id in &postcode.localities {
            if let Some(locality) = self.lookup.locality(*id)?
                && is_same_name(&name, &locality.name, self.parsed.country)
            {
                return Ok(Some(locality));
            }
        }
        Ok(None)
    }
}
