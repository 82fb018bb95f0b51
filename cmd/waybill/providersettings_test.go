package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProviderSettings(t *testing.T) { //nolint:paralleltest // sets the environment
	noKeys(t)
	for name, tc := range map[string]struct{ doc, wrong string }{
		"whole":            {`{"providers":{"box":{"maxConcurrent":4,"timeouts":{"callMs":3600000}},"*":{"requestsPerMinute":60}}}`, ""},
		"unknown provider": {`{"providers":{"bax":{}}}`, `at "/providers/bax": no such provider; there are [sample box mock], and * for all others`},
		"unknown member":   {`{"providers":{"box":{"maxCalls":4}}}`, `at "/providers/box/maxCalls": unknown member`},
		"no JSON":          {`{`, "--provider-settings "},
	} {
		file := filepath.Join(t.TempDir(), "settings.json")
		require.NoError(t, os.WriteFile(file, []byte(tc.doc), 0o600))
		o := modelsOf("box=http://h/v1")
		o.settings = file
		err := errors.Join(o.validate()...)
		if tc.wrong == "" {
			require.NoError(t, err, name)
			all, err := o.readSettings()
			require.NoError(t, err)
			require.Equal(t, 4, all.For("box").MaxConcurrent)
			require.Equal(t, 60, all.For("sample").RequestsPerMinute)
			continue
		}
		require.ErrorContains(t, err, tc.wrong, name)
	}
	o := modelsOf()
	o.settings = filepath.Join(t.TempDir(), "away.json")
	require.ErrorContains(t, errors.Join(o.validate()...), "away.json: no such file or directory")
}
