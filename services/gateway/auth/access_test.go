package auth_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/auth"
)

func keys(t *testing.T, specs ...string) *auth.Keys {
	t.Helper()
	var parsed []auth.Spec
	for _, s := range specs {
		p, err := auth.ParseSpec(s)
		require.NoError(t, err)
		parsed = append(parsed, p)
	}
	k, err := auth.NewKeys(parsed)
	require.NoError(t, err)
	return k
}

func TestParseSpec_ReadsKeysTenantsAndScopes(t *testing.T) {
	t.Parallel()
	s, err := auth.ParseSpec("k1=acme:runs:create,runs:read")
	require.NoError(t, err)
	require.Equal(t, auth.Spec{Key: "k1", Tenant: "acme", Scopes: []auth.Scope{"runs:create", "runs:read"}}, s)
	s, err = auth.ParseSpec("k2=acme:*")
	require.NoError(t, err)
	require.True(t, s.All)
}

func TestParseSpec_NamesWhatIsWrongAndNeverTheKey(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "topsecret", "topsecret=acme", "=acme:*", "topsecret=ac.me:*", "topsecret=acme:runs:fly", "top secret=acme:*", "topsecret=:*", "topsecret=acme:"} {
		_, err := auth.ParseSpec(s)
		require.Error(t, err, s)
		require.NotContains(t, err.Error(), "topsecret")
	}
}

func FuzzParseSpec(f *testing.F) {
	f.Add("k=acme:*")
	f.Fuzz(func(t *testing.T, s string) {
		spec, err := auth.ParseSpec(s)
		if err == nil {
			require.NotEmpty(t, spec.Key)
			require.NotEmpty(t, spec.Tenant)
			require.NotContains(t, spec.Tenant, ".")
		}
	})
}

// OpenWOP host contract §8.1: never 403 for a bad key.
func TestCheck_AnswersInTheContractsOrder(t *testing.T) {
	t.Parallel()
	k := keys(t, "reader=acme:runs:read")
	create, get := openwopv1.Engine_CreateRun_FullMethodName, openwopv1.Engine_GetRun_FullMethodName
	cases := []struct {
		name, method, header string
		want                 fault.Code
	}{
		{"no header", get, "", fault.Unauthenticated},
		{"another scheme", get, "Basic cmVhZGVy", fault.Unauthenticated},
		{"no key", get, "Bearer ", fault.Unauthenticated},
		{"an unknown key", create, "Bearer nobody", fault.Unauthenticated},
		{"a scope that is missing", create, "Bearer reader", fault.Forbidden},
		{"a method that is not served", "/x/Y", "Bearer reader", fault.NotFound},
		{"a method that is not served, by nobody", "/x/Y", "", fault.Unauthenticated},
		{"all in order", get, "bEaReR reader", ""},
		{"a public method", openwopv1.Engine_GetCapabilities_FullMethodName, "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := k.Check(c.method, c.header)
			require.Equal(t, c.want, fault.CodeOf(err))
		})
	}
	_, err := k.Check(create, "Bearer reader")
	e, ok := fault.As(err)
	require.True(t, ok)
	require.Equal(t, "runs:create", e.Details["scopeRequired"])
}

func TestMethods_AreAllInTheTable(t *testing.T) {
	t.Parallel()
	for _, m := range openwopv1.Engine_ServiceDesc.Methods {
		_, ok := auth.ScopeOf("/openwop.v1.Engine/" + m.MethodName)
		require.True(t, ok, m.MethodName)
	}
	for _, m := range hostv1.Host_ServiceDesc.Methods {
		_, ok := auth.ScopeOf("/waybill.host.v1.Host/" + m.MethodName)
		require.True(t, ok, m.MethodName)
	}
}

func TestKeys_ScopesDoNotImplyEachOther(t *testing.T) {
	t.Parallel()
	p, err := keys(t, "k=acme:runs:read").Authenticate("Bearer k")
	require.NoError(t, err)
	require.True(t, p.May(auth.RunsRead))
	require.False(t, p.May(auth.RunsCancel))
	require.False(t, p.TestKey)
	p, err = keys(t, "hk_test_1=acme:*").Authenticate("Bearer hk_test_1")
	require.NoError(t, err)
	require.True(t, p.TestKey)
	require.True(t, p.May(auth.WorkflowsWrite))
	require.NotContains(t, p.KeyID, "hk_test_1")
}

func TestNewKeys_RefusesAKeyGivenTwice(t *testing.T) {
	t.Parallel()
	_, err := auth.NewKeys([]auth.Spec{{Key: "secret", Tenant: "a"}, {Key: "secret", Tenant: "b"}})
	require.ErrorContains(t, err, "no. 2")
	require.NotContains(t, err.Error(), "secret")
}

func BenchmarkCheck(b *testing.B) {
	k, err := auth.NewKeys([]auth.Spec{{Key: "k", Tenant: "a", All: true}})
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Check(openwopv1.Engine_GetRun_FullMethodName, "Bearer k"); err != nil {
			b.Fatal(err)
		}
	}
}
