package host

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/gateway/session"
)

func TestParseLinks_AcceptsNamesAndWebURLs(t *testing.T) {
	t.Parallel()
	got, err := parseLinks([]string{"Logs of it=https://logs.example/q?run={runId}&to={completedAt}", "Wiki=http://wiki"})
	require.NoError(t, err)
	require.Equal(t, []session.Link{
		{Name: "Logs of it", URL: "https://logs.example/q?run={runId}&to={completedAt}"},
		{Name: "Wiki", URL: "http://wiki"},
	}, got)
	for spec, says := range map[string]string{
		"Logs":                                 "want NAME=URL",
		"=https://logs.example":                "want NAME=URL",
		"Logs=javascript:alert(1)":             "want a URL that begins with https://",
		"Logs=/q":                              "want a URL that begins with https://",
		"Logs={runId}":                         "want a URL that begins with https://",
		"Logs=https://me:secret@logs.example/": "a password in a URL",
		"Logs=https://logs.example/{tenant}":   "of a run there are",
	} {
		_, err := parseLinks([]string{spec})
		require.ErrorContains(t, err, says, spec)
		require.NotContains(t, err.Error(), "secret")
	}
}
