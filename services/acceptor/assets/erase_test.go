package assets_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/blob/memory"
	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/acceptor/assets"
)

func TestErase_RemovesTheAssetsOfTheRunThatItsEventsName(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	blobs := memory.New()
	v := newStore(t, blobs, token.Keys{1: key('a')}, &now)
	urls := map[string]string{}
	for name, run := range map[string]string{"c1": "r", "c2": "r", "c3": "other"} {
		url, err := v.Save(t.Context(), at("acme", run), name, picture)
		require.NoError(t, err)
		urls[name] = url
	}
	theirs, err := v.Save(t.Context(), at("beta", "r"), "c1", picture)
	require.NoError(t, err)
	events, err := json.Marshal([]any{
		map[string]any{"url": urls["c1"]}, "see " + urls["c2"] + "?x=<1>", urls["c3"], theirs, "aaaaaaaaaaaaaaaaaaaa.b",
	})
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, assets.Erase(t.Context(), blobs, subject.Run{Tenant: "acme", RunID: "r"}, events))
	}
	for name, url := range map[string]string{"c1": urls["c1"], "c2": urls["c2"]} {
		_, err := v.Load(t.Context(), textOf(url))
		require.Equal(t, fault.NotFound, fault.CodeOf(err), name)
	}
	for name, url := range map[string]string{"another run": urls["c3"], "another tenant": theirs} {
		_, err := v.Load(t.Context(), textOf(url))
		require.NoError(t, err, name)
	}
}
