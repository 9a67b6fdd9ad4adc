// Holds the credentials and the access token, and sends the page's requests.

/** The base URL of the API, relative to this page. */
const BASE = new URL("..", document.baseURI);

/** The API key, secret and access token; kept in this variable only. */
export const credentials = { key: "", secret: "", token: "" };

/** Requests and keeps an access token; returns the response's JSON, or throws its error. */
export async function authorise(key, secret, scope) {
  Object.assign(credentials, { key, secret });
  const { status, text } = await send({
    method: "POST",
    path: "/oauth2/token",
    headers: { "Content-Type": "application/x-www-form-urlencoded" },
    auth: "credentials",
    body: new URLSearchParams({ grant_type: "client_credentials", scope }).toString(),
  });
  const body = JSON.parse(text);
  if (status !== 200) throw new Error(body.error_description || body.detail || `HTTP ${status}`);
  credentials.token = body.access_token;
  return body;
}

/** Sends a request; returns the status, headers and text of the response. */
export async function send({ method, path, headers, auth, body }) {
  const sent = { ...headers };
  if (auth === "token" && credentials.token) sent.Authorization = `Bearer ${credentials.token}`;
  if (auth === "credentials" && credentials.key) {
    const encoded = [credentials.key, credentials.secret].map(encodeURIComponent).join(":");
    sent.Authorization = `Basic ${btoa(encoded)}`;
  }
  const response = await fetch(new URL(path.slice(1), BASE), {
    method,
    headers: sent,
    body: body === null ? undefined : body,
    credentials: "omit",
    cache: "no-store",
  });
  return { status: response.status, headers: [...response.headers], text: await response.text() };
}
