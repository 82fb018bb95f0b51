package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse_SeparatesTheLaunchersFlags(t *testing.T) {
	t.Parallel()
	o, rest, err := parse([]string{"--data-dir", "/d", "--http-addr=127.0.0.1:0", "--test-seams", "--durability", "process", "--api-key", "k=acme:*"})
	require.NoError(t, err)
	require.Equal(t, own{dataDir: "/d", httpAddr: "127.0.0.1:0", durability: "process"}, o)
	require.Equal(t, []setting{{"test-seams", "true"}, {"api-key", "k=acme:*"}}, rest)

	_, rest, err = parse(nil)
	require.NoError(t, err)
	require.Equal(t, []setting{{"api-key", "dev-key=default:*"}}, rest, "as in waybill dev")

	_, _, err = parse([]string{"word"})
	require.ErrorContains(t, err, "want a flag")
}

func TestShare_GivesEachServiceItsFlags(t *testing.T) {
	t.Parallel()
	flags := map[string]map[string]bool{"gateway": {"api-key": true}, "redactor": {"api-key": true, "secrets-file": true}, "acceptor": {"secrets-file": true}}
	got, err := share(flags, []setting{{"api-key", "k"}, {"secrets-file", "f"}})
	require.NoError(t, err)
	require.Equal(t, map[string][]string{"gateway": {"--api-key=k"}, "redactor": {"--api-key=k", "--secrets-file=f"}, "acceptor": {"--secrets-file=f"}}, got)

	_, err = share(flags, []setting{{"nats-addr", "a"}})
	require.ErrorContains(t, err, "--nats-addr: no service has this flag")
}
