// Renders JSON Schemas: the members of an object, and the list of all named schemas.

import { disclosure, element, inline } from "./dom.js";
import { objectOf, typeName } from "./openapi.js";

/** All named schemas, for deep links such as `#schema/Delivery`. */
export function schemas(api) {
  return Object.entries(api.components.schemas).map(([name, schema]) =>
    disclosure(
      { className: "operation", id: `schema/${name}` },
      [element("span", { className: "path" }, name), element("span", { className: "title" }, ...inline(schema.description || ""))],
      () => element("div", { className: "content single" }, members(api, schema) || typeName(api, schema)),
    ),
  );
}

/** The type of a member; a link to a schema that has a name. */
function type(api, schema) {
  const name = typeName(api, schema);
  const linked = name.split(" ").map((word) => {
    const isSchema = Object.hasOwn(api.components.schemas, word);
    return isSchema ? element("a", { href: `#schema/${word}` }, word) : word;
  });
  return linked.flatMap((part, index) => (index === 0 ? [part] : [" ", part]));
}

/** A list of an object's members, nested members collapsed. */
export function members(api, schema, depth = 0) {
  const object = objectOf(api, schema);
  if (!object || depth > 4) return null;
  const required = object.required || [];
  const items = Object.entries(object.properties).map(([name, member]) => {
    const label = [
      element("code", {}, name),
      " ",
      element("span", { className: "type" }, ...type(api, member)),
      required.includes(name) ? element("span", { className: "required" }, " required") : null,
      ...limits(member),
      member.description ? element("span", { className: "hint" }, " ", ...inline(member.description)) : null,
    ];
    const isObject = objectOf(api, member) && depth < 4;
    if (!isObject) return element("li", {}, ...label);
    return element("li", {}, disclosure({}, label, () => members(api, member, depth + 1)));
  });
  return element("ul", { className: "members" }, ...items);
}

/** What else a schema says about its values. */
export function limits({ default: value, minimum, maximum, maxLength }) {
  const said = [];
  if (value !== undefined) said.push(`default ${JSON.stringify(value)}`);
  if (minimum !== undefined && maximum !== undefined) said.push(`${minimum} to ${maximum}`);
  else if (minimum !== undefined) said.push(`at least ${minimum}`);
  if (maxLength !== undefined) said.push(`up to ${maxLength} characters`);
  return said.length ? [element("span", { className: "hint" }, ` (${said.join(", ")})`)] : [];
}
