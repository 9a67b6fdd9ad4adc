// Holds the credentials and the access token, and sends the page's requests.

/** The base URL of the API, relative to this page. */
const BASE = new URL("..", document.baseURI);

/** The API key and secret, kept in this variable only, and the access token. */
export const credentials = { key: "", secret: "", token: "" };

/** What the tab keeps when it is reloaded; empty where the reader permits no storage. */
export const session = (() => {
  try {
    return sessionStorage;
  } catch {
    return {};
  }
})();
if (Number(session.until) < Date.now()) {
  delete session.token;
  delete session.authorised;
}
credentials.token = session.token ?? "";

/** Requests and keeps an access token, or throws the error of the response. */
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
  credentials.token = session.token = body.access_token;
  session.until = Date.now() + body.expires_in * 1000;
  session.authorised = `Authorised for ${body.scope}, until ${new Date(Number(session.until)).toLocaleTimeString()}.`;
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
