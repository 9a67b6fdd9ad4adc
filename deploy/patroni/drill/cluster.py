"""Three nodes (etcd, Patroni, PostgreSQL), each in a network namespace, and a platform with two cores."""

import json, os, secrets, subprocess, time, urllib.request
from pathlib import Path
from string import Template

CONFIGURATION = Path(__file__).resolve().parents[1]
# The interface `a` of a node is in the network of the nodes and core A, `b` in that of core B.
NODES = {f"node{number}": {"a": f"10.77.0.1{number}", "b": f"10.78.0.1{number}"} for number in (1, 2, 3)}
GATEWAYS, CORES = {"A": "127.0.0.1:8081", "B": "127.0.0.1:8082"}, {"A": "127.0.0.1:50051", "B": "10.78.0.2:50051"}
WEBHOOKS = ["--allow-http", "--allow-network=127.0.0.0/8", "--allow-port=9000"]
POSTGRES = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]


def run(*command, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120, **options)
    if result.returncode != 0:
        raise RuntimeError(f"{command}: {result.stdout}{result.stderr}")
    return result.stdout


def wait(what, condition, seconds=180):
    """Waits until the condition has a value, and returns it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if value := condition():
                return value
            time.sleep(0.2)
        except (OSError, RuntimeError, StopIteration):
            time.sleep(0.2)
    raise TimeoutError(f"{what}: not within {seconds} s")


def fetch(url, body=None, headers={}, timeout=40):
    return json.load(urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=timeout))


class Cluster:
    def __init__(self, folder, programs):
        self.folder, self.programs, self.password = folder, programs, secrets.token_hex(12)
        names = [f"PATRONI_{user}_PASSWORD" for user in ("SUPERUSER", "REPLICATION", "REWIND", "RESTAPI")]
        self.environment = {**os.environ, **dict.fromkeys(["PGPASSWORD", *names], self.password)}
        self.create_networks()
        self.create_certificate()
        (folder / "repository").mkdir()
        for node in NODES:
            (folder / node).mkdir()
            run("cp", "ca.pem", "server.pem", "server.key", node, cwd=folder)
            run("chown", "-R", "postgres:", node, "repository", cwd=folder)
            self.start_node(node)
        wait("three nodes with a synchronous standby", self.is_whole)

    def create_networks(self):
        # The names of network namespaces are files in /run.
        run("mount", "-t", "tmpfs", "tmpfs", "/run")
        lines = ["link set lo up"]
        for network, address in (("a", "10.77.0.1/24"), ("b", "10.78.0.1/24")):
            lines += [f"link add net-{network} type bridge", f"addr add {address} dev net-{network}", f"link set net-{network} up"]
        run("ip", "-batch", "-", input="\n".join(lines))
        for space, addresses in {**NODES, "core-b": {"b": "10.78.0.2"}}.items():
            run("ip", "netns", "add", space)
            lines = ["link set lo up"]
            for name, address in addresses.items():
                run("ip", "link", "add", f"{space}-{name}", "master", f"net-{name}", "up", "type", "veth", "peer", "name", name, "netns", space)
                lines += [f"addr add {address}/24 dev {name}", f"link set dev {name} up"]
            run("ip", "-n", space, "-batch", "-", input="\n".join(lines))

    def create_certificate(self):
        request = ["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=drill"]
        run(*request, "-x509", "-keyout", "ca.key", "-out", "ca.pem", cwd=self.folder)
        name = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=CA:FALSE"]
        run(*request, *name, "-x509", "-CA", "ca.pem", "-CAkey", "ca.key", "-keyout", "server.key", "-out", "server.pem", cwd=self.folder)

    def start_node(self, node, programs=("etcd", "patroni")):
        root = self.folder / node
        values = {"NODE": node, "ADDRESS": NODES[node]["a"], "ROOT": root, "REPOSITORY": self.folder / "repository",
                  "BIN": max(Path("/usr/lib/postgresql").glob("*/bin")),
                  "ETCD_HOSTS": ",".join(f"{other['a']}:2379" for other in NODES.values()),
                  "MEMBERS": ",".join(f"{name}=http://{other['a']}:2380" for name, other in NODES.items())}
        for name in ("etcd.env", "patroni.yml", "pgbackrest.conf"):
            (root / name).write_text(Template((CONFIGURATION / name).read_text()).substitute(values))
        variables = [line for line in (root / "etcd.env").read_text().splitlines() if line.startswith("ETCD")]
        context = ["ip", "netns", "exec", node, *POSTGRES, "env", *variables, f"HOME={root}", f"PGBACKREST_CONFIG={root}/pgbackrest.conf"]
        for program in programs:
            self.spawn(f"{node}-{program}", *context, program, *([root / "patroni.yml"] if program == "patroni" else []))

    def spawn(self, log, *command, **environment):
        with open(self.folder / f"{log}.log", "ab") as output:
            subprocess.Popen([str(part) for part in command], stdout=output, stderr=output, cwd="/", env={**self.environment, **environment})

    def members(self):
        for addresses in NODES.values():
            try:
                return fetch(f"http://{addresses['a']}:8008/cluster", timeout=2)["members"]
            except OSError:
                pass
        return []

    def with_role(self, role):
        return next(member["name"] for member in self.members() if member["role"] == role)

    def is_whole(self):
        members = [member for member in self.members() if member["state"] in ("running", "streaming")]
        roles = sorted(member["role"] for member in members)
        return roles == ["leader", "replica", "sync_standby"] and len({member.get("timeline") for member in members}) == 1

    def sql(self, statement, database="delivery"):
        return run("psql", "-XAtq", "-h", self.folder / self.with_role("leader"), "-U", "postgres", database, "-c", statement)

    def signal(self, name, node, pattern="."):
        """Sends a signal to the processes of a node whose command line has the pattern."""
        pids = set(run("ip", "netns", "pids", node).split()) & set(run("pgrep", "-f", pattern).split())
        subprocess.run(["kill", f"-{name}", *pids], stderr=subprocess.DEVNULL)

    def start_writers(self):
        """Writers to each node at its own address, bypassing HAProxy, in the network of core B."""
        self.sql("CREATE TABLE drill (id uuid); ALTER TABLE drill OWNER TO delivery")
        statement = "INSERT INTO drill VALUES (gen_random_uuid()) RETURNING left(pg_walfile_name(pg_current_wal_lsn()), 8), id"
        loop = f'while sleep 0.2; do sent=$EPOCHREALTIME; row=$(psql -XAtqc "{statement}" 2> /dev/null) && echo "$EPOCHREALTIME|$sent|$row"; done'
        for node, addresses in NODES.items():
            self.spawn(f"{node}-writer", "bash", "-c", loop, PGHOST=addresses["b"], PGUSER="delivery", PGDATABASE="delivery", PGCONNECT_TIMEOUT="2")

    def direct_writes(self):
        """The acknowledged writes, oldest first: the times of the answer and of the statement, the timeline, the row and the node."""
        lines = [(*line.split("|"), node) for node in NODES for line in (self.folder / f"{node}-writer.log").read_text().splitlines()]
        return sorted((float(answered), float(sent), *rest) for answered, sent, *rest in lines)

    def start_platform(self):
        """Returns the operator's API client and a shop's."""
        for statement in (f"CREATE ROLE delivery LOGIN PASSWORD '{self.password}'", "CREATE DATABASE delivery OWNER delivery"):
            self.sql(statement, "postgres")
        spaces, core = {"A": [], "B": ["ip", "netns", "exec", "core-b"]}, self.programs / "core-service"
        for name, space in spaces.items():
            routes = {node.upper(): addresses[name.lower()] for node, addresses in NODES.items()}
            self.spawn(f"haproxy-{name}", *space, "haproxy", "-db", "-f", CONFIGURATION / "haproxy.cfg", **routes)
        url = f"postgres://delivery@127.0.0.1:5000/delivery?sslmode=verify-full&sslrootcert={self.folder}/ca.pem"
        database = ["--database-url", url, "--master-key-file", self.folder / "master.key"]
        clients = json.loads(wait("bootstrap", lambda: run(core, "bootstrap", *database, env=self.environment)))
        for name, space in spaces.items():
            self.spawn(f"core-{name}", *space, core, *database, "--listen", CORES[name], "--allow-plaintext", "--geocoder=none",
                       "--rate-limit-client=off", "--public-url=http://drill.example", *WEBHOOKS)
            self.spawn(f"gateway-{name}", self.programs / "rest-gateway", "--listen", GATEWAYS[name], "--core-url",
                       f"http://{CORES[name]}", "--allow-plaintext-core", "--rate-limit-client=off")
        key, secret = clients["dispatcher_client"]["api_key"], clients["dispatcher_client"]["api_secret"]
        self.spawn("dispatcher", self.programs / "webhook-dispatcher", *[f"--core-url=http://{address}" for address in CORES.values()],
                   "--allow-plaintext-core", *WEBHOOKS, "--client-key", key, DELIVERY_CLIENT_SECRET=secret)
        for address in GATEWAYS.values():
            wait(address, lambda: urllib.request.urlopen(f"http://{address}/readyz", timeout=2))
        operator = clients["operator_client"]
        access = {"DELIVERY_CORE_URL": f"http://{CORES['A']}", "DELIVERY_OPERATOR_KEY": operator["api_key"], "DELIVERY_OPERATOR_SECRET": operator["api_secret"]}
        create = lambda kind, *options: json.loads(run(self.programs / "delivery", kind, "create", "--name=Drill", "--json", *options, env=access))
        store = create("stores", "--lat-lng=48.8554,2.3596")["id"]
        return operator, create("clients", "--store", store, "--scopes=deliveries tasks")
