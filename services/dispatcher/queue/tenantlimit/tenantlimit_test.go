package tenantlimit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/queue/tenantlimit"
)

func TestParse_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, doc, want string }{
		{"empty", ``, "the document ends too early"},
		{"no tenants", `{}`, `at "/tenants": missing`},
		{
			"unknown member", `{"tenants":{"a":{"wieght":1}}}`,
			`at "/tenants/a/wieght": unknown member; allowed here: concurrency, priority, rate, retention, weight`,
		},
		{"type", `{"tenants":{"a":{"weight":"1"}}}`, `at "/tenants/a/weight": want a number, got a string`},
		{"weight", `{"tenants":{"a":{"weight":-1}}}`, `at "/tenants/a/weight": -1: want 1 to 1000`},
		{"no weight", `{"tenants":{"a":{"weight":0}}}`, `at "/tenants/a/weight": 0: want 1 to 1000`},
		{"priority", `{"tenants":{"a":{"priority":11}}}`, `at "/tenants/a/priority": 11: want -10 to 10`},
		{"concurrency", `{"tenants":{"*":{"concurrency":{"limit":0}}}}`, `at "/tenants/*/concurrency/limit": 0: want 1 to`},
		{
			"rate", `{"tenants":{"*":{"rate":{"limit":1001,"periodMs":60000}}}}`,
			`at "/tenants/*/rate/limit": 1001: want 1 to 1000`,
		},
		{"period", `{"tenants":{"*":{"rate":{"limit":1,"periodMs":1}}}}`, `at "/tenants/*/rate/periodMs": 1: want`},
		{"no retention", `{"tenants":{"a":{"retention":"0d"}}}`, `at "/tenants/a/retention": want days such as "90d"`},
		{"negative retention", `{"tenants":{"a":{"retention":"-1h"}}}`, `at "/tenants/a/retention": want days such as "90d"`},
		{"retention in words", `{"tenants":{"*":{"retention":"soon"}}}`, `at "/tenants/*/retention": want days such as "90d"`},
		{"retention in days", `{"tenants":{"*":{"retention":90}}}`, `at "/tenants/*/retention": want a string, got a number`},
		{"tenant", `{"tenants":{"a.b":{}}}`, `at "/tenants/a.b": want the name of a tenant or *`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := tenantlimit.Parse([]byte(tt.doc))
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestParse_ReportsAllErrors(t *testing.T) {
	t.Parallel()
	_, err := tenantlimit.Parse([]byte(`{"tenants":{"a":{"weight":0,"wieght":1,"rate":{"limit":"x","periodMs":1}},"b":{"priority":99}},"more":1}`))
	for _, want := range []string{
		`at "/tenants/a/weight": 0: want 1 to 1000`, `at "/tenants/a/wieght": unknown member`,
		`at "/tenants/a/rate/limit": want a number`,
		`at "/tenants/a/rate/periodMs": 1: want`, `at "/tenants/b/priority": 99: want -10 to 10`,
		`at "/more": unknown member; allowed here: $schema, tenants`,
	} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), `"/tenants/a/rate/limit": 0`, "one error for each value")
}

func TestLimits_OfATenantBeforeThoseOfAll(t *testing.T) {
	t.Parallel()
	l, err := tenantlimit.Parse([]byte(`{"tenants":{"acme":{"weight":3},"*":{"priority":-1,"concurrency":{"limit":5}}}}`))
	require.NoError(t, err)
	require.Equal(t, tenantlimit.Tenant{Weight: 3}, l.For("acme"))
	require.Equal(t, tenantlimit.Tenant{
		Weight:      1,
		Priority:    -1,
		Concurrency: &tenantlimit.Concurrency{Limit: 5},
	}, l.For("beta"))
	require.Equal(t, tenantlimit.Tenant{Weight: 1}, (*tenantlimit.Limits)(nil).For("beta"))
}

func TestRetention_OfATenantBeforeThatOfAll(t *testing.T) {
	t.Parallel()
	l, err := tenantlimit.Parse([]byte(`{"tenants":{"acme":{"retention":"2h"},"ever":{"retention":"unlimited"},"none":{},"*":{"retention":"30d"}}}`))
	require.NoError(t, err)
	for tenant, want := range map[string]time.Duration{"acme": 2 * time.Hour, "ever": 0, "other": 30 * 24 * time.Hour} {
		keep, ok := l.Retention(tenant)
		require.True(t, ok, tenant)
		require.Equal(t, want, keep, tenant)
	}
	_, ok := l.Retention("none")
	require.False(t, ok)
	_, ok = (*tenantlimit.Limits)(nil).Retention("acme")
	require.False(t, ok)
}
