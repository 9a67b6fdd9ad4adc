// Adds to a webhook event what its receiver gets, and what is expected of it.

import { code, element, inline, onFirstOpen } from "./dom.js";
import { examples, parameters, preferred } from "./openapi.js";
import { members } from "./schema.js";
import { responseList } from "./operation.js";

export function webhook(api, { id, operationObject }) {
  const details = document.getElementById(id);
  onFirstOpen(details, () => complete(api, operationObject, details.querySelector(".content")));
}

function complete(api, operationObject, content) {
  const body = (operationObject.requestBody || {}).content || {};
  const media = body[preferred(body)] || {};
  const headers = parameters(api, operationObject).map(({ name, description }) =>
    element("li", {}, element("code", {}, name), element("span", { className: "hint" }, " ", ...inline(description || ""))),
  );
  content.firstElementChild.append(
    element("h3", {}, "Headers"),
    element("ul", { className: "members" }, ...headers),
    element("h3", {}, "Body"),
    members(api, media.schema),
    element("h3", {}, "Expected of the receiver"),
    responseList(api, operationObject.responses || {}),
  );
  const shown = examples(media).flatMap(({ name, value }) => [
    element("h3", {}, name),
    code(JSON.stringify(value, null, 2), name, "json"),
  ]);
  content.append(element("div", {}, ...shown));
}
