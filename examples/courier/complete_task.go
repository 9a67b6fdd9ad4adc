// Completes a task over gRPC. Needs the stubs in the module courier, and CORE, COURIER and TASK in the environment.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	deliveryv1 "courier/delivery/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func main() {
	connection, err := grpc.NewClient(os.Getenv("CORE"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+os.Getenv("COURIER"))
	request := &deliveryv1.CompleteTaskRequest{Name: os.Getenv("TASK")}
	task, err := deliveryv1.NewTasksClient(connection).CompleteTask(ctx, request)
	if err != nil {
		log.Fatalf("%v: %s", status.Code(err), status.Convert(err).Message())
	}
	fmt.Println(task.State)
}
