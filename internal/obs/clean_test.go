package obs_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"waybill.dev/waybill/internal/obs"
)

type secretive struct{ Key string }

// LogValue returns the key.
func (s secretive) LogValue() slog.Value { return slog.StringValue(s.Key) }

func TestClean_RedactsAllTextsOfARecord(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	for _, format := range []string{obs.FormatText, obs.FormatJSON} {
		var out bytes.Buffer
		raw, err := obs.NewLogger(&out, "debug", format)
		if err != nil {
			t.Fatal(err)
		}
		log := obs.Clean(raw, func(s string) string { return strings.ReplaceAll(s, secret, "[REDACTED:k]") })
		log.Info("a "+secret, "text", secret, "error", fmt.Errorf("outer: %w", errors.New(secret)))
		log.LogAttrs(t.Context(), slog.LevelInfo, "name", slog.Int(strings.Clone(secret), 1))
		log.With("with", secret).WithGroup(secret).Warn("grouped", slog.Group("g", "in", secret))
		log.Error("any", "list", []string{secret}, "struct", struct{ A any }{secret}, "bytes", []byte(secret), "value", secretive{secret})
		log.Debug("kept", "n", 42, "ok", true, "took", 3*time.Second, "plain", "words")
		if strings.Contains(out.String(), secret) {
			t.Errorf("%s: a secret shows in\n%s", format, &out)
		}
		if n := strings.Count(out.String(), "[REDACTED:k]"); n < 8 {
			t.Errorf("%s: %d markers in\n%s", format, n, &out)
		}
		for _, want := range []string{"kept", "42", "true", "words"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q is gone from\n%s", format, want, &out)
			}
		}
	}
}

func TestClean_UsesTheLevelOfTheNextHandler(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	raw, err := obs.NewLogger(&out, "warn", obs.FormatText)
	if err != nil {
		t.Fatal(err)
	}
	obs.Clean(raw, func(string) string { t.Error("asked for nothing"); return "" }).Info("quiet")
	if out.Len() > 0 {
		t.Errorf("got %s", &out)
	}
}
