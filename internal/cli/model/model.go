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
	"waybill.dev/waybill/services/dispatcher/catalogue"
)

// Command is the group of commands about the model catalogue.
func Command(s *session.Session) *cobra.Command {
	var overlay string
	c := &cobra.Command{
		Use:   "model",
		Short: "Look at what the host knows of models: capabilities, limits, prices",
		Long: `Looks at the model catalogue: what models can do, how much they take, and what they
cost. It comes with the host; --models lays a file of the same form over it.`,
	}
	c.PersistentFlags().StringVar(&overlay, "models", "", "JSON file of models, rules and prices that is laid over the built-in catalogue")
	s.FormatFlags(c.PersistentFlags())
	c.AddCommand(modelListCommand(s, &overlay), modelShowCommand(s, &overlay), modelDiffCommand(s, &overlay))
	return c
}

// errUnknownModel ends a command that was asked for what the catalogue has not.
var errUnknownModel = exit.With(exit.NotFound, errors.New("not in the catalogue"))

func modelListCommand(s *session.Session, overlay *string) *cobra.Command {
	var provider string
	c := &cobra.Command{
		Use:   "list",
		Short: "List the models of the catalogue",
		Long: `Lists the models of the catalogue, and the rules that speak for models that are not
listed. Prices are US dollars for a million tokens; - is what is not known.`,
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
				return fmt.Errorf("%w: %w", exit.ErrUsage, err)
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
	c.Flags().StringVar(&provider, "provider", "", "only models of this provider, and rules that speak for it")
	return c
}

// listing is what `model list` shows.
type listing struct {
	AsOf   string            `json:"asOf"`
	Digest string            `json:"digest"`
	Models []catalogue.Entry `json:"models"`
	Rules  []catalogue.Rule  `json:"rules"`
}

// names are those of the models, one a line.
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
	return fmt.Errorf("provider %s: %w; it lists %s", provider, errUnknownModel, strings.Join(providersOf(c), ", "))
}

// providersOf names the providers of which something is listed, sorted.
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
		Short: "Say what is known of one model",
		Long: `Says what is known of a model, found by its name, an alias, a dated version, or a rule.

Exits with 0 if something is, 5 if nothing is; then it suggests names that are near.`,
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
				return fmt.Errorf("%w: %q: want PROVIDER/MODEL, such as sample/sample-1", exit.ErrUsage, args[0])
			}
			c, err := models.LoadCatalogue(*overlay)
			if err != nil {
				return fmt.Errorf("%w: %w", exit.ErrUsage, err)
			}
			e, ok := c.Lookup(provider, model)
			if !ok {
				return unknownModel(c, provider, model)
			}
			return p.Value(e, e.Name(), func(w io.Writer) error { return describe(w, c, e) })
		},
	}
}

// suggestions bounds the names that are suggested instead of an unknown one.
const suggestions = 3

func unknownModel(c *catalogue.Catalogue, provider, model string) error {
	err := fmt.Errorf("model %s/%s: %w", provider, model, errUnknownModel)
	near := c.Near(provider, model, suggestions)
	if len(near) == 0 {
		return fmt.Errorf("%w; `waybill model list` shows what is, and --models adds to it", err)
	}
	return fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
}

func modelDiffCommand(s *session.Session, overlay *string) *cobra.Command {
	return &cobra.Command{
		Use:   "diff FILE | OLD NEW",
		Short: "Say what a catalogue changes",
		Long: `With one file, says what it changes when it is laid over the built-in catalogue (and
over that of --models, if one is named). With two files, says what is different in the
second, each as it stands. A file named - is standard input.

Exits with 0 if nothing is different, 1 if something is, 2 if a file cannot be read.`,
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
				return fmt.Errorf("%w: %w", exit.ErrUsage, err)
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

// compared are the two catalogues that `model diff` holds against each other.
func compared(stdin io.Reader, overlay string, files []string) (before, after *catalogue.Catalogue, err error) {
	if len(files) == 2 && overlay != "" {
		return nil, nil, errors.New("--models: two files are compared as they stand; leave it out")
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
