// Package interrupts has the commands that list, show and answer interrupts.
package interrupts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/runs"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/show"
	"waybill.dev/waybill/internal/cli/term"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
)

// Command is `waybill interrupt`.
func Command(s *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use:     "interrupt",
		Aliases: []string{"interrupts"},
		Short:   "List and answer interrupts: questions of runs to people",
		Long: `Lists and answers the interrupts that runs wait for: approvals, clarifications, external events.

` + exit.Help,
		Example: `  waybill interrupt list
  waybill interrupt answer RUN gate --action accept`,
	}
	s.Flags(c)
	c.AddCommand(listCommand(s), showCommand(s), answerCommand(s))
	return c
}

func listCommand(s *session.Session) *cobra.Command {
	var q client.InterruptQuery
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List open interrupts",
		Example: `  waybill interrupt list --eligible`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.Limit < 0 || q.Limit > 200 {
				return exit.Usagef("--limit %d: must be 1 to 200", q.Limit)
			}
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			c, err := s.Client(cmd)
			if err != nil {
				return err
			}
			page, err := c.Interrupts(cmd.Context(), q)
			if err != nil {
				return err
			}
			err = render.Rows(p, page.Doc, page.Interrupts, func(i client.OpenInterrupt) []byte { return i.Doc },
				func(i client.OpenInterrupt) string { return i.RunID + "/" + i.Interrupt.NodeID }, columns(s.Now()))
			if err == nil && p.Format.ForPeople() && len(page.Interrupts) == 0 {
				session.Notice(cmd, "no open interrupts")
			}
			if err == nil && p.Format.ForPeople() && page.NextCursor != "" {
				session.Notice(cmd, "more interrupts: use --cursor %s", page.NextCursor)
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&q.WorkflowID, "workflow", "", "only interrupts of runs of this workflow")
	f.StringVar(&q.Kind, "kind", "", "only interrupts of this kind: approval, clarification, external-event, custom, low-confidence")
	f.BoolVar(&q.Eligible, "eligible", false, "only interrupts that you may answer")
	f.IntVar(&q.Limit, "limit", 50, "interrupts per page, 1 to 200")
	f.StringVar(&q.Cursor, "cursor", "", "cursor of the previous page")
	return c
}

func columns(now time.Time) []render.Column[client.OpenInterrupt] {
	return []render.Column[client.OpenInterrupt]{
		{Name: "RUN", Value: func(i client.OpenInterrupt) string { return i.RunID }},
		{Name: "NODE", Flex: true, Value: func(i client.OpenInterrupt) string { return i.Interrupt.NodeID }},
		{Name: "KIND", Value: func(i client.OpenInterrupt) string { return string(i.Interrupt.Kind) }},
		{Name: "AGE", Value: func(i client.OpenInterrupt) string { return show.Age(i.Interrupt.RequestedAt, now) }},
		{Name: "ASKS", Flex: true, Value: func(i client.OpenInterrupt) string {
			return show.Question(string(i.Interrupt.Kind), i.Interrupt.Payload.Data)
		}},
		{Name: "WORKFLOW", Wide: true, Flex: true, Value: func(i client.OpenInterrupt) string { return i.WorkflowID }},
		{Name: "ID", Wide: true, Value: func(i client.OpenInterrupt) string { return i.Interrupt.InterruptID }},
	}
}

// open is an open interrupt and its run.
type open struct {
	runID     string
	interrupt *runstate.OpenInterrupt // nil if the node has no open interrupt
	nodeID    string
}

// find returns the open interrupt of a node; without a node, the first one of the run.
func find(ctx context.Context, c *client.Client, run, node string) (*open, error) {
	id, err := runs.Named(ctx, c, run)
	if err != nil {
		return nil, err
	}
	r, err := c.Run(ctx, id)
	if err != nil {
		return nil, err
	}
	o := &open{runID: id, nodeID: node}
	switch {
	case node == "" && r.Interrupt == nil:
		return nil, exit.With(exit.NotFound, fmt.Errorf("run %s has no open interrupt; it is %s", id, r.Status))
	case r.Interrupt != nil && (node == "" || r.Interrupt.NodeID == node):
		o.interrupt, o.nodeID = r.Interrupt, r.Interrupt.NodeID
		return o, nil
	}
	for q := (client.InterruptQuery{WorkflowID: r.WorkflowID, Limit: 200}); r.Interrupt != nil; { // the run has several open interrupts
		page, err := c.Interrupts(ctx, q)
		if _, ok := errors.AsType[*client.UnofferedError](err); ok {
			break // the host decides whether the node has a question
		}
		if err != nil {
			return nil, err
		}
		for _, i := range page.Interrupts {
			if i.RunID == id && i.Interrupt.NodeID == node {
				o.interrupt = &i.Interrupt
				return o, nil
			}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
	}
	return o, nil
}

func showCommand(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:               "show RUN [NODE]",
		Short:             "Show an interrupt and how to answer it",
		Example:           `  waybill interrupt show @latest`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: complete(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			c, err := s.Client(cmd)
			if err != nil {
				return err
			}
			o, err := find(cmd.Context(), c, args[0], second(args))
			if err != nil {
				return err
			}
			if o.interrupt == nil {
				return fault.New(fault.InterruptNotFound, "node %q of run %s has no open interrupt", o.nodeID, o.runID)
			}
			return p.Value(o.interrupt, o.interrupt.InterruptID, o.write)
		},
	}
}

func second(args []string) string {
	if len(args) > 1 {
		return args[1]
	}
	return ""
}

// data has the displayed members of all kinds of interrupts.
type data struct {
	Title             string             `json:"title"`
	Description       string             `json:"description"`
	Actions           []interrupt.Action `json:"actions"`
	ArtifactType      string             `json:"artifactType"`
	ArtifactID        string             `json:"artifactId"`
	ArtifactData      json.RawMessage    `json:"artifactData"`
	RequiredApprovals int                `json:"requiredApprovals"`
	ApproversList     []string           `json:"approversList"`
	EventType         string             `json:"eventType"`
	Questions         []question         `json:"questions"`
	CustomKind        string             `json:"customKind"`
	Payload           json.RawMessage    `json:"payload"`
}

type question struct {
	ID       string          `json:"id"`
	Question string          `json:"question"`
	Schema   json.RawMessage `json:"schema"`
}

func (o *open) data() data {
	var d data
	_ = json.Unmarshal(o.interrupt.Payload.Data, &d) // members of another type are not shown
	return d
}

// write prints an interrupt.
func (o *open) write(w io.Writer) error {
	d, a := o.data(), o.interrupt
	actions := make([]string, len(d.Actions))
	for i, x := range d.Actions {
		actions[i] = string(x)
	}
	votes, artifact := "", string(d.ArtifactData)
	if d.RequiredApprovals > 1 {
		votes = fmt.Sprintf("%d approvals", d.RequiredApprovals)
	}
	if artifact == "" && o.form() == nil {
		artifact = string(d.Payload)
	}
	due := ""
	if a.Payload.TimeoutMs > 0 {
		due = show.Duration(time.Duration(a.Payload.TimeoutMs)*time.Millisecond) + " after the request"
	}
	err := render.Pairs(w, "run", o.runID, "node", o.nodeID, "kind", string(a.Kind), "asked", a.RequestedAt, "due", due, "title", d.Title,
		"description", d.Description, "actions", strings.Join(actions, ", "), "needs", votes, "approvers", strings.Join(d.ApproversList, ", "),
		"artifact", strings.TrimSpace(d.ArtifactType+" "+d.ArtifactID), "content", artifact, "event", d.EventType)
	if err != nil {
		return err
	}
	for _, q := range d.Questions {
		if _, err := fmt.Fprintf(w, "\n%s: %s\n", term.Clean(q.ID), term.Clean(q.Question)); err != nil {
			return err
		}
		if len(q.Schema) > 0 {
			if _, err := fmt.Fprintf(w, "  schema %s\n", term.Clean(string(q.Schema))); err != nil {
				return err
			}
		}
	}
	end := how(a.Kind, d)
	if s := o.form(); s != nil {
		end = howForm(s)
		if err := writeForm(w, s); err != nil {
			return err
		}
	}
	if _, err = fmt.Fprintf(w, "\nanswer: waybill interrupt answer %s %s %s\n", o.runID, o.nodeID, end); err != nil || !a.Payload.Declinable() {
		return err
	}
	_, err = fmt.Fprintf(w, "decline: waybill interrupt answer %s %s --decline\n", o.runID, o.nodeID)
	return err
}

// how returns the flags that answer an interrupt.
func how(kind interrupt.Kind, d data) string {
	switch {
	case kind == interrupt.Approval && len(d.Actions) > 0:
		return "--action " + string(d.Actions[0])
	case kind == interrupt.Clarification:
		var out []string
		for _, q := range d.Questions {
			out = append(out, "--answer "+q.ID+"=…")
		}
		return strings.Join(out, " ")
	default:
		return "--value @answer.json"
	}
}

// complete completes runs with open interrupts, and their nodes.
func complete(s *session.Session) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		c, err := s.Client(cmd)
		if err != nil || len(args) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		page, err := c.Interrupts(cmd.Context(), client.InterruptQuery{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for _, i := range page.Interrupts {
			switch {
			case len(args) == 0:
				out = append(out, i.RunID+"\t"+string(i.Interrupt.Kind)+" at "+i.Interrupt.NodeID)
			case args[0] == i.RunID:
				out = append(out, i.Interrupt.NodeID+"\t"+string(i.Interrupt.Kind))
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}
