//! Localized labels of the choices.

use hyper::{Method, header::ACCEPT_LANGUAGE};

use super::{CHOICES, advance_to, definition, members};
use crate::harness::{ApiClient, Platform};

on_both_databases! {
    /// "Label in the language of `Accept-Language` (falling back to the platform's) […]; beyond
    /// tomorrow the weekday **and the date**."
    async fn a_label_is_in_the_language_that_the_client_accepts(platform: &Platform) {
        let (today, later) = (0, 2);
        platform
            .operator()
            .await
            .apply_time_slot(
                &platform.store,
                &definition(r#"["Mo-Su 12:00-14:00"]"#, "3 days", ""),
            )
            .await;
        let client = platform.client().await;

        for language in [
            "en",
            "en-GB",
            "en-US,en;q=0.9,fr;q=0.8",
            "EN",
            "tlh, en;q=0.5",
            "fr;q=0.2, en;q=0.3",
            "fr;q=0, en;q=0.1",
        ] {
            let labels = labels(&client, Some(language)).await;
            assert_eq!(labels[today], "Today between 12:00 and 14:00", "{language}");
            assert_eq!(labels[1], "Tomorrow between 12:00 and 14:00", "{language}");
            let label = &labels[later];
            assert!(
                label.starts_with("Saturday")
                    && label.contains('4')
                    && label.ends_with(" between 12:00 and 14:00"),
                "{label}"
            );
        }
        for language in [
            "fr",
            "fr-FR,fr;q=0.9,en-US;q=0.8,en;q=0.7",
            "fr-CA",
            "tlh, fr;q=0.5",
            "en;q=0.2, fr",
            "en;q=0, fr;q=0.1",
        ] {
            let labels = labels(&client, Some(language)).await;
            assert_eq!(
                labels[today], "Aujourd'hui entre 12:00 et 14:00",
                "{language}"
            );
            assert_eq!(labels[1], "Demain entre 12:00 et 14:00", "{language}");
            let label = &labels[later];
            assert!(
                label.to_lowercase().starts_with("samedi")
                    && label.contains('4')
                    && label.ends_with(" entre 12:00 et 14:00"),
                "{label}"
            );
        }
        let fallback = labels(&client, None).await;
        for language in ["tlh", "*", "", ";;;q=,", "en;q=x;q"] {
            assert_eq!(labels(&client, Some(language)).await.len(), 3, "{language}");
        }
        assert_eq!(labels(&client, Some("tlh")).await, fallback);
        assert_eq!(labels(&client, Some("")).await, fallback);

        // 00:30 in Paris is still the previous day in UTC.
        advance_to(platform, "2020-04-03T00:30+02:00");
        let client = platform.client().await;
        let labels = labels(&client, Some("en")).await;
        assert_eq!(labels[today], "Today between 12:00 and 14:00");
    }
}

async fn labels(client: &ApiClient, language: Option<&str>) -> Vec<String> {
    let mut request = client.request(Method::GET, CHOICES);
    if let Some(language) = language {
        request = request.header(ACCEPT_LANGUAGE, language);
    }
    members(&client.send(request, "").await.expect(200), "label")
}
