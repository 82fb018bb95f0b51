package runlog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

func TestLate_IsUnavailableUntilItIsOpen(t *testing.T) {
	t.Parallel()
	var late runlog.Late
	run := subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}
	f := frame.NewOpen(run, []byte(`{}`))
	calls := map[string]func() error{
		"append": func() error { _, err := late.Append(t.Context(), f, 0); return err },
		"run":    func() error { _, err := late.Run(t.Context(), run); return err },
		"after":  func() error { _, err := late.After(t.Context(), run, 0); return err },
		"last":   func() error { _, err := late.Last(t.Context(), run); return err },
	}
	for name, call := range calls {
		require.ErrorIs(t, call(), runlog.ErrUnavailable, name)
	}
	log := memory.New()
	late.Open(log)
	require.NoError(t, calls["append"]())
	for name, call := range calls {
		require.NoError(t, call(), name)
	}
	got, err := log.Last(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, f.Hash, got.Hash)
}
