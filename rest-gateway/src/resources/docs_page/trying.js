// Sends the requests of the page, and writes them as curl.

/** Where the API is, as this page was reached. */
const HERE = new URL("..", document.baseURI);

/** The access token, only ever here. */
let token = null;

/** Asks for an access token and keeps it; gives the answer's JSON, or throws its reason. */
export async function authorise(key, secret, scope) {
  const encoded = [key, secret].map(encodeURIComponent).join(":");
  const answer = await fetch(new URL("oauth2/token", HERE), {
    method: "POST",
    headers: { Authorization: `Basic ${btoa(encoded)}` },
    body: new URLSearchParams({ grant_type: "client_credentials", scope }),
    credentials: "omit",
    cache: "no-store",
  });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error_description || body.detail || answer.statusText);
  token = body.access_token;
  return body;
}

/**
 * A request: `method`, `path` (with its query), `headers` and `body`, from what was filled in.
 */
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

/** Sends it, and gives status, headers and text of the answer. */
export async function send({ method, path, headers, body }) {
  const answer = await fetch(new URL(path.slice(1), HERE), {
    method,
    headers,
    body: body === null ? undefined : body,
    credentials: "omit",
    cache: "no-store",
  });
  return { status: answer.status, headers: [...answer.headers], text: await answer.text() };
}

/** The same as a line for a shell, with the token left to a variable. */
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
