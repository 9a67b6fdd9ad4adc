"""Resources of every kind in a new platform, so that generated requests find some."""

import os
import time

import requests
from oauthlib.oauth2 import BackendApplicationClient
from requests_oauthlib import OAuth2Session

# The platform serves loopback without TLS.
os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"

# Seconds. Longer than the first attempt of a notification takes.
TIMEOUT = 60

DRAFT = {"dropoff": {"address": "48 Rue de Rivoli, 75004 Paris", "before": "tomorrow 13:00"}}
# No process listens there.
WEBHOOK = {"event": "delivery.completed", "url": "http://127.0.0.1:9/"}


class Client:
    """An API client with an access token, which `oauthlib` gets where the metadata says (RFC 8414)."""

    def __init__(self, base, credentials, scope):
        self.base = base
        metadata = requests.get(base + "/.well-known/oauth-authorization-server", timeout=30).json()
        client = BackendApplicationClient(client_id=credentials["api_key"], scope=scope)
        issued = OAuth2Session(client=client).fetch_token(
            metadata["token_endpoint"], client_secret=credentials["api_secret"], timeout=30)
        self.token = issued["access_token"]
        self.headers = {
            "Authorization": f"Bearer {self.token}", "Content-Type": "application/ld+json"}

    def call(self, method, path, body=None):
        response = requests.request(
            method, self.base + path, headers=self.headers, json=body, timeout=30)
        response.raise_for_status()
        return response.json()


class Fixtures:
    """Existing resources, and the clients that made them."""

    def __init__(self, ready):
        self.shop = Client(ready["base_url"], ready["demo_client"], "deliveries tasks")
        self.courier = Client(ready["base_url"], ready["operator_client"], "tasks:all")
        self.desk = Client(ready["base_url"], ready["operator_client"], "admin")
        shop = self.shop
        webhooks = [shop.call("POST", "/api/webhooks", WEBHOOK) for _ in range(10)]
        deliveries = [shop.call("POST", "/api/deliveries", DRAFT) for _ in range(10)]
        tasks = [delivery[task]["@id"] for delivery in deliveries for task in ("pickup", "dropoff")]
        # Some deliveries, and of the others the pickups.
        for task in tasks[:6] + tasks[6::2]:
            self.courier.call("PUT", task + "/done", {})
        me = shop.call("GET", "/api/me")
        store = shop.call("GET", me["store"])
        quotes = [shop.call("POST", "/api/retail_prices/calculate", DRAFT) for _ in range(10)]
        choices = shop.call("GET", "/api/time_slots/choices")["choices"]
        self.choices = [choice["value"] for choice in choices]
        urls = [delivery["trackingUrl"] for delivery in deliveries]
        self.tracking_tokens = [url.rsplit("/", 1)[1] for url in urls]
        # By collection.
        self.iris = {
            "deliveries": [delivery["@id"] for delivery in deliveries],
            "tasks": tasks,
            "webhooks": [webhook["@id"] for webhook in webhooks],
            "notifications": self._wait_for(webhooks[0]["@id"] + "/notifications"),
            "events": self._wait_for("/api/events"),
            "api_apps": [me["@id"]],
            "stores": [store["@id"]],
            "time_slots": store["timeSlots"],
            "quotes": [quote["@id"] for quote in quotes],
        }

    def examples(self):
        """An IRI of each collection."""
        return [iris[0] for iris in self.iris.values()]

    def dictionaries(self):
        """Values for generated requests, by the dictionary's name in schemathesis.toml."""
        ids = {name: [iri.rsplit("/", 1)[1] for iri in iris] for name, iris in self.iris.items()}
        return {
            **ids, "quote_iris": self.iris["quotes"], "task_iris": self.iris["tasks"], "choices": self.choices,
            "tracking_tokens": self.tracking_tokens}

    def _wait_for(self, collection):
        """The IRIs in a collection that is filled in the background."""
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            members = self.shop.call("GET", collection)["hydra:member"]
            if members:
                return [member["@id"] for member in members]
            time.sleep(0.1)
        raise TimeoutError(f"{collection} stays empty")
