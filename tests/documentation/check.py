"""Compares a running platform with its own documentation, with third-party tools.

    python3 check.py <path of the program `delivery`>

The platform is started on free ports over a new database. `openapi-spec-validator` validates the
OpenAPI document; `schemathesis` generates valid and invalid requests from it and checks the
responses; `PyLD` expands and compacts responses; `@api-platform/api-doc-parser` (if installed, see
package.json) finds every resource from the entrypoint.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import requests
from openapi_spec_validator import OpenAPIV31SpecValidator

import json_ld

HERE = pathlib.Path(__file__).resolve().parent
# Seconds. Far longer than a start takes.
START_TIMEOUT = 60
# Seconds. Longer than `max-time` in schemathesis.toml.
SCHEMATHESIS_TIMEOUT = 290

ORDER = {"dropoff": {"address": "48 Rue de Rivoli, 75004 Paris", "before": "tomorrow 13:00"}}


def start(program, directory):
    settings = {name: value for name, value in os.environ.items() if not name.startswith("DELIVERY_")}
    process = subprocess.Popen(
        [program, "--rest-listen=127.0.0.1:0", "--core-listen=127.0.0.1:0", "--data-dir", directory],
        env=settings, stdout=subprocess.DEVNULL)
    ready = pathlib.Path(directory, "ready.json")
    for _ in range(START_TIMEOUT * 10):
        if ready.exists():
            return process, json.loads(ready.read_text())
        if process.poll() is not None:
            break
        time.sleep(0.1)
    process.kill()
    sys.exit("the platform did not start")


def token(ready):
    client = ready["demo_client"]
    response = requests.post(
        ready["base_url"] + "/oauth2/token", auth=(client["api_key"], client["api_secret"]),
        data={"grant_type": "client_credentials", "scope": "deliveries tasks"}, timeout=30)
    response.raise_for_status()
    return response.json()["access_token"]


def schemathesis(base, bearer):
    command = [
        shutil.which("st") or str(pathlib.Path(sys.executable).parent / "st"),
        "--config-file", str(HERE / "schemathesis.toml"),
        "run", base + "/api/docs.json", "--url", base,
        "--header", f"Authorization: Bearer {bearer}",
    ]
    return subprocess.run(command, timeout=SCHEMATHESIS_TIMEOUT, cwd=tempfile.gettempdir()).returncode


def hydra(base):
    if not shutil.which("node") or not (HERE / "node_modules").exists():
        print("node or its packages are not installed: the Hydra client is SKIPPED")
        return 0
    return subprocess.run(["node", HERE / "hydra.mjs", base], timeout=120).returncode


def check(base, bearer):
    document = requests.get(base + "/api/docs.json", timeout=30).json()
    OpenAPIV31SpecValidator(document).validate()
    print("the OpenAPI document is valid")

    headers = {"Authorization": f"Bearer {bearer}", "Content-Type": "application/ld+json"}
    def post(path, body):
        response = requests.post(base + path, headers=headers, json=body, timeout=30)
        response.raise_for_status()
        return response.json()
    delivery = post("/api/deliveries", ORDER)
    price = post("/api/retail_prices/calculate", ORDER)
    webhook = post("/api/webhooks", {"event": "delivery.completed", "url": "http://127.0.0.1:9/"})
    me = requests.get(base + "/api/me", headers=headers, timeout=30).json()
    store = requests.get(base + me["store"], headers=headers, timeout=30).json()
    json_ld.check(base, [
        "/api", "/api/settings", "/api/me", me["store"], store["timeSlot"],
        "/api/time_slots/choices", delivery["@id"], delivery["pickup"]["@id"], price["@id"],
        webhook["@id"], "/api/deliveries", "/api/webhooks", "/api/docs.jsonld",
    ], headers)

    return hydra(base) or schemathesis(base, bearer)


def main(program):
    with tempfile.TemporaryDirectory() as directory:
        process, ready = start(program, directory)
        try:
            failed = check(ready["base_url"], token(ready))
            is_running = process.poll() is None
        finally:
            process.terminate()
            process.wait(timeout=60)
    sys.exit(1 if failed or not is_running else 0)


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
