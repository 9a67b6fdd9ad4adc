"""A load on both cores, a receiver of webhooks, and what was lost in the end."""

import base64, collections, concurrent.futures, functools, hmac, http.server, json, queue, threading, time

import grpc

from cluster import CORES, GATEWAYS, fetch

CREATORS, PAUSE = 2, 0.2


class Load:
    def __init__(self, operator, shop):
        self.lock, self.stopped = threading.Lock(), threading.Event()
        self.created, self.done, self.completed, self.requested, self.number = {}, set(), set(), set(), 0
        self.notified, self.repeats, self.forged = collections.defaultdict(set), 0, 0
        self.answers = []  # (sent, answered, core, status)
        self.queues = {core: queue.Queue() for core in GATEWAYS}
        self.token, self.courier = self.authorize(shop, "deliveries+tasks"), self.authorize(operator, "tasks:all")
        webhook = self.call("A", "/api/webhooks", {"event": "delivery.completed", "url": "http://127.0.0.1:9000/"})
        receiver = type("Bound", (Receiver,), {"load": self, "secret": base64.b64decode(webhook["secret"])})
        actions = [http.server.ThreadingHTTPServer(("127.0.0.1", 9000), receiver).serve_forever]
        actions += [functools.partial(action, core) for core in GATEWAYS for action in [self.create] * CREATORS + [self.complete]]
        self.workers = [threading.Thread(target=action, daemon=True) for action in actions]
        for worker in self.workers:
            worker.start()

    def authorize(self, client, scopes):
        basic = base64.b64encode(f"{client['api_key']}:{client['api_secret']}".encode()).decode()
        form = f"grant_type=client_credentials&scope={scopes}".encode()
        return fetch(f"http://{GATEWAYS['A']}/oauth2/token", form, {"Authorization": f"Basic {basic}"})["access_token"]

    def call(self, core, resource, body=None, key=None):
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/ld+json", **({"Idempotency-Key": key} if key else {})}
        return fetch(f"http://{GATEWAYS[core]}{resource}", json.dumps(body).encode() if body else None, headers)

    def until_acknowledged(self, core, action):
        """Repeats a request until it succeeds; records each attempt."""
        answer = None
        while answer is None and not self.stopped.wait(PAUSE):
            sent, status = time.time(), "ok"
            try:
                answer = action()
            except (OSError, grpc.RpcError) as error:
                status = error.code().name if isinstance(error, grpc.RpcError) else getattr(error, "code", type(error).__name__)
            self.answers.append((sent, time.time(), core, status))
        return answer

    def create(self, core):
        while not self.stopped.is_set():
            with self.lock:
                self.number += 1
                reference = f"order-{self.number}"
            address = {"streetAddress": "48 Rue de Rivoli, 75004 Paris", "geo": {"latitude": 48.8566, "longitude": 2.3535}}
            body = {"dropoff": {"address": address, "before": "tomorrow 13:00", "comments": reference}, "externalReference": reference}
            if delivery := self.until_acknowledged(core, lambda: self.call(core, "/api/deliveries", body, reference)):
                self.created[reference] = delivery
                # Every fourth is not completed: no notification of it may be sent.
                if len(self.created) % 4:
                    self.queues[core].put(delivery)

    def complete(self, core):
        complete_task = grpc.insecure_channel(CORES[core]).unary_unary("/delivery.v1.Tasks/CompleteTask")
        metadata = [("authorization", f"Bearer {self.courier}")]
        while delivery := self.queues[core].get():
            self.requested.add(delivery["@id"])
            for task in (delivery["pickup"]["@id"], delivery["dropoff"]["@id"]):
                name = task.removeprefix("/api/").encode()
                request = bytes([10, len(name)]) + name  # field 1 of CompleteTaskRequest
                if self.until_acknowledged(core, lambda: complete_task(request, timeout=40, metadata=metadata)) is None:
                    return
                self.done.add(task)
            self.completed.add(delivery["@id"])

    def resumed(self, core, since):
        """Seconds from an instant to the end of the longest gap between acknowledged writes after it."""
        instants = [since, *sorted(answered for _, answered, by, status in list(self.answers) if (by, status) == (core, "ok") and answered > since)]
        return max(((end - start, end - since) for start, end in zip(instants, instants[1:])), default=(0, None))[1]

    def defects(self):
        """Stops the load and reads everything back; counts what is wrong."""
        self.stopped.set()
        for core in GATEWAYS:
            self.queues[core].put(None)
        for worker in self.workers[1:]:
            worker.join(60)
        # What a lost core had leased is sent again after a minute.
        deadline = time.time() + 120
        while self.completed - self.notified.keys() and time.time() < deadline:
            time.sleep(0.2)
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            counts = sum(threads.map(self.differences, self.created.items()), collections.Counter())
        return counts + collections.Counter({
            "completions not notified": len(self.completed - self.notified.keys()),
            "completions notified under two ids": sum(len(ids) > 1 for ids in self.notified.values()),
            "unfinished deliveries notified": len(self.notified.keys() - self.requested),
            "forged notifications": self.forged,
        })

    def differences(self, created):
        reference, before = created
        core = "AB"[hash(reference) % 2]
        try:
            delivery = self.call(core, before["@id"])
            listed = self.call(core, f"/api/deliveries?externalReference={reference}")["hydra:member"]
        except OSError as error:
            return collections.Counter({f"deliveries not read back ({error})": 1})
        tasks = ("pickup", "dropoff")
        same = all(delivery[task][member] == before[task][member] for task in tasks for member in ("@id", "address", "before", "comments"))
        return collections.Counter({
            "deliveries altered": not (same and delivery["externalReference"] == reference == delivery["dropoff"]["comments"]),
            "completions lost": sum(delivery[task]["@id"] in self.done and delivery[task]["status"] != "DONE" for task in tasks),
            "deliveries created twice": len(listed) != 1,
        })


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body, identifier = self.rfile.read(int(self.headers["Content-Length"])), self.headers["webhook-id"]
        digest = hmac.digest(self.secret, f"{identifier}.{self.headers['webhook-timestamp']}.".encode() + body, "sha256")
        with self.load.lock:
            self.load.forged += self.headers["webhook-signature"] != "v1," + base64.b64encode(digest).decode()
            ids = self.load.notified[json.loads(body)["data"]["object"]]
            self.load.repeats += identifier in ids
            ids.add(identifier)
        self.send_response(204)
        self.end_headers()

    log_message = lambda *_: None
