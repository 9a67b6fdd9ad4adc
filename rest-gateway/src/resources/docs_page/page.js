// Reads the documentation and shows it.

import { element, marked } from "./dom.js";
import { operation } from "./operation.js";
import { authorise } from "./trying.js";

const byId = (id) => document.getElementById(id);

async function show() {
  const answer = await fetch(new URL("docs.json", document.baseURI), { credentials: "omit" });
  const api = await answer.json();
  document.title = api.info.title;
  byId("title").textContent = `${api.info.title} ${api.info.version}`;
  byId("summary").textContent = api.info.summary;
  byId("about").append(...marked(api.info.description));

  for (const { name } of api.tags) {
    const found = [];
    for (const [path, item] of Object.entries(api.paths)) {
      for (const [method, described] of Object.entries(item)) {
        if (described.tags.includes(name)) found.push({ path, method, described });
      }
    }
    byId("contents").append(element("h2", {}, name), element("ul", {}, ...found.map(entry)));
    byId("list").append(
      element("h2", {}, name),
      ...found.map(({ path, method, described }) => operation(api, path, method, described)),
    );
  }
  openNamed();
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

/** Opens the operation that the address names. */
function openNamed() {
  const named = byId(decodeURIComponent(location.hash.slice(1)));
  if (named instanceof HTMLDetailsElement) {
    named.open = true;
    named.scrollIntoView();
    named.querySelector("summary").focus({ preventScroll: true });
  }
}

byId("filter").addEventListener("input", (event) => {
  const wanted = event.target.value.toLowerCase();
  for (const item of document.querySelectorAll("nav li")) {
    item.hidden = !item.textContent.toLowerCase().includes(wanted);
  }
});

byId("authorise").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = new FormData(event.target);
  const said = byId("authorised");
  said.className = "";
  try {
    const token = await authorise(form.get("key").trim(), form.get("secret").trim(), form.get("scope").trim());
    said.textContent = `Authorised for ${token.scope}, for ${Math.round(token.expires_in / 60)} minutes.`;
  } catch (error) {
    said.className = "failed";
    said.textContent = `Not authorised: ${error.message}`;
  }
});

addEventListener("hashchange", openNamed);

show().catch((error) => {
  byId("summary").textContent = `The documentation could not be read: ${error.message}`;
});
