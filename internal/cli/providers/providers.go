// Package providers has the commands about providers of models.
package providers

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/host/models"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
)

// testOptions are the flags of `provider test`.
type testOptions struct {
	models.Options

	model string
	limit time.Duration
}

// Test is `waybill provider test`.
func Test(s *session.Session) *cobra.Command {
	o := &testOptions{Options: models.DefaultOptions()}
	c := &cobra.Command{
		Use:   "test ID",
		Short: "Call a provider and report what works",
		Long: `Calls a provider a few times with short prompts, and reports what works: text, streaming,
each form in which a model can get a schema, and token counts. The calls cost what the provider
asks for them. The provider is configured as for a host.

Exit status: 0 the provider answers, also with a schema; 1 it does not; 2 usage.`,
		Example: `  waybill provider test anthropic
  waybill provider test house --provider house=http://127.0.0.1:11434/v1 --model qwen3:8b
  waybill provider test azure --provider-settings providers.json --model gpt-4o -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			var closers []func()
			defer func() {
				for _, f := range closers {
					f()
				}
			}()
			t, err := o.open(args[0], func(f func()) { closers = append(closers, f) })
			if err != nil {
				return err
			}
			r := t.run(cmd.Context())
			if err := p.Value(r, r.Provider, r.table); err != nil {
				return err
			}
			if !r.Works {
				return exit.Outcome(exit.Failed, "the provider does not work")
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringArrayVar(&o.ProviderFlags, "provider", nil, "provider, as for a host (repeatable)")
	f.StringVar(&o.SettingsFile, "provider-settings", "", "JSON file of the providers' settings, as for a host")
	f.StringVar(&o.CatalogueFile, "models", "", "JSON file that overrides the model catalogue, as for a host")
	f.StringVar(&o.model, "model", "", "model to call; empty uses the default model of a vendor")
	f.DurationVar(&o.limit, "timeout", 2*time.Minute, "time limit of each call")
	s.OutputFlags(f)
	return c
}

// open returns the test of a provider.
func (o *testOptions) open(id string, later func(func())) (*test, error) {
	usage := func(err error) error { return exit.With(exit.Usage, err) }
	settings, err := o.Settings()
	if err != nil {
		return nil, usage(err)
	}
	known, err := models.LoadCatalogue(o.CatalogueFile)
	if err != nil {
		return nil, usage(err)
	}
	reg, err := o.Open(nil, later)
	if err != nil {
		return nil, err // usage
	}
	p, ok := reg.Lookup(id)
	if !ok {
		return nil, usage(fmt.Errorf("no provider %q; configured are %s. Set a vendor's key, or use --provider or --provider-settings",
			id, strings.Join(reg.IDs(), ", ")))
	}
	if o.model == "" {
		o.model = models.DefaultModelOf(id)
	}
	if o.model == "" {
		return nil, usage(fmt.Errorf("--model: name a model of provider %q", id))
	}
	t := &test{
		provider: p,
		model:    o.model,
		limit:    o.limit,
		settings: settings.For(id),
		hide:     o.hide,
	}
	t.entry, t.listed = known.Lookup(id, o.model)
	return t, nil
}

// hide removes the host's keys from a text.
func (o *testOptions) hide(text string) string {
	for _, s := range o.Secrets() {
		text = strings.ReplaceAll(text, s.Value.Reveal(), provider.Redacted)
	}
	return text
}

// report is the output of `provider test`.
type report struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	// Works: the provider answers, also with a schema.
	Works bool `json:"works"`
	// SchemaForm is the strictest form of a schema that works; empty for none.
	SchemaForm string  `json:"schemaForm,omitempty"`
	Checks     []check `json:"checks"`
	Limits     limits  `json:"limits"`
}

// check is one thing that was tried.
type check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Code   string `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`
	Millis int64  `json:"millis,omitempty"`
}

// limits are the configured limits of the provider and the catalogue's of the model; 0 means none.
type limits struct {
	MaxConcurrent     int `json:"maxConcurrent,omitempty"`
	RequestsPerMinute int `json:"requestsPerMinute,omitempty"`
	TokensPerMinute   int `json:"tokensPerMinute,omitempty"`
	ContextTokens     int `json:"contextTokens,omitempty"`
	OutputTokens      int `json:"outputTokens,omitempty"`
}

func limitsOf(s limit.Settings, e catalogue.Entry) limits {
	return limits{s.MaxConcurrent, s.RequestsPerMinute, s.TokensPerMinute, e.ContextTokens, e.OutputTokens}
}

// table prints the report for people.
func (r report) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s/%s\n", r.Provider, r.Model)
	for _, c := range r.Checks {
		verdict := "ok"
		if !c.OK {
			verdict = "no"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", verdict, c.Name, c.Detail)
	}
	for _, l := range []struct {
		name  string
		value int
	}{
		{"calls in flight", r.Limits.MaxConcurrent},
		{"requests per minute", r.Limits.RequestsPerMinute},
		{"tokens per minute", r.Limits.TokensPerMinute},
		{"tokens of context", r.Limits.ContextTokens},
		{"tokens of an answer", r.Limits.OutputTokens},
	} {
		if l.value > 0 {
			fmt.Fprintf(t, "-\tlimit\t%d %s\n", l.value, l.name)
		}
	}
	switch {
	case !r.Works && r.Checks[0].OK:
		fmt.Fprintln(t, "\nThe provider gives text, but no answer of a schema in any form: only nodes without a schema work.")
	case !r.Works:
		fmt.Fprintln(t, "\nThe provider does not work.")
	case slices.Contains([]string{provider.ViaFormat.Name(), provider.ViaTool.Name()}, r.SchemaForm):
		fmt.Fprintf(t, "\nThe provider works and enforces schemas (%s).\n", r.SchemaForm)
	default:
		fmt.Fprintf(t, "\nThe provider works. It does not enforce schemas: they are sent as %s, and only the host checks answers.\n", r.SchemaForm)
	}
	return t.Flush()
}
