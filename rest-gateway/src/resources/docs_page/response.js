// Renders the response to a request that was sent from the page.

import { code, element } from "./dom.js";
import { operationAt } from "./openapi.js";

/** Longer bodies are cut: the page stays usable. */
const SHOWN = 100_000;

/** The elements of a response. Each path of a resource in it leads to the operation that reads it. */
export function rendered(api, { headers, text }, openOperation) {
  const lines = headers.map(([name, value]) => `${name}: ${value}`).join("\n");
  let body = text;
  try {
    body = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // Not JSON: shown unchanged.
  }
  const isCut = body.length > SHOWN;
  const shown = code(isCut ? body.slice(0, SHOWN) : body, "Body of the response");
  link(api, shown.querySelector("code"), openOperation);
  return [
    element("details", {}, element("summary", {}, "Headers"), code(lines, "Headers of the response")),
    text ? shown : element("p", { className: "hint" }, "The response has no body."),
    isCut ? element("p", { className: "hint" }, `The first ${SHOWN} of ${body.length} characters.`) : null,
  ].filter(Boolean);
}

function link(api, shown, openOperation) {
  const parts = shown.textContent.split(/"(\/api\/[^"]+)"/).map((part, index) => {
    const operation = index % 2 === 1 ? operationAt(api, "get", part) : null;
    if (!operation) return index % 2 === 1 ? `"${part}"` : part;
    const anchor = element("a", { href: `#${operation.id}` }, part);
    anchor.addEventListener("click", (event) => {
      event.preventDefault();
      openOperation(operation);
    });
    return element("span", {}, '"', anchor, '"');
  });
  shown.replaceChildren(...parts);
}
