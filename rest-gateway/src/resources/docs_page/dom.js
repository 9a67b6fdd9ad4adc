// Elements are made here and filled with text alone: nothing of the documentation or of an
// answer is ever taken for markup.

/** An element with these properties (or attributes, where there is no such property) and content. */
export function element(name, properties = {}, ...content) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...content.filter((part) => part !== null && part !== undefined));
  return made;
}

/** The documentation's texts: paragraphs, lists, `code` and **bold**. */
export function marked(text) {
  const blocks = [];
  for (const block of text.split("\n\n")) {
    const lines = block.split("\n");
    if (lines.every((line) => line.startsWith("- "))) {
      const items = lines.map((line) => element("li", {}, ...inline(line.slice(2))));
      blocks.push(element("ul", {}, ...items));
    } else {
      blocks.push(element("p", {}, ...inline(block)));
    }
  }
  return blocks;
}

/** `code` and **bold** within a line. */
export function inline(text) {
  return text.split(/(`[^`]*`|\*\*[^*]*\*\*)/).map((part) => {
    if (part.startsWith("`")) return element("code", {}, part.slice(1, -1));
    if (part.startsWith("**")) return element("strong", {}, part.slice(2, -2));
    return part;
  });
}
