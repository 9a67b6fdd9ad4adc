// Creates elements with text content only: texts of the documentation and of responses are never
// parsed as HTML.

import { tokens } from "./highlight.js";

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
  onFirstOpen(details, () => details.append(...[content()].flat().filter(Boolean)));
  return details;
}

/** Calls a function once a `details` element is open. */
export function onFirstOpen(details, fill) {
  if (details.open) fill();
  else details.addEventListener("toggle", fill, { once: true });
}

/** A block of code, which the keyboard can scroll, with a button that copies it; coloured if it has a language. */
export function code(text, label, language) {
  const copied = element("span", { className: "hint", role: "status" });
  const copy = element("button", { type: "button", className: "small" }, "Copy");
  const parts = language ? tokens(text) : [{ text }];
  const coloured = parts.map((part) => (part.kind ? element("span", { className: `token-${part.kind}` }, part.text) : part.text));
  const shown = element("code", {}, ...coloured);
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

/** Renders a text with paragraphs, `code` and **bold**. */
export function markdown(text) {
  return text.split("\n\n").map((block) => element("p", {}, ...inline(block)));
}

/** Renders `code` and **bold** in a line. */
export function inline(text) {
  return text.split(/(`[^`]*`|\*\*[^*]*\*\*)/).map((part) => {
    if (part.startsWith("`")) return element("code", {}, part.slice(1, -1));
    if (part.startsWith("**")) return element("strong", {}, part.slice(2, -2));
    return part;
  });
}
