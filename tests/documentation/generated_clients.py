"""Generates clients from the OpenAPI document, compiles them and sends a shop's requests with each:
token, price, create, poll, list, webhook. Lints the document with Spectral and Redocly.

Runs openapi-python-client, @hey-api/openapi-ts and openapi-generator (Python, TypeScript, PHP), each
with its defaults: the document must need no options. The PHP client needs Debian's packages of Guzzle.
"""

import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

CLIENTS = pathlib.Path(__file__).resolve().parent / "clients"
NODE_MODULES = CLIENTS.parent / "node_modules"
# In the folder of the virtual environment's interpreter.
PYTHON_PROGRAMS = pathlib.Path(sys.executable).parent
# Seconds, of each command.
TIMEOUT = 300

# The folder of each generator of openapi-generator.
GENERATORS = {"python": "python", "typescript-fetch": "fetch", "php": "php"}
# Known messages about documents of OpenAPI 3.1: the version is still called beta, and a schema that is
# `null` in a union has no name.
HARMLESS = ("OpenAPI 3.1 support is still in beta", "Failed to get the schema name: null")


def run(name, *command, folder=None, checked=lambda _output: None):
    """Runs a command; exits with its output if it fails or `checked` finds something in the output."""
    started = time.monotonic()
    path = f"{PYTHON_PROGRAMS}{os.pathsep}{NODE_MODULES / '.bin'}{os.pathsep}{os.environ['PATH']}"
    finished = subprocess.run(
        [str(part) for part in command], cwd=folder, timeout=TIMEOUT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "PATH": path})
    found = checked(finished.stdout)
    if finished.returncode or found:
        sys.exit(f"{name}: {found or 'failed'}\n{finished.stdout[-8000:]}")
    print(f"{name}: {time.monotonic() - started:.0f} s")


def together(*steps):
    """Runs steps at the same time. If one calls `sys.exit`, the program exits once all have ended."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for step in [pool.submit(step) for step in steps]:
            step.result()


def warnings_of_openapi_generator(output):
    lines = [line for line in output.splitlines() if " WARN " in line or " ERROR " in line]
    return [line for line in lines if not any(known in line for known in HARMLESS)]


def lint(document):
    run("Spectral", "spectral", "lint", "--ruleset", CLIENTS / "spectral.yaml", "--fail-severity=warn",
        document)
    run("Redocly", "redocly", "lint", document,
        checked=lambda output: [line for line in output.splitlines() if line.startswith("Warning was")])


def generate(document, folder):
    batch = []
    for generator, name in GENERATORS.items():
        config = folder / f"{name}.json"
        config.write_text(json.dumps({
            "generatorName": generator, "inputSpec": str(document), "outputDir": str(folder / name)}))
        batch.append(config)
    # It reads bytes of this media type only.
    images = {f"image/{kind}": "application/octet-stream" for kind in ("jpeg", "png", "webp")}
    client_config = folder / "client.json"
    client_config.write_text(json.dumps({"content_type_overrides": images}))
    together(
        lambda: lint(document),
        lambda: run("openapi-generator", "openapi-generator-cli", "batch", "--fail-fast", *batch,
                    folder=folder, checked=warnings_of_openapi_generator),
        lambda: run("openapi-python-client", "openapi-python-client", "generate", "--path", document,
                    "--output-path", folder / "client", "--meta", "none", "--fail-on-warning", "--config", client_config),
        lambda: run("openapi-ts", "openapi-ts", "--input", document, "--output", folder / "hey",
                    folder=folder),
    )


def compile_all(folder):
    for file in ("hey_api.ts", "typescript_fetch.ts", "receiver.ts", "tsconfig.json"):
        shutil.copy(CLIENTS / file, folder)
    (folder / "node_modules").symlink_to(NODE_MODULES)
    php = sorted((folder / "php" / "lib").rglob("*.php"))
    together(
        lambda: run("tsc", "tsc", "--project", folder),
        lambda: run("compileall", sys.executable, "-m", "compileall", "-q", folder / "client",
                    folder / "python"),
        lambda: [subprocess.run(["php", "-l", file], check=True, stdout=subprocess.DEVNULL)
                 for file in php],
    )


def send_requests(folder, base, key, secret):
    # One after the other: each expects its delivery to be the newest.
    run("requests of openapi-python-client", sys.executable, CLIENTS / "openapi_python_client.py", folder, base,
        key, secret)
    run("requests of openapi-generator, Python", sys.executable, CLIENTS / "openapi_generator.py",
        folder / "python", base, key, secret)
    run("requests of openapi-ts", "node", folder / "compiled" / "hey_api.js", base, key, secret)
    run("requests of openapi-generator, TypeScript", "node", folder / "compiled" / "typescript_fetch.js",
        base, key, secret)
    run("requests of openapi-generator, PHP", "php", CLIENTS / "openapi_generator.php", folder / "php", base,
        key, secret)


def missing_programs():
    names = ["java", "node", "php", "tsc", "redocly", "spectral", "openapi-ts",
             "openapi-generator-cli", "openapi-python-client"]
    folders = [PYTHON_PROGRAMS, NODE_MODULES / ".bin"]
    return [name for name in names
            if not shutil.which(name) and not any((folder / name).exists() for folder in folders)]


def check(document, ready, folder):
    """Checks the document, in a folder that is empty."""
    folder = pathlib.Path(folder)
    file = folder / "openapi.json"
    file.write_text(json.dumps(document, indent=1))
    client = ready["demo_client"]
    generate(file, folder)
    compile_all(folder)
    send_requests(folder, ready["base_url"], client["api_key"], client["api_secret"])
