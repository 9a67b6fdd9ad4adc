// Sends the page's requests, and formats them as curl commands.

/** The base URL of the API, relative to this page. */
const BASE = new URL("..", document.baseURI);

/** The access token, stored in this variable only. */
let token = null;

/** Requests and stores an access token; returns the response's JSON, or throws its error. */
export async function authorise(key, secret, scope) {
  const encoded = [key, secret].map(encodeURIComponent).join(":");
  const response = await fetch(new URL("oauth2/token", BASE), {
    method: "POST",
    headers: { Authorization: `Basic ${btoa(encoded)}` },
    body: new URLSearchParams({ grant_type: "client_credentials", scope }),
    credentials: "omit",
    cache: "no-store",
  });
  const body = await response.json();
  if (!response.ok) throw new Error(body.error_description || body.detail || response.statusText);
  token = body.access_token;
  return body;
}

/** Builds a request from the form: `method`, `path` with query, `headers` and `body`. */
export function request(operation, values, body) {
  let path = operation.path;
  const query = new URLSearchParams();
  const headers = { Accept: operation.accept };
  for (const { parameter, value } of values) {
    if (parameter.in === "path") {
      path = path.replace(`{${parameter.name}}`, encodeURIComponent(value));
    } else if (value !== "") {
      if (parameter.in === "query") query.set(parameter.name, value);
      else headers[parameter.name] = value;
    }
  }
  if (operation.secured && token) headers.Authorization = `Bearer ${token}`;
  if (body !== null) headers["Content-Type"] = operation.sends;
  const search = query.toString();
  return { method: operation.method, path: search ? `${path}?${search}` : path, headers, body };
}

/** Sends a request; returns the status, headers and text of the response. */
export async function send({ method, path, headers, body }) {
  const response = await fetch(new URL(path.slice(1), BASE), {
    method,
    headers,
    body: body === null ? undefined : body,
    credentials: "omit",
    cache: "no-store",
  });
  return { status: response.status, headers: [...response.headers], text: await response.text() };
}

/** Formats a request as a curl command, with the token in a shell variable. */
export function curl(server, { method, path, headers, body }) {
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const parts = ["curl", method === "GET" ? null : `-X ${method}`, quoted(server + path)];
  for (const [name, value] of Object.entries(headers)) {
    const bearer = name === "Authorization";
    parts.push(bearer ? `-H "Authorization: Bearer $TOKEN"` : `-H ${quoted(`${name}: ${value}`)}`);
  }
  if (body !== null) parts.push(`--data-raw ${quoted(body)}`);
  return parts.filter(Boolean).join(" \\\n  ");
}
