// Reads the OpenAPI document: its operations, webhooks and schemas. No DOM, so that Node runs it.

export const JSON_LD = "application/ld+json";

/** Resolves a `$ref` within the document; members beside it take precedence. */
export function resolve(api, schema) {
  if (!schema || !schema.$ref) return schema;
  const steps = schema.$ref.slice(2).split("/");
  const found = steps.reduce((value, step) => value && value[step], api);
  return { ...found, ...schema, $ref: undefined };
}

/** All operations: `id`, `method`, `path`, `tag` and the OpenAPI `operationObject`. */
export function operations(api) {
  return Object.entries(api.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operationObject]) => ({
      id: operationObject.operationId,
      method,
      path,
      tag: (operationObject.tags || [])[0],
      operationObject,
    })),
  );
}

/** All webhooks: the event's `name`, and the request that a receiver gets as `operationObject`. */
export function webhooks(api) {
  return Object.entries(api.webhooks || {}).map(([name, reference]) => {
    const item = resolve(api, reference);
    return { id: `webhook/${name}`, name, operationObject: item.post || Object.values(item)[0] };
  });
}

export function parameters(api, operationObject) {
  return (operationObject.parameters || []).map((reference) => resolve(api, reference));
}

/** Prefers JSON-LD among media types. */
export function preferred(content) {
  return JSON_LD in content ? JSON_LD : Object.keys(content)[0];
}

/** The named examples of a media type. */
export function examples(media) {
  if (media.example !== undefined) return [{ name: "Example", value: media.example }];
  return Object.entries(media.examples || {}).map(([name, { summary, value }]) => ({
    name: summary || name,
    value,
  }));
}

/** How an operation authenticates: "token", "credentials" or null; and the scopes of which its token has one. */
export function authentication(operationObject) {
  const security = operationObject.security || [];
  const schemes = Object.assign({}, ...security);
  if (schemes.accessToken) return { by: "token", scopes: security.flatMap((one) => one.accessToken) };
  return { by: schemes.credentials ? "credentials" : null, scopes: [] };
}

/** The values that a schema permits, in a few words; of a reference, the name of its schema. */
export function typeName(api, schema) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const several = schema.anyOf || schema.oneOf;
  if (several) return several.map((one) => typeName(api, one)).join(" or ");
  return [schema.type || "any"]
    .flat()
    .map((type) => (type === "array" && schema.items ? `array of ${typeName(api, schema.items)}` : type))
    .map((type) => (type === "string" && schema.format ? `string (${schema.format})` : type))
    .join(" or ");
}

/** The schema of the object, or of the objects in an array; null for other schemas. */
export function objectOf(api, schema) {
  const found = resolve(api, schema);
  if (!found) return null;
  // A reference with properties of its own narrows the schema: the members are the schema's.
  const named = schema.$ref ? resolve(api, { $ref: schema.$ref }) : found;
  if (named.properties) return { ...found, properties: named.properties };
  if (found.items) return objectOf(api, found.items);
  const several = found.anyOf || found.oneOf || [];
  return several.map((one) => objectOf(api, one)).find(Boolean) || null;
}

/** The operation that serves a path such as `/api/tasks/<id>`, and the values in the path. */
export function operationAt(api, method, path) {
  for (const operation of operations(api)) {
    const names = [...operation.path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name);
    const pattern = operation.path
      .split(/\{[^}]+\}/)
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
      .join("([^/]+)");
    const found = operation.method === method && path.match(new RegExp(`^${pattern}$`));
    if (found) {
      const values = names.map((name, index) => [name, decodeURIComponent(found[index + 1])]);
      return { ...operation, values: Object.fromEntries(values) };
    }
  }
  return null;
}
