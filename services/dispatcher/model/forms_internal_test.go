package model

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// The memory of refused forms is bounded: model names come from workflows.
func TestRefusedForms_AreBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
	key := func(n int) formKey { return formKey{provider: "box", model: strconv.Itoa(n)} }
	forms := []provider.SchemaVia{provider.ViaFormat, provider.ViaTool}
	var r refusedForms
	for n := range maxForms {
		r.add(key(n), provider.ViaFormat, now)
	}
	require.Equal(t, provider.ViaTool, r.next(key(0), forms, now))
	r.add(key(maxForms), provider.ViaFormat, now.Add(formKept))
	require.Len(t, r.byID, 1, "the outdated ones are dropped")
	for n := range 3 * maxForms {
		r.add(key(n), provider.ViaFormat, now.Add(formKept))
		require.LessOrEqual(t, len(r.byID), maxForms)
	}
	require.Equal(t, provider.ViaTool, r.next(key(3*maxForms-1), forms, now.Add(formKept)))
	require.Equal(t, provider.ViaFormat, r.next(key(3*maxForms-1), forms, now.Add(2*formKept)))
}
