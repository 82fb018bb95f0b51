package auth_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/gateway/auth"
)

func TestParseSpec_ReadsKeyTenantAndScopes(t *testing.T) {
	t.Parallel()
	cases := []struct {
		in   string
		want auth.Spec
	}{
		{"k1=acme:runs:read", auth.Spec{Key: "k1", Tenant: "acme", Scopes: []auth.Scope{auth.RunsRead}}},
		{
			"k1=acme:runs:read,runs:create",
			auth.Spec{Key: "k1", Tenant: "acme", Scopes: []auth.Scope{auth.RunsRead, auth.RunsCreate}},
		},
		{"k1=acme:*", auth.Spec{Key: "k1", Tenant: "acme", All: true}},
		{"k1=acme:*,runs:read", auth.Spec{Key: "k1", Tenant: "acme", All: true, Scopes: []auth.Scope{auth.RunsRead}}},
		{
			"hk_test_a:b=T_1-x:workflows:write",
			auth.Spec{Key: "hk_test_a:b", Tenant: "T_1-x", Scopes: []auth.Scope{auth.WorkflowsWrite}},
		},
		{"k=acme:approvals:respond,group:fin/eu,group:ops,role:a:b,user:u-1", auth.Spec{
			Key:    "k",
			Tenant: "acme",
			Scopes: []auth.Scope{auth.ApprovalsRespond},
			User:   "u-1",
			Groups: []string{"fin/eu", "ops"},
			Roles:  []string{"a:b"},
		}},
		{"k=acme:role:r,*", auth.Spec{Key: "k", Tenant: "acme", All: true, Roles: []string{"r"}}},
		{
			"k=" + strings.Repeat("t", 64) + ":audit:read",
			auth.Spec{Key: "k", Tenant: strings.Repeat("t", 64), Scopes: []auth.Scope{"audit:read"}},
		},
	}
	for _, c := range cases {
		got, err := auth.ParseSpec(c.in)
		require.NoError(t, err, c.in)
		require.Equal(t, c.want, got, c.in)
	}
}

func TestMay_AllScopesAreThoseOfTheTenant(t *testing.T) {
	t.Parallel()
	keys, err := auth.NewKeys([]auth.Spec{
		{Key: "all", Tenant: "acme", All: true},
		{Key: "operator", Tenant: "acme", All: true, Scopes: []auth.Scope{auth.TenantsRead}},
	})
	require.NoError(t, err)
	for key, want := range map[string]bool{"all": false, "operator": true} {
		p, err := keys.Authenticate("Bearer " + key)
		require.NoError(t, err)
		require.Equal(t, want, p.May(auth.TenantsRead), key)
		require.True(t, p.May(auth.RunsRead))
		require.Equal(t, want, slices.Contains(p.Scopes(), auth.TenantsRead), key)
	}
}

func TestParseSpec_RejectsInvalidKeysWithoutRepeatingThem(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3tk3y"
	cases := map[string]string{
		"nothing":           "",
		"key only":          secret,
		"no tenant":         secret + "=",
		"no scopes":         secret + "=acme",
		"empty scopes":      secret + "=acme:",
		"empty tenant":      secret + "=:*",
		"no key":            "=acme:*",
		"unknown scope":     secret + "=acme:runs:destroy",
		"one unknown scope": secret + "=acme:runs:read,nope",
		"trailing comma":    secret + "=acme:runs:read,",
		"space in scope":    secret + "=acme:runs:read, runs:create",
		"dot in tenant":     secret + "=a.b:*",
		"wildcard tenant":   secret + "=>:*",
		"star tenant":       secret + "=*:*",
		"long tenant":       secret + "=" + strings.Repeat("t", 65) + ":*",
		"no scope at all":   secret + "=acme:group:g",
		"a nameless group":  secret + "=acme:*,group:",
		"a spaced role":     secret + "=acme:*,role:a b",
		"a long user":       secret + "=acme:*,user:" + strings.Repeat("u", 257),
		"two users":         secret + "=acme:*,user:a,user:b",
		"another belonging": secret + "=acme:*,team:a",
		"white space":       secret + " x=acme:*",
		"line break":        secret + "\n=acme:*",
	}
	for name, in := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := auth.ParseSpec(in)
			require.Error(t, err)
			require.NotContains(t, err.Error(), secret)
		})
	}
}

func ring(t *testing.T, specs ...string) *auth.Keys {
	t.Helper()
	var list []auth.Spec
	for _, s := range specs {
		spec, err := auth.ParseSpec(s)
		require.NoError(t, err)
		list = append(list, spec)
	}
	k, err := auth.NewKeys(list)
	require.NoError(t, err)
	return k
}

func TestNewKeys_RefusesTheSameKeyTwice(t *testing.T) {
	t.Parallel()
	_, err := auth.NewKeys([]auth.Spec{
		{Key: "sekret", Tenant: "a"},
		{Key: "other", Tenant: "a"},
		{Key: "sekret", Tenant: "b"},
	})
	require.ErrorContains(t, err, "no. 3")
	require.NotContains(t, err.Error(), "sekret")
}

func TestAuthenticate_FindsThePrincipalOfAKey(t *testing.T) {
	t.Parallel()
	k := ring(t, "one=acme:runs:read", "hk_test_two=beta:*")
	for _, header := range []string{"Bearer one", "bearer one", "BEARER one", "Bearer  one ", "bEaReR one"} {
		p, err := k.Authenticate(header)
		require.NoError(t, err, header)
		require.Equal(t, "acme", p.Tenant)
		require.False(t, p.TestKey)
		require.True(t, p.May(auth.RunsRead))
		require.False(t, p.May(auth.RunsCreate))
	}
	p, err := k.Authenticate("Bearer hk_test_two")
	require.NoError(t, err)
	require.Equal(t, "beta", p.Tenant)
	require.True(t, p.TestKey)
	require.True(t, p.May(auth.RunsCreate))
	require.True(t, p.May("anything:else"))
}

func TestIdentify_IgnoresTheSpellingOfTheHeader(t *testing.T) {
	t.Parallel()
	spec := auth.Spec{Key: "secret", Tenant: "acme", All: true}
	keys, err := auth.NewKeys([]auth.Spec{spec})
	require.NoError(t, err)
	for header, want := range map[string][2]string{
		"Bearer secret":      {"acme", spec.ID()},
		"bearer secret":      {"acme", spec.ID()},
		"BEARER  secret \t ": {"acme", spec.ID()},
		"Bearer SECRET":      {},
		"Basic secret":       {},
		"":                   {},
	} {
		tenant, keyID := keys.Identify(header)
		require.Equal(t, want, [2]string{tenant, keyID}, "%q", header)
	}
}

func TestAuthenticate_RejectsAllOthersWithTheSameError(t *testing.T) {
	t.Parallel()
	k := ring(t, "one=acme:runs:read")
	for _, header := range []string{
		"", "Bearer", "Bearer ", "Bearer  ", "one", "Basic one", "Basic b25lOg==", "Token one",
		"Bearerone", "Bearer ONE", "Bearer one1",
		"Bearer on", "Bearer one two", " Bearer one", "Bearer\tone", "Bearer Bearer one",
		"Bearer " + strings.Repeat("x", 1<<20),
		"Bearer \x00",
	} {
		p, err := k.Authenticate(header)
		require.Nil(t, p)
		e, ok := fault.As(err)
		require.True(t, ok)
		require.Equal(t, fault.Unauthenticated, e.Code, "%.40q", header)
		require.Less(t, len(e.Message), 100)
		require.Nil(t, e.Details)
	}
}

func TestPrincipal_KeyIDIsStableAndDoesNotRevealTheKey(t *testing.T) {
	t.Parallel()
	id := func(k *auth.Keys, key string) string {
		p, err := k.Authenticate("Bearer " + key)
		require.NoError(t, err)
		return p.KeyID
	}
	a, b := ring(t, "one=acme:*", "two=acme:*"), ring(t, "one=beta:*")
	require.Equal(t, id(a, "one"), id(b, "one"), "the same in every process")
	require.NotEqual(t, id(a, "one"), id(a, "two"))
	require.Regexp(t, `^key_[0-9a-f]{8}$`, id(a, "one"))
	require.NotContains(t, fmt.Sprintf("%+v", a), "one=")
}

func FuzzParseSpec_GivesUsableKeys(f *testing.F) {
	for _, seed := range []string{
		"k=t:*", "k=t:runs:read,runs:create", "=:", "k==t:*", "k=t:", "a=b:c=d", "k=t:*,*", "\x00=\xff:*",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		spec, err := auth.ParseSpec(s)
		if err != nil {
			return
		}
		require.NotEmpty(t, spec.Key)
		require.True(t, subject.Token(spec.Tenant), "a tenant is safe in a subject")
		require.True(t, spec.All || len(spec.Scopes) > 0, "a key without any scope cannot be given")
		require.True(t, strings.HasPrefix(s, spec.Key+"="+spec.Tenant+":"))
		k, err := auth.NewKeys([]auth.Spec{spec})
		require.NoError(t, err)
		_, err = k.Authenticate("Bearer " + spec.Key)
		if strings.TrimSpace(spec.Key) == spec.Key {
			require.NoError(t, err)
		}
	})
}

func FuzzAuthenticate(f *testing.F) {
	for _, seed := range []string{"", "Bearer ", "Bearer one", "bearer one", "Bearer\x00one", "Bearer onE"} {
		f.Add(seed)
	}
	k, err := auth.NewKeys([]auth.Spec{{Key: "one", Tenant: "acme", All: true}})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, header string) {
		p, err := k.Authenticate(header)
		if err != nil {
			require.Equal(t, fault.Unauthenticated, fault.CodeOf(err))
			require.Nil(t, p)
			return
		}
		require.Equal(t, "bearer one", strings.ToLower(header[:7])+strings.TrimSpace(header[7:]))
	})
}

func BenchmarkAuthenticate(b *testing.B) {
	k, err := auth.NewKeys([]auth.Spec{{Key: "hk_live_0123456789abcdef", Tenant: "acme", All: true}})
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Authenticate("Bearer hk_live_0123456789abcdef"); err != nil {
			b.Fatal(err)
		}
	}
}

// RFC 0104: groups and roles of a key come from the operator's configuration.
func TestAuthenticate_ReturnsGroupsAndRoles(t *testing.T) {
	t.Parallel()
	k := ring(t, "one=acme:approvals:respond,group:ops,role:r,user:u", "two=acme:*")
	p, err := k.Authenticate("Bearer one")
	require.NoError(t, err)
	require.Equal(t, []string{"ops"}, p.Groups)
	require.Equal(t, []string{"r"}, p.Roles)
	require.Equal(t, "u", p.User)
	require.False(t, p.May("group:ops"), "it is no scope")
	spec, err := auth.ParseSpec("one=acme:*,role:r,group:ops,user:u")
	require.NoError(t, err)
	require.Equal(t, []string{"user:u", "group:ops", "role:r"}, spec.Memberships())
	p, err = k.Authenticate("Bearer two")
	require.NoError(t, err)
	require.Empty(t, append(p.Groups, p.Roles...), "all scopes are no group and no role")
}
