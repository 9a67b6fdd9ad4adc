//! The guides of `docs/guides`, from Markdown to HTML.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::{GUIDES, RECEIVERS};

/// A guide as a page.
pub(super) fn to_html(name: &str, markdown: &str) -> String {
    include_str!("guide.html")
        .replace("<!-- title -->", title(markdown))
        .replace("<!-- guides -->", &links("", name))
        .replace("<!-- content -->", &render(markdown))
}

/// A list item for each guide, with a link relative to a page; `current` is that page.
pub(super) fn links(folder: &str, current: &str) -> String {
    GUIDES
        .iter()
        .map(|(name, markdown)| {
            let title = title(markdown);
            let current = if *name == current {
                " aria-current=\"page\""
            } else {
                ""
            };
            format!("<li><a href=\"{folder}{name}\"{current}>{title}</a></li>\n")
        })
        .collect::<Vec<_>>()
        .concat()
}

/// The first line, a heading.
fn title(markdown: &str) -> &str {
    let line = markdown.lines().next().unwrap_or_default();
    line.trim_start_matches("# ")
}

fn render(markdown: &str) -> String {
    let markdown = include_receivers(markdown);
    let mut events: Vec<_> = Parser::new_ext(&markdown, Options::ENABLE_TABLES).collect();
    add_heading_ids(&mut events);
    let mut page = String::new();
    html::push_html(&mut page, events.into_iter().map(adapt));
    page
}

/// Inserts the source of an example receiver after each line that is only a link to it.
fn include_receivers(markdown: &str) -> String {
    let mut included = markdown.to_owned();
    for (name, text) in RECEIVERS {
        let link = format!("\n[`{name}`](../../examples/receivers/{name})\n");
        included = included.replace(&link, &format!("{link}\n````\n{text}````\n"));
    }
    included
}

/// Gives each heading the id that GitHub generates, so that links such as `prices.md#quotes` work here
/// too.
fn add_heading_ids(events: &mut [Event<'_>]) {
    let mut opened = None;
    let mut text = String::new();
    for index in 0..events.len() {
        match &events[index] {
            Event::Start(Tag::Heading { .. }) => {
                opened = Some(index);
                text.clear();
            }
            Event::Text(part) | Event::Code(part) => text.push_str(part),
            Event::End(TagEnd::Heading(_)) => {
                if let Some(Event::Start(Tag::Heading { id, .. })) =
                    opened.take().map(|start| &mut events[start])
                {
                    *id = Some(CowStr::from(slug(&text)));
                }
            }
            _ => {}
        }
    }
}

fn slug(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter(|character| character.is_alphanumeric() || matches!(character, ' ' | '-' | '_'))
        .map(|character| if character == ' ' { '-' } else { character })
        .collect()
}

/// Links to guides lose `.md`. Code can be scrolled with the keyboard.
fn adapt(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Start(Tag::Link {
            link_type,
            dest_url,
            title,
            id,
        }) => Event::Start(Tag::Link {
            link_type,
            dest_url: target(&dest_url).into(),
            title,
            id,
        }),
        Event::Start(Tag::CodeBlock(_)) => Event::Html("<pre tabindex=\"0\"><code>".into()),
        Event::End(TagEnd::CodeBlock) => Event::Html("</code></pre>\n".into()),
        other => other,
    }
}

/// Converts a link to a file in the repository to its address below `/api/docs/`.
fn target(link: &str) -> String {
    link.strip_prefix("../../examples/receivers/")
        .unwrap_or(link)
        .replacen(".md", "", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_a_file_leads_to_its_page() {
        for (link, expected) in [
            ("webhooks.md", "webhooks"),
            ("webhooks.md#signatures", "webhooks#signatures"),
            ("../../examples/receivers/receiver.py", "receiver.py"),
            (
                "https://www.rfc-editor.org/rfc/rfc7946",
                "https://www.rfc-editor.org/rfc/rfc7946",
            ),
            ("#retries", "#retries"),
        ] {
            assert_eq!(target(link), expected);
        }
    }
}
