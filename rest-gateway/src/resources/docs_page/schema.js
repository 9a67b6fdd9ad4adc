// What a JSON Schema says, for people.

import { element, inline } from "./dom.js";

/** Follows a `$ref` within the documentation; what stands beside it goes first. */
export function resolve(api, schema) {
  if (!schema || !schema.$ref) return schema;
  const steps = schema.$ref.slice(2).split("/");
  const found = steps.reduce((value, step) => value && value[step], api);
  return { ...found, ...schema, $ref: undefined };
}

/** The kinds of value that a schema permits, in a few words. */
function kind(api, schema) {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const several = schema.anyOf || schema.oneOf;
  if (several && !schema.$ref) return several.map((one) => kind(api, one)).join(" or ");
  if (schema.$ref) return schema.$ref.split("/").pop();
  const types = [schema.type || "any"].flat();
  return types
    .map((type) => (type === "array" && schema.items ? `array of ${kind(api, schema.items)}` : type))
    .map((type) => (type === "string" && schema.format ? `string (${schema.format})` : type))
    .join(" or ");
}

/** The members of the object that a schema is of, or of the objects in its array; else nothing. */
function objectOf(api, schema) {
  const found = resolve(api, schema);
  if (!found) return null;
  if (found.properties) return found;
  if (found.items) return objectOf(api, found.items);
  const several = found.anyOf || found.oneOf || [];
  return several.map((one) => objectOf(api, one)).find(Boolean) || null;
}

/** A list of members, each opening to its own. */
export function members(api, schema, depth = 0) {
  const object = objectOf(api, schema);
  if (!object || depth > 4) return null;
  const required = object.required || [];
  const items = Object.entries(object.properties).map(([name, member]) => {
    const line = [
      element("code", {}, name),
      ` ${kind(api, member)}`,
      required.includes(name) ? ", always" : null,
      member.description ? ": " : null,
      ...inline(member.description || ""),
    ];
    const inner = objectOf(api, member) && depth < 4;
    if (!inner) return element("li", {}, ...line);
    const details = element("details", {}, element("summary", {}, ...line));
    // Made when it is opened: the whole of every schema would be very long.
    details.addEventListener("toggle", () => details.append(members(api, member, depth + 1)), {
      once: true,
    });
    return element("li", {}, details);
  });
  return element("ul", { className: "members" }, ...items);
}
