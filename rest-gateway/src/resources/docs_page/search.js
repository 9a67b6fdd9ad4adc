// Full-text search over operations, webhooks and schemas; `search_box.js` adds the guides. No DOM, so
// that Node runs it.

import { objectOf, operations, parameters, resolve, webhooks } from "./openapi.js";

/** What can be found in the document: `href`, `kind`, `title`, `detail` and the searched `text`. */
export function entries(api) {
  const found = operations(api).map(({ id, method, path, operationObject }) => ({
    href: `#${id}`,
    kind: "Operation",
    title: operationObject.summary,
    detail: `${method.toUpperCase()} ${path}`,
    text: [method, path, id, path.replaceAll(/[/{}_]+/g, " "), ...texts(api, operationObject)].join(" "),
  }));
  for (const { id, name, operationObject } of webhooks(api)) {
    const text = [name, "webhook", ...texts(api, operationObject)].join(" ");
    found.push({ href: `#${id}`, kind: "Webhook", title: name, detail: operationObject.summary, text });
  }
  for (const [name, schema] of Object.entries(api.components.schemas)) {
    const text = [name, schema.description, ...memberTexts(api, schema)].join(" ");
    found.push({ href: `#schema/${name}`, kind: "Schema", title: name, detail: "", text });
  }
  return found;
}

/** The texts of an operation that a reader could search for. */
function texts(api, operationObject) {
  const content = Object.values((operationObject.requestBody || {}).content || {})[0];
  const responses = Object.entries(operationObject.responses || {}).map(([status, reference]) => {
    const examples = Object.values(resolve(api, reference).content || {}).map((media) => media.examples || {});
    return [status, resolve(api, reference).description, ...examples.flatMap(Object.keys)].join(" ");
  });
  return [
    operationObject.operationId,
    operationObject.summary,
    operationObject.description,
    ...parameters(api, operationObject).map(({ name, description }) => `${name} ${description || ""}`),
    ...(content && content.schema ? memberTexts(api, content.schema) : []),
    ...responses,
  ];
}

function memberTexts(api, schema, depth = 0) {
  const object = objectOf(api, schema);
  if (!object || depth > 3) return [];
  return Object.entries(object.properties).flatMap(([name, member]) => [
    name,
    member.description || "",
    ...(member.enum || []),
    ...memberTexts(api, member, depth + 1),
  ]);
}

/** The entries that contain all words of a query, the best first: words in the title, then the
 * path or name, then the rest. */
export function find(all, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const scored = all.map((entry) => {
    const [title, detail, text] = [entry.title, entry.detail, entry.text].map((part) => (part || "").toLowerCase());
    let score = 0;
    for (const word of words) {
      if (title.includes(word)) score += 4;
      else if (detail.includes(word)) score += 3;
      else if (text.includes(word)) score += 1;
      else return { entry, score: 0 };
    }
    const isExact = [title, entry.href.slice(1).toLowerCase(), ...detail.split(" ")].includes(query.trim().toLowerCase());
    return { entry, score: isExact ? score + 10 : score };
  });
  return scored
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .map(({ entry }) => entry);
}
