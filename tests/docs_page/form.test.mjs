// The form of an operation, with a stand-in for the DOM: elements with a value, children and events.

import assert from "node:assert/strict";
import { test } from "node:test";

import { fields } from "../../rest-gateway/src/resources/docs_page/form.js";

class FakeElement extends EventTarget {
  constructor(name) {
    super();
    Object.assign(this, { name, id: "", value: "", children: [] });
  }

  append(...content) {
    this.children.push(...content);
  }

  setAttribute() {}

  find(name) {
    for (const child of this.children) {
      const found = child.name === name ? child : child.find?.(name);
      if (found) return found;
    }
    return null;
  }
}

globalThis.document = { createElement: (name) => new FakeElement(name) };

const api = { components: { schemas: {} } };
const schema = { type: "object", properties: { event: { type: "string", enum: ["first", "second"] } } };
const media = { schema, example: { event: "second" } };
const operationObject = { requestBody: { content: { "application/json": media } } };

function form() {
  let changes = 0;
  const { elements, body } = fields(api, { id: "create", operationObject }, () => (changes += 1));
  const all = new FakeElement("form");
  all.append(...elements);
  return { body, select: all.find("select"), text: all.find("textarea"), changes: () => changes };
}

test("the select of an enum shows the member of the example", () => {
  const { body, select } = form();

  assert.equal(select.value, "second");
  assert.deepEqual(JSON.parse(body()), media.example);
});

test("the select of an enum sets its member of the body, and shows what is typed there", () => {
  const { body, select, text, changes } = form();
  const before = changes();

  select.value = "first";
  select.dispatchEvent(new Event("change"));
  assert.deepEqual(JSON.parse(body()), { event: "first" });
  text.value = JSON.stringify({ event: "second" });
  text.dispatchEvent(new Event("input"));

  assert.equal(select.value, "second");
  assert.equal(changes() - before, 2);
});
