package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"waybill.dev/waybill/internal/kv/memory"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/engine"
)

func withViews(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.Service = engine.New(engine.Config{MaxStreams: maxStreams}, engine.Deps{
		Views: &engine.ViewStore{Store: memory.New()},
		Redaction: engine.Redaction{Texts: func(_ context.Context, _, _ string, texts []string) ([]string, error) {
			for i := range texts {
				texts[i] = strings.ReplaceAll(texts[i], hunted, "[REDACTED]")
			}
			return texts, nil
		}},
		Clock: func() time.Time { return time.Unix(1_700_000_000, 0) },
	})
	return r
}

func (r *rig) save(t *testing.T, key string, req *hostv1.PutSavedViewRequest) error {
	t.Helper()
	_, err := r.PutSavedView(as(t, key), req)
	return err
}

func (r *rig) views(t *testing.T, key string) (out []string) {
	t.Helper()
	res, err := r.ListSavedViews(as(t, key), &hostv1.ListSavedViewsRequest{})
	require.NoError(t, err)
	for _, v := range res.GetViews() {
		out = append(out, fmt.Sprintf("%s of %s mine=%v", v.GetName(), v.GetOwner(), v.GetMine()))
	}
	return out
}

func TestSavedViews_BelongToTheirOwnerAndAreSharedWithinTheTenant(t *testing.T) {
	t.Parallel()
	r := withViews(t)
	res, err := r.PutSavedView(as(t, opsKey), &hostv1.PutSavedViewRequest{
		ViewId: "a", Name: "Costly", Filter: proto.String("since:24h text:" + hunted), Sort: proto.String("cost"), Columns: []string{"cost", "model"},
	})
	require.NoError(t, err)
	require.Equal(t, "since:24h text:[REDACTED]", res.GetView().GetFilter())
	require.Equal(t, []string{"cost", "model"}, res.GetView().GetColumns())
	require.NoError(t, r.save(t, liveKey, &hostv1.PutSavedViewRequest{ViewId: "a", Name: "Broken"}), "ids are unique for each owner only")
	require.Equal(t, []string{"Costly of u-1 mine=true"}, r.views(t, opsKey))

	require.NoError(t, r.save(t, opsKey, &hostv1.PutSavedViewRequest{ViewId: "a", Name: "Today", Shared: proto.Bool(true)}), "a rename that shares it")
	require.Equal(t, []string{"Today of u-1 mine=true"}, r.views(t, opsKey))
	shared := r.views(t, liveKey)
	require.Len(t, shared, 2)
	require.Contains(t, shared, "Today of u-1 mine=false")
	require.Empty(t, r.views(t, betaKey), "of another tenant")

	_, err = r.DeleteSavedView(as(t, testKey), &hostv1.DeleteSavedViewRequest{ViewId: "a"})
	require.Equal(t, fault.NotFound, fault.CodeOf(err), "a shared view is deleted by its owner only")
	_, err = r.DeleteSavedView(as(t, betaKey), &hostv1.DeleteSavedViewRequest{ViewId: "a"})
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
	_, err = r.DeleteSavedView(as(t, opsKey), &hostv1.DeleteSavedViewRequest{ViewId: "a"})
	require.NoError(t, err)
	require.Empty(t, r.views(t, opsKey))
	require.Len(t, r.views(t, liveKey), 1)
}

func TestPutSavedView_RejectsLargeAndUnknownViews(t *testing.T) {
	t.Parallel()
	r := withViews(t)
	for name, req := range map[string]*hostv1.PutSavedViewRequest{
		"no id":           {Name: "n"},
		"id with a dot":   {ViewId: "a.b", Name: "n"},
		"no name":         {ViewId: "a"},
		"long name":       {ViewId: "a", Name: strings.Repeat("é", 81)},
		"unknown term":    {ViewId: "a", Name: "n", Filter: proto.String("bogus:1")},
		"long filter":     {ViewId: "a", Name: "n", Filter: proto.String("tag:" + strings.Repeat("x", 2000))},
		"unknown order":   {ViewId: "a", Name: "n", Sort: proto.String("luck")},
		"unknown way":     {ViewId: "a", Name: "n", Order: proto.String("up")},
		"column":          {ViewId: "a", Name: "n", Columns: []string{"a b"}},
		"too many of one": {ViewId: "a", Name: "n", Columns: make([]string, 33)},
	} {
		require.Equal(t, fault.ValidationError, fault.CodeOf(r.save(t, liveKey, req)), name)
	}
	for n := range 100 {
		require.NoError(t, r.save(t, liveKey, &hostv1.PutSavedViewRequest{ViewId: fmt.Sprint(n), Name: "n"}))
	}
	require.Equal(t, fault.Conflict, fault.CodeOf(r.save(t, liveKey, &hostv1.PutSavedViewRequest{ViewId: "more", Name: "n"})))
	require.NoError(t, r.save(t, liveKey, &hostv1.PutSavedViewRequest{ViewId: "7", Name: "changed"}), "an existing one needs no room")
	require.NoError(t, r.save(t, opsKey, &hostv1.PutSavedViewRequest{ViewId: "1", Name: "n"}), "the limit is each owner's")
}
