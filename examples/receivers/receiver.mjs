// Receives webhooks on port 9000. Needs Node.js 18 and the secret in WEBHOOK_SECRET.
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const { WEBHOOK_SECRET: secret, PORT: port = "9000" } = process.env;
if (!secret) throw new Error("set WEBHOOK_SECRET: with an empty key, a forged signature would be accepted");
// Set to X-Service-Signature (X-<Platform>-Signature) to check that header instead.
const platformHeader = process.env.PLATFORM_HEADER;
const TOLERANCE = 5 * 60; // seconds

// Ids of processed notifications. Use a unique column of your database instead, written in the
// transaction that processes the event: the set is lost when the program ends.
const processed = new Set();

const sign = (key, ...parts) => {
  const hmac = createHmac("sha256", key);
  for (const part of parts) hmac.update(part);
  return hmac.digest("base64");
};

const equal = (one, other) => {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
};

// Keyed with the decoded secret. Covers the id and the time: an old request cannot be sent again.
function hasStandardSignature(headers, body) {
  const { "webhook-id": id, "webhook-timestamp": sentAt = "", "webhook-signature": signatures = "" } = headers;
  if (!/^\d+$/.test(sentAt) || Math.abs(Date.now() / 1000 - Number(sentAt)) > TOLERANCE) return false;
  const expected = `v1,${sign(Buffer.from(secret, "base64"), `${id}.${sentAt}.`, body)}`;
  return signatures.split(" ").some((signature) => equal(signature, expected));
}

// Keyed with the text of the secret. Covers the body alone.
function hasPlatformSignature(headers, body) {
  return equal(headers[platformHeader.toLowerCase()] ?? "", sign(secret, body));
}

const server = createServer(async (request, response) => {
  // The bytes as received: JSON that was parsed and written again has another signature.
  const chunks = [];
  try {
    for await (const chunk of request) chunks.push(chunk);
  } catch {
    return; // the connection ended before the body did
  }
  const body = Buffer.concat(chunks);
  const check = platformHeader ? hasPlatformSignature : hasStandardSignature;
  if (!check(request.headers, body)) return response.writeHead(401).end();
  const id = request.headers["webhook-id"];
  if (!processed.has(id)) {
    console.log("genuine:", body.toString()); // process the event here
    processed.add(id);
  }
  response.writeHead(204).end();
});
server.listen(Number(port), "127.0.0.1");
