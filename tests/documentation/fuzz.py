"""Runs schemathesis, and checks that it has exercised every operation."""

import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
# Seconds, for both runs. Alone they take one minute or two; beside the tests, at low priority, ten.
TIMEOUT = 1800

# The phases of each run. A single run with all phases follows few links.
PHASES = ("examples,coverage,fuzzing", "stateful")

# The document itself, which schemathesis reads first and does not request again; and what needs a courier.
NOT_TESTED = {
    "getOpenApi", "assignTask",
    # They need files of images: see tests/e2e/couriers/images.rs and tests/e2e/tracking/brand.rs.
    "getImage", "getTrackingPageLogo", "uploadIncidentImage", "uploadTaskImage",
}


def run(base, document, ready, fixtures):
    """Exits with a message if a check fails, or if an operation never succeeds."""
    deadline = time.monotonic() + TIMEOUT
    responses = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        for file in ("schemathesis.toml", "hooks.py"):
            shutil.copy(HERE / file, folder)
        for name, values in fixtures.dictionaries().items():
            lines = [json.dumps(value) + "\n" for value in values]
            (folder / f"{name}.dict").write_text("".join(lines))
        counts = folder / "counts.json"
        variables = {
            "ACCESS_TOKEN": fixtures.shop.token,
            "COURIER_TOKEN": fixtures.courier.token,
            "DESK_TOKEN": fixtures.desk.token,
            "API_KEY": ready["demo_client"]["api_key"],
            "API_SECRET": ready["demo_client"]["api_secret"],
            "RESPONSE_COUNTS": str(counts),
            # The seed determines the choices only if the order of sets does not vary.
            "PYTHONHASHSEED": "0",
        }
        failed = False
        for phases in PHASES:
            command = [
                shutil.which("st") or str(pathlib.Path(sys.executable).parent / "st"),
                "--config-file", str(folder / "schemathesis.toml"),
                "run", base + "/api/docs.json", "--url", base, "--phases", phases,
            ]
            finished = subprocess.run(
                command, timeout=deadline - time.monotonic(), cwd=folder,
                env={**os.environ, **variables})
            failed |= finished.returncode != 0
            for operation, by_status in json.loads(counts.read_text()).items():
                responses[operation].update(by_status)
    without_success = without_success_in(document, responses) - NOT_TESTED
    if without_success:
        print(f"no request succeeded: {', '.join(sorted(without_success))}")
    if failed:
        print("schemathesis failed or warned: see above")
    if failed or without_success:
        sys.exit(1)


def without_success_in(document, responses):
    """Prints the responses of each operation by status; returns the operations without a 2xx."""
    without_success = set()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            name = operation["operationId"]
            by_status = responses[f"{method.upper()} {path}"]
            counts = ", ".join(f"{status} × {by_status[status]}" for status in sorted(by_status))
            print(f"{name}: {counts or 'not requested'}")
            if not any(status.startswith("2") for status in by_status):
                without_success.add(name)
    return without_success
