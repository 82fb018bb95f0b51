// Package capabilities has the commands that show and compare discovery documents of hosts.
package capabilities

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/contexts"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
)

// Command is `waybill capabilities`.
func Command(s *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use:   "capabilities",
		Short: "Show the capabilities of a host, or compare two hosts",
		Long: `Shows the discovery document of a host, one line per family. No credential is needed.

` + exit.Help,
		Example: `  waybill capabilities
  waybill capabilities -o json | jq .limits
  waybill capabilities diff staging production`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			c, err := s.Client(cmd)
			if err != nil {
				return err
			}
			doc, err := c.Capabilities(cmd.Context())
			if err != nil {
				return err
			}
			return list(p, doc.Body)
		},
	}
	s.Flags(c)
	c.AddCommand(diffCommand(s))
	return c
}

// family is a member of the document's root.
type family struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

func list(p *render.Printer, doc []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(doc, &members); err != nil {
		return err
	}
	var rows []family
	for _, name := range slices.Sorted(maps.Keys(members)) {
		rows = append(rows, family{name, members[name]})
	}
	row := func(f family) []byte {
		b, err := render.Encode(f)
		if err != nil {
			return nil
		}
		return b
	}
	return render.Rows(p, doc, rows, row, func(f family) string { return f.Name }, []render.Column[family]{
		{Name: "FAMILY", Value: func(f family) string { return f.Name }},
		{Name: "VALUE", Flex: true, Value: func(f family) string { return compact(f.Value) }},
	})
}

func compact(doc []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, doc) != nil {
		return string(doc)
	}
	return b.String()
}

func diffCommand(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "diff A B",
		Short: "Compare the capabilities of two hosts",
		Long: `Compares the discovery documents of two hosts and shows the differences. A and B are context
names, URLs, files with a discovery document (@FILE), or @current. @current is the host of the
flags, the environment or the current context. Lists of names are compared as sets.

Exit status: 0 no differences; 1 differences.`,
		Example: `  waybill capabilities diff staging production
  waybill capabilities diff @current https://other.example -o json`,
		Args: cobra.ExactArgs(2),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			file, _, err := s.Contexts()
			if err != nil {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return append(file.Names(), current), cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			var docs [2][]byte
			for i, name := range args {
				if docs[i], err = fetch(cmd, s, name); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			found, err := compare(docs[0], docs[1])
			if err != nil {
				return exit.With(exit.Usage, err)
			}
			if err := write(p, args, found); err != nil {
				return err
			}
			if len(found) > 0 {
				return exit.Outcome(exit.Failed, "the hosts differ")
			}
			return nil
		},
	}
}

// current stands for the host of the flags, the environment or the current context.
const current = "@current"

// fetch reads the discovery document of an argument of `capabilities diff`.
func fetch(cmd *cobra.Command, s *session.Session, name string) ([]byte, error) {
	if path, isFile := strings.CutPrefix(name, "@"); isFile && name != current {
		b, err := os.ReadFile(path) //nolint:gosec // G304: the user names the file
		return b, exit.With(exit.Usage, err)
	}
	t := session.Target{URL: session.Setting{Value: name, Source: "argument"}}
	switch {
	case name == current:
		var err error
		if t, err = s.Resolve(cmd); err != nil {
			return nil, err
		}
	case !strings.Contains(name, "://"):
		at, err := contextNamed(s, name)
		if err != nil {
			return nil, err
		}
		t.URL.Value, t.CA.Value = at.URL, at.CA
	}
	c, err := s.ClientOf(t)
	if err != nil {
		return nil, err
	}
	doc, err := c.Capabilities(cmd.Context())
	if err != nil {
		return nil, err
	}
	return doc.Body, nil
}

func contextNamed(s *session.Session, name string) (contexts.Context, error) {
	file, _, err := s.Contexts()
	if err != nil {
		return contexts.Context{}, err
	}
	at, err := file.Get(name)
	return at, exit.With(exit.NotFound, err)
}

func write(p *render.Printer, names []string, found []difference) error {
	doc, err := render.Encode(map[string]any{"a": names[0], "b": names[1], "differences": found})
	if err != nil {
		return err
	}
	if len(found) == 0 && p.Format.ForPeople() && p.Query == nil {
		_, err := fmt.Fprintln(p.Out, "no differences")
		return err
	}
	row := func(d difference) []byte {
		b, err := render.Encode(d)
		if err != nil {
			return nil
		}
		return b
	}
	side := func(v json.RawMessage) string {
		if v == nil {
			return "(absent)"
		}
		return string(v)
	}
	return render.Rows(p, doc, found, row, func(d difference) string { return d.Path }, []render.Column[difference]{
		{Name: "PATH", Value: func(d difference) string { return d.Path }},
		{Name: "A", Flex: true, Value: func(d difference) string { return side(d.A) }},
		{Name: "B", Flex: true, Value: func(d difference) string { return side(d.B) }},
	})
}
