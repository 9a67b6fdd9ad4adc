//! `Debug` of the messages that contain secrets: without them. `build.rs` derives none for these.

use std::fmt;

use crate::{
    AccessToken, ApiClient, GetTrackingLogoRequest, GetTrackingRequest, IssueTokenRequest,
    Notification, Webhook,
};

macro_rules! redacted {
    ($($message:ident { $($field:ident),* })+) => {$(
        impl fmt::Debug for $message {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($message))
                    $(.field(stringify!($field), &self.$field))*
                    .finish_non_exhaustive()
            }
        }
    )+};
}

redacted! {
    GetTrackingRequest {}
    GetTrackingLogoRequest {}
    IssueTokenRequest { api_key, scopes }
    AccessToken { expires_in, scopes }
    ApiClient { name, store, display_name, api_key, scopes, task_status, create_time, disable_time }
    Webhook { name, event, url, create_time, disable_time, disabled_reason, overlap_end_time }
    Notification { name, event, object, attempt }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_of_a_message_is_shown() {
        let secret = || "secret".to_owned();
        let messages: [&dyn fmt::Debug; 7] = [
            &GetTrackingRequest { token: secret() },
            &GetTrackingLogoRequest { token: secret() },
            &IssueTokenRequest {
                api_secret: secret(),
                ..Default::default()
            },
            &AccessToken {
                access_token: secret(),
                ..Default::default()
            },
            &ApiClient {
                api_secret: secret(),
                ..Default::default()
            },
            &Webhook {
                secret: secret(),
                ..Default::default()
            },
            &Notification {
                secrets: vec![secret()],
                lease_token: secret(),
                ..Default::default()
            },
        ];

        for message in messages {
            let shown = format!("{message:?}");
            assert!(!shown.contains("secret"), "{shown}");
        }
    }
}
