package subscription_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// bucket accepts the keys of a JetStream bucket.
type bucket struct{ kv.Store }

func (b bucket) Get(ctx context.Context, key string) (kv.Entry, error) {
	if strings.ContainsAny(key, " <*>%") || strings.Contains(key, "..") {
		return kv.Entry{}, fmt.Errorf("%w: invalid key", kv.ErrUnavailable)
	}
	return b.Store.Get(ctx, key)
}

// An id comes from the path of a request. An invalid one is not found, without an internal error.
func TestStore_FindsNothingUnderAnInvalidID(t *testing.T) {
	t.Parallel()
	s := subscription.NewStore(bucket{memory.New()})
	for _, id := range []string{"", "a b", "<", "*", ">", "a..b", "%", "wh_1.sub", "漢", strings.Repeat("x", 200)} {
		_, err := s.Get(t.Context(), "acme", id)
		require.ErrorIs(t, err, subscription.ErrNotFound, id)
		require.ErrorIs(t, s.Delete(t.Context(), "acme", id), subscription.ErrNotFound, id)
		_, err = s.Rotate(t.Context(), nil, "acme", id, time.Time{}, 0)
		require.ErrorIs(t, err, subscription.ErrNotFound, id)
	}
}
