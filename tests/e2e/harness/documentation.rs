//! Compares every response with the OpenAPI document at `/api/docs.json`: a response that is not
//! documented, or differs from its documentation, fails the test.

use http_body_util::{BodyExt, Empty};
use hyper::{Method, body::Bytes};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::{Response, json_schema};

static DOCUMENTATION: OnceCell<Documentation> = OnceCell::const_new();

/// The OpenAPI document of all platforms in this process; only their addresses differ.
pub(crate) struct Documentation {
    document: Value,
}

impl Documentation {
    /// The document, read from the first platform that is asked for it.
    pub(crate) async fn of(base_url: &str) -> &'static Self {
        DOCUMENTATION
            .get_or_init(|| async {
                let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
                let url = format!("{base_url}/api/docs.json").parse().unwrap();
                let response = client.get(url).await.unwrap();
                assert_eq!(response.status(), 200);
                let body = response.into_body().collect().await.unwrap().to_bytes();
                Self::new(serde_json::from_slice(&body).unwrap())
            })
            .await
    }

    fn new(mut document: Value) -> Self {
        forbid_unknown_members(&mut document["components"]["schemas"]);
        Self { document }
    }

    /// Every operation: method, path template and description.
    pub(crate) fn operations(&self) -> impl Iterator<Item = (Method, &str, &Value)> {
        let paths = self.document["paths"].as_object().unwrap();
        paths.iter().flat_map(|(path, item)| {
            item.as_object().unwrap().iter().map(|(method, operation)| {
                let method = method.to_ascii_uppercase().parse().unwrap();
                (method, path.as_str(), operation)
            })
        })
    }

    /// Fails unless the response to a request is documented.
    #[track_caller]
    pub(crate) fn check(&self, method: &Method, path: &str, response: &Response) {
        if method == Method::OPTIONS {
            return;
        }
        let request = format!("{method} {path}: {}", response.status);
        let documented = self
            .response(method, path, response.status)
            .unwrap_or_else(|| {
                let body = String::from_utf8_lossy(&response.body);
                panic!("{request} is not documented; see api_description/operations. {body}")
            });

        for (name, header) in documented["headers"].as_object().into_iter().flatten() {
            let header = self.resolve(header);
            assert!(
                header["required"] != json!(true) || response.headers.contains_key(name),
                "{request} lacks the header {name}, which is documented"
            );
        }
        if method == Method::HEAD {
            return;
        }
        let Some(content) = documented["content"].as_object() else {
            assert!(
                response.body.is_empty(),
                "{request} has an undocumented body"
            );
            return;
        };
        let media_type = response.header("content-type").split(';').next().unwrap();
        let content = content
            .get(media_type)
            .unwrap_or_else(|| panic!("{request}: {media_type:?} is not documented"));
        if !media_type.ends_with("json") {
            return;
        }
        let errors = self.errors(&content["schema"], &response.json);
        assert!(
            errors.is_empty(),
            "{request} differs from its documentation: {errors:#?} in {:#}",
            response.json
        );
        if let (Some(codes), Some(code)) = (
            content["examples"].as_object(),
            response.json["code"].as_str(),
        ) {
            assert!(
                codes.contains_key(code),
                "{request}: the code {code} is not documented; see api_description/operations"
            );
        }
    }

    /// The errors of a value by one of the document's schemas.
    pub(crate) fn errors(&self, schema: &Value, value: &Value) -> Vec<String> {
        json_schema::errors(&self.document, schema, value)
    }

    /// The schema of an operation's parameter.
    pub(crate) fn parameter(&self, method: &Method, template: &str, name: &str) -> &Value {
        let method = method.as_str().to_ascii_lowercase();
        let parameters = &self.document["paths"][template][method]["parameters"];
        let mut parameters = parameters.as_array().unwrap().iter();
        let parameter = parameters.find(|parameter| parameter["name"] == name);
        &parameter.unwrap_or_else(|| panic!("{template} has no {name}"))["schema"]
    }

    /// The schema of an operation's request body.
    pub(crate) fn request_body(&self, method: &Method, template: &str, media_type: &str) -> &Value {
        let method = method.as_str().to_ascii_lowercase();
        &self.document["paths"][template][method]["requestBody"]["content"][media_type]["schema"]
    }

    /// The documentation of a response.
    fn response(&self, method: &Method, path: &str, status: u16) -> Option<&Value> {
        let method = match *method {
            Method::HEAD => &Method::GET,
            ref other => other,
        };
        let shared = |name: &str| self.document["components"]["responses"].get(name);
        let Some(template) = self.template(path) else {
            return shared("not_found").filter(|_| status == 404);
        };
        let item = &self.document["paths"][template];
        // Methods are case-sensitive: `post` is not a method.
        let operations = item.as_object().unwrap().iter();
        let mut operations =
            operations.map(|(name, operation)| (name.to_ascii_uppercase(), operation));
        let Some((_, operation)) = operations.find(|(name, _)| name == method.as_str()) else {
            return shared("method_not_allowed").filter(|_| status == 405);
        };
        let response = operation["responses"].get(status.to_string())?;
        Some(self.resolve(response))
    }

    /// The path template that matches a path: the one with the fewest parameters.
    fn template(&self, path: &str) -> Option<&str> {
        let segments: Vec<_> = path.split('/').collect();
        let paths = self.document["paths"].as_object().unwrap();
        paths
            .keys()
            .filter(|template| {
                let parts: Vec<_> = template.split('/').collect();
                parts.len() == segments.len()
                    && parts.iter().zip(&segments).all(|(part, segment)| {
                        part == segment || (part.starts_with('{') && !segment.is_empty())
                    })
            })
            .min_by_key(|template| template.matches('{').count())
            .map(String::as_str)
    }

    /// The target of a reference, or the value itself.
    pub(crate) fn resolve<'d>(&'d self, value: &'d Value) -> &'d Value {
        match value["$ref"].as_str() {
            Some(reference) => self.document.pointer(&reference[1..]).unwrap(),
            None => value,
        }
    }
}

/// Clients ignore unknown members; here an undocumented member is an error. The JSON-LD members of
/// `dependentSchemas` are documented.
fn forbid_unknown_members(schemas: &mut Value) {
    for (name, schema) in schemas.as_object_mut().unwrap() {
        let schema = schema.as_object_mut().unwrap();
        // Other schemas add members to the former; unknown parameters are valid in the latter.
        if ["JsonLdMembers", "TokenRequest"].contains(&name.as_str()) {
            continue;
        }
        if schema.contains_key("dependentSchemas") {
            for member in ["@context", "@id", "@type"] {
                schema["properties"][member] = json!({});
            }
        }
        schema
            .entry("additionalProperties")
            .or_insert(Value::Bool(false));
    }
}
