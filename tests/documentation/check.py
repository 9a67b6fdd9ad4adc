"""Compares a running platform with its own documentation, with third-party tools.

    python3 check.py <path of the program `delivery`>

The platform is started on free ports over a new database. `oauthlib` gets the access tokens;
`openapi-spec-validator` validates the OpenAPI document; `PyLD` expands and compacts responses and looks
up their names in the documentation; `@api-platform/api-doc-parser` (see package.json) finds every
resource from the entrypoint; `schemathesis` generates valid and invalid requests from the OpenAPI
document and checks the responses.
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

import fuzz
import json_ld
from seed import Seed

HERE = pathlib.Path(__file__).resolve().parent
# Seconds. Far longer than a start takes.
START_TIMEOUT = 60


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


def hydra(base):
    if not shutil.which("node") or not (HERE / "node_modules").exists():
        reason = "the Hydra client: node or its packages are not installed"
        if os.environ.get("DELIVERY_TEST_REQUIRE_ALL") == "1" or os.environ.get("CI") == "true":
            sys.exit(f"{reason}, and with DELIVERY_TEST_REQUIRE_ALL=1 or CI=true no test may be skipped")
        print(f"*** SKIPPED: {reason}")
        return
    subprocess.run(["node", HERE / "hydra.mjs", base], timeout=120, check=True)


def check(ready):
    base = ready["base_url"]
    document = requests.get(base + "/api/docs.json", timeout=30).json()
    OpenAPIV31SpecValidator(document).validate()
    print("the OpenAPI document is valid")

    seed = Seed(ready)
    json_ld.check(seed)
    hydra(base)
    fuzz.run(base, document, ready, seed)


def main(program):
    with tempfile.TemporaryDirectory() as directory:
        process, ready = start(program, directory)
        try:
            check(ready)
            if process.poll() is not None:
                sys.exit("the platform has exited")
        finally:
            process.terminate()
            process.wait(timeout=60)


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
