//! `delivery clients`: create, list, disable, rotate-secret.

use delivery::Credentials;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::harness::{
    Platform, UNKNOWN_ID,
    all_in_one::{credentials, stderr},
};

const TOKEN_FORM: [(&str, &str); 1] = [("grant_type", "client_credentials")];

const DAY: SignedDuration = SignedDuration::from_hours(24);
const SECOND: SignedDuration = SignedDuration::from_secs(1);

on_both_databases! {
    async fn a_client_is_created_with_a_secret_that_is_shown_once(platform: &Platform) {
        let store = platform.run_delivery_json(&["stores", "create", "--name=Shop"]).await;
        let store = text(&store["id"]);
        let created = platform
            .run_delivery_json(&[
                "clients", "create", "--store", &store, "--name=Website",
                "--scopes=tasks deliveries", "--lat-lng=48.8425,2.3445", "--address=Back door",
            ])
            .await;
        let (id, key, secret) =
            (text(&created["id"]), text(&created["api_key"]), text(&created["api_secret"]));
        let mut client = json!({
            "id": id,
            "api_key": key,
            "api_secret": secret,
            "store": store,
            "name": "Website",
            "scopes": ["deliveries", "tasks"],
            "task_status": "specified",
            "address": "Back door",
            "created_at": "2020-04-02T09:00:00+00:00",
            "disabled_at": null,
        });
        assert_eq!(created, client);
        assert_eq!(token_status(platform, &key, &secret).await, 200);

        let list = ["clients", "list", "--store", &store];
        client.as_object_mut().unwrap().remove("api_secret");
        assert_eq!(platform.run_delivery_json(&list).await, json!([client]));
        assert_eq!(
            platform.run_delivery(&list).await,
            format!(
                "{:36}  name     {:36}  scopes            task status  address    disabled  api key\n\
                 {id}  Website  {store}  deliveries tasks  specified    Back door            {key}\n",
                "id", "store",
            )
        );
        let all = platform.run_delivery_json(&["clients", "list"]).await;
        let names: Vec<_> = all.as_array().unwrap().iter().map(|client| text(&client["name"])).collect();
        assert_eq!(names, ["Demo shop", "Operator", "Webhook dispatcher", "Website"]);
    }

    async fn disabling_a_client_ends_its_tokens_and_denies_new_ones(platform: &Platform) {
        let created = create(platform).await;
        let (id, key, secret) =
            (text(&created["id"]), text(&created["api_key"]), text(&created["api_secret"]));
        let client = platform.client_for(&credentials(&created), &["deliveries"]).await;
        assert_eq!(client.get("/api/me").await.status, 200);

        platform.advance(SECOND);
        let disable = ["clients", "disable", &id];
        let printed = platform.run_delivery(&disable).await;
        assert_eq!(
            printed,
            format!(
                "id           {id}\n\
                 name         Till\n\
                 store        {}\n\
                 scopes       deliveries\n\
                 task status  specified\n\
                 disabled     2020-04-02T09:00:01+00:00\n\
                 api key      {key}\n\
                 webhooks     0 disabled\n",
                text(&created["store"])
            )
        );
        assert_eq!(token_status(platform, &key, &secret).await, 401);
        platform.advance(SignedDuration::from_mins(1));
        assert_eq!(client.get("/api/me").await.status, 401);

        // Disabling again keeps the first time.
        assert_eq!(platform.run_delivery(&disable).await, printed);
        let rotate = ["clients", "rotate-secret", &id];
        let rejected = platform.run_delivery_output(&rotate).await;
        assert_eq!(rejected.status.code(), Some(1));
        assert_eq!(stderr(&rejected), "the client is disabled; create a new one\n");
    }

    async fn an_old_secret_is_valid_for_another_day(platform: &Platform) {
        let created = create(platform).await;
        let (id, key, old) =
            (text(&created["id"]), text(&created["api_key"]), text(&created["api_secret"]));
        let client = platform.client_for(&credentials(&created), &["deliveries"]).await;

        let rotated = platform.run_delivery_json(&["clients", "rotate-secret", &id]).await;

        let mut expected = created.clone();
        expected["api_secret"] = rotated["api_secret"].clone();
        assert_eq!(rotated, expected);
        let new = text(&rotated["api_secret"]);
        assert_ne!(new, old);
        assert_eq!(client.get("/api/me").await.status, 200);
        platform.advance(DAY - SECOND);
        for secret in [&old, &new] {
            assert_eq!(token_status(platform, &key, secret).await, 200);
        }
        platform.advance(SECOND);
        assert_eq!(token_status(platform, &key, &old).await, 401);
        assert_eq!(token_status(platform, &key, &new).await, 200);
    }

    async fn every_replaced_secret_is_valid_until_its_own_overlap_ends(platform: &Platform) {
        let created = create(platform).await;
        let (id, key, first) =
            (text(&created["id"]), text(&created["api_key"]), text(&created["api_secret"]));
        let rotate = ["clients", "rotate-secret", &id];

        let second = text(&platform.run_delivery_json(&rotate).await["api_secret"]);
        platform.advance(SECOND);
        let printed = platform.run_delivery(&rotate).await;

        let third = printed.lines().last().unwrap().strip_prefix("api secret   ").unwrap();
        assert_eq!(
            printed,
            format!(
                "id           {id}\n\
                 name         Till\n\
                 store        {}\n\
                 scopes       deliveries\n\
                 task status  specified\n\
                 api key      {key}\n\
                 api secret   {third}\n",
                text(&created["store"])
            )
        );
        for (elapsed, expected) in [
            (SignedDuration::ZERO, [200, 200, 200]),
            (DAY - SECOND - SECOND, [200, 200, 200]),
            (SECOND, [401, 200, 200]),
            (SECOND, [401, 401, 200]),
        ] {
            platform.advance(elapsed);
            for (secret, expected) in [first.as_str(), &second, third].into_iter().zip(expected) {
                assert_eq!(token_status(platform, &key, secret).await, expected, "{elapsed}");
            }
        }
    }

    async fn an_overlap_of_0_ends_all_replaced_secrets(platform: &Platform) {
        let created = create(platform).await;
        let (id, key, first) =
            (text(&created["id"]), text(&created["api_key"]), text(&created["api_secret"]));
        let rotate = async |overlap: &str| {
            let command = ["clients", "rotate-secret", &id, "--overlap", overlap];
            text(&platform.run_delivery_json(&command).await["api_secret"])
        };

        let second = rotate("60s").await;
        let third = rotate("0").await;

        for (secret, expected) in [(&first, 401), (&second, 401), (&third, 200)] {
            assert_eq!(token_status(platform, &key, secret).await, expected);
        }
        let fourth = rotate("60s").await;
        platform.advance(SECOND * 60);
        for (secret, expected) in [(&third, 401), (&fourth, 200)] {
            assert_eq!(token_status(platform, &key, secret).await, expected);
        }
        let too_long = ["clients", "rotate-secret", &id, "--overlap=604801s"];
        let rejected = platform.run_delivery_output(&too_long).await;
        assert_eq!(rejected.status.code(), Some(1));
        assert_eq!(stderr(&rejected), "--overlap: must be at most 604800, not 604801\n");
    }

    /// A rotation never shortens the overlap of an earlier one: beyond the limit it is refused.
    async fn a_rotation_is_refused_while_five_replaced_secrets_are_valid(platform: &Platform) {
        let created = create(platform).await;
        let (id, key) = (text(&created["id"]), text(&created["api_key"]));
        let rotate = ["clients", "rotate-secret", &id];
        let mut secrets = vec![text(&created["api_secret"])];
        for _ in 0..5 {
            secrets.push(text(&platform.run_delivery_json(&rotate).await["api_secret"]));
            platform.advance(SECOND);
        }

        let refused = platform.run_delivery_output(&rotate).await;

        assert_eq!(refused.status.code(), Some(1));
        assert_eq!(
            stderr(&refused),
            "5 replaced secrets of this client are still valid: rotate after \
             2020-04-03T09:00:00Z, when the first of them expires, or with an overlap of 0, which \
             invalidates all of them at once\n"
        );
        for secret in &secrets {
            assert_eq!(token_status(platform, &key, secret).await, 200);
        }
        platform.advance(DAY - SECOND * 5);
        let seventh = text(&platform.run_delivery_json(&rotate).await["api_secret"]);
        assert_eq!(token_status(platform, &key, &secrets[0]).await, 401);
        for secret in secrets[1..].iter().chain([&seventh]) {
            assert_eq!(token_status(platform, &key, secret).await, 200);
        }
        let eighth = platform.run_delivery_json(&[&rotate[..], &["--overlap=0"]].concat()).await;
        assert_eq!(token_status(platform, &key, &seventh).await, 401);
        assert_eq!(token_status(platform, &key, &text(&eighth["api_secret"])).await, 200);
    }

    /// Internal scopes cover the data of all stores.
    async fn a_client_of_a_store_has_no_internal_scopes(platform: &Platform) {
        let create = |scopes| {
            ["clients", "create", "--store", &platform.store, "--name=Website", scopes]
        };
        for (scopes, internal) in [
            ("--scopes=admin", &["admin"][..]),
            ("--scopes=deliveries tasks:all notifications", &["tasks:all", "notifications"]),
        ] {
            let arguments = create(scopes);
            let rejected = platform.run_delivery_output(&arguments).await;

            assert_eq!(rejected.status.code(), Some(1));
            let line = |scope: &&str| format!(
                "--scopes: {scope} is only for the platform's own programs: omit it, or create a \
                 separate client without a store for such a program\n"
            );
            assert_eq!(stderr(&rejected), internal.iter().map(line).collect::<String>());
        }
        let clients = platform.run_delivery_json(&["clients", "list", "--store", &platform.store]).await;
        assert_eq!(clients.as_array().unwrap().len(), 1, "the demo shop's");
    }

    async fn invalid_client_arguments_are_reported_by_flag(platform: &Platform) {
        let unknown = UNKNOWN_ID;
        for (arguments, expected) in [
            (
                &["clients", "create", "--name= ", "--scopes=deliveries fly"][..],
                &["--name", "--scopes", "--store"][..],
            ),
            (&["clients", "create", "--name=X", "--scopes="], &["--scopes"]),
        ] {
            let rejected = platform.run_delivery_output(arguments).await;
            assert_eq!(rejected.status.code(), Some(1));
            let errors = stderr(&rejected);
            let flags: Vec<_> = errors.lines().map(|line| line.split(": ").next().unwrap()).collect();
            assert_eq!(flags, expected, "{errors}");
        }
        for (arguments, missing) in [
            (&["clients", "disable", unknown][..], format!("api_apps/{unknown}")),
            (&["clients", "rotate-secret", unknown], format!("api_apps/{unknown}")),
            (&["clients", "list", "--store", unknown], format!("stores/{unknown}")),
            (
                &["clients", "create", "--name=X", "--scopes=tasks", "--store", unknown],
                format!("stores/{unknown}"),
            ),
        ] {
            let rejected = platform.run_delivery_output(arguments).await;
            assert_eq!(rejected.status.code(), Some(1));
            assert_eq!(stderr(&rejected), format!("{missing} does not exist\n"));
        }
    }
}

/// Also a core that did not disable the client rejects its tokens within 60 s.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_disabled_on_one_core_is_rejected_by_every_core_within_a_minute() {
    let Some([first, second]) = Platform::start_two().await else {
        return;
    };
    let client = second.client().await;
    assert_eq!(client.get("/api/me").await.status, 200);

    let operator = first.operator().await;
    operator.disable_client(&first.demo_client).await;

    let form = [("grant_type", "client_credentials")];
    let rejected = client.request_token(&second.demo_client, &form).await;
    assert_eq!(rejected.status, 401);
    second.advance(SignedDuration::from_mins(1));
    assert_eq!(client.get("/api/me").await.status, 401);
    Platform::stop_both([first, second]).await;
}

/// Creates a client of the demo store.
async fn create(platform: &Platform) -> Value {
    let store = &platform.store;
    let arguments = [
        "clients",
        "create",
        "--store",
        store,
        "--name=Till",
        "--scopes=deliveries",
    ];
    platform.run_delivery_json(&arguments).await
}

/// The status of a token request with this key and secret.
async fn token_status(platform: &Platform, api_key: &str, api_secret: &str) -> u16 {
    let credentials = Credentials {
        api_key: api_key.to_owned(),
        api_secret: api_secret.to_owned(),
    };
    let anonymous = platform.anonymous_client();
    anonymous
        .request_token(&credentials, &TOKEN_FORM)
        .await
        .status
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
