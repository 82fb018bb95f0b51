package admission_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/share"
	"waybill.dev/waybill/services/gateway/admission"
)

func TestGate_KeepsPlacesForOtherTenants(t *testing.T) {
	t.Parallel()
	for _, c := range []admission.Class{admission.Ordinary, admission.Start, admission.Urgent} {
		g := admission.NewGate(admission.Config{MaxRequests: 200, MaxStarts: 100}, clock, byCredential)
		for {
			if _, err := g.Enter(c, g.Identify("greedy", "")); err != nil {
				refused(t, err)
				break
			}
		}
		for range 5 {
			_, err := g.Enter(c, g.Identify("other", ""))
			require.NoError(t, err, c)
		}
	}
}

func TestGate_LimitsUnknownCallersByAddress(t *testing.T) {
	t.Parallel()
	g := admission.NewGate(admission.Config{MaxRequests: 800, MaxUnknown: 3}, clock, byCredential)
	enter := func(address string) error {
		_, err := g.Enter(admission.Urgent, g.Identify("", address))
		return err
	}
	for range 3 {
		require.NoError(t, enter("192.0.2.1"))
	}
	refused(t, enter("192.0.2.1"))
	require.NoError(t, enter("192.0.2.2"))
	for i := range 200 { // many addresses together
		_ = enter(string(rune('a' + i)))
	}
	refused(t, enter("192.0.2.3"))
	_, err := g.Enter(admission.Ordinary, g.Identify("acme", "192.0.2.1"))
	require.NoError(t, err, "a credential is not counted by its address")

	for range 3 {
		_, err := g.EnterCall(g.Identify("", "192.0.2.1"))
		require.NoError(t, err)
	}
	_, err = g.EnterCall(g.Identify("", "192.0.2.1"))
	refused(t, err)
}

func TestAccount_LimitsBytes(t *testing.T) {
	t.Parallel()
	g := admission.NewGate(admission.Config{Bytes: share.New(100, false)}, clock, byCredential)
	greedy, other := g.Bytes(g.Identify("greedy", "")), g.Bytes(g.Identify("other", ""))
	require.NoError(t, greedy.Take(60))
	refused(t, greedy.Take(30))
	require.NoError(t, other.Take(30))
	greedy.Close()
	require.NoError(t, other.Take(20))
	other.Close()
	require.NoError(t, greedy.Take(100), "all was given back")
}
