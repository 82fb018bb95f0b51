package admission_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	"waybill.dev/waybill/services/gateway/admission"
	"waybill.dev/waybill/services/gateway/auth"
)

// Large requests of a tenant take turns; small ones, and other tenants, do not wait for them.
func TestDocuments_LargeBodiesTakeTurns(t *testing.T) {
	t.Parallel()
	turns := admission.Documents()
	working, end := make(chan struct{}), make(chan struct{})
	call := func(ctx context.Context, tenant string, size int) error {
		req := &openwopv1.CreateRunRequest{Inputs: &openwopv1.JsonDocument{Json: make([]byte, size)}}
		ctx = auth.WithPrincipal(ctx, &auth.Principal{Tenant: tenant})
		_, err := turns(ctx, req, &grpc.UnaryServerInfo{FullMethod: openwopv1.Engine_CreateRun_FullMethodName}, func(context.Context, any) (any, error) {
			working <- struct{}{}
			<-end
			return nil, nil //nolint:nilnil // not read
		})
		return err
	}
	done := make(chan error)
	start := func(tenant string, size int) {
		go func() { done <- call(t.Context(), tenant, size) }()
		<-working
	}
	const large = 100 << 10
	most := max(1, min(runtime.GOMAXPROCS(0), runtime.NumCPU())/2)
	for range most {
		start("a", large)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, call(ended, "a", large), context.Canceled, "the next one waits")
	start("a", 100)
	start("b", large)
	close(end)
	for range most + 2 {
		require.NoError(t, <-done)
	}
	start("a", large)
	require.NoError(t, <-done)
}
