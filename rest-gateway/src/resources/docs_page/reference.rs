//! The reference as HTML: the texts of the OpenAPI document, readable before the script has added forms,
//! responses and schemas.

use serde_json::Value;

use super::guides;
use crate::resources::error_pages::escape;

/// An operation or a webhook event.
struct Entry<'a> {
    id: String,
    method: &'a str,
    /// The path or the name of the event.
    path: &'a str,
    /// What the contents call it.
    name: &'a str,
    operation: &'a Value,
}

/// A heading and what is below it.
struct Section<'a> {
    title: &'a str,
    description: &'a str,
    entries: Vec<Entry<'a>>,
}

/// `page.html` with the texts of the OpenAPI document.
pub(super) fn to_html(api: &Value) -> String {
    let tags = api["tags"].as_array().into_iter().flatten();
    let mut sections: Vec<_> = tags
        .map(|tag| Section {
            title: text(&tag["name"]),
            description: text(&tag["description"]),
            entries: operations(api, &tag["name"]),
        })
        .collect();
    sections.push(Section {
        title: "Webhook events",
        description: "[Verify the signature](docs/webhooks#verify) of each: receivers in five languages.",
        entries: events(api),
    });
    let info = &api["info"];
    include_str!("page.html")
        .replace("<!-- title -->", &escape(text(&info["title"])))
        .replace("<!-- version -->", text(&info["version"]))
        .replace("<!-- summary -->", text(&info["summary"]))
        .replace(
            "<!-- about -->",
            &guides::render(text(&info["description"])),
        )
        .replace("<!-- guides -->", &guides::links("docs/", ""))
        .replace(
            "<!-- contents -->",
            &sections.iter().map(Section::contents).collect::<String>(),
        )
        .replace(
            "<!-- sections -->",
            &sections.iter().map(Section::to_html).collect::<String>(),
        )
}

fn operations<'a>(api: &'a Value, tag: &Value) -> Vec<Entry<'a>> {
    let paths = api["paths"].as_object().into_iter().flatten();
    paths
        .flat_map(|(path, item)| {
            let methods = item.as_object().into_iter().flatten();
            methods.map(move |(method, operation)| Entry {
                id: text(&operation["operationId"]).to_owned(),
                method,
                path,
                name: text(&operation["summary"]),
                operation,
            })
        })
        .filter(|entry| &entry.operation["tags"][0] == tag)
        .collect()
}

fn events(api: &Value) -> Vec<Entry<'_>> {
    let events = api["webhooks"].as_object().into_iter().flatten();
    events
        .map(|(name, item)| Entry {
            id: format!("webhook/{name}"),
            method: "event",
            path: name,
            name,
            operation: &item["post"],
        })
        .collect()
}

impl Section<'_> {
    /// Its part of the contents.
    fn contents(&self) -> String {
        let links: String = self.entries.iter().map(Entry::link).collect();
        let title = self.title;
        format!("<details open><summary>{title}</summary><ul>\n{links}</ul></details>\n")
    }

    fn to_html(&self) -> String {
        let entries: String = self.entries.iter().map(Entry::to_html).collect();
        let (title, description) = (self.title, guides::render(self.description));
        format!("<section><h2>{title}</h2>\n{description}{entries}</section>\n")
    }
}

impl Entry<'_> {
    /// Its item of the contents.
    fn link(&self) -> String {
        let Self { id, name, .. } = self;
        let method = self.method();
        format!("<li><a href=\"#{id}\">{method} <span>{name}</span></a></li>\n")
    }

    fn to_html(&self) -> String {
        let Self { id, path, .. } = self;
        let method = self.method();
        let title = text(&self.operation["summary"]);
        let description = guides::render(text(&self.operation["description"]));
        format!(
            "<details class=\"operation\" id=\"{id}\"><summary>{method} <span class=\"path\">{path}</span> \
             <span class=\"title\">{title}</span></summary>\n\
             <div class=\"content\"><div>{description}</div></div></details>\n"
        )
    }

    fn method(&self) -> String {
        let method = self.method;
        let name = method.to_uppercase();
        format!("<span class=\"method {method}\">{name}</span>")
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
