// Creates a delivery at the price that is calculated first. Needs Node.js 18, and BASE, KEY and SECRET in the
// environment.
import { randomUUID } from "node:crypto";

const { BASE, KEY, SECRET } = process.env;

const credentials = Buffer.from(`${KEY}:${SECRET}`).toString("base64");
const granted = await fetch(`${BASE}/oauth2/token`, {
  method: "POST",
  headers: { Authorization: `Basic ${credentials}` },
  body: new URLSearchParams({ grant_type: "client_credentials", scope: "deliveries tasks" }),
});
const { access_token: token } = await granted.json();

async function call(path, body, headers = {}) {
  const response = await fetch(BASE + path, {
    method: body ? "POST" : "GET",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/ld+json", ...headers },
    body: body && JSON.stringify(body),
  });
  const content = await response.json();
  // `code` is for programs; `violations` lists what is wrong.
  if (!response.ok) throw new Error(JSON.stringify(content));
  return content;
}

const { choices } = await call("/api/time_slots/choices");
const dropoff = { address: "48 Rue de Rivoli, 75004 Paris", timeSlot: choices[0].value };
const price = await call("/api/retail_prices/calculate", { dropoff });

// The same key after a timeout: the order is created once.
const key = randomUUID();
const delivery = await call("/api/deliveries", { dropoff, retailPrice: price["@id"] }, { "Idempotency-Key": key });
console.log(delivery.dropoff.status);
console.log(delivery["@id"]);
