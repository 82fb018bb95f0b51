// Package model has the commands that show the model catalogue.
package model

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/host/models"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

// Command is `waybill model`.
func Command(s *session.Session) *cobra.Command {
	var overlay string
	c := &cobra.Command{
		Use:   "model",
		Short: "Show the model catalogue: capabilities, limits, prices",
		Long: `Shows the model catalogue: capabilities, limits and prices of models. The catalogue is built in;
--models names a file of the same format that overrides it.`,
	}
	c.PersistentFlags().StringVar(&overlay, "models", "", "JSON file of models, rules and prices that overrides the built-in catalogue")
	s.FormatFlags(c.PersistentFlags())
	c.AddCommand(modelListCommand(s, &overlay), modelShowCommand(s, &overlay), modelDiffCommand(s, &overlay))
	return c
}

// errUnknownModel is returned for a provider or model without a catalogue entry.
var errUnknownModel = exit.With(exit.NotFound, errors.New("not in the catalogue"))

func modelListCommand(s *session.Session, overlay *string) *cobra.Command {
	var provider string
	c := &cobra.Command{
		Use:   "list",
		Short: "List the models of the catalogue",
		Long: `Lists the models of the catalogue, and the rules for models that are not listed. Prices are US
dollars per million tokens; - means unknown.`,
		Example: `  waybill model list --provider anthropic
  waybill model list -o json --models ours.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			c, err := models.LoadCatalogue(*overlay)
			if err != nil {
				return exit.With(exit.Usage, err)
			}
			l := listing{AsOf: c.AsOf(), Digest: c.Digest(), Models: c.Entries(), Rules: c.Rules()}
			if provider != "" {
				if err := l.only(c, provider); err != nil {
					return err
				}
			}
			return p.Value(l, l.names(), l.table)
		},
	}
	c.Flags().StringVar(&provider, "provider", "", "only models and rules of this provider")
	return c
}

// listing is the output of `model list`.
type listing struct {
	AsOf   string            `json:"asOf"`
	Digest string            `json:"digest"`
	Models []catalogue.Entry `json:"models"`
	Rules  []catalogue.Rule  `json:"rules"`
}

// names returns the names of the models, one per line.
func (l *listing) names() string {
	out := make([]string, len(l.Models))
	for i, e := range l.Models {
		out[i] = e.Name()
	}
	return strings.Join(out, "\n")
}

// only keeps the models of a provider and the rules that apply to it.
func (l *listing) only(c *catalogue.Catalogue, provider string) error {
	l.Models = slices.DeleteFunc(l.Models, func(e catalogue.Entry) bool { return e.Provider != provider })
	_, listed := c.Providers()[provider]
	l.Rules = slices.DeleteFunc(l.Rules, func(r catalogue.Rule) bool {
		return r.Provider != provider && (r.Provider != "" || listed)
	})
	if len(l.Models)+len(l.Rules) > 0 {
		return nil
	}
	return fmt.Errorf("provider %s: %w; known: %s", provider, errUnknownModel, strings.Join(providersOf(c), ", "))
}

// providersOf returns the providers of the catalogue, sorted.
func providersOf(c *catalogue.Catalogue) []string {
	var out []string
	for _, e := range c.Entries() {
		out = append(out, e.Provider)
	}
	for _, r := range c.Rules() {
		if r.Provider != "" {
			out = append(out, r.Provider)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func modelShowCommand(s *session.Session, overlay *string) *cobra.Command {
	return &cobra.Command{
		Use:   "show PROVIDER/MODEL",
		Short: "Show the catalogue entry of a model",
		Long: `Shows the catalogue entry of a model, found by name, alias, dated version or rule.

Exit status: 0 found; 5 not in the catalogue, with suggestions.`,
		Example: `  waybill model show anthropic/claude-opus-5-5
  waybill model show lab/Qwen/Qwen3-8B -o yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			provider, model, ok := strings.Cut(args[0], "/")
			if !ok || provider == "" || model == "" {
				return exit.Usagef("%q: want PROVIDER/MODEL, such as sample/sample-1", args[0])
			}
			c, err := models.LoadCatalogue(*overlay)
			if err != nil {
				return exit.With(exit.Usage, err)
			}
			e, ok := c.Lookup(provider, model)
			if !ok {
				return unknownModel(c, provider, model)
			}
			return p.Value(e, e.Name(), func(w io.Writer) error { return describe(w, c, e) })
		},
	}
}

// suggestions is the maximum number of suggested names.
const suggestions = 3

func unknownModel(c *catalogue.Catalogue, provider, model string) error {
	err := fmt.Errorf("model %s/%s: %w", provider, model, errUnknownModel)
	near := c.Near(provider, model, suggestions)
	if len(near) == 0 {
		return fmt.Errorf("%w; see `waybill model list`, or add it with --models", err)
	}
	return fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
}

func modelDiffCommand(s *session.Session, overlay *string) *cobra.Command {
	return &cobra.Command{
		Use:   "diff FILE | OLD NEW",
		Short: "Compare catalogues",
		Long: `With one file, shows what it changes in the built-in catalogue (and in that of --models, if set).
With two files, shows the differences between them. - is standard input.

Exit status: 0 no differences; 1 differences; 2 usage, or an unreadable file.`,
		Example: `  waybill model diff ours.json
  waybill model diff -o json last-year.json ours.json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, files []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			before, after, err := compared(cmd.InOrStdin(), *overlay, files)
			if err != nil {
				return exit.With(exit.Usage, err)
			}
			changes := append([]catalogue.Change{}, catalogue.Diff(before, after)...)
			err = p.Value(changes, after.Digest(), func(w io.Writer) error { return printChanges(w, changes) })
			if err == nil && len(changes) > 0 {
				err = fmt.Errorf("%d %w", len(changes), errDifferences)
			}
			return err
		},
	}
}

// errDifferences ends a command that has printed differences.
var errDifferences = errors.New("difference(s)")

// compared returns the two catalogues that `model diff` compares.
func compared(stdin io.Reader, overlay string, files []string) (before, after *catalogue.Catalogue, err error) {
	if len(files) == 2 && overlay != "" {
		return nil, nil, errors.New("--models cannot be used with two files")
	}
	var read []*catalogue.Catalogue
	for _, name := range files {
		var one *catalogue.Catalogue
		if name == "-" {
			one, err = models.ReadCatalogue("standard input", stdin)
		} else {
			one, err = models.OpenCatalogue(name)
		}
		if err != nil {
			return nil, nil, err
		}
		read = append(read, one)
	}
	if len(read) == 2 {
		return read[0], read[1], nil
	}
	if before, err = models.LoadCatalogue(overlay); err != nil {
		return nil, nil, err
	}
	return before, before.With(read[0]), nil
}
