// Renders the response to a request that was sent from the page.

import { code, element } from "./dom.js";
import { operationAt } from "./openapi.js";

/** Longer bodies are cut: the page stays usable. */
const SHOWN = 100_000;

/** The elements of a response. Each path of a resource in it leads to the operation that reads it. */
export function rendered(api, { headers, text }, openOperation) {
  const lines = headers.map(([name, value]) => `${name}: ${value}`).join("\n");
  let [body, language] = [text, ""];
  try {
    [body, language] = [JSON.stringify(JSON.parse(text), null, 2), "json"];
  } catch {
    // Not JSON: shown unchanged.
  }
  const isCut = body.length > SHOWN;
  const shown = code(isCut ? body.slice(0, SHOWN) : body, "Body of the response", language);
  link(api, shown.querySelector("code"), openOperation);
  return [
    element("details", {}, element("summary", {}, "Headers"), code(lines, "Headers of the response")),
    text ? shown : element("p", { className: "hint" }, "The response has no body."),
    isCut ? element("p", { className: "hint" }, `The first ${SHOWN} of ${body.length} characters.`) : null,
  ].filter(Boolean);
}

function link(api, shown, openOperation) {
  for (const string of shown.querySelectorAll(".token-string")) {
    const path = string.textContent.slice(1, -1);
    const operation = path.startsWith("/api/") ? operationAt(api, "get", path) : null;
    if (!operation) continue;
    const anchor = element("a", { href: `#${operation.id}` }, path);
    anchor.addEventListener("click", (event) => {
      event.preventDefault();
      openOperation(operation);
    });
    string.replaceChildren('"', anchor, '"');
  }
}
