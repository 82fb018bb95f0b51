package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natslink/natslinktest"
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

// guardedNATS is a server that lets one nkey in, and the address of it.
func guardedNATS(t *testing.T) (url, seedFile string) {
	t.Helper()
	user, err := nkeys.CreateUser()
	require.NoError(t, err)
	public, err := user.PublicKey()
	require.NoError(t, err)
	seed, err := user.Seed()
	require.NoError(t, err)
	s := natslinktest.Serve(t, &server.Options{Nkeys: []*server.NkeyUser{{Nkey: public}}})
	seedFile = filepath.Join(t.TempDir(), "seed.nk")
	require.NoError(t, os.WriteFile(seedFile, seed, 0o600))
	return s.ClientURL(), seedFile
}

func TestNATSAddress_ShowsAnNkey(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	url, seed := guardedNATS(t)
	o := natsAddress{url: url, nkey: seed, replicas: 1}
	require.NoError(t, o.validate())
	nc, err := o.dial("test", log)
	require.NoError(t, err)
	nc.Close()

	_, other := guardedNATS(t)
	for name, o := range map[string]natsAddress{"nobody": {url: url}, "another": {url: url, nkey: other}} {
		_, err := o.dial("test", log)
		require.True(t, hopeless(err), "%s: %v", name, err)
	}
}

func TestNATSAddress_RefusesWhatDoesNotBelongTogether(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	for want, o := range map[string]natsAddress{
		"--nats-creds, --nats-nkey":                {creds: file, nkey: file},
		"--nats-cert and --nats-key":               {cert: file},
		"--nats-ca: open":                          {ca: "no-such-file"},
		"--log-in-sync 4: want 0 to 3":             {replicas: 3, inSync: 4},
		"--nats-monitor: URL no. 2 cannot be used": {monitor: []string{"http://nats:8222", "http://u:hunter2@nats:8222"}},
	} {
		if o.replicas == 0 {
			o.replicas = 1
		}
		err := o.validate()
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hunter2")
	}
	o := natsAddress{url: "nats://127.0.0.1:1", nkey: file}
	_, err := o.dial("test", slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, errUsage)
}
