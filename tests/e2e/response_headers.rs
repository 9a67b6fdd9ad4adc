//! Headers of every response, over HTTP/1 and HTTP/2: `X-Content-Type-Options: nosniff`, and a
//! `Cache-Control` by which no cache keeps what depends on a token, or on the moment.

mod checks;
mod resources;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use delivery::RateLimitConfig;

use self::{
    checks::Checks,
    resources::{Resources, forms},
};
use crate::harness::{Database, Documentation, Mismatches, Platform, eventually};

/// Far longer than a response takes.
const TIMEOUT: Duration = Duration::from_mins(1);

/// `Cache-Control` of errors, and of responses to changes.
const UNKEPT: &str = "private, no-store";

/// Every operation, those that end a resource last: its request, a body, and of its success the status and
/// `Cache-Control`. [`Resources`] has what `<…>` stands for.
const OPERATIONS: &str = "
POST /oauth2/token                            <form>     200  no-store
GET /.well-known/oauth-authorization-server   -          200  no-cache
GET /oauth2/jwks                              -          200  public, max-age=30
POST /api/deliveries                          <draft>    201  private, no-store
GET /api/deliveries                           -          200  private, no-cache
POST /api/deliveries/assert                   <draft>    200  private, no-store
GET /api/deliveries/{id}                      -          200  private, no-cache
GET /api/tasks/{id}                           -          200  private, no-cache
GET /api/tasks/{id}/events                    -          200  private, no-cache
GET /api/tasks/{id}/incidents                 -          200  private, no-cache
GET /api/tasks/{id}/failure_reasons           -          200  private, no-cache
POST /api/incidents                           <incident>  200  private, no-store
POST /api/task_images                         <image>    201  private, no-store
POST /api/incident_images                     <image>    201  private, no-store
GET /api/images/{id}                          -          200  private, no-cache
PUT /api/tasks/{id}/start                     {}         200  private, no-store
PUT /api/tasks/{id}/failed                    <reason>   200  private, no-store
PUT /api/tasks/{id}/reschedule                <window>   200  private, no-store
PUT /api/tasks/{id}/assign                    <courier>  200  private, no-store
PUT /api/tasks/{id}/unassign                  {}         200  private, no-store
PUT /api/tasks/{id}/done                      {}         200  private, no-store
PUT /api/tasks/{id}/reopen                    {}         200  private, no-store
PATCH /api/tasks/{id}                         <texts>    200  private, no-store
PUT /api/tasks/done                           <batch>    200  private, no-store
POST /api/retail_prices/calculate             <draft>    200  private, no-store
GET /api/retail_prices/{token}                -          200  private, no-cache
GET /api/time_slots/choices                   -          200  private, no-cache
GET /api/time_slots/{id}/choices              -          200  private, no-cache
GET /api/time_slots/{id}                      -          200  private, no-cache
POST /api/webhooks                            <webhook>  201  no-store
GET /api/webhooks                             -          200  private, no-cache
GET /api/webhooks/{id}                        -          200  private, no-cache
POST /api/webhooks/{id}/disable               {}         200  private, no-store
POST /api/webhooks/{id}/enable                {}         200  private, no-store
POST /api/webhooks/{id}/rotate_secret         {}         200  no-store
POST /api/webhooks/{id}/confirm_secret        {}         200  private, no-store
GET /api/webhooks/{id}/notifications          -          200  private, no-cache
POST /api/webhooks/{id}/recover               <since>    200  private, no-store
POST /api/webhooks/{id}/test                  {}         200  private, no-store
GET /api/notifications/{id}                   -          200  private, no-cache
POST /api/notifications/{id}/resend           {}         200  private, no-store
GET /api/events                               -          200  private, no-cache
GET /api/events/{id}                          -          200  private, no-cache
GET /api/me                                   -          200  private, no-cache
GET /api/api_apps/{id}                        -          200  private, no-cache
GET /api/stores/{id}                          -          200  private, no-cache
GET /api/settings                             -          200  no-cache
GET /t/{trackingToken}                        -          200  private, no-cache
GET /t/{trackingToken}/files/logo             -          200  no-cache
GET /t/files/{asset}                          -          200  no-cache
GET /api                                      -          200  no-cache
GET /api/contexts/{name}                      -          200  no-cache
GET /api/docs.jsonld                          -          200  no-cache
GET /api/docs.json                            -          200  no-cache
GET /api/docs                                 -          200  no-cache
GET /api/docs/{asset}                         -          200  no-cache
GET /                                         -          200  no-cache
GET /errors                                   -          200  no-cache
GET /errors/{code}                            -          200  no-cache
GET /healthz                                  -          200  no-store
GET /readyz                                   -          200  no-store
DELETE /api/deliveries/{id}                   -          204  private, no-store
DELETE /api/webhooks/{id}                     -          204  private, no-store
";

/// Other kinds of responses: the request, a header, a body, the status and `Cache-Control`. The second response
/// to an idempotency key is the stored one.
const OTHERS: &str = "
GET /api/docs.json              accept-encoding: gzip           -              200  no-cache
POST /api/webhooks              idempotency-key: k              <webhook>      201  no-store
POST /api/webhooks              idempotency-key: k              <webhook>      201  no-store
POST /api/webhooks              idempotency-key: k              <other>        422  private, no-store
GET /api                        host: a@b                       -              400  private, no-store
GET /api/deliveries?nonsense=1  -                               -              400  private, no-store
POST /api/deliveries            -                               {}             400  private, no-store
POST /oauth2/token              -                               grant_type=a   400  no-store
POST /oauth2/token              -                               <wrong form>   401  no-store
GET /api/deliveries             authorization: Bearer a.b.c     -              401  private, no-store
GET /api/deliveries             authorization: Bearer <tasks>   -              403  private, no-store
GET /nonsense                   -                               -              404  private, no-store
HEAD /nonsense                  -                               -              404  private, no-store
OPTIONS /nonsense               -                               -              404  private, no-store
GET /errors/nonsense            accept: text/html               -              404  private, no-store
GET /t/nonsense                 accept: text/html               -              404  private, no-store
GET /api/deliveries             accept: text/html               -              406  private, no-store
DELETE <completed>              -                               -              409  private, no-store
GET /api/deliveries             if-match: \"a\"                 -              412  private, no-store
POST /api/deliveries            -                               <large>        413  private, no-store
POST /oauth2/token              -                               <large>        413  private, no-store
POST /api/deliveries            content-type: text/plain        <draft>        415  private, no-store
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_response_forbids_sniffing_and_says_who_may_keep_it() {
    let platform = Platform::start(Database::sqlite()).await;
    let documentation = Documentation::of(&platform.base_url).await;
    let documented: BTreeMap<_, _> = documentation
        .operations()
        .map(|(method, path, operation)| (format!("{method} {path}"), operation))
        .collect();
    let mut mismatches = Mismatches::default();
    let anonymous = platform.anonymous_client();
    eventually(TIMEOUT, "the gateway is not ready", async || {
        (anonymous.get("/readyz").await.status == 200).then_some(())
    })
    .await;

    let rows = OPERATIONS.trim().lines();
    let listed: BTreeSet<_> = rows.map(|row| columns::<4>(row)[0]).collect();
    let served = documented.keys().map(String::as_str).collect();
    for operation in listed.symmetric_difference(&served) {
        mismatches.check(operation, false, "is served or in OPERATIONS, but not both");
    }
    for version in ["HTTP/1", "HTTP/2"] {
        let resources = Resources::create(&platform).await;
        let texts = resources.texts.clone();
        let mut checks = Checks::new(version, &platform, texts, &mut mismatches);
        checks.check_successes(&documented, &resources).await;
        checks.check_common_responses(&documented).await;
        checks.check_others().await;
    }
    check_exhausted_limits(&mut mismatches).await;

    mismatches.assert_none();
    platform.stop().await;
}

async fn check_exhausted_limits(mismatches: &mut Mismatches) {
    let platform = Platform::start_with(Database::sqlite(), |settings| {
        settings.rate_limits = Some(RateLimitConfig {
            client: "1/1d".parse().unwrap(),
            token_client: "1/1d".parse().unwrap(),
            ..RateLimitConfig::off()
        });
    })
    .await;

    for version in ["HTTP/1", "HTTP/2"] {
        let mut checks = Checks::new(version, &platform, forms(&platform), mismatches);
        for (request, body) in [("GET /api", ""), ("POST /oauth2/token", "<form>")] {
            checks.send(request, &[], body).await;
            checks.check(request, &[], body, 429, UNKEPT).await;
        }
    }
    platform.stop().await;
}

/// The columns of a row, with two spaces or more between them; `-` is empty.
fn columns<const N: usize>(row: &str) -> [&str; N] {
    let columns = row.split("  ").map(str::trim);
    let columns = columns.filter(|column| !column.is_empty());
    let texts = columns.map(|column| if column == "-" { "" } else { column });
    texts.collect::<Vec<_>>().try_into().unwrap()
}
