//! The addresses that texts are found among: kept and asked by operators.

use domain::{api_client::Scope, store::Country, violation::Violations};
use geocoding::{Answer, Found, Query, gazetteer::Tally};
use proto::SkippedLines;
use tonic::{Request, Response, Status, Streaming};

use super::{Core, import, in_force::Freshness, messages, reach::Reach};

use crate::error::Error;

#[tonic::async_trait]
impl proto::addresses_server::Addresses for Core {
    async fn import_addresses(
        &self,
        request: Request<Streaming<proto::ImportAddressesRequest>>,
    ) -> Result<Response<proto::ImportAddressesResponse>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Admin)?;

        let country = self.config.platform.country.as_str().to_owned();
        let tally = import::run(self.gazetteer.path(), country, request.into_inner()).await?;

        tracing::info!(%tally, "addresses were imported");
        Ok(Response::new(imported(tally)))
    }

    async fn search_addresses(
        &self,
        request: Request<proto::SearchAddressesRequest>,
    ) -> Result<Response<proto::SearchAddressesResponse>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Admin)?;

        let request = request.into_inner();
        let mut violations = Violations::new();
        if request.text.trim().is_empty() {
            violations.add("text", "REQUIRED", "is required");
        }
        let country = request.country_code.map(|code| code.parse::<Country>());
        let country = country
            .and_then(|country| violations.check("country_code", "UNKNOWN_COUNTRY", country));
        if !violations.is_empty() {
            return Err(Error::Invalid(violations).into());
        }
        let reach = match request.store {
            Some(name) => {
                let store = self.find_store(&name).await?;
                self.reach(&store, Freshness::Current).await?
            }
            None => Reach::UNKNOWN,
        };
        let query = Query {
            country: country.map(|country| country.as_str().to_owned()),
            near: reach.near(),
            demand: self.config.geocoding.address_precision,
            ..Query::new(request.text)
        };

        let answer = self.geocoder.geocode(&query).await.map_err(Error::from)?;
        Ok(Response::new(searched(answer, &reach)))
    }
}

fn imported(tally: Tally) -> proto::ImportAddressesResponse {
    let skipped = tally.skipped.into_iter().map(|(why, skipped)| {
        let (first_file, first_line) = skipped.first;
        SkippedLines {
            reason: why.to_string(),
            count: skipped.lines,
            first_file,
            first_line,
        }
    });
    proto::ImportAddressesResponse {
        taken: tally.taken,
        skipped: skipped.collect(),
    }
}

fn searched(answer: Answer, reach: &Reach) -> proto::SearchAddressesResponse {
    match answer {
        Answer::Found(address) => match reach.refusal_of(&address.formatted, address.lat_lng) {
            None => proto::SearchAddressesResponse {
                found: Some(found(address)),
                ..proto::SearchAddressesResponse::default()
            },
            Some(refusal) => proto::SearchAddressesResponse {
                found: None,
                missing: refusal,
                candidates: vec![found(address)],
            },
        },
        Answer::Unclear(unclear) => proto::SearchAddressesResponse {
            found: None,
            missing: unclear.to_string(),
            candidates: unclear.candidates.into_iter().map(found).collect(),
        },
        Answer::NotFound => proto::SearchAddressesResponse {
            missing: "found nothing".to_owned(),
            ..proto::SearchAddressesResponse::default()
        },
    }
}

fn found(found: Found) -> proto::FoundAddress {
    proto::FoundAddress {
        formatted_address: found.formatted,
        postal_code: found.postal_code,
        address_locality: found.locality,
        address_country: found.country,
        lat_lng: Some(messages::lat_lng(found.lat_lng)),
        precision: found.precision.to_string(),
        confidence: found.confidence,
        reasons: found.reasons.iter().map(ToString::to_string).collect(),
    }
}
