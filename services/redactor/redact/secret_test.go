package redact_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/redactor/redact"
)

func TestValue_NeverPrints(t *testing.T) {
	t.Parallel()
	const plain = "sk-live-0001"
	s := secret("k", plain)
	var shown []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T %v"} {
		if verb == "%T %v" {
			shown = append(shown, fmt.Sprintf(verb, s.Value, s))
			continue
		}
		shown = append(shown, fmt.Sprintf(verb, s.Value), fmt.Sprintf(verb, s), fmt.Sprintf(verb, &s), fmt.Sprintf(verb, []redact.Secret{s}))
	}
	js, err := json.Marshal(s)
	require.NoError(t, err)
	ym, err := yaml.Marshal(s)
	require.NoError(t, err)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", s, "value", s.Value)
	shown = append(shown, string(js), string(ym), log.String(), s.Value.String(), s.Value.GoString(), fmt.Sprint(fmt.Errorf("oops %v", s.Value)))
	for _, text := range shown {
		require.NotContains(t, text, plain)
		require.NotContains(t, strings.ToLower(text), fmt.Sprintf("%x", plain))
	}
	require.Equal(t, plain, s.Value.Reveal())
}

func TestSecret_ValidateChecksTheID(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		s  redact.Secret
		ok bool
	}{
		"plain":          {secret("openwop-conformance-canary-secret", "x"), true},
		"path-like":      {secret("tenants/acme:openai@2", "x"), true},
		"empty":          {secret("", "x"), false},
		"closes marker":  {secret("a]b", "x"), false},
		"opens marker":   {secret("a[b", "x"), false},
		"line break":     {secret("a\nb", "x"), false},
		"too long":       {secret(strings.Repeat("x", 129), "x"), false},
		"broken UTF-8":   {secret("\xff", "x"), false},
		"is the value":   {secret("hunter2-hunter2", "hunter2-hunter2"), false},
		"[is the value]": {secret("[hunter2-hunter2]", "hunter2-hunter2"), false},
		"short is found": {secret("short", "short"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tc.s.Validate()
			if tc.ok {
				require.NoError(t, err)
				return
			}
			require.Equal(t, fault.ValidationError, fault.CodeOf(err))
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}
