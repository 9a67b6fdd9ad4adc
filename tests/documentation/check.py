"""Compares a running platform with its own documentation, with third-party tools.

    python3 check.py <path of the program `delivery`>

The platform is started on free ports over a new database. `oauthlib` gets the access tokens;
`openapi-spec-validator` validates the OpenAPI document; `PyLD` expands and compacts responses and looks
up their names in the documentation; `@api-platform/api-doc-parser` (see package.json) finds every
resource from the entrypoint; `grpcio` calls core with stubs as the guide says, and for a day of the examples of a
dispatch board and a courier's phone (`board_and_courier.py`); Chromium uses the
documentation page; generated clients send a shop's requests (`generated_clients.py`);
`schemathesis` generates valid and invalid requests from the OpenAPI
document and checks the responses.
"""

import base64
import hashlib
import hmac
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib

import requests
from openapi_spec_validator import OpenAPIV31SpecValidator

import board_and_courier
import fuzz
import generated_clients
import json_ld
from fixtures import Fixtures

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
# Seconds. Far longer than a start takes.
START_TIMEOUT = 60


def start(program, directory, listen=("127.0.0.1:0", "127.0.0.1:0"), flags=()):
    """Starts the platform; `listen` has the addresses of the REST API and of core."""
    rest, core = listen
    ready = pathlib.Path(directory, "ready.json")
    # Of a process that was killed.
    ready.unlink(missing_ok=True)
    settings = {name: value for name, value in os.environ.items() if not name.startswith("DELIVERY_")}
    process = subprocess.Popen(
        [program, f"--rest-listen={rest}", f"--core-listen={core}", "--data-dir", directory, *flags],
        env=settings, stdout=subprocess.DEVNULL)
    for _ in range(START_TIMEOUT * 10):
        if ready.exists():
            return process, json.loads(ready.read_text())
        if process.poll() is not None:
            break
        time.sleep(0.1)
    process.kill()
    sys.exit("the platform did not start")


def hydra(shop):
    installed = {"node": shutil.which("node"), "its packages": (HERE / "node_modules").exists()}
    if is_missing("the Hydra client", [name for name, found in installed.items() if not found]):
        return
    subprocess.run(["node", HERE / "hydra.mjs", shop.base, shop.headers["Authorization"]],
                   timeout=120, check=True)


def docs_page(ready):
    installed = {"node": shutil.which("node"), "chromium": shutil.which("chromium"),
                 "its packages": (HERE / "node_modules").exists()}
    if is_missing("the documentation page", [name for name, found in installed.items() if not found]):
        return
    client = ready["demo_client"]
    subprocess.run(["node", HERE / "docs_page.mjs", installed["chromium"], ready["base_url"], client["api_key"],
                    client["api_secret"]], timeout=120, check=True)


def is_missing(what, programs):
    """Whether programs of a check are missing. Exits if no test may be skipped."""
    if not programs:
        return False
    reason = f"{what}: {', '.join(programs)} not installed"
    if os.environ.get("DELIVERY_TEST_REQUIRE_ALL") == "1" or os.environ.get("CI") == "true":
        sys.exit(f"{reason}, and with DELIVERY_TEST_REQUIRE_ALL=1 or CI=true no test may be skipped")
    print(f"*** SKIPPED: {reason}")
    return True


def check_crates(guide):
    """The guide adds the versions of crates with which the repository generates stubs."""
    lock = tomllib.loads((REPOSITORY / "Cargo.lock").read_text())
    added = [crate for line in guide.splitlines() if line.startswith("cargo add")
             for crate in re.findall(r" (\w+)@([\d.]+)", line)]
    assert [name for name, _ in added] == ["tonic", "tokio"], added
    for name, version in added:
        locked = [package["version"] for package in lock["package"] if package["name"] == name]
        assert locked and all(f"{other}.".startswith(f"{version}.") for other in locked), (name, version, locked)
    print("the guide for internal services adds the crates of Cargo.lock")


def internal_service(program, fixtures, ready):
    """Runs the commands for Python and Go of the guide for internal services, and its program in Rust."""
    guide = (REPOSITORY / "docs" / "guides" / "internal-service.md").read_text()
    check_crates(guide)
    rust = pathlib.Path(program).parent / "examples" / "complete_task"
    installed = {"grpcio-tools": importlib.util.find_spec("grpc_tools"), rust.name: rust.exists()}
    if is_missing("the guide for internal services", [name for name, found in installed.items() if not found]):
        return
    commands = {"Python": commands_from(guide, "python3 -m pip"), "Rust": str(rust)}
    # Optional on every machine, because `.ci/run` does not install Go.
    if shutil.which("go") and shutil.which("protoc"):
        commands["Go"] = commands_from(guide, "go install")
    else:
        print("*** SKIPPED: the guide's program in Go: go, protoc not installed")
    tasks = fixtures.iris["tasks"][-len(commands):]
    with tempfile.TemporaryDirectory() as folder:
        # The commands for Go make a folder beside it.
        repository = pathlib.Path(folder, "repository")
        repository.mkdir()
        for name in ("examples", "proto"):
            (repository / name).symlink_to(REPOSITORY / name)
        for command, task in zip(commands.values(), tasks):
            environment = {**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
                           "CORE": ready["core_url"].removeprefix("http://"),
                           "COURIER": fixtures.courier.token, "TASK": task.removeprefix("/api/")}
            printed = subprocess.run(["sh", "-euc", command], cwd=repository, env=environment, timeout=600,
                                     check=True, stdout=subprocess.PIPE, text=True).stdout
            assert printed.splitlines()[-1] == "STATE_DONE", printed
    print(f"the guide for internal services completes tasks in {', '.join(commands)}")


def commands_from(guide, start):
    """The block of commands that begins with a text."""
    block = guide[guide.index(start):]
    return block[:block.index("```")]


def check_board_and_courier(program):
    missing = [] if importlib.util.find_spec("grpc_tools") else ["grpcio-tools"]
    if not is_missing("the dispatch board and the courier's phone", missing):
        board_and_courier.check(program, start)


def check_clients(document, ready):
    if is_missing("generated clients", generated_clients.missing_programs()):
        return
    with tempfile.TemporaryDirectory() as folder:
        generated_clients.check(document, ready, folder)


def check_signature_vectors(document):
    """Computes the signatures of the document's vectors, as its `webhooks` section describes them."""
    vectors = document["x-signature-vectors"]
    for vector in vectors:
        body = vector["body"].encode()
        signed = f"{vector['webhook-id']}.{vector['webhook-timestamp']}.".encode() + body
        signatures = [f"v1,{mac(base64.b64decode(secret), signed)}" for secret in vector["secrets"]]
        assert " ".join(signatures) == vector["webhook-signature"], vector
        assert mac(vector["secrets"][0].encode(), body) == vector["platform-signature"], vector
    print(f"the signatures of {len(vectors)} vectors are right")


def mac(key, message):
    """Base64 of HMAC-SHA256."""
    return base64.b64encode(hmac.new(key, message, hashlib.sha256).digest()).decode()


def check(program, ready):
    base = ready["base_url"]
    document = requests.get(base + "/api/docs.json", timeout=30).json()
    OpenAPIV31SpecValidator(document).validate()
    print("the OpenAPI document is valid")

    fixtures = Fixtures(ready)
    json_ld.check(fixtures)
    hydra(fixtures.shop)
    check_signature_vectors(document)
    internal_service(program, fixtures, ready)
    check_board_and_courier(program)
    docs_page(ready)
    check_clients(document, ready)
    fuzz.run(base, document, ready, fixtures)


def main(program):
    with tempfile.TemporaryDirectory() as directory:
        process, ready = start(program, directory)
        try:
            check(program, ready)
            if process.poll() is not None:
                sys.exit("the platform has exited")
        finally:
            process.terminate()
            process.wait(timeout=60)


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
