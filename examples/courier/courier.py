# The phone of a courier, also in a basement: commands wait in a file until they are sent. Needs Python 3.9, grpcio and
# the stubs; in the environment BASE, CORE, and KEY and SECRET of a client of the courier with scope courier.
import argparse
import base64
import hashlib
import json
import os
import pathlib
import urllib.error
import urllib.parse
import urllib.request
import uuid
from datetime import datetime, timedelta, timezone
from typing import Union
from zoneinfo import ZoneInfo

import grpc
from delivery.v1.tasks_pb2 import CompleteTaskRequest, FailTaskRequest, ListTasksRequest, StartTaskRequest, Task
from delivery.v1.tasks_pb2_grpc import TasksStub
from google.protobuf.json_format import MessageToDict, ParseDict

BASE, CORE, KEY, SECRET = (os.environ[name] for name in ("BASE", "CORE", "KEY", "SECRET"))
QUEUE = pathlib.Path(os.environ.get("QUEUE", "queue.jsonl"))
# To try it: by how many minutes the clock of the phone is wrong.
CLOCK_ERROR = timedelta(minutes=float(os.environ.get("CLOCK_ERROR", "0")))
TIMEOUT = 10  # seconds

Command = Union[StartTaskRequest, CompleteTaskRequest, FailTaskRequest]
COMMANDS = {"StartTask": StartTaskRequest, "CompleteTask": CompleteTaskRequest, "FailTask": FailTaskRequest}
# The same command would be refused again: the task is in another state, or another courier's by now.
REFUSALS = {grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT}


def now() -> datetime:
    """By the clock of the phone."""
    return datetime.now(timezone.utc) + CLOCK_ERROR


def rpc_of(command: Command) -> str:
    return type(command).__name__.removesuffix("Request")


def state_of(task: Task) -> str:
    return Task.State.Name(task.state).removeprefix("STATE_")


def load() -> list[Command]:
    """The commands that wait, in the order in which they were given."""
    lines = [json.loads(line) for line in QUEUE.read_text().splitlines()] if QUEUE.exists() else []
    return [ParseDict(line["request"], COMMANDS[line["rpc"]]()) for line in lines]


def save(commands: list[Command]) -> None:
    """Replaces the file as a whole: the phone may lose its power at any time."""
    new = QUEUE.with_suffix(".new")
    with new.open("w") as file:
        for command in commands:
            file.write(json.dumps({"rpc": rpc_of(command), "request": MessageToDict(command)}) + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, QUEUE)
    folder = os.open(QUEUE.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def give(command: Command) -> None:
    """Puts a command into the queue, complete but for the time at which it is sent."""
    command.report.occurred_time.FromDatetime(now())
    command.idempotency.key = str(uuid.uuid4())
    content = rpc_of(command).encode() + command.SerializeToString(deterministic=True)
    command.idempotency.request_hash = hashlib.sha256(content).digest()
    save([*load(), command])
    print(f"{rpc_of(command)} {command.name}: waits")


def connect() -> tuple[TasksStub, list[tuple[str, str]]]:
    """The tasks, and the metadata of calls, with a new access token. Raises OSError without a network."""
    credentials = base64.b64encode(f"{KEY}:{SECRET}".encode()).decode()
    form = urllib.parse.urlencode({"grant_type": "client_credentials", "scope": "courier"})
    request = urllib.request.Request(
        f"{BASE}/oauth2/token", form.encode(), {"Authorization": f"Basic {credentials}"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            token = json.load(response)["access_token"]
    except urllib.error.HTTPError as error:
        if error.code in (400, 401):
            raise SystemExit(error.read().decode())
        raise
    return TasksStub(grpc.insecure_channel(CORE)), [("authorization", f"Bearer {token}")]


def synchronise(lose_responses: bool = False) -> None:
    """Sends the commands that wait, in order. One leaves the queue when its response has arrived, not before."""
    commands = load()
    try:
        tasks, metadata = connect()
    except OSError:
        return print(f"offline, {len(commands)} commands wait")
    while commands:
        command = commands[0]
        # Of each attempt, by the same clock: the difference from the platform's corrects `occurred_time`.
        command.report.sent_time.FromDatetime(now())
        sent = f"{rpc_of(command)} {command.name}"
        try:
            send = getattr(tasks, rpc_of(command))
            task, call = send.with_call(command, metadata=metadata, timeout=TIMEOUT)
            is_repetition = ("idempotent-replayed", "true") in call.initial_metadata()
            print(f"{sent}: {state_of(task)}{', sent before' if is_repetition else ''}")
        except grpc.RpcError as error:
            if error.code() not in REFUSALS:
                return print(f"{error.code().name}, {len(commands)} commands wait")
            print(f"{sent}: refused, {error.details()}")
        commands.pop(0)
        if not lose_responses:
            save(commands)


def show_list() -> None:
    """Prints the courier's tasks of today, in the order of its list."""
    try:
        tasks, metadata = connect()
    except OSError:
        return print("offline")
    request = ListTasksRequest(page_size=100)
    page = tasks.ListTasks(request, metadata=metadata, timeout=TIMEOUT)
    listed, request.day = list(page.tasks), page.day
    while page.next_page_token:
        request.page_token = page.next_page_token
        page = tasks.ListTasks(request, metadata=metadata, timeout=TIMEOUT)
        listed.extend(page.tasks)
    for task in sorted(listed, key=lambda task: task.list_position):
        kind = Task.Kind.Name(task.kind).removeprefix("KIND_").lower()
        before = task.before.ToDatetime(ZoneInfo(task.time_zone))
        print(f"{task.name} {kind} {state_of(task)} {before:%H:%M} {task.address.street_address}")


def main() -> None:
    parser = argparse.ArgumentParser(description="the phone of a courier")
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("list", help="print the list of today")
    actions.add_parser("sync", help="send what waits").add_argument(
        "--lose-responses", action="store_true", help="to try it: as if no response arrived")
    for name in ("start", "done", "fail"):
        action = actions.add_parser(name)
        action.add_argument("task", metavar="tasks/ID")
        action.add_argument("--offline", action="store_true", help="send nothing yet")
    done, fail = actions.choices["done"], actions.choices["fail"]
    done.add_argument("--contact-name", default="")
    fail.add_argument("reason", help="such as NOT_AT_HOME")
    for action in (done, fail):
        action.add_argument("--notes", default="")
    arguments = parser.parse_args()

    if arguments.action == "list":
        return show_list()
    if arguments.action == "sync":
        return synchronise(arguments.lose_responses)
    if arguments.action == "start":
        give(StartTaskRequest(name=arguments.task))
    elif arguments.action == "done":
        give(CompleteTaskRequest(name=arguments.task, notes=arguments.notes, contact_name=arguments.contact_name))
    else:
        give(FailTaskRequest(name=arguments.task, notes=arguments.notes, reason=arguments.reason))
    if not arguments.offline:
        synchronise()


if __name__ == "__main__":
    main()
