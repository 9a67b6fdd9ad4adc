// Adds what can be tried to the reference, from the OpenAPI document, and opens what the URL's fragment names.

import { element } from "./dom.js";
import { operations, webhooks } from "./openapi.js";
import { operation } from "./operation.js";
import { webhook } from "./webhooks.js";
import { schemas } from "./schema.js";
import { entries } from "./search.js";
import { searchBox } from "./search_box.js";
import { authoriseForm } from "./authorise.js";

const byId = (id) => document.getElementById(id);

async function show() {
  const response = await fetch(new URL("docs.json", document.baseURI), { credentials: "omit" });
  const api = await response.json();
  for (const entry of operations(api)) operation(api, entry, openOperation);
  for (const entry of webhooks(api)) webhook(api, entry);
  const links = Object.keys(api.components.schemas).map((name) =>
    element("li", {}, element("a", { href: `#schema/${name}` }, name)),
  );
  byId("contents").append(element("details", {}, element("summary", {}, "Schemas"), element("ul", {}, ...links)));
  byId("list").append(element("section", {}, element("h2", {}, "Schemas"), ...schemas(api)));
  searchBox(entries(api));
  openFromFragment();
}

/** Opens an operation with these values in its form. */
function openOperation({ id, values }) {
  const details = byId(id);
  // The form is created by the event `toggle`, before this listener runs.
  if (details.open) details.fill(values);
  else details.addEventListener("toggle", () => details.fill(values), { once: true });
  location.hash = `#${id}`;
  openFromFragment();
}

function openFromFragment() {
  const target = byId(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) {
    target.open = true;
    target.scrollIntoView();
    target.querySelector("summary").focus({ preventScroll: true });
  }
}

// The address names what was opened last, so that it can be copied. `toggle` does not bubble.
byId("list").addEventListener(
  "toggle",
  ({ target }) => {
    if (!target.id) return;
    const fragment = `#${encodeURI(target.id)}`;
    if (target.open) history.replaceState(null, "", fragment);
    else if (location.hash === fragment) history.replaceState(null, "", location.pathname + location.search);
  },
  { capture: true },
);

addEventListener("hashchange", openFromFragment);
authoriseForm();
show().catch((error) => {
  byId("summary").textContent = `What can be tried cannot be loaded: ${error.message}`;
});
