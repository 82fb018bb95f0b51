package webhook_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// The feeder may see a new webhook late. Events since its registration are delivered to it, and not
// again to others.
func TestFeed_RewindsForALateWebhook(t *testing.T) {
	t.Parallel()
	for name, restarts := range map[string]bool{"while it runs": false, "over a restart": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				stop := r.start()
				first := r.hook(logged)
				r.run("run_1")
				r.say("run_1", logged)
				r.settle()
				end, err := r.log.End(r.t.Context())
				require.NoError(t, err)
				r.say("run_1", logged)
				r.settle()
				require.Equal(t, []string{"run_1/0", "run_1/1"}, r.to.got())
				if restarts {
					stop()
				}
				late := first.Subscription
				late.ID, late.URL, late.After = "wh_late", "https://late.example/", end
				key := subscription.Key{Generation: 1, Fingerprint: fingerprintOf(r.svc.Secret("acme", late.ID, 1))}
				_, err = subscription.NewStore(r.subs).Create(r.t.Context(), late, subscription.State{Key: key})
				require.NoError(t, err)
				if restarts {
					r.start()
				}
				r.settle()
				calls := r.to.all()
				require.Len(t, calls, 3)
				require.Equal(t, "https://late.example/", calls[2].url)
				require.Equal(t, 1, calls[2].seq)
				r.say("run_1", logged)
				r.settle()
				require.Len(t, r.to.all(), 5, "both get new events")
			})
		})
	}
}

// A host that lost its key reports it, and delivers again after a rotation.
func TestDelivery_NeedsTheKeyOfTheSecret(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		e := r.hook(logged)
		store := subscription.NewStore(r.subs)
		other, err := subscription.NewSecrets([]byte("another key of the host, of 32 bytes"))
		require.NoError(t, err)
		_, err = store.Rotate(r.t.Context(), other, "acme", e.ID, epoch(), 0)
		require.NoError(t, err)
		r.settle() // it is seen
		r.run("run_1")
		r.say("run_1", logged)
		r.settle()
		require.Empty(t, r.to.got())
		left, err := r.svc.PendingLanes(r.t.Context(), "acme", e.ID)
		require.NoError(t, err)
		require.Contains(t, left[0].Reason, "rotate the secret")
		_, err = r.svc.Rotate(r.t.Context(), "acme", e.ID, 0)
		require.NoError(t, err)
		r.settle()
		r.pass(minute)
		require.Equal(t, []string{"run_1/0"}, r.to.got())
	})
}
