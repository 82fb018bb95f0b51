// Command follow is a client that oapi-codegen generated: it starts a run, follows its events, answers
// its approval, reads lists and errors, and prints what it saw.
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
	once := waybill.CreateRunParams{IdempotencyKey: new("follow-1")}
	created, err := c.CreateRunWithResponse(ctx, &once, waybill.CreateRunRequest{WorkflowId: "small-gate"})
	if err != nil {
		return err
	}
	if created.JSON201 == nil {
		return fmt.Errorf("create: %s %s", created.Status(), created.Body)
	}
	id := created.JSON201.RunId
	again, err := c.CreateRunWithResponse(ctx, &once, waybill.CreateRunRequest{WorkflowId: "small-gate"})
	if err != nil || again.JSON201 == nil {
		return fmt.Errorf("create again: %w %s", err, again.Body)
	}
	fmt.Println(again.JSON201.RunId == id, again.HTTPResponse.Header.Get("openwop-Idempotent-Replay"))
	for last, done := int64(-1), false; !done; {
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
	end, err := c.GetRunWithResponse(ctx, id, nil)
	if err != nil || end.JSON200 == nil {
		return fmt.Errorf("get: %w %s", err, end.Body)
	}
	fmt.Println(end.JSON200.Status, end.JSON200.NodeStates["gate"].Status)
	same, err := c.GetRunWithResponse(ctx, id, &waybill.GetRunParams{IfNoneMatch: new(end.HTTPResponse.Header.Get("ETag"))})
	if err != nil {
		return err
	}
	fmt.Println(same.StatusCode())
	if err := c.lists(ctx, id); err != nil {
		return err
	}
	if err := c.webhooks(ctx); err != nil {
		return err
	}
	return c.errors(ctx)
}

func (c client) lists(ctx context.Context, id string) error {
	var ids []string
	for cursor, more := (*string)(nil), true; more; more = cursor != nil {
		page, err := c.ListWorkflowsWithResponse(ctx, &waybill.ListWorkflowsParams{Limit: new(int64(2)), Cursor: cursor})
		if err != nil || page.JSON200 == nil {
			return fmt.Errorf("list: %w %s", err, page.Body)
		}
		for _, w := range page.JSON200.Workflows {
			ids = append(ids, w.WorkflowId)
		}
		cursor = page.JSON200.NextCursor
	}
	all, err := c.ListWorkflowsWithResponse(ctx, &waybill.ListWorkflowsParams{Limit: new(int64(200))})
	if err != nil || all.JSON200 == nil {
		return fmt.Errorf("list: %w %s", err, all.Body)
	}
	fmt.Println(len(ids) > 2 && len(ids) == len(all.JSON200.Workflows))
	found, err := c.ListRunsWithResponse(ctx, &waybill.ListRunsParams{Status: new(waybill.RunStatusCompleted), WorkflowId: new("small-gate")})
	if err != nil || found.JSON200 == nil {
		return fmt.Errorf("list runs: %w %s", err, found.Body)
	}
	for _, r := range found.JSON200.Runs {
		fmt.Println(r.RunId == id)
	}
	return nil
}

func (c client) webhooks(ctx context.Context) error {
	made, err := c.RegisterWebhookWithResponse(ctx, nil, waybill.RegisterWebhookRequest{Url: "https://1.1.1.1/waybill", Events: []string{"run.dead_lettered"}})
	if err != nil || made.JSON201 == nil {
		return fmt.Errorf("register: %w %s", err, made.Body)
	}
	all, err := c.ListWebhooksWithResponse(ctx, &waybill.ListWebhooksParams{Limit: new(int64(200))})
	if err != nil || all.JSON200 == nil {
		return fmt.Errorf("list webhooks: %w %s", err, all.Body)
	}
	for _, w := range all.JSON200.Webhooks {
		if w.WebhookId == made.JSON201.WebhookId {
			fmt.Println(w.Status)
		}
	}
	gone, err := c.UnregisterWebhookWithResponse(ctx, made.JSON201.WebhookId, nil)
	if err != nil {
		return err
	}
	fmt.Println(gone.StatusCode())
	return nil
}

// errors prints the errors of requests with their details, whose type follows from the code. A status
// with one code has the type of the code.
func (c client) errors(ctx context.Context) error {
	invalid, err := c.ListRunsWithResponse(ctx, &waybill.ListRunsParams{Limit: new(int64(0))})
	if err != nil || invalid.JSON400 == nil {
		return fmt.Errorf("list: %w", err)
	}
	p := invalid.JSON400.Details.Problems[0]
	fmt.Println(invalid.StatusCode(), invalid.JSON400.Error, *p.In, p.Path)
	missing, err := c.GetRunWithResponse(ctx, "run_none", nil)
	if err != nil || missing.JSON404 == nil {
		return fmt.Errorf("get: %w", err)
	}
	fmt.Println(missing.StatusCode(), missing.JSON404.Error)
	var limited *waybill.CreateRunResponse
	for range 2 {
		if limited, err = c.CreateRunWithResponse(ctx, nil, waybill.CreateRunRequest{WorkflowId: "none"}); err != nil {
			return err
		}
	}
	if limited.JSON429 == nil {
		return fmt.Errorf("create: %s %s", limited.Status(), limited.Body)
	}
	d := limited.JSON429.Details
	fmt.Println(limited.StatusCode(), limited.JSON429.Error, *d.Scope, *d.Limit, d.RetryAfter > 0)
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
	run, err := c.GetRunWithResponse(ctx, runID, nil)
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
