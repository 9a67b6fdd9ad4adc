"""Every answer means something to a JSON-LD processor, and loses nothing in it: expanded to IRIs
and compacted again by its own context, it is the same but for nulls."""

import sys
from urllib.parse import urljoin

import requests
from pyld import jsonld


def alike(value, base):
    """Without nulls, and with the addresses of resources in full: a processor shortens them to
    `api/tasks/1` where the API writes `/api/tasks/1`."""
    if isinstance(value, dict):
        return {name: alike(member, base) for name, member in value.items() if member is not None}
    if isinstance(value, list):
        return [alike(element, base) for element in value]
    if isinstance(value, str) and value.startswith(("/api", "api")):
        return urljoin(base, value)
    return value


def terms(expanded):
    """Every key and type of an expanded document, but for what is JSON as it stands."""
    if isinstance(expanded, list):
        for element in expanded:
            yield from terms(element)
    elif isinstance(expanded, dict) and expanded.get("@type") != "@json":
        for name, member in expanded.items():
            yield name
            yield from member if name == "@type" and isinstance(member, list) else terms(member)


def check(base, paths, headers):
    def load(url, options):
        answer = requests.get(url, headers={"Accept": "application/ld+json"}, timeout=30)
        answer.raise_for_status()
        return {"contextUrl": None, "documentUrl": url, "document": answer.json(),
                "contentType": "application/ld+json"}

    jsonld.set_document_loader(load)
    options = {"base": base + "/", "processingMode": "json-ld-1.1"}
    for path in paths:
        answer = requests.get(base + path, headers=headers, timeout=30)
        answer.raise_for_status()
        document = answer.json()
        expanded = jsonld.expand(document, options)
        assert expanded, f"{path} says nothing"
        for term in terms(expanded):
            assert term.startswith("@") or "://" in term, f"{term} in {path} is no IRI"
        context = document["@context"]
        if isinstance(context, str):
            context = base + context
        compacted = jsonld.compact(expanded, context, {**options, "compactArrays": True})
        compacted["@context"] = document["@context"]
        expected, found = alike(document, options["base"]), alike(compacted, options["base"])
        assert found == expected, f"{path}\n{expected}\ncomes back as\n{found}"
    print(f"{len(paths)} documents come back as they were")


if __name__ == "__main__":
    check(sys.argv[1], sys.argv[2:], {})
