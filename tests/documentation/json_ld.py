"""Checks that responses conform to JSON-LD 1.1, with an independent processor and the served contexts."""

import requests
from pyld import jsonld

HYDRA = "http://www.w3.org/ns/hydra/core#"
OWL = "http://www.w3.org/2002/07/owl#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
MEDIA_TYPE = "application/ld+json"
# Not the root: a relative IRI in a response would make the comparison fail.
BASE_PATH = "/api/anything/below"
COLLECTIONS = {"api_apps", "contexts", "deliveries", "events", "notifications", "retail_prices",
               "stores", "tasks", "time_slots", "webhooks"}

DRAFT = {
    "pickup": {"address": "24 Rue de la Paix, 75002 Paris", "before": "tomorrow 11:00"},
    "dropoff": {
        "address": {
            "streetAddress": "48 Rue de Rivoli, 75004 Paris",
            "name": "Chez Zoé",
            "description": "Third floor",
            "contactName": "Jane Doe",
            "telephone": "+33612345678",
            "postalCode": "75004",
            "addressLocality": "Paris",
            "addressCountry": "FR",
            "latLng": [48.8566, 2.3522],
        },
        "before": "tomorrow 13:00",
        "comments": "Ring twice",
        "weight": 1500,
        "tags": ["cold", "fragile"],
        "metadata": {"@id": "not an IRI", "order": "42"},
    },
}


class Processor:
    """A JSON-LD processor that loads its contexts from a platform."""

    def __init__(self, base):
        self.base = base
        self.options = {"base": base + BASE_PATH, "processingMode": "json-ld-1.1"}
        self.contexts = {}
        jsonld.set_document_loader(self._load)

    def expand(self, document):
        return jsonld.expand(document, self.options)

    def compact(self, document):
        """Expands, and compacts with the document's own context."""
        context = document["@context"]
        if isinstance(context, str):
            context = self.base + context
        # Relative IRIs (`../tasks/1` for `/api/tasks/1`) would be valid, but not comparable: with
        # a base on another host, they are all absolute.
        options = {**self.options, "base": "http://elsewhere.example/"}
        return {**jsonld.compact(self.expand(document), context, options),
                "@context": document["@context"]}

    def comparable(self, value):
        """The document without nulls and with the platform's IRIs as paths."""
        if isinstance(value, dict):
            return {name: self.comparable(member)
                    for name, member in value.items() if member is not None}
        if isinstance(value, list):
            return [self.comparable(element) for element in value]
        return value.removeprefix(self.base) if isinstance(value, str) else value

    def _load(self, url, _options):
        if url not in self.contexts:
            response = requests.get(url, headers={"Accept": MEDIA_TYPE}, timeout=30)
            response.raise_for_status()
            self.contexts[url] = response.json()
        return {"contextUrl": None, "documentUrl": url, "document": self.contexts[url],
                "contentType": MEDIA_TYPE}


def nodes(expanded):
    """Every object of an expanded document, except inside literals."""
    if isinstance(expanded, list):
        for element in expanded:
            yield from nodes(element)
    elif isinstance(expanded, dict):
        yield expanded
        if "@value" not in expanded:
            for member in expanded.values():
                yield from nodes(member)


def names(expanded):
    """The keys, other than keywords, and the types in an expanded document."""
    for members in nodes(expanded):
        yield from (key for key in members if not key.startswith("@"))
        if "@value" not in members:
            yield from members.get("@type", [])


def described(expanded):
    """The nodes of an expanded document that have more than an id, by id."""
    return {members["@id"]: members for members in nodes(expanded)
            if "@id" in members and len(members) > 1}


def paths(value, base):
    """The IRIs of the platform in a document, as paths, without templates and the `@id`s of
    addresses: those cannot be read."""
    if isinstance(value, dict):
        is_address = value.get("@type") == "http://schema.org/Place"
        for name, member in value.items():
            # The Base64 of a secret may begin with a slash.
            is_path = name not in ("hydra:template", "secret") and not (is_address and name == "@id")
            if is_path:
                yield from paths(member, base)
    elif isinstance(value, list):
        for element in value:
            yield from paths(element, base)
    elif isinstance(value, str) and value.removeprefix(base).startswith("/"):
        yield value.removeprefix(base)


def responses(fixtures):
    """A response of every kind, with all its optional members: pairs of a case and a document."""
    shop = fixtures.shop
    app = shop.call("GET", "/api/me")
    time_slot = shop.call("GET", app["store"])["timeSlot"]
    delivery = shop.call("POST", "/api/deliveries", DRAFT)
    price = shop.call("POST", "/api/retail_prices/calculate", DRAFT)
    yield "a created delivery", delivery
    yield "an asserted delivery", shop.call("POST", "/api/deliveries/assert", DRAFT)
    yield "a price", price
    yield "a created webhook", shop.call("POST", "/api/webhooks", {
        "event": "delivery.picked", "url": "http://127.0.0.1:9/a/../b?c"})
    for path in [
        "/api", "/api/settings", "/api/docs.jsonld", "/api/me", time_slot, f"{time_slot}/choices",
        "/api/time_slots/choices", "/api/deliveries", "/api/webhooks", "/api/events",
        f"{fixtures.iris['webhooks'][0]}/notifications", delivery["@id"], delivery["pickup"]["@id"],
        delivery["dropoff"]["@id"], f"{delivery['dropoff']['@id']}/failure_reasons", price["@id"], *fixtures.examples(),
    ]:
        yield path, shop.call("GET", path)
    yield from errors(fixtures)


def errors(fixtures):
    def error(status, method, path, body=None, headers=fixtures.shop.headers):
        response = requests.request(
            method, fixtures.shop.base + path, headers=headers, json=body, timeout=30)
        assert response.status_code == status, f"{method} {path}: {response.text}"
        return f"{status} of {method} {path}", response.json()

    yield error(400, "POST", "/api/deliveries", {"pickup": 1})
    too_far = {"dropoff": {**DRAFT["dropoff"], "address": {"latLng": [45.764, 4.8357]}}}
    case, no_price = error(400, "POST", "/api/retail_prices/calculate", too_far)
    assert isinstance(no_price["calculation"], list), no_price
    yield case, no_price
    yield error(404, "GET", "/nowhere", headers={})
    yield error(401, "GET", "/api/me", headers={})


def check_navigation(processor):
    """A client that knows any URL finds the documentation, the entrypoint, and what the members of
    a collection are."""
    base = processor.base
    link = requests.get(base + "/nowhere", timeout=30).headers["Link"]
    documentation, relation = link.removeprefix("<").split(">; rel=")
    assert relation == f'"{HYDRA}apiDocumentation"', link
    documentation = requests.get(documentation, timeout=30).json()
    entrypoint = requests.get(base + documentation["hydra:entrypoint"], timeout=30).json()

    [entrypoint] = processor.expand(entrypoint)
    deliveries = f"{base}/api/docs.jsonld#Entrypoint/delivery"
    assert entrypoint[deliveries] == [{"@id": f"{base}/api/deliveries"}], entrypoint
    collection = described(processor.expand(documentation))[deliveries][f"{RDFS}range"][1]
    members = collection[f"{OWL}equivalentClass"][0][f"{OWL}allValuesFrom"]
    assert members == [{"@id": "http://schema.org/ParcelDelivery"}], members


def check_readable(iris, shop):
    """Every IRI in a response can be read, and there is one of each collection."""
    for iri in sorted(iris):
        status = requests.get(shop.base + iri, headers=shop.headers, timeout=30).status_code
        assert status == 200, f"{status} of {iri}"
    missing = COLLECTIONS - {iri.split("/")[2] for iri in iris if iri.count("/") > 1}
    assert not missing, f"no response has an IRI of {missing}"


def check(fixtures):
    processor = Processor(fixtures.shop.base)
    documentation = processor.expand(fixtures.shop.call("GET", "/api/docs.jsonld"))
    documented = described(documentation)
    count, iris = 0, set()
    for case, document in responses(fixtures):
        expanded = processor.expand(document)
        assert expanded, f"{case}: empty when expanded"
        for name in names(expanded):
            assert "://" in name, f"{case}: {name} is not an IRI"
            assert name in documented or expanded == documentation, f"{case}: {name} is undocumented"
        found, expected = map(processor.comparable, (processor.compact(document), document))
        assert found == expected, f"{case}\n{expected}\nis compacted to\n{found}"
        count += 1
        # The targets of operations are URL templates, for any method.
        if document["@type"] != "hydra:ApiDocumentation":
            iris.update(paths(document, fixtures.shop.base))
    check_readable(iris, fixtures.shop)
    check_navigation(processor)
    print(f"{count} documents are preserved, every class and property of theirs is documented, "
          f"and {len(iris)} IRIs in them can be read")
