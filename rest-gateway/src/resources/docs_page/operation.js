// Renders an operation: its description, a form to send requests, and its responses.

import { element, inline, markdown } from "./dom.js";
import { members, resolve } from "./schema.js";
import { curl, request, send } from "./client.js";

const JSON_LD = "application/ld+json";

/** A `details` element with one operation of the documentation. */
export function operation(api, path, method, described) {
  const id = described.operationId;
  const details = element(
    "details",
    { className: "operation", id },
    element(
      "summary",
      {},
      element("span", { className: `method ${method}` }, method.toUpperCase()),
      element("span", { className: "path" }, path),
      element("span", { className: "title" }, described.summary),
    ),
  );
  // Rendered when first opened.
  details.addEventListener(
    "toggle",
    () => details.append(content(api, { id, path, method, described })),
    { once: true },
  );
  return details;
}

function content(api, { id, path, method, described }) {
  const scopes = (described.security || []).flatMap((one) => one.accessToken || []);
  const secured = (described.security || []).some((one) => one.accessToken);
  const auth = scopes.length
    ? inline(`Requires an access token with the scope \`${scopes.join(" ")}\`.`)
    : [secured ? "Requires an access token with any scope." : "Requires no access token."];
  return element(
    "div",
    {},
    ...markdown(described.description || ""),
    element("p", { className: "hint" }, ...auth),
    tryIt(api, { id, path, method, described, secured }),
    element("h3", {}, "Responses"),
    responseList(api, described.responses),
  );
}

function tryIt(api, { id, path, method, described, secured }) {
  const fields = (described.parameters || []).map((reference) => {
    const parameter = resolve(api, reference);
    const input = element("input", {
      id: `${id}.${parameter.name}`,
      required: parameter.required === true,
      autocomplete: "off",
      spellcheck: false,
    });
    return { parameter, input };
  });
  const sends = described.requestBody && preferred(described.requestBody.content);
  const sent = sends && described.requestBody.content[sends];
  const body = sends && element("textarea", { id: `${id}.body`, spellcheck: false });
  if (body) body.value = encode(sends, sent.example);
  const success = Object.entries(described.responses).find(([status]) => status < 300);
  const accept = preferred((success && success[1].content) || {}) || JSON_LD;

  const outcome = element("div", { role: "status", "aria-live": "polite" });
  const copied = element("span", { className: "hint", role: "status" });
  const copy = element("button", { type: "button", className: "second" }, "Copy as curl");
  const form = element(
    "form",
    { "aria-label": `Try: ${described.summary}` },
    ...fields.map(({ parameter, input }) =>
      field(input, `${parameter.name}${parameter.required ? "" : " (optional)"}`, parameter.description),
    ),
    body && field(body, "Body", sends),
    body && sent.schema && bodyMembers(api, sent.schema),
    element("p", { className: "actions" }, element("button", { type: "submit" }, "Send"), copy, copied),
  );
  const currentRequest = () =>
    request(
      { method: method.toUpperCase(), path, accept, sends, secured },
      fields.map(({ parameter, input }) => ({ parameter, value: input.value.trim() })),
      body ? body.value : null,
    );

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    outcome.replaceChildren(element("p", {}, "Sending…"));
    try {
      outcome.replaceChildren(...renderResponse(await send(currentRequest())));
    } catch (error) {
      outcome.replaceChildren(element("p", { className: "failed" }, `No response: ${error.message}`));
    }
  });
  copy.addEventListener("click", async () => {
    const command = curl(api.servers[0].url, currentRequest());
    try {
      await navigator.clipboard.writeText(command);
      copied.textContent = "Copied.";
    } catch {
      // Without access to the clipboard, shows the command for copying by hand.
      outcome.replaceChildren(element("pre", { tabIndex: 0 }, element("code", {}, command)));
    }
  });
  return element("div", {}, element("h3", {}, "Try it"), form, outcome);
}

/** Prefers JSON-LD among media types. */
function preferred(content) {
  return JSON_LD in content ? JSON_LD : Object.keys(content)[0];
}

function field(input, label, hint) {
  if (hint) input.setAttribute("aria-describedby", `${input.id}.hint`);
  return element(
    "div",
    { className: "field" },
    element("label", { htmlFor: input.id }, label),
    input,
    hint && element("p", { className: "hint", id: `${input.id}.hint` }, ...inline(hint)),
  );
}

function bodyMembers(api, schema) {
  const listed = members(api, schema);
  return listed && element("details", {}, element("summary", {}, "Members of the body"), listed);
}

function encode(mediaType, example) {
  if (mediaType === "application/x-www-form-urlencoded") return new URLSearchParams(example).toString();
  return JSON.stringify(example || {}, null, 2);
}

function renderResponse({ status, headers, text }) {
  let body = text;
  try {
    body = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // Not JSON: shown unchanged.
  }
  const lines = headers.map(([name, value]) => `${name}: ${value}`).join("\n");
  return [
    element("h3", {}, "Response ", element("span", { className: status < 400 ? "" : "failed" }, String(status))),
    element("details", {}, element("summary", {}, "Headers"), element("pre", { tabIndex: 0 }, element("code", {}, lines))),
    element("pre", { tabIndex: 0 }, element("code", {}, body)),
  ];
}

function responseList(api, responses) {
  const list = element("dl", { className: "responses" });
  for (const [status, reference] of Object.entries(responses)) {
    const response = resolve(api, reference);
    const content = Object.values(response.content || {})[0];
    const listed = content && content.schema && members(api, content.schema);
    list.append(
      element("dt", {}, status),
      element(
        "dd",
        {},
        ...markdown(response.description),
        content && content.example && example(content.example),
        listed && element("details", {}, element("summary", {}, "Members"), listed),
      ),
    );
  }
  return list;
}

function example(value) {
  const text = JSON.stringify(value, null, 2);
  return element(
    "details",
    {},
    element("summary", {}, "Example"),
    element("pre", { tabIndex: 0 }, element("code", {}, text)),
  );
}
