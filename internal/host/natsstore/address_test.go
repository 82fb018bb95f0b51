package natsstore

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/natslink/natslinktest"
)

func TestCheckNATS_AcceptsTheClientsURLs(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		"nats://127.0.0.1:4222", "127.0.0.1", "nats:4222", "tls://u:p%23@nats.example:4222",
		"nats://token@h, nats://[::1]:4223", "wss://nats.example",
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

// guardedNATS starts a server that accepts one nkey, and returns its URL.
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

func TestNATSAddress_AuthenticatesWithAnNkey(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	url, seed := guardedNATS(t)
	o := Address{URL: url, NKey: seed, Replicas: 1}
	require.NoError(t, o.Validate())
	nc, err := o.Dial("test", log)
	require.NoError(t, err)
	nc.Close()

	_, other := guardedNATS(t)
	for name, o := range map[string]Address{"no nkey": {URL: url}, "another nkey": {URL: url, NKey: other}} {
		_, err := o.Dial("test", log)
		require.True(t, Hopeless(err), "%s: %v", name, err)
	}
}

func TestNATSAddress_RejectsContradictorySettings(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	for want, o := range map[string]Address{
		"--nats-creds and --nats-nkey exclude":     {Creds: file, NKey: file},
		"--nats-cert and --nats-key":               {Cert: file},
		"--nats-ca: open":                          {CA: "no-such-file"},
		"--log-in-sync 4: want 0 to 3":             {Replicas: 3, InSync: 4},
		"--nats-monitor: URL no. 2 cannot be used": {Monitors: []string{"http://nats:8222", "http://u:hunter2@nats:8222"}},
	} {
		if o.Replicas == 0 {
			o.Replicas = 1
		}
		err := o.Validate()
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hunter2")
	}
	o := Address{URL: "nats://127.0.0.1:1", NKey: file}
	_, err := o.Dial("test", slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, exit.ErrUsage)
}
