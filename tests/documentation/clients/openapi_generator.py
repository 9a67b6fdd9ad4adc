"""A shop's requests with the Python client that openapi-generator generates. Arguments: the folder of
the package `openapi_client`, the base URL, the API key and its secret."""

import sys

folder, base, key, secret = sys.argv[1:]
sys.path.insert(0, folder)

import openapi_client as client
from openapi_client import DeliveryDraft, DropoffDraft, DropoffDraftAddress, EventName, WebhookDraft
from receiver import Receiver

anonymous = client.ApiClient(client.Configuration(host=base))
token = client.AccessTokensApi(anonymous).issue_token(
    "client_credentials", client_id=key, client_secret=secret, scope="deliveries tasks")
shop = client.ApiClient(client.Configuration(host=base, access_token=token.access_token))
deliveries = client.DeliveriesApi(shop)

address = DropoffDraftAddress("48 Rue de Rivoli, 75004 Paris")
dropoff = DropoffDraft(address=address, before="tomorrow 13:00")
price = client.RetailPricesApi(shop).calculate_retail_price(DeliveryDraft(dropoff=dropoff))
assert (price.amount, price.tax.included) == (499, True), price

delivery = deliveries.create_delivery(
    DeliveryDraft(dropoff=dropoff, retail_price=price.id), idempotency_key=price.id[-32:])
assert delivery.price.amount == price.amount, delivery

task = client.TasksApi(shop).get_task(delivery.dropoff.id)
assert task.status == client.TaskStatus.TODO, task

listed = deliveries.list_deliveries(items_per_page=1)
assert [member.id for member in listed.hydra_member] == [delivery.id], listed

try:
    deliveries.create_delivery(DeliveryDraft(dropoff=DropoffDraft(address=DropoffDraftAddress(" "))))
    raise AssertionError("an incomplete draft is accepted")
except client.ApiException as error:
    assert error.data.violations[0].property_path == "dropoff.before", error

receiver = Receiver()
webhook = client.WebhooksApi(shop).create_webhook(
    WebhookDraft(event=EventName.DELIVERY_DOT_COMPLETED, url=receiver.url))
test = client.NotificationsApi(shop).test_webhook(webhook.id)
assert test.delivered, test
assert receiver.verified(webhook.secret)["event"] == webhook.event

states = [client.NotificationState.FAILED, client.NotificationState.EXHAUSTED]
notifications = client.NotificationsApi(shop).list_notifications(webhook.id, state=states)
assert notifications.hydra_member == [], notifications
