//! `/api/tasks/{id}/failure_reasons`: why a task can fail, in the client's language.

use std::{collections::BTreeMap, sync::LazyLock};

use proto::{
    GetTaskRequest,
    iri::{self, Collection},
    tasks_client::TasksClient,
};
use serde::{Deserialize, Serialize};

use crate::{
    core_pool::rpc,
    representation::{
        collection, json_ld,
        language::{self, AcceptLanguage},
    },
    request::{HandlerResult, Request},
};

/// The codes that core knows, in its order.
static REASONS: LazyLock<Vec<Reason>> = LazyLock::new(|| {
    let reasons = serde_json::from_str(include_str!("failure_reasons.json"));
    reasons.expect("a test parses it")
});

#[derive(Debug, Deserialize)]
struct Reason {
    code: String,
    /// By language.
    #[serde(flatten)]
    descriptions: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "@type")]
struct FailureReason {
    code: &'static str,
    description: &'static str,
}

/// `GET /api/tasks/{id}/failure_reasons`: the same for each task that the caller may read.
pub(crate) async fn list(request: Request) -> HandlerResult {
    let name = Collection::Tasks.name(&request.parameter);
    let path = format!("{}/failure_reasons", iri::of(&name));
    request
        .call(GetTaskRequest { name }, rpc!(TasksClient.get_task))
        .await?;

    let language = AcceptLanguage::of(request.headers()).of_messages();
    let reasons = REASONS.iter().filter_map(|reason| {
        let description = reason.descriptions.get(language)?;
        Some(FailureReason {
            code: &reason.code,
            description,
        })
    });
    let reasons = collection::Collection::whole(&path, reasons.collect());
    let response = json_ld::ok("/api/contexts/FailureReason", &reasons)?;
    Ok(language::declare(response, Some(language)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proto::language::LANGUAGES;

    use super::*;

    #[test]
    fn every_reason_has_a_description_in_each_language() {
        let languages: BTreeSet<_> = LANGUAGES.into_iter().collect();
        for Reason { code, descriptions } in REASONS.iter() {
            let described: BTreeSet<_> = descriptions.keys().map(String::as_str).collect();
            assert_eq!(described, languages, "{code}");
        }
        let codes: BTreeSet<_> = REASONS.iter().map(|reason| &reason.code).collect();
        assert_eq!((codes.len(), REASONS.len()), (21, 21));
    }
}
