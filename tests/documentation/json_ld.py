"""Checks that a JSON-LD processor preserves every response: expanded to IRIs and compacted by its
own context, it is the same document but for nulls."""

import sys
from urllib.parse import urljoin

import requests
from pyld import jsonld


def normalize(value, base):
    """Removes nulls and makes resource IRIs absolute: a processor shortens `/api/tasks/1` to
    `api/tasks/1`."""
    if isinstance(value, dict):
        return {name: normalize(member, base) for name, member in value.items() if member is not None}
    if isinstance(value, list):
        return [normalize(element, base) for element in value]
    if isinstance(value, str) and value.startswith(("/api", "api")):
        return urljoin(base, value)
    return value


def terms(expanded):
    """Every key and type of an expanded document, except in JSON literals."""
    if isinstance(expanded, list):
        for element in expanded:
            yield from terms(element)
    elif isinstance(expanded, dict) and expanded.get("@type") != "@json":
        for name, member in expanded.items():
            yield name
            yield from member if name == "@type" and isinstance(member, list) else terms(member)


def check(base, paths, headers):
    def load(url, options):
        response = requests.get(url, headers={"Accept": "application/ld+json"}, timeout=30)
        response.raise_for_status()
        return {"contextUrl": None, "documentUrl": url, "document": response.json(),
                "contentType": "application/ld+json"}

    jsonld.set_document_loader(load)
    options = {"base": base + "/", "processingMode": "json-ld-1.1"}
    for path in paths:
        response = requests.get(base + path, headers=headers, timeout=30)
        response.raise_for_status()
        document = response.json()
        expanded = jsonld.expand(document, options)
        assert expanded, f"{path} is empty when expanded"
        for term in terms(expanded):
            assert term.startswith("@") or "://" in term, f"{term} in {path} is not an IRI"
        context = document["@context"]
        if isinstance(context, str):
            context = base + context
        compacted = jsonld.compact(expanded, context, {**options, "compactArrays": True})
        compacted["@context"] = document["@context"]
        expected, found = normalize(document, options["base"]), normalize(compacted, options["base"])
        assert found == expected, f"{path}\n{expected}\nis compacted to\n{found}"
    print(f"{len(paths)} documents are preserved")


if __name__ == "__main__":
    check(sys.argv[1], sys.argv[2:], {})
