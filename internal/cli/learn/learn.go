// Package learn has the commands that work without a host: explanations of codes and event types,
// command examples, the version.
package learn

import (
	"cmp"
	"embed"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/version"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/suggest"
	"waybill.dev/waybill/protocol/wire"
)

// code is the explanation of an error code.
type code struct {
	Code    fault.Code  `json:"code"`
	HTTP    int         `json:"http,omitempty"`
	Retry   bool        `json:"retry"`
	Meaning string      `json:"meaning"`
	Owner   fault.Owner `json:"owner"`
	Next    string      `json:"next"`
}

// eventType is the explanation of an event type.
type eventType struct {
	Type    wire.EventType `json:"type"`
	Group   wire.Group     `json:"group"`
	Meaning string         `json:"meaning"`
}

// Explain is `waybill explain`.
func Explain(s *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use:   "explain [CODE|EVENT]",
		Short: "Explain an error code or an event type",
		Long: `Explains what an error code means, who can fix it and how, or what an event type means.
Without a name, lists all of them. No host is needed.

Exit status: 0 found; 5 unknown name, with suggestions.`,
		Example: `  waybill explain envelope_contract_violation
  waybill explain node.suspended -o json
  waybill explain | grep envelope`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return list(p)
			}
			if fault.Known(fault.Code(args[0])) {
				r := fault.Lookup(fault.Code(args[0]))
				v := code{fault.Code(args[0]), r.HTTP, r.Retryable, r.Meaning, r.Owner, r.Next}
				return p.Value(v, args[0], v.write)
			}
			if r, ok := wire.EventType(args[0]).Describe(); ok {
				v := eventType{wire.EventType(args[0]), r.Group, r.Meaning}
				return p.Value(v, args[0], func(w io.Writer) error {
					return render.Pairs(w, "event", string(v.Type), "means", v.Meaning, "group", string(v.Group))
				})
			}
			return unknown(args[0])
		},
	}
	s.OutputFlags(c.Flags())
	return c
}

func (c code) write(w io.Writer) error {
	where := "error of a run or node"
	if c.HTTP != 0 {
		where = fmt.Sprintf("HTTP %d", c.HTTP)
	}
	if c.Retry {
		where += "; a retry may succeed"
	}
	return render.Pairs(w, "code", string(c.Code), "means", c.Meaning, "found in", where, "owner", string(c.Owner), "next", c.Next)
}

func names() []string {
	var out []string
	for _, c := range fault.Codes() {
		out = append(out, string(c))
	}
	for _, t := range wire.EventTypes() {
		out = append(out, string(t))
	}
	return out
}

// entry is a code or event type in a list.
type entry struct {
	Name    string `json:"name"`
	Is      string `json:"is"`
	Meaning string `json:"meaning"`
}

// list prints all codes and event types, one per line.
func list(p *render.Printer) error {
	var all []entry
	for _, c := range fault.Codes() {
		all = append(all, entry{string(c), "error", fault.Lookup(c).Meaning})
	}
	for _, t := range wire.EventTypes() {
		r, _ := t.Describe()
		all = append(all, entry{string(t), "event", r.Meaning})
	}
	doc, err := render.Encode(map[string]any{"names": all})
	if err != nil {
		return err
	}
	row := func(e entry) []byte {
		b, _ := render.Encode(e) // strings always encode
		return b
	}
	return render.Rows(p, doc, all, row, func(e entry) string { return e.Name }, []render.Column[entry]{
		{Name: "NAME", Value: func(e entry) string { return e.Name }},
		{Name: "IS", Value: func(e entry) string { return e.Is }},
		{Name: "MEANS", Flex: true, Value: func(e entry) string { return e.Meaning }},
	})
}

func unknown(name string) error {
	hint := "; waybill explain lists all names"
	if all := suggest.Parts(name, names(), 3); len(all) > 0 {
		hint = "; did you mean " + strings.Join(all, " or ") + "?"
	}
	return exit.With(exit.NotFound, fmt.Errorf("%q is not an error code or event type%s", name, hint))
}

//go:embed cheat
var sheets embed.FS

// Cheat is `waybill cheat`.
func Cheat(s *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use:   "cheat [TOPIC]",
		Short: "Show command examples for a topic",
		Example: `  waybill cheat
  waybill cheat runs`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return topics(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return p.Value(map[string]any{"topics": topics()}, "topics", func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "topics: %s\n\nwaybill cheat TOPIC\n", strings.Join(topics(), ", "))
					return err
				})
			}
			text, err := sheets.ReadFile("cheat/" + args[0] + ".txt")
			if err != nil {
				hint := cmp.Or(strings.Join(suggest.Names(args[0], topics(), 1), ""), strings.Join(topics(), ", "))
				return exit.With(exit.NotFound, fmt.Errorf("no topic %q; topics: %s", args[0], hint))
			}
			return p.Value(map[string]any{"topic": args[0], "text": string(text)}, args[0], func(w io.Writer) error {
				_, err := w.Write(text)
				return err
			})
		},
	}
	s.OutputFlags(c.Flags())
	return c
}

func topics() []string {
	all, err := sheets.ReadDir("cheat")
	if err != nil {
		return nil
	}
	var out []string
	for _, f := range all {
		out = append(out, strings.TrimSuffix(f.Name(), ".txt"))
	}
	slices.Sort(out)
	return out
}

// build is the output of `waybill version`.
type build struct {
	Product  string `json:"product"`
	Version  string `json:"version"`
	Protocol string `json:"protocol"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Version is `waybill version`.
func Version(s *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: `  waybill version -o json`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			v := build{
				version.Name, version.Version, wire.ProtocolVersion, runtime.Version(),
				runtime.GOOS + "/" + runtime.GOARCH,
			}
			return p.Value(v, v.Version, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s %s (OpenWOP %s, %s, %s)\n", v.Product, v.Version, v.Protocol, v.Go, v.Platform)
				return err
			})
		},
	}
	s.OutputFlags(c.Flags())
	return c
}
