// A shop's requests with the TypeScript client that openapi-generator generates. Arguments: the base
// URL, the API key and its secret.
import assert from "node:assert/strict";
import {
  AccessTokensApi, Configuration, DeliveriesApi, NotificationsApi, ResponseError, RetailPricesApi,
  TasksApi, WebhooksApi, type DeliveryDraft, type Problem,
} from "./fetch/index";
import { isVerified, receive } from "./receiver";

async function main(): Promise<void> {
  const [basePath, clientId, clientSecret] = process.argv.slice(2);
  const token = await new AccessTokensApi(new Configuration({ basePath })).issueToken({
    grantType: "client_credentials", scope: "deliveries tasks", clientId, clientSecret,
  });
  // This generator adds no `Bearer` to tokens of OAuth 2.0.
  const shop = new Configuration({ basePath, accessToken: `Bearer ${token.accessToken}` });
  const deliveries = new DeliveriesApi(shop);

  const deliveryDraft: DeliveryDraft = {
    dropoff: { address: { streetAddress: "48 Rue de Rivoli, 75004 Paris" }, before: "tomorrow 13:00" },
  };
  const price = await new RetailPricesApi(shop).calculateRetailPrice({ deliveryDraft });
  assert.deepEqual([price.amount, price.tax.included], [499, true]);

  const delivery = await deliveries.createDelivery({
    deliveryDraft: { ...deliveryDraft, retailPrice: price.atId },
    idempotencyKey: price.atId.slice(-32),
  });
  assert.equal(delivery.price?.amount, price.amount);

  const task = await new TasksApi(shop).getTask({ id: delivery.dropoff.id });
  assert.equal(task.status, "TODO");

  const listed = await deliveries.listDeliveries({ itemsPerPage: 1 });
  assert.deepEqual(listed.hydraMember.map((member) => member.id), [delivery.id]);

  try {
    await deliveries.createDelivery({ deliveryDraft: { dropoff: { address: {} } } });
    assert.fail("an incomplete draft is accepted");
  } catch (error) {
    assert.ok(error instanceof ResponseError, String(error));
    const problem = (await error.response.json()) as Problem;
    assert.equal(problem.violations?.[0]?.propertyPath, "dropoff.before");
  }

  const receiver = await receive();
  const webhook = await new WebhooksApi(shop).createWebhook({
    webhookDraft: { event: "delivery.completed", url: receiver.url },
  });
  const test = await new NotificationsApi(shop).testWebhook({ id: webhook.id });
  assert.equal(test.delivered, true);
  assert.ok(isVerified(await receiver.next, webhook.secret ?? ""));
  receiver.close();

  const notifications = await new NotificationsApi(shop).listNotifications({
    id: webhook.id,
    state: ["failed", "exhausted"],
  });
  assert.deepEqual(notifications.hydraMember, []);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
