// Creates elements with text content only: texts of the documentation and of responses are never
// parsed as HTML.

/** Creates an element with properties (or attributes, for unknown properties) and content. */
export function element(name, properties = {}, ...content) {
  const created = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in created) created[key] = value;
    else created.setAttribute(key, value);
  }
  created.append(...content.filter((part) => part !== null && part !== undefined));
  return created;
}

/** A `details` element whose content is created when it is first opened. */
export function disclosure(properties, summary, content) {
  const details = element("details", properties, element("summary", {}, ...summary));
  const fill = () => details.append(...[content()].flat().filter(Boolean));
  details.addEventListener("toggle", fill, { once: true });
  return details;
}

/** A block of code, which the keyboard can scroll, with a button that copies it. */
export function code(text, label) {
  const copied = element("span", { className: "hint", role: "status" });
  const copy = element("button", { type: "button", className: "small" }, "Copy");
  const shown = element("code", {}, text);
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(shown.textContent);
      copied.textContent = "Copied";
    } catch {
      // Without access to the clipboard: selected, for copying by hand.
      getSelection().selectAllChildren(shown);
      copied.textContent = "Selected";
    }
  });
  const block = element("pre", { tabIndex: 0, "aria-label": label }, shown);
  return element("div", { className: "code" }, element("p", { className: "tools" }, copied, copy), block);
}

/** Renders a text with paragraphs, lists, `code` and **bold**. */
export function markdown(text) {
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

/** Renders `code` and **bold** in a line. */
export function inline(text) {
  return text.split(/(`[^`]*`|\*\*[^*]*\*\*)/).map((part) => {
    if (part.startsWith("`")) return element("code", {}, part.slice(1, -1));
    if (part.startsWith("**")) return element("strong", {}, part.slice(2, -2));
    return part;
  });
}
