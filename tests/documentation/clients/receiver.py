"""A webhook receiver for the tests of generated Python clients."""

import base64
import hashlib
import hmac
import http.server
import json
import queue
import threading


class Receiver:
    """Receives notifications on a free port."""

    def __init__(self):
        received = self.received = queue.Queue()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.put((self.headers, body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_port}/"

    def verified(self, secret):
        """The data of the next notification, if both of its signatures are right."""
        headers, body = self.received.get(timeout=30)
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        signatures = headers["webhook-signature"].split(" ")
        assert "v1," + mac(base64.b64decode(secret), signed) in signatures, signatures
        assert mac(secret.encode(), body) == headers["X-Service-Signature"]
        return json.loads(body)["data"]


def mac(key, message):
    """Base64 of HMAC-SHA256."""
    return base64.b64encode(hmac.new(key, message, hashlib.sha256).digest()).decode()
