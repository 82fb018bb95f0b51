package admission

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/protocol/subject"
)

//go:embed rates.schema.json
var rateSchema []byte

// RateSchema is the JSON Schema of the file.
func RateSchema() []byte { return rateSchema }

// rateFileForm describes the file.
const rateFileForm = `want {"limits": [LIMIT, ...], "tenants": {TENANT: [LIMIT, ...]}}, both optional`

// ParseRateFile reads a document of limits. general are limits for all tenants that the document adds
// to. The limits of a tenant replace the general ones. The error has a line for each mistake, with its
// path.
func ParseRateFile(doc []byte, general []RateRule) (RateConfig, error) {
	var file struct {
		Schema  string              `json:"$schema"` // for editors
		Limits  []string            `json:"limits"`
		Tenants map[string][]string `json:"tenants"`
	}
	f := settings.Read(doc, &file)
	cfg := RateConfig{Rules: slices.Clone(general), Tenants: map[string][]RateRule{}}
	more := parseRates(f, "/limits", file.Limits)
	for i, text := range file.Limits {
		if r, err := ParseRateRule(text); err == nil && hasRate(general, r) {
			f.Wrong(fmt.Sprintf("/limits/%d", i), "a flag has a limit for %s, too; remove one", r.Name())
		}
	}
	cfg.Rules = append(cfg.Rules, more...)
	for _, name := range slices.Sorted(maps.Keys(file.Tenants)) {
		at := settings.Path("/tenants", name)
		if name == "*" {
			f.Wrong(at, "want the name of a tenant; limits for all tenants are in limits")
		} else if !subject.Token(name) {
			f.Wrong(at, "want the name of a tenant")
		}
		cfg.Tenants[name] = parseRates(f, at, file.Tenants[name])
	}
	if err := f.Err(); err != nil {
		return RateConfig{}, fmt.Errorf("%w\n%s", err, rateFileForm)
	}
	return cfg, nil
}

// parseRates reads the limits at a path.
func parseRates(f *settings.File, at string, texts []string) []RateRule {
	out := []RateRule{}
	for i, text := range texts {
		r, err := ParseRateRule(text)
		switch {
		case err != nil:
			f.Wrong(fmt.Sprintf("%s/%d", at, i), "%s", err)
		case hasRate(out, r):
			f.Wrong(fmt.Sprintf("%s/%d", at, i), "%q: there is another limit for %s", text, strings.ReplaceAll(r.Name(), "-", ":"))
		default:
			out = append(out, r)
		}
	}
	return out
}

func hasRate(rules []RateRule, r RateRule) bool {
	return slices.ContainsFunc(rules, func(o RateRule) bool { return o.Name() == r.Name() })
}

// RateFile follows a file of limits.
type RateFile struct {
	Path string
	// General are limits that the file adds to.
	General []RateRule
	Log     *slog.Logger

	doc  []byte
	last string // the last logged error
}

// Read reads the file. changed is false if it is as it was.
func (f *RateFile) Read() (cfg RateConfig, changed bool, err error) {
	doc, err := os.ReadFile(f.Path)
	if err != nil || f.doc != nil && bytes.Equal(doc, f.doc) {
		return cfg, false, err
	}
	if cfg, err = ParseRateFile(doc, f.General); err == nil {
		f.doc = doc
	}
	return cfg, err == nil, err
}

// rereadEvery is how often the file is read.
const rereadEvery = 2 * time.Second

// Follow applies changes of the file until ctx ends. An invalid file changes nothing.
func (f *RateFile) Follow(ctx context.Context, r *Rates) error {
	t := time.NewTicker(rereadEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
			f.reload(r)
		}
	}
}

func (f *RateFile) reload(r *Rates) {
	cfg, changed, err := f.Read()
	switch {
	case err != nil && err.Error() != f.last:
		f.last = err.Error()
		f.Log.Error("rate limits not reloaded; the previous ones apply", "file", f.Path, "error", err)
	case err == nil:
		f.last = ""
	}
	if changed {
		cfg.Discovery = r.LimitsDiscovery()
		r.Set(cfg)
		f.Log.Info("rate limits reloaded", "file", f.Path)
	}
}
