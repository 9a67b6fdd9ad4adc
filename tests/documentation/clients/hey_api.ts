// A shop's requests with the client that @hey-api/openapi-ts generates. Arguments: the base URL, the
// API key and its secret.
import assert from "node:assert/strict";
import {
  calculateRetailPrice, createDelivery, createWebhook, getTask, issueToken, listDeliveries,
  listNotifications, testWebhook,
  type DeliveryDraft, type JsonLdMembers,
} from "./hey/index";
import { client } from "./hey/client.gen";
import { isVerified, receive } from "./receiver";

async function main(): Promise<void> {
  const [baseUrl, client_id, client_secret] = process.argv.slice(2);
  client.setConfig({ baseUrl });
  const options = { throwOnError: true } as const;

  const token = await issueToken({
    ...options,
    body: { grant_type: "client_credentials", scope: "deliveries tasks", client_id, client_secret },
  });
  client.setConfig({ baseUrl, auth: () => token.data.access_token });

  const draft: DeliveryDraft = {
    dropoff: { address: "48 Rue de Rivoli, 75004 Paris", before: "tomorrow 13:00" },
  };
  const price = (await calculateRetailPrice({ ...options, body: draft })).data;
  assert.deepEqual([price.amount, price.tax.included], [499, true]);

  const delivery = (
    await createDelivery({
      ...options,
      body: { ...draft, retailPrice: price["@id"] },
      headers: { "Idempotency-Key": price["@id"].slice(-32) },
    })
  ).data;
  assert.equal(delivery.price?.amount, price.amount);
  const { "@id": iri } = delivery as typeof delivery & JsonLdMembers;
  assert.equal(iri, `/api/deliveries/${delivery.id}`);

  const task = (await getTask({ ...options, path: { id: delivery.dropoff.id } })).data;
  assert.equal(task.status, "TODO");

  const listed = (await listDeliveries({ ...options, query: { itemsPerPage: 1 } })).data;
  assert.deepEqual(listed["hydra:member"].map((member) => member.id), [delivery.id]);

  const invalid = await createDelivery({ body: { dropoff: { address: "" } } });
  assert.equal(invalid.error?.violations?.[0]?.propertyPath, "dropoff.before");

  const receiver = await receive();
  const webhook = (
    await createWebhook({ ...options, body: { event: "delivery.completed", url: receiver.url } })
  ).data;
  const test = (await testWebhook({ ...options, path: { id: webhook.id } })).data;
  assert.equal(test.delivered, true);
  assert.ok(isVerified(await receiver.next, webhook.secret ?? ""));
  receiver.close();

  const notifications = await listNotifications({
    ...options,
    path: { id: webhook.id },
    query: { state: ["failed", "exhausted"] },
  });
  assert.deepEqual(notifications.data["hydra:member"], []);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
