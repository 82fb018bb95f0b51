package hostlog

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	auditstore "waybill.dev/waybill/internal/audit/jetstream"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/natslink/natslinktest"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// openNATS starts a NATS server with JetStream and without authentication.
func openNATS(t *testing.T) (string, *nats.Conn) {
	t.Helper()
	s := natslinktest.Serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir()})
	nc, err := nats.Connect(s.ClientURL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return s.ClientURL(), nc
}

// The log of a host with several processes can be verified while it is written.
func TestLogVerify_ReadsTheLogOfANATSServer(t *testing.T) {
	t.Parallel()
	url, nc := openNATS(t)
	_, err := command(t, "", "log", "verify", "--nats", url)
	require.Equal(t, exit.NotFound, exit.Status(err), "%v", err)
	log, err := jetstream.Open(t.Context(), nc, jetstream.DefaultConfig())
	require.NoError(t, err)
	run := subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}
	start := frame.NewStart(run, []byte(`{}`))
	start.Pos, err = log.Append(t.Context(), start, 0)
	require.NoError(t, err)
	step := frame.New(run, subject.Step, start.Head(), []wire.Event{wire.Draft{Type: wire.EventRunStarted}.Place("r", 0, time.Unix(0, 0))})
	step.Pos, err = log.Append(t.Context(), step, start.Pos)
	require.NoError(t, err)
	statuses := func(args ...string) map[string]string {
		out, err := command(t, "", append([]string{"log", "verify", "--nats", url, "-o", "json"}, args...)...)
		var doc struct {
			Checks []struct{ Check, Status string }
		}
		require.NoError(t, json.Unmarshal([]byte(out), &doc), "%v", err)
		got := map[string]string{}
		for _, c := range doc.Checks {
			got[c.Check] = c.Status
		}
		return got
	}
	require.Equal(t, map[string]string{
		"frames":            "ok",
		"chain":             "ok",
		"end":               "ok",
		"events":            "ok",
		"audit-chain":       "skipped",
		"audit-checkpoints": "skipped", "files": "skipped",
	}, statuses())

	_, err = auditstore.Open(t.Context(), nc, 1, nil)
	require.NoError(t, err)
	require.Equal(t, "skipped", statuses()["audit-checkpoints"], "no key was given")
	key := filepath.Join(t.TempDir(), "audit.key")
	_, err = hostfile.AuditKey(filepath.Dir(key), nil)
	require.NoError(t, err)
	require.Equal(t, "ok", statuses("--audit-key-file", key)["audit-checkpoints"])
	_, err = command(t, "", "log", "verify", "--nats", url, "--audit-key-file", filepath.Join(t.TempDir(), "none"))
	require.Equal(t, exit.Usage, exit.Status(err))
	require.ErrorIs(t, err, os.ErrNotExist)

	forged := frame.New(run, subject.Step, frame.Head{Pos: step.Pos, Hash: "another", Next: 1}, nil)
	_, err = log.Append(t.Context(), forged, step.Pos)
	require.NoError(t, err)
	require.Equal(t, "fail", statuses()["chain"])
}
