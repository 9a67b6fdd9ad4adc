// Adds to an operation a form to send requests, samples and responses.

import { code, disclosure, element, inline, markdown, onFirstOpen } from "./dom.js";
import { authentication, examples, JSON_LD, preferred, resolve } from "./openapi.js";
import { members } from "./schema.js";
import { fields } from "./form.js";
import { build } from "./request.js";
import { send } from "./client.js";
import { languages } from "./languages.js";
import { LANGUAGES } from "./samples.js";
import { rendered } from "./response.js";

/** Completes the description of an operation; `openOperation` opens the one that a path in a response names. */
export function operation(api, entry, openOperation) {
  const details = document.getElementById(entry.id);
  onFirstOpen(details, () => complete(api, entry, openOperation, details));
}

function complete(api, entry, openOperation, details) {
  const { operationObject } = entry;
  const content = details.querySelector(".content");
  const { form, sample } = tryIt(api, entry, openOperation, details);
  const { by, scopes } = authentication(operationObject);
  const auth = {
    token: scopes.length
      ? `Requires an access token with the scope \`${scopes.join("` or `")}\`.`
      : "Requires an access token with any scope.",
    credentials: "Sends the API key and secret of the form “Authorise”.",
  };
  const hint = element("p", { className: "hint" }, ...inline(auth[by] || "Requires no access token."));
  content.firstElementChild.append(hint, ...form);
  content.append(
    element("div", {}, sample, element("h3", {}, "Responses"), responseList(api, operationObject.responses)),
  );
}

/** The form with its outcome, and the code of the request with the entered values. */
function tryIt(api, { id, path, method, operationObject }, openOperation, details) {
  const auth = authentication(operationObject).by;
  const success = Object.entries(operationObject.responses).find(([status]) => status < 300);
  const accept = preferred((success && success[1].content) || {}) || JSON_LD;
  let changed = () => {};
  const form = fields(api, { id, operationObject }, () => changed());
  details.fill = form.fill;
  const request = () =>
    build({ method, path, accept, auth, mediaType: form.mediaType }, form.values(), form.body());
  const sample = languages(Object.keys(LANGUAGES), "Code", (language) => {
    const { path: filled, ...rest } = request();
    return LANGUAGES[language]({ ...rest, url: api.servers[0].url.replace(/\/$/, "") + filled });
  });
  changed = sample.render;

  const status = element("p", { role: "status" });
  // Not live: a long response would be read aloud from beginning to end.
  const outcome = element("div", {});
  const onSubmit = async (event) => {
    event.preventDefault();
    status.textContent = "Sending…";
    try {
      const response = await send(request());
      status.replaceChildren(
        "Response ",
        element("strong", { className: response.status < 400 ? "succeeded" : "failed" }, String(response.status)),
        `, ${new TextEncoder().encode(response.text).length} bytes, below. `,
        response.status === 401 ? element("a", { href: "#key" }, "Get an access token") : "",
      );
      outcome.replaceChildren(...rendered(api, response, openOperation));
    } catch (error) {
      status.replaceChildren(element("span", { className: "failed" }, `No response: ${error.message}`));
      outcome.replaceChildren();
    }
  };
  const shown = element(
    "form",
    { "aria-label": `Try: ${operationObject.summary}` },
    ...form.elements,
    element("p", { className: "actions" }, element("button", { type: "submit" }, "Send")),
  );
  shown.addEventListener("submit", onSubmit);
  const heading = element("h3", {}, "Try it");
  return { form: [heading, shown, status, outcome], sample: sample.group };
}

/** The responses of an operation; errors with examples are collapsed. */
export function responseList(api, responses) {
  const list = element("div", { className: "responses" });
  for (const [status, reference] of Object.entries(responses)) {
    const response = resolve(api, reference);
    const media = Object.values(response.content || {})[0] || {};
    const named = examples(media);
    const content = () => {
      const listed = media.schema && members(api, media.schema);
      return [
        ...markdown(response.description || ""),
        ...named.map(example),
        listed && element("details", {}, element("summary", {}, "Members"), listed),
      ];
    };
    const isError = status >= 400 && named.length > 0;
    const code = element("strong", { className: status >= 400 ? "failed" : "succeeded" }, status);
    const names = named.map(({ name }) => name).join(", ");
    list.append(
      isError
        ? disclosure({}, [code, " ", element("span", { className: "hint" }, names)], content)
        : element("div", {}, element("p", {}, code), ...content().filter(Boolean)),
    );
  }
  return list;
}

export function example({ name, value }) {
  return disclosure({}, [name], () => code(JSON.stringify(value, null, 2), name, "json"));
}
