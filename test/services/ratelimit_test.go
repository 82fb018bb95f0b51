package services

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// Gateways share a rate limit: together they admit it, within a tenth, also if one of them gets most
// of the requests.
func TestRateLimit_IsSharedByGateways(t *testing.T) {
	const perSecond, burst, seconds = 50, 5, 8
	nats := []string{"--nats", broker(t)}
	limits := []string{"--api-key", "key-acme=acme:*", "--rate-limit", "tenant=50/s,burst=5"}
	hosts := harness.ServeEach(t, nats, limits...)
	secret := filepath.Join(t.TempDir(), "host.key")
	require.NoError(t, os.WriteFile(secret, []byte(strings.Repeat("k", 64)), 0o600))
	second := harness.Serve(t, "gateway", append(append(nats, limits...),
		"--redactor", hosts["redactor"].GRPC, "--acceptor", hosts["acceptor"].GRPC, "--eventlog", hosts["eventlog"].GRPC,
		"--dispatcher", hosts["dispatcher"].GRPC, "--host-key-file", secret, "--http-addr", "127.0.0.1:0", "--audit=false")...)

	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), seconds*time.Second)
	defer cancel()
	var (
		admitted, refused atomic.Int64
		group             sync.WaitGroup
	)
	for i, gateway := range []*harness.Host{hosts["gateway"], hosts["gateway"], hosts["gateway"], second} {
		group.Go(func() {
			c := gateway.Client("key-acme")
			for ctx.Err() == nil {
				a, err := c.Do(ctx, http.MethodGet, "/v1/workflows", "")
				switch {
				case err != nil:
				case a.Status == http.StatusOK:
					admitted.Add(1)
				case a.Status == http.StatusTooManyRequests:
					refused.Add(1)
				default:
					t.Errorf("gateway %d answered %d: %s", i, a.Status, a.Body)
					return
				}
			}
		})
	}
	group.Wait()
	took := time.Since(began)
	t.Logf("%d admitted, %d refused in %s", admitted.Load(), refused.Load(), took)
	require.Positive(t, refused.Load(), "the callers offer more than the limit")
	require.InEpsilon(t, burst+perSecond*took.Seconds(), admitted.Load(), 0.1)
}
