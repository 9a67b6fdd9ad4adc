//! What the path of a call says about it.

/// The path prefix of the platform's services. Health checks and reflection have others.
const PLATFORM: &str = "/delivery.v1.";

const TOKENS: &str = "/delivery.v1.Tokens/";

pub(crate) fn is_of_platform(path: &str) -> bool {
    path.starts_with(PLATFORM)
}

/// Whether a call needs no caller.
pub(crate) fn is_public(path: &str) -> bool {
    !is_of_platform(path) || is_of_tokens(path)
}

pub(crate) fn is_of_tokens(path: &str) -> bool {
    path.starts_with(TOKENS)
}

/// Calls that are limited together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CallKind {
    /// A page, which costs a hundred times as much as another call.
    List,
    Other,
}

impl CallKind {
    pub(crate) fn of(path: &str) -> Self {
        let rpc = path.rsplit('/').next().unwrap_or_default();
        // The choices of a time slot are computed, not read.
        if rpc.starts_with("List") && rpc != "ListTimeSlotChoices" {
            Self::List
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_calls_of_the_platform_but_token_requests_need_a_caller() {
        for (path, of_platform, public) in [
            ("/delivery.v1.Tasks/GetTask", true, false),
            ("/delivery.v1.Tokens/IssueToken", true, true),
            ("/delivery.v1.TokensOfOthers/GetToken", true, false),
            ("/grpc.health.v1.Health/Check", false, true),
        ] {
            let read = (is_of_platform(path), is_public(path));
            assert_eq!(read, (of_platform, public), "{path}");
        }
    }

    #[test]
    fn pages_are_known_by_the_names_of_their_rpcs() {
        for (path, expected) in [
            ("/delivery.v1.Deliveries/ListDeliveries", CallKind::List),
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
