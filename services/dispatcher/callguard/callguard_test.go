package callguard_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
	"waybill.dev/waybill/services/dispatcher/callguard"
	"waybill.dev/waybill/services/dispatcher/tool"
	toolbound "waybill.dev/waybill/services/dispatcher/tool/outbound"
)

type forbidden struct{ t *testing.T }

func (f forbidden) Run(context.Context, model.Task, model.Journal) model.Result {
	f.t.Fatal("asked although external calls are forbidden")
	return model.Result{}
}

// Each client checks the guard itself, independent of its callers.
func TestForbid_BlocksEveryClient(t *testing.T) {
	t.Parallel()
	require.NoError(t, callguard.Check(t.Context()))
	ctx, cancel := context.WithCancel(callguard.Forbid(t.Context()))
	defer cancel()
	require.ErrorIs(t, callguard.Check(ctx), callguard.ErrForbidden)

	base, err := toolbound.ParseBase("http://127.0.0.1:1")
	require.NoError(t, err)
	for _, client := range []*http.Client{
		outbound.NewClient(provider.DefaultTimeouts(), outbound.Extras{}),
		toolbound.New(toolbound.Config{Base: base}),
	} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:1/", http.NoBody)
		require.NoError(t, err)
		res, err := client.Do(req)
		require.ErrorIs(t, err, callguard.ErrForbidden)
		if res != nil {
			require.NoError(t, res.Body.Close())
		}
	}
	res := tool.Router{Models: forbidden{t}}.Run(ctx, model.Task{}, nil)
	require.ErrorIs(t, res.Interrupted, callguard.ErrForbidden)
}
