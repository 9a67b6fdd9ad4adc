// Fetches the OpenAPI document and renders it.

import { element, markdown } from "./dom.js";
import { operation } from "./operation.js";
import { authorise } from "./client.js";

const byId = (id) => document.getElementById(id);

async function show() {
  const response = await fetch(new URL("docs.json", document.baseURI), { credentials: "omit" });
  const api = await response.json();
  document.title = api.info.title;
  byId("title").textContent = `${api.info.title} ${api.info.version}`;
  byId("summary").textContent = api.info.summary;
  byId("about").append(...markdown(api.info.description));

  for (const { name } of api.tags) {
    const operations = [];
    for (const [path, item] of Object.entries(api.paths)) {
      for (const [method, described] of Object.entries(item)) {
        if (described.tags.includes(name)) operations.push({ path, method, described });
      }
    }
    byId("contents").append(element("h2", {}, name), element("ul", {}, ...operations.map(entry)));
    byId("list").append(
      element("h2", {}, name),
      ...operations.map(({ path, method, described }) => operation(api, path, method, described)),
    );
  }
  openFromFragment();
}

function entry({ method, described }) {
  const link = element(
    "a",
    { href: `#${described.operationId}` },
    element("span", { className: `method ${method}` }, `${method.toUpperCase()} `),
    described.summary,
  );
  return element("li", {}, link);
}

/** Opens the operation named in the URL's fragment. */
function openFromFragment() {
  const target = byId(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) {
    target.open = true;
    target.scrollIntoView();
    target.querySelector("summary").focus({ preventScroll: true });
  }
}

byId("filter").addEventListener("input", (event) => {
  const filter = event.target.value.toLowerCase();
  for (const item of document.querySelectorAll("nav li")) {
    item.hidden = !item.textContent.toLowerCase().includes(filter);
  }
});

byId("authorise").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = new FormData(event.target);
  const status = byId("authorised");
  status.className = "";
  try {
    const token = await authorise(form.get("key").trim(), form.get("secret").trim(), form.get("scope").trim());
    status.textContent = `Authorised for ${token.scope}, for ${Math.round(token.expires_in / 60)} minutes.`;
  } catch (error) {
    status.className = "failed";
    status.textContent = `Not authorised: ${error.message}`;
  }
});

addEventListener("hashchange", openFromFragment);

show().catch((error) => {
  byId("summary").textContent = `The documentation cannot be loaded: ${error.message}`;
});
