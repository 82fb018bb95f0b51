package workflowlist

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/term"
)

// Get is `waybill workflow get`.
func Get(s *session.Session) *cobra.Command {
	var version string
	c := &cobra.Command{
		Use:     "get WORKFLOW",
		Aliases: []string{"show"},
		Short:   "Show a workflow definition",
		Long: `Shows a definition as it was registered. --version selects a version that is not the current one;
` + "`workflow versions`" + ` lists them.

` + exit.Help,
		Example: `  waybill workflow get triage > triage.json
  waybill workflow get triage --version 1.0.0 --query '.nodes[].id'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			c, err := s.Client(cmd)
			if err != nil {
				return err
			}
			doc, err := c.WorkflowVersion(cmd.Context(), args[0], version)
			if err != nil {
				return err
			}
			return p.Document(doc, args[0], func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s\n", term.EscapeJSON(strings.TrimSuffix(string(doc), "\n")))
				return err
			})
		},
	}
	c.Flags().StringVar(&version, "version", "", "version of the definition; default: the current one")
	s.Flags(c)
	return c
}

// Versions is `waybill workflow versions`.
func Versions(s *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use:   "versions WORKFLOW",
		Short: "List the versions of a workflow",
		Long: `Lists the versions of a workflow, the current one first. New runs use the current version; a run
keeps the version that it started with.

` + exit.Help,
		Example: `  waybill workflow versions triage`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			c, err := s.Client(cmd)
			if err != nil {
				return err
			}
			list, err := c.WorkflowVersions(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			row := func(v client.WorkflowVersion) []byte {
				b, err := render.Encode(v)
				if err != nil {
					return nil
				}
				return b
			}
			return render.Rows(p, list.Doc, list.Versions, row, func(v client.WorkflowVersion) string { return v.Version },
				[]render.Column[client.WorkflowVersion]{
					{Name: "VERSION", Value: func(v client.WorkflowVersion) string { return v.Version }},
					{Name: "CURRENT", Value: func(v client.WorkflowVersion) string {
						if v.Current {
							return "yes"
						}
						return ""
					}},
					{Name: "DIGEST", Flex: true, Value: func(v client.WorkflowVersion) string { return v.Digest }},
				})
		},
	}
	s.Flags(c)
	return c
}

// Delete is `waybill workflow delete`.
func Delete(s *session.Session) *cobra.Command {
	var version string
	c := &cobra.Command{
		Use:     "delete WORKFLOW",
		Aliases: []string{"rm"},
		Short:   "Delete a workflow, or one version of it",
		Long: `Deletes a workflow: no new run can start. Existing runs continue with the version that they started
with, and can be forked. A deleted version can be registered again with the same content only.

` + exit.Help,
		Example: `  waybill workflow delete triage
  waybill workflow delete triage --version 1.0.0`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			c, err := s.Client(cmd)
			if err != nil {
				return err
			}
			a, err := c.DeleteWorkflow(cmd.Context(), args[0], version)
			if err != nil {
				return err
			}
			var deleted struct{ Versions []string }
			if err := json.Unmarshal(a.Body, &deleted); err != nil {
				return err
			}
			return p.Document(a.Body, args[0], func(w io.Writer) error {
				for _, v := range deleted.Versions {
					if _, err := fmt.Fprintf(w, "%s %s deleted\n", term.Clean(args[0]), term.Clean(v)); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	c.Flags().StringVar(&version, "version", "", "version to delete; default: all versions")
	s.Flags(c)
	return c
}
