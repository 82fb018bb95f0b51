package auth_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"waybill.dev/waybill/services/gateway/auth"
)

// A REST request is also a gRPC call, but counts once. A request without the scope counts where it is
// rejected.
func TestUsed_CountsEachRequestOnce(t *testing.T) {
	t.Parallel()
	k := ring(t, "one=acme:runs:read")
	var calls []string
	k.Used = func(p *auth.Principal, s auth.Scope, granted bool) {
		calls = append(calls, fmt.Sprint(p.Tenant, " ", s, " ", granted))
	}
	const read, create = "/openwop.v1.Engine/GetRun", "/openwop.v1.Engine/CreateRun"
	_, err := k.Check(read, "Bearer one")
	require.NoError(t, err)
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer one"))
	next := func(context.Context, any) (any, error) { return nil, nil } //nolint:nilnil // it answers nothing
	_, err = k.Unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: read}, next)
	require.NoError(t, err)
	_, err = k.Unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/openwop.v1.Engine/GetCapabilities"}, next)
	require.NoError(t, err, "public methods have no principal")
	_, err = k.Check(create, "Bearer one")
	require.Error(t, err)
	_, err = k.Check(read, "Bearer two")
	require.Error(t, err)
	require.Equal(t, []string{"acme runs:read true", "acme runs:create false"}, calls)
}
