//! The guides of `docs/guides`, from Markdown to HTML.

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::{EXAMPLES, GUIDES};

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

pub(super) fn render(markdown: &str) -> String {
    let markdown = include_examples(markdown);
    let mut events: Vec<_> = Parser::new_ext(&markdown, Options::ENABLE_TABLES).collect();
    add_heading_ids(&mut events);
    let mut page = String::new();
    html::push_html(&mut page, events.into_iter().map(adapt));
    page
}

/// Inserts the sources of examples after each paragraph that consists of links to them.
fn include_examples(markdown: &str) -> String {
    let with_sources = |paragraph: &str| {
        let sources: Option<String> = paragraph.lines().map(example_source).collect();
        format!("{paragraph}\n\n{}", sources.unwrap_or_default())
    };
    markdown.split("\n\n").map(with_sources).collect()
}

/// The block of code of an example, for a line that is a link to it.
fn example_source(line: &str) -> Option<String> {
    let (_, name) = line
        .strip_prefix("[`")?
        .strip_suffix(')')?
        .rsplit_once('/')?;
    let (_, text) = EXAMPLES
        .iter()
        .copied()
        .flatten()
        .find(|(example, _)| *example == name)?;
    let (_, ending) = name.rsplit_once('.')?;
    Some(format!("````{ending}\n{text}````\n\n"))
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

/// Links to guides lose `.md`; HTML is text. Code names its language, and can be scrolled with the keyboard.
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
        Event::Start(Tag::CodeBlock(kind)) => {
            let language = match kind {
                CodeBlockKind::Fenced(language) => language,
                CodeBlockKind::Indented => CowStr::from(""),
            };
            Event::Html(format!("<pre tabindex=\"0\" data-language=\"{language}\"><code>").into())
        }
        Event::End(TagEnd::CodeBlock) => Event::Html("</code></pre>\n".into()),
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        other => other,
    }
}

/// Converts a link to a file in the repository to its address below `/api/docs/`.
fn target(link: &str) -> String {
    match link.strip_prefix("../../examples/") {
        Some(example) => example.rsplit('/').next().unwrap_or(example).to_owned(),
        None => link.replacen(".md", "", 1),
    }
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
            ("../../examples/shop/order.py", "order.py"),
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
