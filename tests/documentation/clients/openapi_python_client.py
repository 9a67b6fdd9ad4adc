"""A shop's requests with the client that openapi-python-client generates. Arguments: the folder of
the package `client`, the base URL, the API key and its secret."""

import sys

folder, base, key, secret = sys.argv[1:]
sys.path.insert(0, folder)

from client import AuthenticatedClient, Client
from client.api.access_tokens import issue_token
from client.api.deliveries import create_delivery, list_deliveries
from client.api.notifications import list_notifications, test_webhook
from client.api.retail_prices import calculate_retail_price
from client.api.tasks import get_task
from client.api.webhooks import create_webhook
from client.models import (
    DeliveryDraft, DropoffDraft, EmptyObject, EventName, NotificationState, Problem, TaskStatus,
    TokenRequest, WebhookDraft)
from receiver import Receiver

token = issue_token.sync(client=Client(base), body=TokenRequest(
    grant_type="client_credentials", scope="deliveries tasks", client_id=key, client_secret=secret))
shop = AuthenticatedClient(base, token.access_token)

dropoff = DropoffDraft(address="48 Rue de Rivoli, 75004 Paris", before="tomorrow 13:00")
price = calculate_retail_price.sync(client=shop, body=DeliveryDraft(dropoff))
assert (price.amount, price.tax.included) == (499, True), price

delivery = create_delivery.sync(
    client=shop, body=DeliveryDraft(dropoff, retail_price=price.id), idempotency_key=price.id[-32:])
assert delivery.price.amount == price.amount, delivery
assert delivery["@id"] == f"/api/deliveries/{delivery.id}", delivery

task = get_task.sync(delivery.dropoff.id, client=shop)
assert task.status is TaskStatus.TODO, task

listed = list_deliveries.sync(client=shop, items_per_page=1)
assert [member.id for member in listed.hydramember] == [delivery.id], listed

invalid = create_delivery.sync(client=shop, body=DeliveryDraft(DropoffDraft(address="")))
assert isinstance(invalid, Problem) and invalid.violations[0].property_path == "dropoff.before", invalid

receiver = Receiver()
webhook = create_webhook.sync(
    client=shop, body=WebhookDraft(EventName.DELIVERY_COMPLETED, receiver.url))
test = test_webhook.sync(webhook.id, client=shop, body=EmptyObject())
assert test.delivered, test
assert receiver.verified(webhook.secret)["event"] == webhook.event

states = [NotificationState.FAILED, NotificationState.EXHAUSTED]
notifications = list_notifications.sync(webhook.id, client=shop, state=states)
assert notifications.hydramember == [], notifications
