package auth_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/auth"
)

// scopes is OpenWOP host contract §2.2 and §9.4, by hand; "" is public.
var scopes = map[string]auth.Scope{
	"/openwop.v1.Engine/GetCapabilities":      "",
	"/openwop.v1.Engine/GetWorkflow":          "manifest:read",
	"/openwop.v1.Engine/CreateRun":            "runs:create",
	"/openwop.v1.Engine/GetRun":               "runs:read",
	"/openwop.v1.Engine/CancelRun":            "runs:cancel",
	"/openwop.v1.Engine/BulkCancelRuns":       "runs:cancel",
	"/openwop.v1.Engine/StreamRunEvents":      "runs:read",
	"/openwop.v1.Engine/VerifyAuditLog":       "audit:read",
	"/waybill.host.v1.Host/ListAuditEntries":  "audit:read",
	"/openwop.v1.Engine/ForkRun":              "runs:create runs:read",
	"/waybill.host.v1.Host/ForkNode":          "runs:create runs:read workflows:write",
	"/waybill.host.v1.Host/PollRunEvents":     "runs:read",
	"/waybill.host.v1.Host/DiffRuns":          "runs:read",
	"/waybill.host.v1.Host/CreateAnnotation":  "runs:read",
	"/waybill.host.v1.Host/ListAnnotations":   "runs:read",
	"/waybill.host.v1.Host/ListRuns":          "runs:read",
	"/waybill.host.v1.Host/WatchRuns":         "runs:read",
	"/waybill.host.v1.Host/ListWorkflows":     "manifest:read",
	"/waybill.host.v1.Host/PutWorkflow":       "workflows:write",
	"/waybill.host.v1.Host/GetEnvelopeSchema": "",
	"/grpc.health.v1.Health/Check":            "",
	"/grpc.health.v1.Health/Watch":            "",
}

func TestScopesOf_IsTheContractsTable(t *testing.T) {
	t.Parallel()
	for method, want := range scopes {
		got, known := auth.ScopesOf(method)
		require.True(t, known, method)
		names := make([]string, 0, len(got))
		for _, s := range got {
			names = append(names, string(s))
		}
		require.Equal(t, string(want), strings.Join(names, " "), method)
	}
	_, known := auth.ScopesOf("/openwop.v1.Engine/ReopenRun")
	require.False(t, known)
}

func TestScopesOf_NamesEveryMethodThatIsRegistered(t *testing.T) {
	t.Parallel()
	for _, d := range []grpc.ServiceDesc{openwopv1.Engine_ServiceDesc, hostv1.Host_ServiceDesc} {
		for _, m := range d.Methods {
			_, known := auth.ScopesOf("/" + d.ServiceName + "/" + m.MethodName)
			require.True(t, known, m.MethodName)
		}
		for _, m := range d.Streams {
			_, known := auth.ScopesOf("/" + d.ServiceName + "/" + m.StreamName)
			require.True(t, known, m.StreamName)
		}
	}
}

func TestCheck_PublicMethodsNeedNoCredential(t *testing.T) {
	t.Parallel()
	k := ring(t, "one=acme:runs:read")
	for method, scope := range scopes {
		if scope != "" {
			continue
		}
		for _, header := range []string{"", "Bearer unknown", "Bearer one"} {
			p, err := k.Check(method, header)
			require.NoError(t, err, method)
			require.Nil(t, p)
		}
	}
}

func TestCheck_ChecksTheCredentialBeforeTheScope(t *testing.T) {
	t.Parallel()
	k := ring(t, "one=acme:workspace:read", "all=acme:*")
	for method, scope := range scopes {
		if scope == "" {
			continue
		}
		for _, header := range []string{"", "Basic one", "Bearer unknown"} {
			_, err := k.Check(method, header)
			require.Equal(t, fault.Unauthenticated, fault.CodeOf(err), "%s %q", method, header)
		}
		_, err := k.Check(method, "Bearer one")
		e, ok := fault.As(err)
		require.True(t, ok, method)
		require.Equal(t, fault.Forbidden, e.Code)
		first, _, _ := strings.Cut(string(scope), " ")
		require.Equal(t, first, e.Details["scopeRequired"])

		p, err := k.Check(method, "Bearer all")
		require.NoError(t, err)
		require.Equal(t, "acme", p.Tenant)
	}
}

func TestCheck_OneScopeOpensItsOwnMethodsOnly(t *testing.T) {
	t.Parallel()
	for _, held := range []auth.Scope{
		auth.ManifestRead, auth.RunsCreate, auth.RunsRead, auth.RunsCancel, auth.WorkflowsWrite,
	} {
		k := ring(t, "one=acme:"+string(held))
		for method, scope := range scopes {
			if scope == "" {
				continue
			}
			_, err := k.Check(method, "Bearer one")
			if scope == held {
				require.NoError(t, err, "%s with %s", method, held)
			} else {
				require.Equal(t, fault.Forbidden, fault.CodeOf(err), "%s with %s", method, held)
			}
		}
	}
}

func TestCheck_RejectsUnknownMethods(t *testing.T) {
	t.Parallel()
	k := ring(t, "all=acme:*")
	for _, method := range []string{
		"", "/", "/openwop.v1.Engine/ReopenRun", "/openwop.v1.Engine/getrun", "openwop.v1.Engine/GetRun",
		"/grpc.reflection.v2.ServerReflection/ServerReflectionInfo",
	} {
		_, err := k.Check(method, "")
		require.Equal(t, fault.Unauthenticated, fault.CodeOf(err), "unknown callers get the same error: %s", method)
		_, err = k.Check(method, "Bearer all")
		require.Equal(t, fault.NotFound, fault.CodeOf(err), "every scope is not every method: %s", method)
	}
}

func incoming(credential string) context.Context {
	return metadata.NewIncomingContext(context.Background(), metadata.Pairs("authorization", credential))
}

func TestUnary_HandsThePrincipalToTheHandler(t *testing.T) {
	t.Parallel()
	k := ring(t, "one=acme:runs:read")
	info := &grpc.UnaryServerInfo{FullMethod: openwopv1.Engine_GetRun_FullMethodName}
	res, err := k.Unary(incoming("Bearer one"), "request", info, func(ctx context.Context, req any) (any, error) {
		require.Equal(t, "request", req)
		return auth.From(ctx).Tenant, nil
	})
	require.NoError(t, err)
	require.Equal(t, "acme", res)
}

func TestUnary_NeverReachesTheHandlerWithoutARight(t *testing.T) {
	t.Parallel()
	k := ring(t, "one=acme:runs:read")
	never := func(context.Context, any) (any, error) {
		t.Error("the handler was called")
		return nil, nil //nolint:nilnil // not reached
	}
	for _, method := range []string{openwopv1.Engine_CreateRun_FullMethodName, "/no.such/Method"} {
		for _, ctx := range []context.Context{
			context.Background(), incoming(""), incoming("Bearer two"), incoming("Bearer one"),
		} {
			_, err := k.Unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: method}, never)
			require.Error(t, err)
		}
	}
}

type serverStream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // what a server stream is
}

func (s serverStream) Context() context.Context { return s.ctx }

func TestStream_GuardsLikeUnary(t *testing.T) {
	t.Parallel()
	k := ring(t, "one=acme:runs:read", "two=acme:runs:create")
	info := &grpc.StreamServerInfo{FullMethod: openwopv1.Engine_StreamRunEvents_FullMethodName}
	called := 0
	next := func(_ any, ss grpc.ServerStream) error {
		called++
		require.Equal(t, "acme", auth.From(ss.Context()).Tenant)
		return nil
	}
	require.NoError(t, k.Stream(nil, serverStream{ctx: incoming("Bearer one")}, info, next))
	require.Equal(t, fault.Forbidden, fault.CodeOf(k.Stream(nil, serverStream{ctx: incoming("Bearer two")}, info, next)))
	require.Equal(t, fault.Unauthenticated, fault.CodeOf(k.Stream(nil, serverStream{ctx: context.Background()}, info, next)))
	require.Equal(t, 1, called)
}

func TestFrom_IsNilWithoutAPrincipal(t *testing.T) {
	t.Parallel()
	require.Nil(t, auth.From(context.Background()))
}
