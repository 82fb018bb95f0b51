package serve

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/clitest"
	"waybill.dev/waybill/internal/cli/exit"
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
		require.ErrorIs(t, err, exit.ErrUsage, name)
		require.ErrorContains(t, err, "--nats", name)
		require.NotContains(t, err.Error()+out, secret, name)
		require.NotContains(t, err.Error(), "notaport", name)
	}
}

func TestServeAcceptor_ReadsPacks(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"notes/pack.json":    clitest.NotePack,
		"notes/waybill.json": strings.Replace(clitest.NoteKinds, "vendor.acme.note\"", "note\"", 1),
	})
	_, err := command(t, "", "serve", "acceptor", "--grpc-addr", "127.0.0.1:0", "--data-dir", t.TempDir(), "--packs", dir)
	require.ErrorIs(t, err, exit.ErrUsage)
	require.ErrorContains(t, err, "waybill.json at \"/envelopeKinds/0/kind\"")
}
