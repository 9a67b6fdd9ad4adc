// Fetches the OpenAPI document, renders it, and opens what the URL's fragment names.

import { element, markdown } from "./dom.js";
import { operations, webhooks } from "./openapi.js";
import { operation } from "./operation.js";
import { webhookSection } from "./webhooks.js";
import { schemas } from "./schema.js";
import { entries } from "./search.js";
import { searchBox } from "./search_box.js";
import { authoriseForm } from "./authorise.js";

const byId = (id) => document.getElementById(id);

async function show() {
  const response = await fetch(new URL("docs.json", document.baseURI), { credentials: "omit" });
  const api = await response.json();
  document.title = api.info.title;
  byId("title").textContent = api.info.title;
  byId("version").textContent = `Version ${api.info.version}`;
  byId("summary").textContent = api.info.summary;
  byId("about").append(...markdown(api.info.description));

  const all = operations(api);
  for (const { name, description } of api.tags) {
    const tagged = all.filter(({ operationObject }) => operationObject.tags.includes(name));
    const links = tagged.map(({ id, method, operationObject }) => [id, method, operationObject.summary]);
    section(name, links, [
      ...(description ? markdown(description) : []),
      ...tagged.map((entry) => operation(api, entry, openOperation)),
    ]);
  }
  const events = webhooks(api).map(({ id, name }) => [id, "event", name]);
  section("Webhook events", [...events, ["webhook-receiver", "code", "Verify a signature"]], webhookSection(api));
  section("Schemas", Object.keys(api.components.schemas).map((name) => [`schema/${name}`, "", name]), schemas(api));
  searchBox(entries(api));
  openFromFragment();
}

/** A section, and its entry in the contents. */
function section(title, links, content) {
  const id = `section-${title.toLowerCase().replaceAll(" ", "-")}`;
  const items = links.map(([target, method, text]) => {
    const label = method ? element("span", { className: `method ${method}` }, `${method.toUpperCase()} `) : "";
    return element("li", {}, element("a", { href: `#${target}` }, label, element("span", {}, text)));
  });
  byId("contents").append(
    element("details", { open: title !== "Schemas" }, element("summary", {}, title), element("ul", {}, ...items)),
  );
  byId("list").append(element("section", { "aria-labelledby": id }, element("h2", { id }, title), ...content));
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
  byId("summary").textContent = `The documentation cannot be loaded: ${error.message}`;
});
