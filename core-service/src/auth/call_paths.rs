//! What the path of a call says about it.

/// The path prefix of the platform's services. Health checks and reflection have others.
const PLATFORM: &str = "/delivery.v1.";

/// The path prefix of the service that issues access tokens.
const TOKENS: &str = "/delivery.v1.Tokens/";

/// Whether a call goes to one of the platform's services.
pub(crate) fn is_of_platform(path: &str) -> bool {
    path.starts_with(PLATFORM)
}

/// Whether a call needs no caller.
pub(crate) fn is_public(path: &str) -> bool {
    !is_of_platform(path) || path.starts_with(TOKENS)
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
}
