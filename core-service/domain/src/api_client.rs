//! API clients: OAuth 2.0 clients and their scopes.

use jiff::Timestamp;

use crate::{
    address::Address,
    api_secrets::{ApiSecrets, ValidSecret},
    id::{ApiClientId, CourierId, StoreId},
    named_enum::named_enum,
};

named_enum! {
    /// A permission of a token.
    pub enum Scope("scope", " ") {
        /// Create, read and cancel own deliveries; create and read quotes; read time slots and the
        /// own store.
        Deliveries = "deliveries",
        /// Read own tasks.
        Tasks = "tasks",
        /// Read and complete any task; watch the events of all stores.
        TasksAll = "tasks:all",
        /// Read and change any task; read and cancel any delivery; couriers and their lists.
        Dispatch = "dispatch",
        /// Read what `dispatch` reads.
        DispatchRead = "dispatch:read",
        /// Read and work the tasks of one courier.
        Courier = "courier",
        /// Open a dispatcher stream and report outcomes.
        Notifications = "notifications",
        /// Read the stores, and their webhooks and notifications.
        PlatformRead = "platform:read",
        /// Run operator commands, and what `dispatch` and `platform:read` permit; watch the events of all stores.
        Admin = "admin",
    }
}

impl Scope {
    /// Whether a client with this scope must belong to a store, whose resources the scope covers.
    /// The other scopes are internal: they cover all stores, so that a client with one of them must
    /// not belong to a store.
    pub const fn requires_store(self) -> bool {
        matches!(self, Self::Deliveries | Self::Tasks)
    }

    /// Whether it permits all that another one permits.
    const fn includes(self, other: Self) -> bool {
        match other {
            Self::Dispatch | Self::PlatformRead => matches!(self, Self::Admin),
            Self::DispatchRead => matches!(self, Self::Admin | Self::Dispatch),
            _ => false,
        }
    }
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

named_enum! {
    /// What the REST API shows a client as the `status` of tasks.
    pub enum TaskStatus("task status", ", ") {
        /// `DONE`, and `TODO` in any other state, as the specification says.
        Specified = "specified",
        /// The state.
        Full = "full",
    }
}

impl TaskStatus {
    /// That of a client whose operator has chosen none: couriers and dispatch see the state.
    pub fn default_of(scopes: &Scopes) -> Self {
        let full = [Scope::Courier, Scope::Dispatch, Scope::DispatchRead];
        if full.into_iter().any(|scope| scopes.contains(scope)) {
            Self::Full
        } else {
            Self::Specified
        }
    }
}

/// A set of scopes, in a fixed order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scopes(Vec<Scope>);

impl Scopes {
    pub fn new(scopes: impl IntoIterator<Item = Scope>) -> Self {
        let given: Vec<_> = scopes.into_iter().collect();
        Self(
            Scope::ALL
                .into_iter()
                .filter(|scope| given.contains(scope))
                .collect(),
        )
    }

    /// Reads a space-separated list (RFC 6749 §3.3).
    pub fn parse(text: &str) -> Result<Self, String> {
        text.split_ascii_whitespace()
            .map(str::parse)
            .collect::<Result<Vec<_>, _>>()
            .map(Self::new)
    }

    /// Reads a list that another version may have written: without the scopes that only it knows.
    pub fn parse_known(text: &str) -> Self {
        let names = text.split_ascii_whitespace();
        Self::new(names.filter_map(|name| name.parse().ok()))
    }

    pub fn contains(&self, scope: Scope) -> bool {
        self.0.contains(&scope)
    }

    /// Whether one of them is a scope or includes it.
    pub fn permits(&self, scope: Scope) -> bool {
        self.contains(scope) || self.iter().any(|held| held.includes(scope))
    }

    pub fn iter(&self) -> impl Iterator<Item = Scope> + '_ {
        self.0.iter().copied()
    }

    fn joined(&self, separator: &str) -> String {
        let names: Vec<_> = self.iter().map(Scope::as_str).collect();
        names.join(separator)
    }
}

impl std::fmt::Display for Scopes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.joined(" "))
    }
}

#[derive(Clone, Debug)]
pub struct ApiClient {
    pub id: ApiClientId,
    /// `None` for a client of the platform, such as the dispatcher.
    pub store_id: Option<StoreId>,
    /// As whom it works, with the scope `courier`.
    pub courier_id: Option<CourierId>,
    pub display_name: String,
    pub api_key: String,
    pub secrets: ApiSecrets,
    pub scopes: Scopes,
    pub task_status: TaskStatus,
    pub default_address: Option<Address>,
    pub created_at: Timestamp,
    pub disabled_at: Option<Timestamp>,
}

impl ApiClient {
    /// Finds a secret if it is valid for this client at `now`.
    pub fn accept(&self, secret: &str, now: Timestamp) -> Option<ValidSecret> {
        let accepted = self.secrets.accept(secret, now);
        accepted.filter(|_| self.disabled_at.is_none())
    }

    /// Finds the secret of a token if it is valid for this client at `now`.
    pub fn find_secret(&self, id: &str, now: Timestamp) -> Option<ValidSecret> {
        let found = self.secrets.find(id, now);
        found.filter(|_| self.disabled_at.is_none())
    }

    /// The scopes of a token. An empty request means `deliveries`, or all scopes of a client
    /// without `deliveries`.
    pub fn grant(&self, requested: &[String]) -> Result<Scopes, String> {
        if requested.is_empty() {
            return Ok(if self.scopes.contains(Scope::Deliveries) {
                Scopes::new([Scope::Deliveries])
            } else {
                self.scopes.clone()
            });
        }
        requested
            .iter()
            .map(|name| {
                name.parse()
                    .ok()
                    .filter(|scope| self.scopes.permits(*scope))
                    .ok_or_else(|| self.not_permitted(name))
            })
            .collect::<Result<Vec<_>, _>>()
            .map(Scopes::new)
    }

    fn not_permitted(&self, name: &str) -> String {
        let scope: String = name.chars().take(64).collect();
        let advice = if scope.contains(',') {
            "separate scopes with spaces; "
        } else {
            ""
        };
        let permitted = self.scopes.joined(", ");
        format!(
            "this client is not permitted the scope {scope:?}; {advice}its scopes are {permitted}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api_secrets::SecretHash;

    fn client(scopes: &str) -> ApiClient {
        ApiClient {
            id: ApiClientId::new(),
            store_id: None,
            courier_id: None,
            display_name: "Shop".to_owned(),
            api_key: "key".to_owned(),
            secrets: ApiSecrets::new(SecretHash::of("secret")),
            scopes: Scopes::parse(scopes).unwrap(),
            task_status: TaskStatus::Specified,
            default_address: None,
            created_at: Timestamp::UNIX_EPOCH,
            disabled_at: None,
        }
    }

    fn granted(scopes: &str, requested: &[&str]) -> Result<String, String> {
        let requested: Vec<_> = requested.iter().map(ToString::to_string).collect();
        client(scopes)
            .grant(&requested)
            .map(|scopes| scopes.to_string())
    }

    #[test]
    fn scopes_parse_and_print_and_those_of_a_stores_client_require_a_store() {
        for (scope, text, requires_store) in [
            (Scope::Deliveries, "deliveries", true),
            (Scope::Tasks, "tasks", true),
            (Scope::TasksAll, "tasks:all", false),
            (Scope::Dispatch, "dispatch", false),
            (Scope::DispatchRead, "dispatch:read", false),
            (Scope::Notifications, "notifications", false),
            (Scope::PlatformRead, "platform:read", false),
            (Scope::Admin, "admin", false),
        ] {
            assert_eq!(
                (text.parse(), scope.to_string()),
                (Ok(scope), text.to_owned())
            );
            assert_eq!(scope.requires_store(), requires_store, "{text}");
        }
        assert_eq!(
            "tasks:any".parse::<Scope>().unwrap_err(),
            "there is no scope \"tasks:any\"; the scopes are \
             deliveries tasks tasks:all dispatch dispatch:read courier notifications platform:read admin"
        );
    }

    #[test]
    fn scopes_are_a_set() {
        let scopes = Scopes::parse(" tasks  deliveries tasks ").unwrap();
        assert_eq!(
            scopes.iter().collect::<Vec<_>>(),
            [Scope::Deliveries, Scope::Tasks]
        );
        assert!(scopes.contains(Scope::Tasks) && !scopes.contains(Scope::Admin));
        assert_eq!(Scopes::parse(" ").unwrap(), Scopes::default());
        let known = Scopes::parse_known("tasks pilot deliveries");
        assert_eq!(known, scopes, "without those of another version");
    }

    /// "With `full` (couriers', dispatchers' […] default) both show the full word."
    #[test]
    fn couriers_and_dispatch_see_the_state_as_the_status() {
        for (scopes, expected) in [
            ("deliveries tasks", TaskStatus::Specified),
            ("tasks:all admin", TaskStatus::Specified),
            ("courier", TaskStatus::Full),
            ("tasks:all dispatch", TaskStatus::Full),
            ("dispatch:read", TaskStatus::Full),
        ] {
            let scopes = Scopes::parse(scopes).unwrap();
            assert_eq!(TaskStatus::default_of(&scopes), expected, "{scopes}");
        }
    }

    #[test]
    fn a_token_has_the_requested_scopes_if_the_client_has_them() {
        for (own, requested, expected) in [
            ("deliveries tasks", &["tasks"][..], "tasks"),
            (
                "deliveries tasks",
                &["tasks", "deliveries"],
                "deliveries tasks",
            ),
            ("deliveries tasks", &["tasks", "tasks"], "tasks"),
            ("deliveries tasks", &[], "deliveries"),
            ("tasks:all admin", &[], "tasks:all admin"),
            ("admin", &["dispatch"], "dispatch"),
            (
                "admin",
                &["platform:read", "dispatch:read"],
                "dispatch:read platform:read",
            ),
            ("dispatch", &["dispatch:read"], "dispatch:read"),
        ] {
            assert_eq!(granted(own, requested).as_deref(), Ok(expected));
        }
        assert_eq!(
            granted("deliveries", &["deliveries", "admin"]).unwrap_err(),
            "this client is not permitted the scope \"admin\"; its scopes are deliveries"
        );
        assert_eq!(
            granted("deliveries tasks", &["deliveries,tasks"]).unwrap_err(),
            "this client is not permitted the scope \"deliveries,tasks\"; separate scopes with spaces; \
             its scopes are deliveries, tasks"
        );
        assert!(granted("deliveries", &["Deliveries"]).is_err());
        for (own, requested) in [
            ("dispatch:read", "dispatch"),
            ("dispatch", "platform:read"),
            ("platform:read", "dispatch:read"),
            ("tasks:all", "dispatch:read"),
        ] {
            assert!(granted(own, &[requested]).is_err(), "{own} {requested}");
        }
    }

    #[test]
    fn a_disabled_client_accepts_no_secret() {
        let mut client = client("deliveries");
        let (now, id) = (Timestamp::UNIX_EPOCH, SecretHash::of("secret").id());
        assert!(client.accept("secret", now).is_some());
        assert!(client.find_secret(&id, now).is_some());

        client.disabled_at = Some(Timestamp::UNIX_EPOCH);

        assert_eq!(client.accept("secret", now), None);
        assert_eq!(client.find_secret(&id, now), None);
    }
}
