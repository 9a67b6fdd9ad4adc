// The form of an operation: its parameters and body.

import { element, inline } from "./dom.js";
import { examples, objectOf, parameters, preferred, resolve } from "./openapi.js";
import { limits, members } from "./schema.js";

/** The elements of the form; `values` and `body` read what was entered. */
export function fields(api, { id, operationObject }, changed) {
  const inputs = parameters(api, operationObject).map((parameter) => {
    const input = control(api, parameter, `${id}.${parameter.name}`);
    input.addEventListener("input", changed);
    return { parameter, input };
  });
  const content = operationObject.requestBody && operationObject.requestBody.content;
  const mediaType = content && preferred(content);
  const body = content && bodyFields(api, `${id}.body`, mediaType, content[mediaType], changed);
  return {
    elements: [
      ...inputs.map(({ parameter, input }) => field(input, parameter)),
      ...(body ? body.elements : []),
    ],
    mediaType,
    values: () =>
      inputs.flatMap(({ parameter, input }) =>
        [...(input.selectedOptions || [input])].map(({ value }) => ({ parameter, value: value.trim() })),
      ),
    body: () => (body ? body.text.value : null),
    fill: (values) => {
      for (const { parameter, input } of inputs) {
        if (parameter.name in values) input.value = values[parameter.name];
      }
      changed();
    },
  };
}

/** A select for an enum or a boolean, else an input. Several options can be selected for an array. */
function control(api, { required, schema: reference }, id) {
  const { items, ...given } = resolve(api, reference) || {};
  const schema = items ? resolve(api, items) : given;
  const values = schema.enum || (schema.type === "boolean" ? ["true", "false"] : null);
  if (values) {
    const preset = schema.default === undefined ? "not sent" : `default: ${schema.default}`;
    const options = values.map((value) => element("option", { value }, String(value)));
    if (items) return element("select", { id, multiple: true, size: values.length }, ...options);
    if (!required) options.unshift(element("option", { value: "" }, preset));
    return element("select", { id }, ...options);
  }
  const input = element("input", { id, required: required === true, autocomplete: "off", spellcheck: false });
  if (schema.type === "integer") input.inputMode = "numeric";
  const hint = schema.default ?? (schema.examples || [])[0];
  if (hint !== undefined) input.placeholder = String(hint);
  return input;
}

function field(input, { name, required, description, schema }) {
  if (description) input.setAttribute("aria-describedby", `${input.id}.hint`);
  return element(
    "div",
    { className: "field" },
    element("label", { htmlFor: input.id }, element("code", {}, name), required ? "" : " optional"),
    input,
    description
      ? element("p", { className: "hint", id: `${input.id}.hint` }, ...inline(description), ...limits(schema || {}))
      : null,
  );
}

/** The body as text, a select for each enum among its members, and a select of its examples. */
function bodyFields(api, id, mediaType, { schema, ...media }, changed) {
  const named = examples(media);
  const text = element("textarea", { id, spellcheck: false, rows: 4 });
  const write = (value) => {
    text.value = mediaType.includes("json") ? JSON.stringify(value, null, 2) : new URLSearchParams(value).toString();
    text.rows = Math.min(24, text.value.split("\n").length + 3);
    text.dispatchEvent(new Event("input"));
  };
  text.addEventListener("input", changed);
  const elements = [];
  if (named.length > 1) {
    const options = named.map(({ name }, index) => element("option", { value: index }, name));
    const select = element("select", { id: `${id}.example` }, ...options);
    select.addEventListener("change", () => write(named[select.value].value));
    elements.push(field(select, { name: "Example", required: true }));
  }
  const object = mediaType.includes("json") && objectOf(api, schema || {});
  for (const [name, member] of Object.entries(object ? object.properties : {})) {
    const { enum: values } = resolve(api, member) || {};
    if (values) elements.push(enumField(`${id}.${name}`, name, values, text, write));
  }
  elements.push(field(text, { name: "Body", required: true, description: mediaType }));
  const listed = schema && members(api, schema);
  if (listed) elements.push(element("details", {}, element("summary", {}, "Members of the body"), listed));
  write(named.length ? named[0].value : {});
  return { elements, text };
}

/** A select that sets one member of the JSON body, and shows its value. */
function enumField(id, name, values, text, write) {
  const select = element("select", { id }, ...values.map((value) => element("option", { value }, String(value))));
  const read = () => {
    try {
      return JSON.parse(text.value);
    } catch {
      return null;
    }
  };
  select.addEventListener("change", () => {
    const body = read();
    if (body) write({ ...body, [name]: select.value });
  });
  const show = () => {
    const body = read();
    if (body && values.includes(body[name])) select.value = body[name];
  };
  text.addEventListener("input", show);
  return field(select, { name, required: true });
}
