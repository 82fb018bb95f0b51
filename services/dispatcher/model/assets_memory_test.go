package model_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// slowShelf has an asset of size bytes at each address of the host. While it is closed, it answers no load.
type slowShelf struct {
	size  int
	open  chan struct{}
	loads atomic.Int64
}

func (s *slowShelf) Load(ctx context.Context, _ subject.Run, url string) (model.Asset, bool, error) {
	s.loads.Add(1)
	select {
	case <-s.open:
	case <-ctx.Done():
		return model.Asset{}, false, context.Cause(ctx)
	}
	if !strings.HasPrefix(url, assetURL) {
		return model.Asset{}, false, nil
	}
	return model.Asset{MIME: "image/png", Data: make([]byte, s.size)}, true, nil
}

// slowModel is a model that answers once it is open.
type slowModel struct {
	painter
	open  chan struct{}
	calls atomic.Int64
}

func (s *slowModel) Call(ctx context.Context, _ provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	s.calls.Add(1)
	select {
	case <-s.open:
	case <-ctx.Done():
		return provider.Result{}, context.Cause(ctx)
	}
	return (&painter{text: "I see."}).Call(ctx, provider.Request{}, emit)
}

// assetRig runs model nodes of several tenants in one process.
type assetRig struct {
	shelf *slowShelf
	model *slowModel
	loop  *model.Loop
}

func newAssetRig(t *testing.T, size int) *assetRig {
	t.Helper()
	r := &assetRig{
		shelf: &slowShelf{size: size, open: make(chan struct{})},
		model: &slowModel{open: make(chan struct{})},
	}
	reg, err := provider.NewRegistry(r.model)
	require.NoError(t, err)
	r.loop = model.New(model.Config{
		MaxAttempts: 1, Multiplier: 2, Timeout: time.Hour,
		Defaults: model.Defaults{Provider: "mock", Model: "m", MaxTokens: 100},
	}, model.Deps{
		Models: reg, Schemas: schemas{}, Clock: time.Now, Assets: r.shelf,
		Scrubber: func(string, string, bool) model.Scrubber { return plain{} },
	})
	return r
}

// run executes a node of a tenant.
func (r *assetRig) run(ctx context.Context, tenant string, in map[string]json.RawMessage) model.Result {
	config := `{"prompt":"What?"}`
	if in["messages"] != nil {
		config = `{}`
	}
	return r.loop.Run(ctx, model.Task{
		Tenant: tenant, RunID: "r", TypeID: node.TypeCallPrompt,
		Input: node.Input{NodeID: "n", Config: json.RawMessage(config), Ports: in},
	}, &journal{})
}

// start executes count nodes of a tenant at the same time. The results follow in any order.
func (r *assetRig) start(ctx context.Context, tenant string, count int, in map[string]json.RawMessage) <-chan model.Result {
	out := make(chan model.Result, count)
	for range count {
		go func() { out <- r.run(ctx, tenant, in) }()
	}
	return out
}

// pictures is a port media with distinct stored assets, which declare a size of 0.
func pictures(count int) map[string]json.RawMessage {
	var list []string
	for i := range count {
		list = append(list, fmt.Sprintf(`{"url":"%s%d","bytes":0,"mimeType":"image/png"}`, assetURL, i))
	}
	return ports("media", `[`+strings.Join(list, ",")+`]`)
}

// linked is a port messages with an image at an address.
func linked(address string) map[string]json.RawMessage {
	return ports("messages", `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"`+address+`"}}]}]`)
}

func finish(t *testing.T, results <-chan model.Result, count int) {
	t.Helper()
	for range count {
		res := <-results
		require.Nil(t, res.Err)
		require.NoError(t, res.Interrupted)
	}
}

// A prompt with too many assets is rejected at the asset that exceeds the limit, not after the last one.
func TestAssets_AreNotLoadedAboveTheLimitOfAPrompt(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, encodes hundreds of megabytes: run without -short")
	}
	r := newAssetRig(t, 6<<20)
	close(r.shelf.open)
	close(r.model.open)
	text := func(size int) string { return base64.StdEncoding.EncodeToString(make([]byte, size)) }
	inline := `{"base64":"` + text(3<<20) + `","bytes":0,"mimeType":"image/png"}`
	stored := `{"url":"` + assetURL + `","bytes":0,"mimeType":"image/png"}`
	for name, tc := range map[string]struct {
		in    map[string]json.RawMessage
		loads int64
	}{
		"distinct":     {pictures(100), 4},
		"repeated":     {ports("media", `[`+strings.Repeat(stored+",", 99)+stored+`]`), 1},
		"after inline": {ports("media", `[`+inline+`,`+strings.Trim(string(pictures(50)["media"]), "[]")+`]`), 3},
		"inline":       {ports("media", `[`+inline+`,{"url":"data:image/png;base64,`+text(18<<20)+`","bytes":0},`+stored+`]`), 0},
	} {
		r.shelf.loads.Store(0)
		res := r.run(t.Context(), "acme", tc.in)
		require.NotNil(t, res.Err, name)
		require.Equal(t, "content_too_long", res.Err.Code, name)
		require.Equal(t, tc.loads, r.shelf.loads.Load(), name)
	}
	require.Zero(t, r.model.calls.Load())

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 20 {
		res := r.run(ctx, "acme", pictures(4))
		require.NoError(t, res.Interrupted, "a rejected prompt holds no memory")
		require.Equal(t, "content_too_long", res.Err.Code)
	}
}

// A tenant whose prompts hold its share of the memory does not delay another tenant, or its own prompts
// without assets of the host.
func TestAssets_OfOneTenantDoNotBlockOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newAssetRig(t, 5<<20)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		greedy := r.start(ctx, "greedy", 100, pictures(4))
		synctest.Wait()
		require.EqualValues(t, 9, r.shelf.loads.Load(), "each loads its first asset; the others wait")

		other := r.start(t.Context(), "other", 1, pictures(4))
		synctest.Wait()
		require.EqualValues(t, 10, r.shelf.loads.Load())

		close(r.model.open)
		finish(t, r.start(t.Context(), "greedy", 50, linked("https://x.example/a.png")), 50)
		require.EqualValues(t, 10, r.shelf.loads.Load(), "an address elsewhere is not loaded")

		cancel()
		for range 100 {
			require.ErrorIs(t, (<-greedy).Interrupted, context.Canceled, "a wait ends with its context")
		}
		close(r.shelf.open)
		finish(t, other, 1)
		finish(t, r.start(t.Context(), "greedy", 1, pictures(4)), 1)
	})
}

// The size of an asset is unknown until it is loaded. Then a call holds what its assets have.
func TestAssets_HoldTheirSizeOnceLoaded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newAssetRig(t, 1000)
		close(r.shelf.open)
		results := r.start(t.Context(), "acme", 200, pictures(4))
		decoys := r.start(t.Context(), "acme", 100, linked("https://x.example/v1/assets/a.png"))
		synctest.Wait()
		require.EqualValues(t, 300, r.model.calls.Load())
		close(r.model.open)
		finish(t, results, 200)
		finish(t, decoys, 100)
	})
}

func TestAssets_HoldMemoryUntilTheCallEnds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, encodes hundreds of megabytes: run without -short")
	}
	synctest.Test(t, func(t *testing.T) {
		r := newAssetRig(t, 5<<20)
		close(r.shelf.open)
		results := r.start(t.Context(), "acme", 11, pictures(4))
		synctest.Wait()
		require.EqualValues(t, 9, r.model.calls.Load())
		close(r.model.open)
		finish(t, results, 11)
	})
}
