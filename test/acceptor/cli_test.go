package acceptor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// The exit status of the command is the envelope's outcome.
func TestEnvelopeAccept_ExitsWithTheOutcome(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	n.start()
	h := harness.Serve(t, "acceptor", "--nats", n.url(), "--limit-clarification-rounds", "0")
	dir := t.TempDir()
	write := func(name string, doc []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, doc, 0o600))
		return path
	}
	sound := write("sound.json", envelope("c", "m"))
	unknown := write("unknown.json", []byte(`{"type":"vendor.acme.note","schemaVersion":1,"envelopeId":"e","correlationId":"u","payload":{},"meta":{"source":"ai-generation","ts":"2026-01-31T12:00:00Z"}}`))
	question := write("question.json", []byte(`{"type":"clarification.request","schemaVersion":1,"envelopeId":"e","correlationId":"q",`+
		`"payload":{"questions":[{"id":"q1","question":"Which one?"}]},"meta":{"source":"ai-generation","ts":"2026-01-31T12:00:00Z"}}`))
	to := []string{"envelope", "accept", "--addr", h.GRPC, "--run", "r", "--node", "ask"}
	for _, tc := range []struct {
		name string
		args []string
		want int
		out  string // part of the output
	}{
		{"a run that is not open", append(to, sound), 5, "run_not_found"},
		{"accepted", append(to, "--open", sound), 0, `"accepted"`},
		{"recalled", append(to, sound), 0, `"accepted"`},
		{"no envelope", append(to, write("none.json", []byte(`[]`))), 6, `"invalid"`},
		{"an unknown kind", append(to, unknown), 6, `"gated"`},
		{"beyond a limit", append(to, question), 6, `"breached"`},
		{"no acceptor there", []string{"envelope", "accept", "--addr", "127.0.0.1:1", "--run", "r", "--node", "ask", sound}, 7, "service_unavailable"},
		{"a file that is absent", append(to, "ghost.json"), 2, "ghost.json"},
		{"an unknown flag", append(to, "--ghost", sound), 2, "--ghost"},
		{"validate, accepted", []string{"envelope", "validate", sound}, 0, "accepted"},
		{"lint, invalid", []string{"envelope", "lint", filepath.Join(dir, "none.json")}, 1, "invalid"},
		{"lint, gated", []string{"envelope", "lint", unknown}, 1, "gated"},
	} {
		out, status := harness.Command(t, tc.args...)
		require.Equal(t, tc.want, status, "%s: %s", tc.name, out)
		require.Contains(t, out, tc.out, tc.name)
	}
	n.stop()
	out, status := harness.Command(t, append(to, sound)...)
	require.Equal(t, 7, status, out)
}
