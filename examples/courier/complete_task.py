# Completes a task over gRPC. Needs grpcio and the stubs, and CORE, COURIER and TASK in the environment.
import os

import grpc
from delivery.v1 import tasks_pb2, tasks_pb2_grpc

tasks = tasks_pb2_grpc.TasksStub(grpc.insecure_channel(os.environ["CORE"]))
token = [("authorization", f"Bearer {os.environ['COURIER']}")]
try:
    request = tasks_pb2.CompleteTaskRequest(name=os.environ["TASK"])
    task = tasks.CompleteTask(request, metadata=token, timeout=10)
except grpc.RpcError as error:
    raise SystemExit(f"{error.code().name}: {error.details()}")
print(tasks_pb2.Task.State.Name(task.state))
