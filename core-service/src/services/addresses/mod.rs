//! The gazetteer: imported and searched by operators.

mod import;

use domain::{api_client::Scope, coverage::Coverage, store::Country, violation::Violations};
use geocoding::{GeocodeMatch, GeocodeResult, GeocoderSpec, gazetteer::ImportStats};
use proto::SkippedLines;
use tonic::{Request, Response, Streaming};

use super::{Reply, Services};
use crate::{auth::caller::Caller, error::Error, messages, planning::address_geocoder::StoreArea};

#[tonic::async_trait]
impl proto::addresses_server::Addresses for Services {
    async fn import_addresses(
        &self,
        request: Request<Streaming<proto::ImportAddressesRequest>>,
    ) -> Reply<proto::ImportAddressesResponse> {
        let (caller, request) = Caller::with_scope(request, Scope::Admin)?;

        let country = self.config.platform.country.clone();
        let stats = import::run(self.gazetteer.path(), country, request).await?;

        tracing::info!(%stats, "addresses imported");
        self.record_change(&caller, None, "addresses");
        let geocoders = &self.config.geocoding.geocoders;
        let is_used = geocoders.contains(&GeocoderSpec::Gazetteer);
        let reply = Response::new(import_response(stats, !is_used));
        caller.audit("ImportAddresses", "addresses", &reply);
        Ok(reply)
    }

    async fn search_addresses(
        &self,
        request: Request<proto::SearchAddressesRequest>,
    ) -> Reply<proto::SearchAddressesResponse> {
        let (_, request) = Caller::with_scope(request, Scope::Admin)?;

        let mut violations = Violations::new();
        if request.text.trim().is_empty() {
            violations.add("text", "REQUIRED", "is required");
        }
        let country = request.country_code.and_then(|code| {
            let parsed = code.parse::<Country>();
            violations.check("country_code", "UNKNOWN_COUNTRY", parsed)
        });
        Error::check(violations)?;
        let (id, coverage) = match request.store {
            Some(name) => {
                let store = messages::find_store(&self.storage, &name).await?;
                let coverage = self.definitions().current_coverage(&store).await?;
                (Some(store.id), coverage)
            }
            None => (None, Coverage::UNKNOWN),
        };
        let area = StoreArea {
            id,
            coverage: &coverage,
        };
        let country_code = country.map(|country| country.as_str().to_owned());

        let result = self
            .planner
            .search_address(request.text, country_code, area)
            .await?;
        Ok(Response::new(search_response(result, &coverage)))
    }
}

fn import_response(stats: ImportStats, unused: bool) -> proto::ImportAddressesResponse {
    let skipped = stats.skipped.into_iter().map(|(why, skipped)| {
        let (first_file, first_line) = skipped.first;
        SkippedLines {
            reason: why.to_string(),
            count: skipped.lines,
            first_file,
            first_line,
        }
    });
    proto::ImportAddressesResponse {
        imported: stats.imported,
        skipped: skipped.collect(),
        unused,
    }
}

fn search_response(result: GeocodeResult, coverage: &Coverage) -> proto::SearchAddressesResponse {
    match result {
        GeocodeResult::Found(address) => {
            match coverage.rejection_of_address(&address.formatted, address.lat_lng) {
                None => proto::SearchAddressesResponse {
                    found: Some(found(address)),
                    ..proto::SearchAddressesResponse::default()
                },
                Some(rejection) => proto::SearchAddressesResponse {
                    found: None,
                    not_found_reason: rejection,
                    candidates: vec![found(address)],
                },
            }
        }
        GeocodeResult::Partial(unclear) => proto::SearchAddressesResponse {
            found: None,
            not_found_reason: unclear.to_string(),
            candidates: unclear.candidates.into_iter().map(found).collect(),
        },
        GeocodeResult::NotFound => proto::SearchAddressesResponse {
            not_found_reason: "found nothing".to_owned(),
            ..proto::SearchAddressesResponse::default()
        },
    }
}

fn found(found: GeocodeMatch) -> proto::FoundAddress {
    proto::FoundAddress {
        formatted_address: found.formatted,
        postal_code: found.postal_code,
        address_locality: found.locality,
        address_country: found.country,
        lat_lng: Some(messages::lat_lng(found.lat_lng)),
        precision: found.precision.to_string(),
        confidence: found.confidence,
        reasons: found.reasons,
    }
}
