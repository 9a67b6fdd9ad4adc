// Checks what a generic Hydra client finds from the entrypoint, and that it can list every collection.
// Arguments: the base URL, and the header `Authorization` of a shop's client.
import { parseHydraDocumentation } from "@api-platform/api-doc-parser";

const [base, authorization] = process.argv.slice(2);
const headers = { Authorization: authorization };
const { api } = await parseHydraDocumentation(`${base}/api`, { headers });
const documentation = await (await fetch(`${base}/api/docs.jsonld`)).json();
const entrypoint = await (await fetch(`${base}/api`)).json();
const classes = documentation["hydra:supportedClass"];
const failures = [];
let fields = 0;
let operations = 0;
let filters = 0;

for (const [name, address] of Object.entries(entrypoint)) {
  if (name.startsWith("@")) continue;
  const resource = api.resources.find((found) => found.url.endsWith(address));
  if (!resource) {
    failures.push(`${address} is missing`);
    continue;
  }
  const documented = classes.find((one) => one["hydra:title"] === resource.title);
  for (const property of documented["hydra:supportedProperty"]) {
    const title = property["hydra:title"];
    const field = resource.fields.find((found) => found.name === title);
    if (!field) failures.push(`${resource.title}.${title} is missing`);
    else if (field.required !== property["hydra:required"]) {
      failures.push(`${resource.title}.${title}: required is ${field.required}`);
    }
    fields += 1;
  }
  const link = classes
    .find((one) => one["hydra:title"] === "Entrypoint")
    ["hydra:supportedProperty"].find((one) => one["hydra:title"] === name);
  const documentedOperations = [
    ...documented["hydra:supportedOperation"],
    ...(link["hydra:property"]["hydra:supportedOperation"] || []),
  ];
  for (const operation of documentedOperations) {
    const method = operation["hydra:method"];
    const title = operation["hydra:title"];
    if (!resource.operations.some((found) => found.method === method && found.name === title)) {
      failures.push(`${resource.title}: ${method} "${title}" is missing`);
    }
    operations += 1;
  }

  // The request and what is read of the response are those of API Platform's Admin.
  const list = await fetch(`${resource.url}?order%5Bid%5D=ASC&page=1&itemsPerPage=10`, { headers });
  const page = await list.json();
  if (!list.ok || !page["hydra:member"]) failures.push(`${resource.title}: ${JSON.stringify(page)}`);
  if (page["hydra:totalItems"] === undefined && !page["hydra:view"]) {
    failures.push(`${resource.title}: no total and no links to pages`);
  }
  const found = (await resource.getParameters()).map((filter) => filter.variable);
  const { "hydra:template": template = "" } = page["hydra:search"] || {};
  const [, listed = ""] = template.match(/\{\?(.*)\}$/) || [];
  if (listed.replaceAll("*", "") !== found.join()) failures.push(`${resource.title}: ${found} of ${template}`);
  filters += found.length;
}

console.log(`${api.resources.length} resources, ${fields} fields, ${operations} operations, ${filters} filters`);
for (const failure of failures) console.error(failure);
process.exitCode = failures.length || filters === 0 ? 1 : 0;
