// Builds a request from the values of a form. No DOM, so that Node runs it.

import { JSON_LD } from "./openapi.js";

/** `values` are pairs of a parameter and its text; `operation` has `method`, `path`, `accept`, `auth`
 * and the `mediaType` of the body. */
export function build({ method, path, accept, auth, mediaType }, values, body) {
  let filled = path;
  const query = new URLSearchParams();
  const headers = {};
  // Without `Accept`, a response is JSON-LD.
  if (accept !== JSON_LD) headers.Accept = accept;
  for (const { parameter, value } of values) {
    if (parameter.in === "path") {
      if (value !== "") filled = filled.replace(`{${parameter.name}}`, encodeURIComponent(value));
    } else if (value !== "") {
      if (parameter.in === "query") query.append(parameter.name, value);
      else headers[parameter.name] = value;
    }
  }
  if (body !== null) headers["Content-Type"] = mediaType;
  const search = query.toString();
  return { method: method.toUpperCase(), path: search ? `${filled}?${search}` : filled, headers, auth, body };
}
