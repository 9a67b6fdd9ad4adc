//! What the path of a call says about it.

/// The path prefix of the platform's services. Health checks and reflection have others.
const PLATFORM: &str = "/delivery.v1.";

const TOKENS: &str = "/delivery.v1.Tokens/";

/// Counted by the rate limit of token requests. Public keys, which are anonymous too, are not: a gateway
/// reads them for all of its clients.
pub(crate) const ISSUE_TOKEN: &str = "/delivery.v1.Tokens/IssueToken";

/// What the holder of a delivery's link may call.
pub(crate) const GET_TRACKING: &str = "/delivery.v1.Tracking/GetTracking";

pub(crate) fn is_of_platform(path: &str) -> bool {
    path.starts_with(PLATFORM)
}

/// Whether a call needs no caller.
pub(crate) fn is_public(path: &str) -> bool {
    !is_of_platform(path) || is_anonymous(path)
}

/// Whether a call of the platform needs no caller.
pub(crate) fn is_anonymous(path: &str) -> bool {
    path.starts_with(TOKENS) || path == GET_TRACKING
}

/// Calls that are limited together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CallKind {
    /// A page, which costs a hundred times as much as another call.
    List,
    /// A search for texts, which reads thousands of deliveries.
    Search,
    Other,
}

impl CallKind {
    pub(crate) fn of(path: &str) -> Self {
        let rpc = path.rsplit('/').next().unwrap_or_default();
        // The choices of a time slot are computed, not read.
        if rpc.starts_with("List") && rpc != "ListTimeSlotChoices" {
            Self::List
        } else if rpc == "SearchDeliveries" {
            Self::Search
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_calls_of_the_platform_but_token_requests_and_tracking_pages_need_a_caller() {
        for (path, of_platform, public) in [
            ("/delivery.v1.Tasks/GetTask", true, false),
            ("/delivery.v1.Tokens/IssueToken", true, true),
            ("/delivery.v1.TokensOfOthers/GetToken", true, false),
            (GET_TRACKING, true, true),
            ("/delivery.v1.Tracking/RevokeTracking", true, false),
            ("/delivery.v1.Tracking/GetTrackings", true, false),
            ("/grpc.health.v1.Health/Check", false, true),
        ] {
            let read = (is_of_platform(path), is_public(path));
            assert_eq!(read, (of_platform, public), "{path}");
        }
    }

    #[test]
    fn pages_and_searches_are_known_by_the_names_of_their_rpcs() {
        for (path, expected) in [
            ("/delivery.v1.Deliveries/ListDeliveries", CallKind::List),
            ("/delivery.v1.Deliveries/SearchDeliveries", CallKind::Search),
            ("/delivery.v1.Deliveries/GetDelivery", CallKind::Other),
            (
                "/delivery.v1.TimeSlots/ListTimeSlotChoices",
                CallKind::Other,
            ),
        ] {
            assert_eq!(CallKind::of(path), expected, "{path}");
        }
    }
}
