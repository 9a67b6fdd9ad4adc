// The section on webhooks: what a receiver gets for each event, and programs that verify it.

import { code, disclosure, element, inline, markdown } from "./dom.js";
import { examples, parameters, preferred, webhooks } from "./openapi.js";
import { members } from "./schema.js";
import { responseList } from "./operation.js";
import { languages } from "./languages.js";

/** Files beside the page: whole receivers, which the project's tests run. */
const RECEIVERS = {
  PHP: "receiver.php",
  Python: "receiver.py",
  JavaScript: "receiver.mjs",
  Go: "receiver.go",
  Rust: "receiver.rs",
};

export function webhookSection(api) {
  const receiver = languages(Object.keys(RECEIVERS), "A receiver that verifies signatures", async (language) => {
    const response = await fetch(new URL(`docs/${RECEIVERS[language]}`, document.baseURI), { credentials: "omit" });
    return response.text();
  });
  return [
    element(
      "p",
      {},
      "The platform sends an event to every webhook that is subscribed to it, as a signed ",
      element("code", {}, "POST"),
      ". Its headers and retries, and how to create and test a webhook: ",
      element("a", { href: "docs/webhooks" }, "the guide to webhooks"),
      ".",
    ),
    ...webhooks(api).map((one) => event(api, one)),
    disclosure({ className: "operation", id: "webhook-receiver" }, [
      element("span", { className: "path" }, "Verify a signature"),
      element("span", { className: "title" }, "Complete receivers in five languages"),
    ], () => element("div", { className: "content single" }, receiver.group)),
  ];
}

function event(api, { id, name, operationObject }) {
  return disclosure(
    { className: "operation", id },
    [
      element("span", { className: "method post" }, "EVENT"),
      element("span", { className: "path" }, name),
      element("span", { className: "title" }, operationObject.summary || ""),
    ],
    () => {
      const content = (operationObject.requestBody || {}).content || {};
      const media = content[preferred(content)] || {};
      const headers = parameters(api, operationObject).map((header) =>
        element("li", {}, element("code", {}, header.name), element("span", { className: "hint" }, " ", ...inline(header.description || ""))),
      );
      return element(
        "div",
        { className: "content" },
        element(
          "div",
          {},
          ...markdown(operationObject.description || ""),
          ...(headers.length ? [element("h3", {}, "Headers"), element("ul", { className: "members" }, ...headers)] : []),
          media.schema ? element("h3", {}, "Body") : null,
          media.schema && members(api, media.schema),
          element("h3", {}, "Expected of the receiver"),
          responseList(api, operationObject.responses || {}),
        ),
        element("div", {}, ...examples(media).flatMap((one) => [
          element("h3", {}, one.name),
          code(JSON.stringify(one.value, null, 2), one.name),
        ])),
      );
    },
  );
}
