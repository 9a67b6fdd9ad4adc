//! Query parameters and request headers, and those that several operations have.

/// A query parameter or a request header.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    /// `query` or `header`.
    pub(in crate::api_description) location: &'static str,
    pub(in crate::api_description) description: &'static str,
    /// The JSON Schema of a value.
    pub(in crate::api_description) schema: &'static str,
    /// Whether it may occur several times, for several values.
    pub(crate) is_repeatable: bool,
    /// The member that it filters a list by; empty if it is no filter.
    pub(crate) property: &'static str,
}

impl Parameter {
    /// Of every `POST` that writes.
    pub(super) const IDEMPOTENCY_KEY: Self = Self::header(
        "Idempotency-Key",
        "A unique key for this request, such as a random UUID. Within 7 days, a request with the \
         same key is not executed again; it gets the stored response.",
        r#"{"type": "string", "maxLength": 255, "pattern": "^[!-~]([ -~]*[!-~])?$"}"#,
    );
    pub(super) const ITEMS_PER_PAGE: Self = Self::query(
        "itemsPerPage",
        "The number of items per page.",
        r#"{"type": "integer", "minimum": 1, "maximum": 100, "default": 30}"#,
    );
    pub(super) const CURSOR: Self = Self::query(
        "cursor",
        "The start of the page, from a link in `hydra:view`.",
        r#"{"type": "string"}"#,
    );

    pub(super) const PAGE: Self = Self::query(
        "page",
        "Can only be 1, for Hydra clients that send it: `hydra:view` links to the other pages.",
        r#"{"type": "integer", "minimum": 1, "maximum": 1, "default": 1}"#,
    );
    pub(super) const ORDER: Self = Self::query(
        "order[id]",
        "Has no effect, for Hydra clients that send it: a list has one order.",
        r#"{"type": "string", "enum": ["ASC", "DESC"]}"#,
    );

    pub(super) const fn query(
        name: &'static str,
        description: &'static str,
        schema: &'static str,
    ) -> Self {
        Self {
            name,
            location: "query",
            description,
            schema,
            is_repeatable: false,
            property: "",
        }
    }

    pub(super) const fn header(
        name: &'static str,
        description: &'static str,
        schema: &'static str,
    ) -> Self {
        Self {
            location: "header",
            ..Self::query(name, description, schema)
        }
    }

    /// Makes it a filter by a member of the listed resources.
    pub(super) const fn filters(mut self, property: &'static str) -> Self {
        self.property = property;
        self
    }

    pub(super) const fn repeatable(mut self) -> Self {
        self.is_repeatable = true;
        self
    }
}
