// Package workflowlist has the commands that list and register the workflows of a host.
package workflowlist

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/runs"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/term"
	"waybill.dev/waybill/protocol/strictjson"
)

// List is `waybill workflow list`.
func List(s *session.Session) *cobra.Command {
	var limit int
	var cursor string
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the workflows of a host",
		Example: `  waybill workflow list -o name`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			c, err := s.Client(cmd)
			if err != nil {
				return err
			}
			page, err := c.Workflows(cmd.Context(), limit, cursor)
			if err != nil {
				return err
			}
			row := func(w client.WorkflowSummary) []byte {
				b, err := render.Encode(w)
				if err != nil {
					return nil
				}
				return b
			}
			err = render.Rows(p, page.Doc, page.Workflows, row, func(w client.WorkflowSummary) string { return w.WorkflowID },
				[]render.Column[client.WorkflowSummary]{
					{Name: "WORKFLOW", Value: func(w client.WorkflowSummary) string { return w.WorkflowID }},
					{Name: "VERSION", Value: func(w client.WorkflowSummary) string { return w.Version }},
					{Name: "ORIGIN", Value: origin},
					{Name: "NAME", Flex: true, Value: func(w client.WorkflowSummary) string { return w.Name }},
					{Name: "DIGEST", Wide: true, Value: func(w client.WorkflowSummary) string { return w.Digest }},
				})
			for _, w := range page.Workflows {
				for _, text := range w.Warnings {
					session.Notice(cmd, "warning: %s: %s", w.WorkflowID, text)
				}
			}
			if err == nil && page.NextCursor != "" && p.Format.ForPeople() {
				session.Notice(cmd, "more workflows: use --cursor %s", page.NextCursor)
			}
			return err
		},
	}
	c.Flags().IntVar(&limit, "limit", 50, "workflows per page, 1 to 200")
	c.Flags().StringVar(&cursor, "cursor", "", "cursor of the previous page")
	s.Flags(c)
	return c
}

// origin returns the source of a workflow: the caller's tenant, or a file of the host.
func origin(w client.WorkflowSummary) string {
	if w.File != "" {
		return w.File
	}
	return w.Origin
}

// Register is `waybill workflow register`.
func Register(s *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use:     "register FILE|-",
		Aliases: []string{"apply"},
		Short:   "Register a workflow definition on a host",
		Long: `Registers a workflow definition. The host validates it and stores it as the newest version of its
id. ` + "`workflow lint`" + ` checks a definition without a host.

` + exit.Help,
		Example: `  waybill workflow register workflow.json`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			from := args[0]
			if from != "-" {
				if info, err := os.Stat(from); err == nil && info.IsDir() {
					return exit.Usagef("%s is a folder; register its files one by one, or start the host with --workflows %s, which registers all of them", from, from)
				}
				from = "@" + from
			}
			doc, err := runs.Read(cmd.InOrStdin(), "FILE", from)
			if err != nil {
				return err
			}
			if !json.Valid(doc) {
				return exit.Usagef("%s is not JSON", args[0])
			}
			c, err := s.Client(cmd)
			if err != nil {
				return err
			}
			a, err := c.PutWorkflow(cmd.Context(), doc)
			if err != nil {
				addPlaces(err, args[0], doc)
				return err
			}
			return registered(cmd, p, a)
		},
	}
	s.Flags(c)
	return c
}

// addPlaces adds the places in a file to the problems of a rejected definition.
func addPlaces(err error, file string, doc []byte) {
	rejected, ok := errors.AsType[*client.Error](err)
	if !ok {
		return
	}
	at := strictjson.Positions(doc)
	all, _ := rejected.Fault.Details["problems"].([]any)
	for _, one := range all {
		if p, ok := one.(map[string]any); ok {
			path, _ := p["path"].(string)
			place := at(path)
			p[exit.MemberPlace] = fmt.Sprintf("%s:%d:%d", file, place.Line, place.Column)
		}
	}
}

func registered(cmd *cobra.Command, p *render.Printer, a *client.Answer) error {
	var v struct {
		WorkflowID string `json:"workflowId"`
		Version    string `json:"version"`
		Created    bool   `json:"created"`
		Warnings   []struct{ Path, Rule, Message string }
	}
	if err := json.Unmarshal(a.Body, &v); err != nil {
		return err
	}
	for _, w := range v.Warnings {
		session.Notice(cmd, "warning: %s: %s: %s", w.Path, w.Rule, w.Message)
	}
	return p.Document(a.Body, v.WorkflowID, func(w io.Writer) error {
		news := "exists already"
		if v.Created {
			news = "registered"
		}
		_, err := fmt.Fprintf(w, "%s %s %s\n", term.Clean(v.WorkflowID), term.Clean(v.Version), news)
		return err
	})
}
