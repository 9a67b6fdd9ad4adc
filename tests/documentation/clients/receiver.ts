// A webhook receiver for the tests of generated TypeScript clients.
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

export interface Received {
  headers: IncomingHttpHeaders;
  body: string;
}

/** Starts a receiver on a free port; `next` is the first notification. */
export async function receive(): Promise<{ url: string; next: Promise<Received>; close: () => void }> {
  let found: (received: Received) => void;
  const next = new Promise<Received>((resolve) => (found = resolve));
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (text) => (body += text));
    request.on("end", () => {
      found({ headers: request.headers, body });
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/`, next, close: () => server.close() };
}

/** Whether both signatures of a notification are right. */
export function isVerified({ headers, body }: Received, secret: string): boolean {
  const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
  const expected = `v1,${mac(Buffer.from(secret, "base64"), signed)}`;
  const signatures = String(headers["webhook-signature"]).split(" ");
  return (
    signatures.some((signature) => isEqual(signature, expected)) &&
    isEqual(String(headers["x-service-signature"]), mac(secret, body))
  );
}

function mac(key: Buffer | string, message: string): string {
  return createHmac("sha256", key).update(message).digest("base64");
}

function isEqual(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));
}
