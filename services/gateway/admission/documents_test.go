package admission_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/share"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/admission"
	"waybill.dev/waybill/services/gateway/auth"
)

// Large requests of a tenant take turns; small ones, and other tenants, do not wait for them.
func TestDocuments_LargeBodiesTakeTurns(t *testing.T) {
	t.Parallel()
	turns := admission.NewGate(admission.Config{}, time.Now, admission.Tenants{}).Documents()
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

// All tenants' large bodies together get as many bytes a second as the process has for bodies. One that would
// begin after its deadline is refused at once.
func TestDocuments_LargeBodiesArePaced(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	synctest.Test(t, func(t *testing.T) {
		gate := admission.NewGate(admission.Config{Bytes: share.New(2*size, false)}, time.Now, admission.Tenants{})
		turns := gate.Documents()
		call := func(ctx context.Context, tenant string, size int) error {
			req := &openwopv1.CreateRunRequest{Inputs: &openwopv1.JsonDocument{Json: make([]byte, size)}}
			ctx = auth.WithPrincipal(ctx, &auth.Principal{Tenant: tenant})
			_, err := turns(ctx, req, &grpc.UnaryServerInfo{FullMethod: openwopv1.Engine_CreateRun_FullMethodName}, func(context.Context, any) (any, error) {
				return nil, nil //nolint:nilnil // not read
			})
			return err
		}
		began := time.Now()
		for i := range 10 {
			require.NoError(t, call(t.Context(), string(rune('a'+i%2)), size))
		}
		require.InDelta(t, 4, time.Since(began).Seconds(), 0.1, "two at once, then two a second")
		began = time.Now()
		require.NoError(t, call(t.Context(), "a", 100))
		_, err := turns(auth.WithPrincipal(t.Context(), &auth.Principal{Tenant: "b"}), &openwopv1.GetRunRequest{},
			&grpc.UnaryServerInfo{FullMethod: openwopv1.Engine_GetRun_FullMethodName},
			func(context.Context, any) (any, error) { return nil, nil }) //nolint:nilnil // not read
		require.NoError(t, err)
		require.Zero(t, time.Since(began), "reads do not wait for bodies")
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(call(short, "b", size)))
		require.Zero(t, time.Since(began))
		require.NoError(t, call(t.Context(), "b", 4*size), "larger than the limit")
	})
}
