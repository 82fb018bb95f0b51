package capabilities

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
)

// kind is an envelope kind of a host.
type kind struct {
	Kind string `json:"kind"`
	// Version is the schemaVersion that the host advertises; 0 if it advertises none.
	Version int `json:"schemaVersion"`
	// Schema is the path of its JSON Schema.
	Schema string `json:"schema"`
}

// Kinds is `waybill kind list`.
func Kinds(s *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the envelope kinds of a host",
		Long: `Lists the envelope kinds that the host accepts: those of the protocol, of --kinds and of packs. SCHEMA is the
path of its JSON Schema on the host.

` + exit.Help,
		Example: `  waybill kind list
  waybill kind list -o name`,
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
			a, err := c.Capabilities(cmd.Context())
			if err != nil {
				return err
			}
			all, err := kindsOf(a.Body)
			if err != nil {
				return err
			}
			doc, err := render.Encode(all)
			if err != nil {
				return err
			}
			row := func(k kind) []byte {
				b, err := render.Encode(k)
				if err != nil {
					return nil
				}
				return b
			}
			return render.Rows(p, doc, all, row, func(k kind) string { return k.Kind }, []render.Column[kind]{
				{Name: "KIND", Value: func(k kind) string { return k.Kind }},
				{Name: "VERSION", Value: func(k kind) string { return strconv.Itoa(k.Version) }},
				{Name: "SCHEMA", Value: func(k kind) string { return k.Schema }},
			})
		},
	}
	s.Flags(c)
	return c
}

// kindsOf reads the kinds of a discovery document, by name.
func kindsOf(discovery []byte) ([]kind, error) {
	var d struct {
		Envelopes []string       `json:"supportedEnvelopes"`
		Versions  map[string]int `json:"schemaVersions"`
	}
	if err := json.Unmarshal(discovery, &d); err != nil {
		return nil, err
	}
	slices.Sort(d.Envelopes)
	all := []kind{}
	for _, name := range d.Envelopes {
		all = append(all, kind{name, d.Versions[name], "/schemas/envelopes/" + name + ".schema.json"})
	}
	return all, nil
}
