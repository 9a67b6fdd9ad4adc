# Creates a delivery at the price that is calculated first. Needs Python 3.8, and BASE, KEY and SECRET in the
# environment.
import base64
import json
import os
import urllib.error
import urllib.parse
import urllib.request
import uuid

BASE, KEY, SECRET = (os.environ[name] for name in ("BASE", "KEY", "SECRET"))


def send(path, data, headers):
    request = urllib.request.Request(BASE + path, data, headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        # `code` is for programs; `violations` lists what is wrong.
        raise SystemExit(error.read().decode())


credentials = base64.b64encode(f"{KEY}:{SECRET}".encode()).decode()
form = urllib.parse.urlencode({"grant_type": "client_credentials", "scope": "deliveries tasks"})
token = send("/oauth2/token", form.encode(), {"Authorization": f"Basic {credentials}"})["access_token"]


def call(path, body=None, headers={}):
    data = None if body is None else json.dumps(body).encode()
    common = {"Authorization": f"Bearer {token}", "Content-Type": "application/ld+json"}
    return send(path, data, {**common, **headers})


slot = call("/api/time_slots/choices")["choices"][0]["value"]
dropoff = {"address": "48 Rue de Rivoli, 75004 Paris", "timeSlot": slot}
price = call("/api/retail_prices/calculate", {"dropoff": dropoff})

# The same key after a timeout: the order is created once.
key = str(uuid.uuid4())
order = {"dropoff": dropoff, "retailPrice": price["@id"]}
delivery = call("/api/deliveries", order, {"Idempotency-Key": key})
print(delivery["dropoff"]["status"])
print(delivery["@id"])
