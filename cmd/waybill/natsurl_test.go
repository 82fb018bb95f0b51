package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServeAcceptor_NeverRepeatsThePasswordOfNATS(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for name, value := range map[string]string{
		"a port that is none":            "nats://u:hunter2@127.0.0.1:notaport",
		"a port beyond all":              "nats://u:hunter2@127.0.0.1:99999",
		"a password that ends the host":  "nats://u:hunter2#x@127.0.0.1:4222",
		"a password that ends the path":  "nats://u:hunter2/x@127.0.0.1:4222",
		"a password with half an escape": "nats://u:hunter2%zz@127.0.0.1:4222",
		"a password with a control":      "nats://u:hunter2\x01@127.0.0.1:4222",
		"a token in place of the host":   "nats://hunter2@",
		"another scheme":                 "hunter2://127.0.0.1:4222",
		"the second of two":              "nats://127.0.0.1:4222,nats://u:hunter2@127.0.0.1:notaport",
		"no scheme":                      "u:hunter2@127.0.0.1:notaport",
	} {
		out, err := command(t, "", "serve", "acceptor", "--grpc-addr", "127.0.0.1:0", "--nats", value)
		require.ErrorIs(t, err, errUsage, name)
		require.ErrorContains(t, err, "--nats", name)
		require.NotContains(t, err.Error()+out, secret, name)
		require.NotContains(t, err.Error(), "notaport", name)
	}
}

func TestCheckNATS_TakesWhatTheClientTakes(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		"nats://127.0.0.1:4222", "127.0.0.1", "nats:4222", "tls://u:p%23@nats.example:4222", "nats://token@h, nats://[::1]:4223", "wss://nats.example",
	} {
		require.NoError(t, checkNATS(value), value)
	}
}

func FuzzCheckNATS_NeverRepeatsTheURL(f *testing.F) {
	f.Add("nats://u:", "@127.0.0.1:notaport")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, before, after string) {
		if err := checkNATS(before + "QZhunter2ZQ" + after); err != nil {
			require.NotContains(t, err.Error(), "QZhunter2ZQ")
		}
	})
}
