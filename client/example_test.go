package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/protocol/fault"
)

// A run is started and followed to its end, over broken connections.
func Example() {
	if err := triage(context.Background(), os.Stdout, "I was charged twice."); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func triage(ctx context.Context, out io.Writer, mail string) error {
	c, err := client.New("http://127.0.0.1:8080", client.WithToken("dev-key"))
	if err != nil {
		return err
	}
	inputs, err := json.Marshal(map[string]string{"mail": mail})
	if err != nil {
		return err
	}
	run, err := c.Start(ctx, client.StartRun{WorkflowID: "triage", Inputs: inputs})
	if errors.Is(err, fault.New(fault.WorkflowNotFound, "")) {
		return errors.New("the host has no such workflow; register it")
	} else if err != nil {
		return err
	}
	for event, err := range c.Follow(ctx, run.RunID, client.FollowOptions{}) {
		if err != nil {
			return err
		}
		fmt.Fprintln(out, event.Sequence, event.Type)
	}
	return nil
}
