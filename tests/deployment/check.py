"""Checks the files under `deploy`: syntax and schemas, the tests of the alerts, and that the variables and
metrics that they name exist. `docs/deployment.md` says what is not checked here.

    python check.py PROGRAMS

The argument is the directory of the platform's programs, such as `target/debug`."""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
TOOLS = Path(sys.executable).parent

# Of programs that are not ours.
FOREIGN_METRICS = re.compile(r"(up|node_\w+)$")
# Of the Compose file itself, and of the image's build.
FILE_VARIABLES = {"DELIVERY_UID", "DELIVERY_GID", "DELIVERY_PORT", "DELIVERY_COMMIT"}
MAX_EXPOSURE = 2.0


def run(*command, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    output = result.stdout + result.stderr
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{output}")
    return output


def dashboard_queries():
    dashboard = json.loads((DEPLOY / "grafana/delivery.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    assert len(queries) > 20, queries
    return [query.replace("$__rate_interval", "5m") for query in queries]


def check_prometheus():
    rules = DEPLOY / "prometheus/rules.yaml"
    run("promtool", "check", "rules", rules)
    run("promtool", "test", "rules", "rules_test.yaml", cwd=rules.parent)
    with tempfile.TemporaryDirectory() as folder:
        parsed = Path(folder) / "dashboard.yaml"
        panels = [{"record": f"panel:{number}", "expr": query} for number, query in enumerate(dashboard_queries())]
        # JSON is YAML.
        parsed.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": panels}]}))
        run("promtool", "check", "rules", parsed)
        config = Path(folder) / "prometheus.yaml"
        config.write_text((DEPLOY / "compose/prometheus.yaml").read_text())
        (Path(folder) / "rules.yaml").write_text(rules.read_text())
        run("promtool", "check", "config", config)
    alerts = re.findall(r"- alert: (\w+)", rules.read_text())
    tested = (rules.parent / "rules_test.yaml").read_text()
    explained = (ROOT / "docs/deployment.md").read_text()
    for alert in alerts:
        assert tested.count(f"alertname: {alert}\n        exp_alerts:\n          -"), f"{alert} has no test that fires"
        assert f"`{alert}`" in explained, f"docs/deployment.md does not explain {alert}"


def check_metrics():
    """Each metric in a rule or a panel is documented."""
    documented = set(re.findall(r"^\| `(\w+)` \| (?:gauge|counter|histogram)", (ROOT / "docs/metrics.md").read_text(), re.M))
    assert len(documented) > 20, documented
    expressions = dashboard_queries() + (DEPLOY / "prometheus/rules.yaml").read_text().split("expr:")[1:]
    used = set()
    for expression in expressions:
        expression = re.split(r"\n\s+(?:for|labels|annotations|- \w+):", expression)[0]
        # Without labels: in matchers and after `by` and `on`.
        expression = re.sub(r"\{[^}]*\}|\b(?:by|on) \([^)]*\)", "", expression)
        used |= set(re.findall(r"(?<![:\w])((?:delivery_|db_client_|http_server_|rpc_server_|node_|up\b)\w*)", expression))
    names = {re.sub(r"_(bucket|count|sum)$", "", name) if name not in documented else name for name in used}
    unknown = {name for name in names if name not in documented and not FOREIGN_METRICS.match(name)}
    assert not unknown, f"metrics that docs/metrics.md does not have: {sorted(unknown)}"


def check_variables(programs):
    """Each variable of ours in a file is one of a program."""
    names = ["delivery", "core-service", "rest-gateway", "webhook-dispatcher"]
    commands = [[programs / name, "--help"] for name in names] + [[programs / "delivery", command, "--help"] for command in ["health", "doctor", "migrate"]]
    known = set(re.findall(r"DELIVERY_[A-Z_]+", "".join(run(*command) for command in commands)))
    assert len(known) > 40, known
    for path in DEPLOY.rglob("*"):
        if not path.is_file():
            continue
        unknown = set(re.findall(r"DELIVERY_[A-Z_]+", path.read_text())) - known - FILE_VARIABLES
        assert not unknown, f"{path}: no program has {sorted(unknown)}"


def check_schemas():
    compose = DEPLOY / "compose/compose.yaml"
    run(TOOLS / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", compose)
    run(TOOLS / "hadolint", DEPLOY / "docker/Dockerfile")
    manifests = [path for path in (DEPLOY / "kubernetes/base").glob("*.yaml") if path.stem != "kustomization"]
    manifests += [DEPLOY / f"kubernetes/overlays/example/{name}.yaml" for name in ("ingress", "network-policies")]
    run(TOOLS / "kubernetes-validate", "--strict", "--quiet", "-k", "1.31", *manifests)


def check_memory_limits():
    """A program has one limit of memory, in Compose as in Kubernetes."""
    services = yaml.safe_load((DEPLOY / "compose/compose.yaml").read_text())["services"]
    for service, manifest in {"core": "core", "gateway": "gateway", "dispatcher": "dispatcher", "bootstrap": "migrate"}.items():
        limit = services[service]["deploy"]["resources"]["limits"]["memory"]
        text = (DEPLOY / f"kubernetes/base/{manifest}.yaml").read_text()
        in_kubernetes = re.findall(r"limits: \{ memory: (\w+) \}", text)
        assert in_kubernetes == [f"{limit}i"], f"{service}: {limit} in Compose, {in_kubernetes} in Kubernetes"


def check_image_context():
    """The image's build context has every member of the workspace, and the sources of their targets."""
    lines = (DEPLOY / "docker/Dockerfile.dockerignore").read_text().splitlines()
    assert lines.pop(0) == "*"
    with tempfile.TemporaryDirectory() as folder:
        for line in lines:
            name = line.removeprefix("!")
            (Path(folder) / name).symlink_to(ROOT / name)
        run("cargo", "metadata", "--offline", "--locked", "--no-deps", "--format-version=1", cwd=folder)


def check_units():
    units = sorted((DEPLOY / "systemd").glob("*.service"))
    assert len(units) == 4, units
    with tempfile.TemporaryDirectory() as folder:
        # The programs of the units, which need not be installed.
        run("cp", "-r", f"{DEPLOY}/systemd/.", folder)
        for unit in Path(folder).glob("*.service"):
            unit.write_text(re.sub(r"/usr/bin/[\w-]+", "/usr/bin/true", unit.read_text()))
        environment = {**os.environ, "SYSTEMD_UNIT_PATH": f"{folder}:"}
        for unit in units:
            copy = Path(folder) / unit.name
            run("systemd-analyze", "verify", "--man=no", copy, env=environment)
            report = run("systemd-analyze", "security", "--no-pager", "--offline=true", copy, env=environment)
            exposure = float(re.search(r"exposure level for \S+: ([\d.]+)", report)[1])
            assert exposure <= MAX_EXPOSURE, f"{unit.name}: exposure {exposure}"
            print(f"{unit.name}: exposure {exposure}")


def main():
    check_prometheus()
    check_metrics()
    check_variables(Path(sys.argv[1]))
    check_schemas()
    check_memory_limits()
    check_image_context()
    check_units()
    print("the deployment files are valid")


main()
