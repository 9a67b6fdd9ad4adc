"""Hooks of schemathesis."""

import atexit
import collections
import itertools
import json
import os
import re

import schemathesis
from schemathesis.generation.meta import TestPhase

KEY = "Idempotency-Key"
VALID_KEY = re.compile("[ -~]{1,200}")

numbers = itertools.count()
counts = collections.defaultdict(collections.Counter)


@schemathesis.hook
def before_call(_context, case, _kwargs):
    """Sets different idempotency keys where all cases have the same one: with another body it is
    answered 422."""
    key = (case.headers or {}).get(KEY)
    is_shared = case.meta is not None and case.meta.phase.name == TestPhase.COVERAGE
    if is_shared and isinstance(key, str) and VALID_KEY.fullmatch(key):
        case.headers[KEY] = f"{key} {next(numbers)}"


@schemathesis.hook
def after_call(_context, case, response):
    """Counts the responses of each operation by status."""
    # A case may try a method that its operation does not have.
    if case.method.upper() == case.operation.method.upper():
        counts[case.operation.label][response.status_code] += 1


@atexit.register
def write_counts():
    with open(os.environ["RESPONSE_COUNTS"], "w") as file:
        json.dump(counts, file)
