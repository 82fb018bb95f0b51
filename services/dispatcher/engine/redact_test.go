package engine_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/engine"
)

const tenantKey = `a key of "the tenant's"`

// marking redacts the tenant's key in texts about registered runs.
type marking struct {
	*vault
	// away makes the redactor unreachable.
	away bool
}

func (m *marking) Redact(ctx context.Context, tenant, runID string, registered bool, docs [][]byte) ([][]byte, bool, error) {
	docs, _, err := m.vault.Redact(ctx, tenant, runID, registered, docs)
	if err != nil || m.away {
		return nil, false, errors.Join(err, errors.New("away"))
	}
	out := make([][]byte, len(docs))
	for i, doc := range docs {
		if out[i] = doc; m.knows(tenant, runID) {
			out[i] = bytes.ReplaceAll(doc, []byte(`a key of \"the tenant's\"`), []byte("[REDACTED:k]"))
		}
	}
	return out, true, nil
}

func (v *vault) knows(tenant, runID string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.known[tenant+" "+runID]
}

func withMarks(t *testing.T) (*engine.Executor, *memory.Log, *marking) {
	t.Helper()
	m := &marking{vault: &vault{known: map[string]bool{}}}
	x, log := withKeys(t, m, nil)
	return x, log, m
}

// OpenWOP envelope contract §11: the tenant's key is redacted in texts about its runs, from any
// caller, at any time.
func TestRedactTexts_RemovesTheSecretsOfTheRun(t *testing.T) {
	t.Parallel()
	x, log, m := withMarks(t)
	say := func() []string {
		t.Helper()
		out, err := x.RedactTexts(t.Context(), "acme", "run_1", []string{"", "it was " + tenantKey, "é\n漢 \\u0041"})
		require.NoError(t, err)
		return out
	}
	want := []string{"", "it was [REDACTED:k]", "é\n漢 \\u0041"}
	require.Equal(t, want, say(), "no session has registered the run yet")
	require.True(t, m.knows("acme", "run_1"), "a session may start soon")
	m.restart()
	require.Equal(t, want, say(), "the redactor restarted")

	first, err := log.First(t.Context(), theRun)
	require.NoError(t, err)
	_, err = log.Append(t.Context(), frame.New(theRun, subject.End, first.Head(), nil), first.Pos)
	require.NoError(t, err)
	m.restart()
	require.Equal(t, want, say(), "the run has ended")
	require.False(t, m.knows("acme", "run_1"), "no session would unregister it")
}

func TestRedactTexts_WithoutARunUsesTheTenantsSecrets(t *testing.T) {
	t.Parallel()
	x, _, m := withMarks(t)
	out, err := x.RedactTexts(t.Context(), "acme", "run_none", []string{"it was"})
	require.NoError(t, err)
	require.Equal(t, []string{"it was"}, out)
	require.Zero(t, m.opened)
}

// It fails closed: text that was not redacted is not stored.
func TestRedactTexts_FailsWithoutTheRedactor(t *testing.T) {
	t.Parallel()
	x, _, m := withMarks(t)
	m.away = true
	_, err := x.RedactTexts(t.Context(), "acme", "run_1", []string{"it was " + tenantKey})
	require.Error(t, err)
}
