// Renders JSON Schemas.

import { element, inline } from "./dom.js";

/** Resolves a `$ref` within the document; members beside it take precedence. */
export function resolve(api, schema) {
  if (!schema || !schema.$ref) return schema;
  const steps = schema.$ref.slice(2).split("/");
  const found = steps.reduce((value, step) => value && value[step], api);
  return { ...found, ...schema, $ref: undefined };
}

/** A short description of the values that a schema permits. */
function typeName(api, schema) {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const several = schema.anyOf || schema.oneOf;
  if (several && !schema.$ref) return several.map((one) => typeName(api, one)).join(" or ");
  if (schema.$ref) return schema.$ref.split("/").pop();
  const types = [schema.type || "any"].flat();
  return types
    .map((type) => (type === "array" && schema.items ? `array of ${typeName(api, schema.items)}` : type))
    .map((type) => (type === "string" && schema.format ? `string (${schema.format})` : type))
    .join(" or ");
}

/** The schema of the object, or of the objects in an array; null for other schemas. */
function objectOf(api, schema) {
  const found = resolve(api, schema);
  if (!found) return null;
  if (found.properties) return found;
  if (found.items) return objectOf(api, found.items);
  const several = found.anyOf || found.oneOf || [];
  return several.map((one) => objectOf(api, one)).find(Boolean) || null;
}

/** A list of an object's members, nested members collapsed. */
export function members(api, schema, depth = 0) {
  const object = objectOf(api, schema);
  if (!object || depth > 4) return null;
  const required = object.required || [];
  const items = Object.entries(object.properties).map(([name, member]) => {
    const label = [
      element("code", {}, name),
      ` ${typeName(api, member)}`,
      required.includes(name) ? ", always" : null,
      member.description ? ": " : null,
      ...inline(member.description || ""),
    ];
    const inner = objectOf(api, member) && depth < 4;
    if (!inner) return element("li", {}, ...label);
    const details = element("details", {}, element("summary", {}, ...label));
    // Rendered when first opened: fully expanded schemas would be very long.
    details.addEventListener("toggle", () => details.append(members(api, member, depth + 1)), {
      once: true,
    });
    return element("li", {}, details);
  });
  return element("ul", { className: "members" }, ...items);
}
