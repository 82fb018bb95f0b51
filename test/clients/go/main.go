// Command follow is a client that oapi-codegen generated: it starts a run, follows its events, answers
// its approval and prints what it saw.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"waybill.dev/waybill/test/clients/go/waybill"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type client struct{ *waybill.ClientWithResponses }

func run(ctx context.Context, url, key string) error {
	api, err := waybill.NewClientWithResponses(url, waybill.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+key)
		return nil
	}))
	if err != nil {
		return err
	}
	c := client{api}
	created, err := c.CreateRunWithResponse(ctx, nil, waybill.CreateRunRequest{WorkflowId: "small-gate"})
	if err != nil {
		return err
	}
	if created.JSON201 == nil {
		return fmt.Errorf("create: %s %s", created.Status(), created.Body)
	}
	id := created.JSON201.RunId
	for last, done := -1, false; !done; {
		page, err := c.PollRunEventsWithResponse(ctx, id, &waybill.PollRunEventsParams{LastSequence: &last})
		if err != nil {
			return err
		}
		if page.JSON200 == nil {
			return fmt.Errorf("poll: %s %s", page.Status(), page.Body)
		}
		for _, e := range page.JSON200.Events {
			if err := c.handle(ctx, id, e); err != nil {
				return err
			}
		}
		last, done = page.JSON200.LastEventSeq, page.JSON200.IsComplete
	}
	end, err := c.GetRunWithResponse(ctx, id)
	if err != nil || end.JSON200 == nil {
		return fmt.Errorf("get: %w %s", err, end.Body)
	}
	fmt.Println(end.JSON200.Status, end.JSON200.NodeStates["gate"].Status)
	missing, err := c.GetRunWithResponse(ctx, "run_none")
	if err != nil || missing.JSON404 == nil {
		return fmt.Errorf("get: %w", err)
	}
	fmt.Println(missing.StatusCode(), missing.JSON404.Error)
	return nil
}

// handle prints an event by its type, and answers an approval.
func (c client) handle(ctx context.Context, runID string, union waybill.RunEvent) error {
	v, err := union.ValueByDiscriminator()
	if err != nil {
		return err
	}
	switch e := v.(type) {
	case waybill.RunStartedEvent:
		fmt.Println(e.Type, e.Payload.WorkflowId, e.Payload.Owner.Tenant)
	case waybill.InterruptRequestedEvent:
		asked, err := e.Payload.AsApprovalInterruptRequested()
		if err != nil {
			return err
		}
		var actions []string
		for _, a := range asked.Data.Actions {
			actions = append(actions, string(a))
		}
		fmt.Println(e.Type, strings.Join(actions, ","))
		return c.answer(ctx, runID, asked.NodeId, actions[0])
	case waybill.ApprovalReceivedEvent:
		fmt.Println(e.Type, e.Payload.Action)
	case waybill.NodeCompletedEvent:
		var ports []string
		for name := range *e.Payload.Outputs {
			ports = append(ports, name)
		}
		slices.Sort(ports)
		fmt.Println(e.Type, e.Payload.NodeId, strings.Join(ports, ","))
	default:
		name, err := union.Discriminator()
		if err != nil {
			return err
		}
		fmt.Println(name)
	}
	return nil
}

// answer reads the open approval from the run and accepts it.
func (c client) answer(ctx context.Context, runID, nodeID, action string) error {
	run, err := c.GetRunWithResponse(ctx, runID)
	if err != nil {
		return err
	}
	if run.JSON200 == nil || run.JSON200.Interrupt == nil {
		return fmt.Errorf("no approval to answer: %s %s", run.Status(), run.Body)
	}
	question, err := run.JSON200.Interrupt.Payload.AsApprovalRequest()
	if err != nil {
		return err
	}
	var value any = map[string]string{"action": action}
	res, err := c.ResolveInterruptByRunWithResponse(ctx, runID, nodeID, nil, waybill.ResolveInterruptByRunJSONRequestBody{ResumeValue: value})
	if err != nil {
		return err
	}
	if res.JSON200 == nil {
		return fmt.Errorf("answer: %s %s", res.Status(), res.Body)
	}
	fmt.Println(run.JSON200.Status, question.Data.Title, *res.JSON200.Interrupt.Outcome)
	return nil
}
