// Searches and reads an OpenAPI document as the page does. `OPENAPI` is the file of a real one.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { entries, find } from "../../rest-gateway/src/resources/docs_page/search.js";
import * as openapi from "../../rest-gateway/src/resources/docs_page/openapi.js";

const api = JSON.parse(readFileSync(process.env.OPENAPI));
const all = entries(api);
const hrefs = (query) => find(all, query).map(({ href }) => href);

test("an operation is found by its path, id, method, parameters, members and errors", () => {
  assert.equal(hrefs("createDelivery")[0], "#createDelivery");
  assert.equal(hrefs("POST /api/deliveries")[0], "#createDelivery");
  assert.ok(hrefs("/api/deliveries").length >= 5);
  for (const query of ["Idempotency-Key", "externalReference", "external_reference_taken", "streetAddress", "CREATE delivery"]) {
    assert.ok(hrefs(query).includes("#createDelivery"), query);
  }
});

test("schemas are found by name first, and nothing by a word that occurs nowhere", () => {
  assert.equal(hrefs("Delivery").find((href) => href.startsWith("#schema")), "#schema/Delivery");
  assert.deepEqual(hrefs("velocipede"), []);
  assert.deepEqual(hrefs("createDelivery velocipede"), []);
  assert.deepEqual(hrefs("  "), []);
});

test("webhooks are found by their event", () => {
  const operationObject = { summary: "A parcel was lost", parameters: [{ name: "webhook-id", in: "header" }] };
  const extended = { ...api, webhooks: { "parcel.lost": { post: operationObject } } };

  assert.deepEqual(openapi.webhooks(extended), [{ id: "webhook/parcel.lost", name: "parcel.lost", operationObject }]);
  const found = find(entries(extended), "parcel.lost");
  assert.deepEqual(found.map(({ href }) => href), ["#webhook/parcel.lost"]);
});

test("every operation has what the page needs to send it", () => {
  for (const { id, path, operationObject } of openapi.operations(api)) {
    assert.ok(id && operationObject.summary && operationObject.tags.length, path);
    const inPath = openapi.parameters(api, operationObject).filter((parameter) => parameter.in === "path");
    assert.equal(inPath.length, (path.match(/\{/g) || []).length, path);
  }
  const authenticates = (id) => {
    const found = openapi.operations(api).find((operation) => operation.id === id);
    return openapi.authentication(found.operationObject);
  };
  assert.deepEqual(authenticates("createDelivery"), { by: "token", scopes: ["deliveries"] });
  assert.deepEqual(authenticates("issueToken"), { by: "credentials", scopes: [] });
  assert.deepEqual(authenticates("getOpenApi"), { by: null, scopes: [] });
});

test("a path of a resource leads to the operation that reads it", () => {
  const found = openapi.operationAt(api, "get", "/api/tasks/0190-a");
  assert.deepEqual([found.id, found.values], ["getTask", { id: "0190-a" }]);
  assert.equal(openapi.operationAt(api, "get", "/api/deliveries").id, "listDeliveries");
  assert.equal(openapi.operationAt(api, "get", "/api/nothing/here"), null);
});

test("types are named in few words, and objects are found behind references and lists", () => {
  const name = (schema) => openapi.typeName(api, schema);
  assert.equal(name({ enum: ["a", "b"] }), '"a" | "b"');
  assert.equal(name({ type: ["string", "null"] }), "string or null");
  assert.equal(name({ type: "array", items: { $ref: "#/components/schemas/Task" } }), "array of Task");
  assert.equal(name({ anyOf: [{ $ref: "#/components/schemas/Task" }, { type: "null" }] }), "Task or null");
  const task = openapi.objectOf(api, { type: "array", items: { $ref: "#/components/schemas/Task" } });
  assert.ok(task.properties.status);
  assert.equal(openapi.objectOf(api, { type: "string" }), null);
});

test("examples are one, or several with names", () => {
  assert.deepEqual(openapi.examples({ example: null }), [{ name: "Example", value: null }]);
  assert.deepEqual(openapi.examples({ examples: { a: { summary: "A", value: 1 }, b: { value: 2 } } }), [
    { name: "A", value: 1 },
    { name: "b", value: 2 },
  ]);
  assert.deepEqual(openapi.examples({}), []);
});
