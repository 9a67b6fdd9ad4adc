"""Runs the dispatch board and the courier's phone of `examples` for a day, through two kills of the platform.

The platform is one of its own, in a time zone in which it is about noon, so that the day does not end meanwhile.
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone

from fixtures import Client

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent
# Seconds. Far longer than a change takes to be shown.
TIMEOUT = 60
# Minutes by which the clock of the phone is wrong.
CLOCK_ERROR = -7
ADDRESSES = {"pickup": "24 Rue de la Paix, 75002 Paris", "dropoff": "48 Rue de Rivoli, 75004 Paris"}
NOTES = "at the back door"
INCIDENT = re.compile(r"(?m)^(?:open|closed) incident, .*\n")
STATES = ["TODO", "DOING", "DONE", "FAILED"]


class Platform:
    """A platform that is killed and started again on the same ports."""

    def __init__(self, program, start, directory):
        self.program, self.start, self.directory = program, start, directory
        with contextlib.ExitStack() as sockets:
            bound = [sockets.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
            self.listen = [f"127.0.0.1:{server.getsockname()[1]}" for server in bound]
        # `Etc/GMT+9` is 9 hours behind.
        self.flags = [f"--timezone=Etc/GMT{datetime.now(timezone.utc).hour - 12:+}"]
        self.run()

    def run(self):
        self.process, self.ready = self.start(self.program, self.directory, self.listen, self.flags)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def operate(self, *arguments):
        command = [self.program, *arguments, "--json", f"--data-dir={self.directory}"]
        return json.loads(subprocess.run(command, check=True, timeout=TIMEOUT, stdout=subprocess.PIPE).stdout)

    def create_delivery(self):
        """Creates a delivery of the demo shop; returns the names of pickup and dropoff."""
        shop = Client(self.ready["base_url"], self.ready["demo_client"], "deliveries tasks")
        # On the platform's day, which may not be the shop's.
        before = (datetime.now(timezone.utc) + timedelta(hours=5)).isoformat()
        draft = {"dropoff": {"address": ADDRESSES["dropoff"], "before": before}}
        delivery = shop.call("POST", "/api/deliveries", draft)
        return [delivery[task]["@id"].removeprefix("/api/") for task in ("pickup", "dropoff")]

    def complete(self, task):
        self.operate("tasks", "complete", task.removeprefix("tasks/"))

    def forget_changes(self):
        """Removes all changes from the log, and one after the last: each position received has expired."""
        with contextlib.closing(sqlite3.connect(pathlib.Path(self.directory, "delivery.sqlite"))) as database:
            database.execute("UPDATE task_change_logs SET last_position = last_position + 1")
            database.execute("UPDATE task_change_logs SET retained_after = last_position")
            database.execute("DELETE FROM task_changes")
            database.commit()


class Programs:
    """The examples, with stubs, and the files that they write."""

    def __init__(self, folder, platform):
        self.folder = folder
        stubs = folder / "stubs"
        stubs.mkdir()
        protos = sorted((REPOSITORY / "proto" / "delivery" / "v1").glob("*.proto"))
        subprocess.run(
            [sys.executable, "-m", "grpc_tools.protoc", "-I", REPOSITORY / "proto", f"--python_out={stubs}",
             f"--grpc_python_out={stubs}", *protos], check=True, timeout=TIMEOUT)
        sys.path.insert(0, str(stubs))
        rest, core = platform.listen
        self.environment = {**os.environ, "PYTHONPATH": str(stubs), "BASE": f"http://{rest}", "CORE": core,
                            "QUEUE": str(folder / "queue.jsonl"), "CLOCK_ERROR": str(CLOCK_ERROR)}

    def environment_of(self, client):
        return {**self.environment, "KEY": client["api_key"], "SECRET": client["api_secret"]}

    def start_board(self, client):
        with (self.folder / "board.out").open("w") as out, (self.folder / "board.err").open("w") as errors:
            return subprocess.Popen([sys.executable, REPOSITORY / "examples/dispatch/dispatch_board.py"],
                                    env=self.environment_of(client), stdout=out, stderr=errors)

    def tables(self):
        """What the board has printed, without times."""
        text = re.sub(r"\d\d-\d\d \d\d:\d\d", "TIME", INCIDENT.sub("", self.printed()))
        return re.sub(r"(?m)^\d{4}-\d\d-\d\d:", "DAY:", text).split("\n\n")[:-1]

    def incidents(self):
        """What the board has printed of incidents. The watch may repeat them."""
        return set(INCIDENT.findall(self.printed()))

    def printed(self):
        return (self.folder / "board.out").read_text()

    def errors(self):
        return (self.folder / "board.err").read_text()

    def phone(self, client, *arguments):
        """Runs the phone; returns its output, without times."""
        command = [sys.executable, REPOSITORY / "examples/courier/courier.py", *arguments]
        printed = subprocess.run(command, env=self.environment_of(client), check=True, timeout=TIMEOUT,
                                 stdout=subprocess.PIPE, text=True).stdout
        return re.sub(r"since \S+,", "since TIME,", printed).splitlines()


def wait_for(what, is_true):
    deadline = time.monotonic() + TIMEOUT
    while not is_true():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)


def table(**states):
    """What the board prints, without times: of each courier, the states of its tasks, pickup and dropoff in turn."""
    rows = [f"{courier:<8} {kind:<7} {state:<13} TIME  {ADDRESSES[kind]}"
            for courier, tasks in states.items()
            for state, kind in zip(tasks.split(), ["pickup", "dropoff"] * len(tasks))]
    return "\n".join([f"DAY: {len(rows)} tasks", *rows])


def ranks(printed):
    """How far each task of a table is."""
    return [STATES.index(row.split()[2]) for row in printed.splitlines()[1:]]


def check_tables(tables, expected):
    """Several changes may come as one: of those between the first tables and the last, only the order is certain."""
    first = expected[:4]
    assert tables[:4] == first and tables[-1] == expected[-1], tables
    for before, after in zip(tables, tables[1:]):
        were, are = ranks(before), ranks(after)
        if len(were) == len(are):
            assert are != were and all(old <= new for old, new in zip(were, are)), (before, after)
    assert [one for one in tables if one in expected] == expected, tables


def history(platform, client, task):
    """The events of a task, each as a list of what is told of it, and its two times."""
    import grpc
    from delivery.v1 import tasks_pb2, tasks_pb2_grpc

    token = Client(platform.ready["base_url"], client, "dispatch").token
    tasks = tasks_pb2_grpc.TasksStub(grpc.insecure_channel(platform.listen[1]))
    listed = tasks.ListTaskEvents(tasks_pb2.ListTaskEventsRequest(task=task),
                                  metadata=[("authorization", f"Bearer {token}")], timeout=TIMEOUT)
    actor = tasks_pb2.TaskEvent.Actor.Name
    events = []
    for event in listed.events:
        assert not event.occurred_time_clamped, event
        told = [event.event.removeprefix("task:"), actor(event.actor).removeprefix("ACTOR_").lower(), event.notes,
                event.contact_name, event.failure_reason]
        times = [stamp.ToDatetime(timezone.utc) for stamp in (event.occurred_time, event.create_time)]
        events.append((" ".join(filter(None, told)), *times))
    return events


def report_incident(platform, client, task, description):
    import grpc
    from delivery.v1 import incidents_pb2, incidents_pb2_grpc

    token = Client(platform.ready["base_url"], client, "dispatch").token
    incidents = incidents_pb2_grpc.IncidentsStub(grpc.insecure_channel(platform.listen[1]))
    incidents.ReportIncident(incidents_pb2.ReportIncidentRequest(task=task, description=description),
                             metadata=[("authorization", f"Bearer {token}")], timeout=TIMEOUT)


def work(programs, phone, tasks):
    """What the courier does in the basement; returns what the phone prints."""
    (pickup, dropoff), (other_pickup, other_dropoff) = tasks
    printed = []
    for arguments in [
        ("start", pickup, "--offline"), ("done", pickup, "--offline", "--contact-name=Jeanne"),
        ("start", dropoff, "--offline"), ("done", dropoff, "--offline", f"--notes={NOTES}"),
        ("start", other_pickup, "--offline"), ("done", other_pickup, "--offline"),
        # It tries to send.
        ("fail", other_dropoff, "NOT_AT_HOME", f"--notes={NOTES}"), ("list",),
    ]:
        printed += programs.phone(phone, *arguments)
    return printed


def run(platform, programs):
    ada = platform.operate("couriers", "create", "--name=Ada")
    platform.operate("couriers", "create", "--name=Bob")
    phone = platform.operate(
        "clients", "create", "--name=Ada, phone", "--scopes=courier", f"--courier={ada['id']}")
    desk = platform.operate("clients", "create", "--name=Board", "--scopes=dispatch")
    board = programs.start_board(desk)
    try:
        day(platform, programs, phone, desk)
        assert board.poll() is None, programs.errors()
    finally:
        board.terminate()
        board.wait(timeout=TIMEOUT)
    assert board.returncode == -signal.SIGTERM


def day(platform, programs, phone, desk):
    expected = []

    def shows(**states):
        expected.append(table(**states))
        wait_for(lambda: (programs.tables(), programs.errors()), lambda: programs.tables()[-1:] == expected[-1:])

    shows()
    first = platform.create_delivery()
    shows(Ada="TODO TODO")
    second = platform.create_delivery()
    shows(Ada="TODO TODO", Bob="TODO TODO")
    third = platform.create_delivery()
    shows(Ada="TODO TODO TODO TODO", Bob="TODO TODO")
    listed = [re.sub(r"\d\d:\d\d", "TIME", line) for line in programs.phone(phone, "list")]
    assert listed == [f"{task} {kind} TODO TIME {ADDRESSES[kind]}" for tasks in (first, third)
                      for task, kind in zip(tasks, ADDRESSES)], listed

    platform.kill()
    began = datetime.now(timezone.utc)
    printed = work(programs, phone, [first, third])
    ended = datetime.now(timezone.utc)
    commands = [f"{rpc} {task}" for task in (*first, third[0]) for rpc in ("StartTask", "CompleteTask")]
    commands.append(f"FailTask {third[1]}")
    assert printed == [*(f"{sent}: waits" for sent in commands), "offline, 7 commands wait", "offline"], printed
    platform.run()
    for task in (*second, third[0]):
        platform.complete(task)
    platform_learns = datetime.now(timezone.utc)

    # The responses are lost, so that all of it is sent again; then nothing is left.
    refused = f"{commands[4]}: refused, the pickup is DONE since TIME, set by dispatch"
    states = ["DOING", "DONE", "DOING", "DONE", "", "DONE", "FAILED"]
    for arguments, suffix in [(("sync", "--lose-responses"), ""), (("sync",), ", sent before")]:
        sent = [f"{command}: {state}{suffix}" for command, state in zip(commands, states)]
        sent[4] = refused
        printed = programs.phone(phone, *arguments)
        assert printed == sent, printed
    assert programs.phone(phone, "sync") == []
    sending = datetime.now(timezone.utc) - platform_learns
    shows(Ada="DONE DONE DONE FAILED", Bob="DONE DONE")

    assigned = ["created unspecified", "assigned dispatch"]
    done = ["started courier", "done courier"]
    for task, events in [
        (first[0], [*assigned, done[0], f"{done[1]} Jeanne"]), (first[1], [*assigned, done[0], f"{done[1]} {NOTES}"]),
        (second[0], [*assigned, "done dispatch"]), (second[1], [*assigned, "done dispatch"]),
        (third[0], [*assigned, "done dispatch"]), (third[1], [*assigned, f"failed courier {NOTES} NOT_AT_HOME"]),
    ]:
        found = history(platform, desk, task)
        assert [told for told, *_ in found] == events, found
        for told, occurred, learned in found:
            if " courier" in told:
                # By the platform's clock, but for the time that a request takes.
                assert began <= occurred <= ended + sending, (told, occurred, began, ended)
                assert learned >= platform_learns, (told, learned)

    report_incident(platform, desk, third[1], "The lift is broken")
    incident = f"open incident, {ADDRESSES['dropoff']}: The lift is broken\n"
    wait_for(programs.incidents, lambda: programs.incidents() == {incident})

    platform.kill()
    platform.forget_changes()
    platform.run()
    wait_for(programs.errors, lambda: "OUT_OF_RANGE" in programs.errors())
    fourth = platform.create_delivery()
    shows(Ada="DONE DONE DONE FAILED", Bob="DONE DONE TODO TODO")
    for task in fourth:
        platform.complete(task)
    shows(Ada="DONE DONE DONE FAILED", Bob="DONE DONE DONE DONE")

    check_tables(programs.tables(), expected)
    reasons = [line.partition(":")[0] for line in programs.errors().splitlines()]
    assert set(reasons) == {"UNAVAILABLE", "OUT_OF_RANGE"} and reasons.count("OUT_OF_RANGE") == 1, programs.errors()


def check(program, start):
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as folder:
        platform = Platform(program, start, directory)
        try:
            run(platform, Programs(pathlib.Path(folder), platform))
        finally:
            platform.kill()
    print("the dispatch board and the courier's phone bring a day to its end through two kills")
