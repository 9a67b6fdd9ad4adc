# Shows the tasks of a day (YYYY-MM-DD, by default today) as they change, and assigns those without a courier. Needs
# Python 3.9, grpcio and the stubs; in the environment BASE, CORE, and KEY and SECRET of a client with scope dispatch.
import base64
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from typing import Any, Optional
from zoneinfo import ZoneInfo

import grpc
from delivery.v1.couriers_pb2 import AssignTasksRequest, Courier, DayList, ListCourierListsRequest, ListCouriersRequest
from delivery.v1.couriers_pb2_grpc import CouriersStub
from delivery.v1.tasks_pb2 import Incident, ListTasksRequest, Task, WatchTasksRequest, WatchTasksResponse
from delivery.v1.tasks_pb2_grpc import TasksStub

BASE, CORE, KEY, SECRET = (os.environ[name] for name in ("BASE", "CORE", "KEY", "SECRET"))
TIMEOUT = 10  # seconds, of every call but the watch
RETRY_DELAY = 1  # seconds
# Pings notice a core that is gone without closing the connection.
OPTIONS = [("grpc.keepalive_time_ms", 30_000), ("grpc.http2.max_pings_without_data", 0),
           ("grpc.max_reconnect_backoff_ms", 2_000)]
# With a new token, the same call may succeed: core was lost or is busy, or the token has expired.
RETRIED = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.DEADLINE_EXCEEDED,
           grpc.StatusCode.RESOURCE_EXHAUSTED}
# The position is of more than a day ago, or of a database that was restored from a backup since.
POSITION_LOST = {grpc.StatusCode.OUT_OF_RANGE, grpc.StatusCode.INVALID_ARGUMENT}


def log(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def authorize() -> list[tuple[str, str]]:
    """The metadata of calls, with a new access token. Waits for the platform; exits if it refuses the client."""
    credentials = base64.b64encode(f"{KEY}:{SECRET}".encode()).decode()
    form = urllib.parse.urlencode({"grant_type": "client_credentials", "scope": "dispatch"})
    request = urllib.request.Request(
        f"{BASE}/oauth2/token", form.encode(), {"Authorization": f"Basic {credentials}"})
    while True:
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
                return [("authorization", f"Bearer {json.load(response)['access_token']}")]
        except urllib.error.HTTPError as error:
            if error.code in (400, 401):
                raise SystemExit(error.read().decode())
        except OSError:
            pass
        time.sleep(RETRY_DELAY)


class Board:
    """A day as far as it is known. What changes is replaced by its name, so that it may come twice."""

    def __init__(self, day: str) -> None:
        channel = grpc.insecure_channel(CORE, OPTIONS)
        self.tasks_stub = TasksStub(channel)
        self.couriers_stub = CouriersStub(channel)
        self.metadata = authorize()
        self.day = day
        self.position: Optional[int] = None
        self.tasks: dict[str, Task] = {}
        # The tasks of each courier, in order.
        self.lists: dict[str, list[str]] = {}
        self.couriers: dict[str, Courier] = {}
        # Left where they are until they change.
        self.conflicts: set[str] = set()
        self.printed = ""

    def call(self, rpc: Any, request: Any) -> Any:
        return rpc(request, metadata=self.metadata, timeout=TIMEOUT)

    def read(self) -> None:
        """Lists the day anew. From the smaller of both positions on, no change is missed."""
        request = ListTasksRequest(day=self.day, include_overdue=True, page_size=100)
        page = self.call(self.tasks_stub.ListTasks, request)
        position, self.day = page.position, page.day
        # Today may be another day by the next page.
        request.day = self.day
        tasks = list(page.tasks)
        while page.next_page_token:
            request.page_token = page.next_page_token
            page = self.call(self.tasks_stub.ListTasks, request)
            tasks.extend(page.tasks)
        listed = self.call(self.couriers_stub.ListCourierLists, ListCourierListsRequest(day=self.day))

        self.tasks = {task.name: task for task in tasks}
        self.lists = {of.courier: list(of.tasks) for of in listed.lists}
        self.position = min(position, listed.position)
        self.conflicts.clear()

    def follow(self) -> None:
        """Applies changes until the stream is lost, which raises."""
        watched = ListTasksRequest(day=self.day, include_overdue=True)
        request = WatchTasksRequest(after_position=self.position, list=watched)
        changes = self.tasks_stub.WatchTasks(request, metadata=self.metadata)
        try:
            for change in changes:
                self.apply(change)
                for incident in change.incidents:
                    self.print_incident(incident)
                self.assign()
                self.show()
        finally:
            changes.cancel()

    def apply(self, change: WatchTasksResponse) -> None:
        for task in change.tasks:
            self.tasks[task.name] = task
            self.conflicts.discard(task.name)
        for name in change.left:
            self.tasks.pop(name, None)
        self.replace_lists(change.lists)
        self.position = change.position

    def print_incident(self, incident: Incident) -> None:
        """Prints an incident that was reported or closed, with the street of its task."""
        state = Incident.State.Name(incident.state).removeprefix("STATE_").lower()
        address = self.tasks[incident.task].address.street_address if incident.task in self.tasks else incident.task
        texts = [incident.failure_reason, incident.description, incident.closed_with]
        print(f"{state} incident, {address}: {'; '.join(text for text in texts if text)}", flush=True)

    def replace_lists(self, changed: Iterable[DayList]) -> None:
        for of_day in changed:
            courier = of_day.list.courier
            self.lists[courier] = list(of_day.list.tasks)
            for name in self.tasks.keys() & self.lists[courier]:
                self.tasks[name].courier = courier

    def assign(self) -> None:
        """Assigns each delivery without a courier to the courier with the fewest tasks of the day."""
        waiting: dict[str, list[Task]] = {}
        for task in self.tasks.values():
            is_open = task.state in (Task.STATE_TODO, Task.STATE_DOING)
            if is_open and not task.courier and task.name not in self.conflicts:
                waiting.setdefault(task.delivery, []).append(task)
        known = {"", *self.couriers}
        if not waiting and known.issuperset(task.courier for task in self.tasks.values()):
            return
        listed = self.call(self.couriers_stub.ListCouriers, ListCouriersRequest())
        self.couriers = {courier.name: courier for courier in listed.couriers}
        enabled = [name for name, courier in self.couriers.items() if not courier.HasField("disable_time")]
        for tasks in waiting.values() if enabled else ():
            courier = min(enabled, key=lambda name: len(self.lists.get(name, ())))
            # A task that someone else has assigned meanwhile stays where it is. So does this one if the response
            # is lost and the call is repeated: it needs no key.
            moves = [AssignTasksRequest.Move(task=task.name, expected_courier="") for task in tasks]
            request = AssignTasksRequest(moves=moves, courier=courier, day=self.day)
            try:
                assigned = self.call(self.couriers_stub.AssignTasks, request)
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.FAILED_PRECONDITION:
                    raise
                # Such as a courier disabled just now. It is tried again with the next message, within 30 seconds.
                log(f"not assigned: {error.details()}")
                continue
            self.conflicts.update(assigned.conflicts)
            for name in assigned.conflicts:
                log(f"left where it is: {name}")
            # The watch repeats this later.
            self.replace_lists(assigned.lists)

    def show(self) -> None:
        """Prints the day, if it changed: the tasks without a courier, then each courier's in order."""
        def key(task: Task) -> tuple[str, int, int, str]:
            order = self.lists.get(task.courier, [])
            index = order.index(task.name) if task.name in order else -1
            return (self.name_of(task.courier), index, task.before.ToSeconds(), task.name)

        rows = [self.row(task) for task in sorted(self.tasks.values(), key=key)]
        table = "\n".join([f"{self.day}: {len(rows)} tasks", *rows])
        if table != self.printed:
            print(table, end="\n\n", flush=True)
            self.printed = table

    def row(self, task: Task) -> str:
        state = Task.State.Name(task.state).removeprefix("STATE_") + (", blocked" if task.blocked else "")
        kind = Task.Kind.Name(task.kind).removeprefix("KIND_").lower()
        before = task.before.ToDatetime(ZoneInfo(task.time_zone))
        courier = self.name_of(task.courier) or "-"
        return f"{courier:<8} {kind:<7} {state:<13} {before:%m-%d %H:%M}  {task.address.street_address}"

    def name_of(self, courier: str) -> str:
        return self.couriers[courier].display_name if courier in self.couriers else courier


def main() -> None:
    board = Board(*sys.argv[1:2] or [""])
    while True:
        try:
            if board.position is None:
                board.read()
            board.follow()
        except grpc.RpcError as error:
            if error.code() in POSITION_LOST and board.position is not None:
                board.position = None
            elif error.code() not in RETRIED:
                raise
            log(f"{error.code().name}: {error.details()}")
            time.sleep(RETRY_DELAY)
            board.metadata = authorize()


if __name__ == "__main__":
    main()
