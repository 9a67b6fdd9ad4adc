# Receives webhooks on port 9000. Needs Python 3.9 and the secret in WEBHOOK_SECRET.
import base64, hashlib, hmac, http.server, os, time

SECRET = os.environ.get("WEBHOOK_SECRET")
if not SECRET:
    raise SystemExit("set WEBHOOK_SECRET: with an empty key, a forged signature would be accepted")
# Set to X-Service-Signature (X-<Platform>-Signature) to check that header instead.
PLATFORM_HEADER = os.environ.get("PLATFORM_HEADER")
TOLERANCE = 5 * 60  # seconds

# Ids of processed notifications. Use a unique column of your database instead, written in the
# transaction that processes the event: the set is lost when the program ends.
processed = set()


def sign(key, message):
    return base64.b64encode(hmac.digest(key, message, hashlib.sha256))


# Keyed with the decoded secret. Covers the id and the time: an old request cannot be sent again.
def has_standard_signature(headers, body):
    identifier, sent_at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not (sent_at.isascii() and sent_at.isdigit()) or abs(time.time() - int(sent_at)) > TOLERANCE:
        return False
    expected = b"v1," + sign(base64.b64decode(SECRET), f"{identifier}.{sent_at}.".encode() + body)
    signatures = headers.get("webhook-signature", "").split()
    return any(hmac.compare_digest(one.encode(), expected) for one in signatures)


# Keyed with the text of the secret. Covers the body alone.
def has_platform_signature(headers, body):
    return hmac.compare_digest(headers.get(PLATFORM_HEADER, "").encode(), sign(SECRET.encode(), body))


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        # The bytes as received: JSON that was parsed and written again has another signature.
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        check = has_platform_signature if PLATFORM_HEADER else has_standard_signature
        if not check(self.headers, body):
            return self.respond(401)
        identifier = self.headers.get("webhook-id")
        if identifier not in processed:
            print("genuine:", body.decode(), flush=True)  # process the event here
            processed.add(identifier)
        self.respond(204)

    def respond(self, status):
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


http.server.HTTPServer(("127.0.0.1", int(os.environ.get("PORT", 9000))), Receiver).serve_forever()
