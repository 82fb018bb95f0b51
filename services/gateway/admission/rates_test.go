package admission_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"waybill.dev/waybill/internal/notify"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/admission"
	"waybill.dev/waybill/services/gateway/auth"
)

func rules(t *testing.T, texts ...string) []admission.RateRule {
	t.Helper()
	out, err := admission.ParseRateRules(texts)
	require.NoError(t, err)
	return out
}

// callerAt returns a caller with a credential TENANT/KEY at an address. Without a tenant it is unknown.
func callerAt(credential, address string) admission.Caller {
	return tenantGate.Identify(credential, address)
}

// tenantGate identifies callers by credentials TENANT/KEY.
var tenantGate = admission.NewGate(admission.Config{}, time.Now, admission.Tenants{Of: func(c string) (tenant, keyID string) {
	tenant, keyID, _ = strings.Cut(c, "/")
	return tenant, keyID
}})

func take(r *admission.Rates, class admission.RouteClass, credential string) error {
	_, err := r.Take(class, callerAt(credential, "203.0.113.7"))
	return err
}

func TestParseRateRule_ReadsEveryForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]admission.RateRule{
		"key=50/s":                   {Scope: admission.PerKey, Limit: 50, Period: time.Second, Burst: 10},
		"tenant=5/m":                 {Scope: admission.PerTenant, Limit: 5, Period: time.Minute, Burst: 5},
		"tenant:start=600/h,burst=1": {Scope: admission.PerTenant, Class: admission.StartRoutes, Limit: 600, Period: time.Hour, Burst: 1},
		"key:read=2000/s":            {Scope: admission.PerKey, Class: admission.ReadRoutes, Limit: 2000, Period: time.Second, Burst: 200},
		"key:write=1/d":              {Scope: admission.PerKey, Class: admission.WriteRoutes, Limit: 1, Period: 24 * time.Hour, Burst: 1},
		"tenant:stream=1000000/s":    {Scope: admission.PerTenant, Class: admission.StreamRoutes, Limit: 1000000, Period: time.Second, Burst: 100000},
	} {
		got, err := admission.ParseRateRule(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"":                     "no =",
		"50/s":                 "no =",
		"address=50/s":         `scope "address"`,
		"key:delete=50/s":      `class "delete"`,
		"key:=50/s":            `class ""`,
		"key=50":               `unit ""`,
		"key=50/w":             `unit "w"`,
		"key=0/s":              `"0"`,
		"key=-1/s":             `"-1"`,
		"key=1.5/s":            `"1.5"`,
		"key=1000001/s":        `"1000001"`,
		"key=5/s,burst=0":      `"0"`,
		"key=5/s,burst=":       `""`,
		"key=5/s,burst=5,more": `"5,more"`,
	} {
		_, err := admission.ParseRateRule(text)
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, "want SCOPE[:CLASS]=N/UNIT[,burst=N]", text)
	}
	_, err := admission.ParseRateRules([]string{"key=1/s", "key:read=1/s", "key=2/m"})
	require.ErrorContains(t, err, "another limit for key")
}

func TestRouteClassOf_CoversThePublicMethods(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]admission.RouteClass{
		openwopv1.Engine_CreateRun_FullMethodName:               admission.StartRoutes,
		openwopv1.Engine_ForkRun_FullMethodName:                 admission.StartRoutes,
		openwopv1.Engine_StreamRunEvents_FullMethodName:         admission.StreamRoutes,
		hostv1.Host_WatchRuns_FullMethodName:                    admission.StreamRoutes,
		hostv1.Host_PollRunEvents_FullMethodName:                admission.ReadRoutes,
		openwopv1.Engine_GetRun_FullMethodName:                  admission.ReadRoutes,
		openwopv1.Engine_VerifyAuditLog_FullMethodName:          admission.ReadRoutes,
		openwopv1.Engine_InspectInterruptByToken_FullMethodName: admission.ReadRoutes,
		hostv1.Host_DiffRuns_FullMethodName:                     admission.ReadRoutes,
		openwopv1.Engine_CancelRun_FullMethodName:               admission.WriteRoutes,
		openwopv1.Engine_ResolveInterruptByToken_FullMethodName: admission.WriteRoutes,
		hostv1.Host_PutWorkflow_FullMethodName:                  admission.WriteRoutes,
		openwopv1.Engine_UnregisterWebhook_FullMethodName:       admission.WriteRoutes,
		hostv1.Host_RetryQuarantinedRun_FullMethodName:          admission.WriteRoutes,
	} {
		require.Equal(t, want, admission.RouteClassOf(method), method)
	}
}

func TestTake_LimitsKeysAndTenants(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	r := admission.NewRates(admission.RateConfig{
		Rules: rules(t, "key=2/m", "tenant=3/m", "tenant:start=1/m"),
		Tenants: map[string][]admission.RateRule{
			"free": nil,
			"big":  rules(t, "tenant=100/m,burst=100"),
		},
	}, func() time.Time { return now })
	require.NoError(t, take(r, admission.ReadRoutes, "acme/1"))
	require.NoError(t, take(r, admission.ReadRoutes, "acme/1"))
	err := take(r, admission.ReadRoutes, "acme/1")
	require.Equal(t, fault.RateLimited, fault.CodeOf(err))
	require.ErrorContains(t, err, "the limit of this key is 2 per minute")
	require.NoError(t, take(r, admission.ReadRoutes, "acme/2"), "another key; the refused request was not counted for the tenant")
	require.ErrorContains(t, take(r, admission.ReadRoutes, "acme/2"), "the limit of this tenant is 3 per minute")
	require.NoError(t, take(r, admission.StartRoutes, "other/1"))
	require.ErrorContains(t, take(r, admission.StartRoutes, "other/2"), "too many starts of runs")
	require.NoError(t, take(r, admission.ReadRoutes, "other/1"))

	for range 50 {
		require.NoError(t, take(r, admission.StartRoutes, "free/1"))
		require.NoError(t, take(r, admission.StartRoutes, "big/1"))
	}
	require.NoError(t, take(r, admission.ReadRoutes, "/guess-1"))
	require.NoError(t, take(r, admission.ReadRoutes, "/guess-2"))
	require.Error(t, take(r, admission.ReadRoutes, "/guess-3"), "callers without a key are limited by address")

	now = now.Add(time.Minute)
	require.NoError(t, take(r, admission.ReadRoutes, "acme/1"))
	require.NoError(t, testutil.CollectAndCompare(r.Collectors()[0], strings.NewReader(`
# HELP waybill_gateway_rate_limited_total Requests over a rate limit (429), by limit.
# TYPE waybill_gateway_rate_limited_total counter
waybill_gateway_rate_limited_total{limit="key"} 2
waybill_gateway_rate_limited_total{limit="tenant"} 1
waybill_gateway_rate_limited_total{limit="tenant-start"} 1
`)))
}

// Requests from many addresses evict no bucket of a key or a tenant.
func TestTake_UnknownCallersDoNotEvictOthers(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	r := admission.NewRates(admission.RateConfig{Rules: rules(t, "key=1/d", "tenant=2/d")}, func() time.Time { return now })
	require.NoError(t, take(r, admission.ReadRoutes, "acme/1"))
	require.NoError(t, take(r, admission.ReadRoutes, "acme/2"))
	for i := range 100_001 {
		_, err := r.Take(admission.ReadRoutes, callerAt("", fmt.Sprintf("2001:db8::%x", i)))
		require.NoError(t, err)
	}
	require.ErrorContains(t, take(r, admission.ReadRoutes, "acme/1"), "the limit of this")
	require.ErrorContains(t, take(r, admission.ReadRoutes, "acme/3"), "the limit of this tenant is 2 per day")
}

// A key has one bucket, however its Authorization header is spelled.
func TestTake_CountsEverySpellingOfAKeyTogether(t *testing.T) {
	t.Parallel()
	keys, err := auth.NewKeys([]auth.Spec{
		{Key: "secret", Tenant: "acme", All: true},
		{Key: "SECRET", Tenant: "acme", All: true},
	})
	require.NoError(t, err)
	gate := admission.NewGate(admission.Config{}, time.Now, admission.Tenants{Of: keys.Identify})
	for _, spelling := range []string{
		"Bearer secret", "bearer secret", "BEARER secret", "bEaReR secret",
		"Bearer  secret", "Bearer secret ", "Bearer \t secret\t ",
	} {
		now := time.Unix(1000, 0)
		r := admission.NewRates(admission.RateConfig{Rules: rules(t, "key=1/d")}, func() time.Time { return now })
		call := func(credential string) error {
			ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", credential))
			_, err := r.Unary(gate)(ctx, nil, &grpc.UnaryServerInfo{FullMethod: openwopv1.Engine_GetRun_FullMethodName},
				func(context.Context, any) (any, error) { return nil, nil })
			return err
		}
		require.NoError(t, call("Bearer secret"))
		require.Equal(t, fault.RateLimited, fault.CodeOf(call(spelling)), "%q", spelling)
		require.NoError(t, call("Bearer SECRET"), "another key")
		require.NoError(t, call("Bearer unknown"), "an unknown caller")
		require.Equal(t, fault.RateLimited, fault.CodeOf(call("Basic unknown")), "unknown callers are limited by address")
	}
}

// Two gateways admit the limit together, within a tenth, however requests are distributed.
func TestShare_LimitsGatewaysTogether(t *testing.T) {
	t.Parallel()
	for name, split := range map[string][2]int{"evenly": {4, 4}, "unevenly": {7, 1}, "to one": {8, 0}} {
		for _, rule := range []string{"tenant=200/s", "tenant:start=600/m", "key=1000/s,burst=20"} {
			t.Run(name+" "+rule, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { shared(t, rule, split) })
			})
		}
	}
}

func shared(t *testing.T, rule string, split [2]int) {
	const span = 20 * time.Second
	limits := rules(t, rule)
	hub, err := notify.New(nil, "rates")
	require.NoError(t, err)
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gateways := make([]*admission.Rates, 2)
	for i := range gateways {
		gateways[i] = admission.NewRates(admission.RateConfig{Rules: limits}, time.Now)
		group.Go(func() { _ = gateways[i].Share(ctx, hub) })
	}
	synctest.Wait()
	admitted := 0
	for began := time.Now(); time.Since(began) < span; <-time.After(2 * time.Millisecond) {
		for i, n := range split {
			for range n {
				if take(gateways[i], admission.StartRoutes, "acme/1") == nil {
					admitted++
				}
			}
		}
	}
	want := float64(limits[0].Limit) / limits[0].Period.Seconds() * span.Seconds()
	require.InEpsilon(t, want, admitted, 0.1)
}

func TestRateFile_FollowsChangesAndIgnoresInvalidOnes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "limits.json")
	write := func(doc string) { require.NoError(t, os.WriteFile(path, []byte(doc), 0o600)) }
	write(`{"limits": ["key:read=1/d"], "tenants": {"acme": ["tenant=5/d"]}}`)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := &admission.RateFile{Path: path, General: rules(t, "key=2/d"), Log: slog.New(slog.DiscardHandler)}
		cfg, changed, err := f.Read()
		require.NoError(t, err)
		require.True(t, changed)
		r := admission.NewRates(cfg, time.Now)
		done := make(chan struct{})
		go func() { defer close(done); _ = f.Follow(ctx, r) }()
		defer func() { cancel(); <-done }()
		require.NoError(t, take(r, admission.ReadRoutes, "other/1"))
		require.Error(t, take(r, admission.ReadRoutes, "other/1"), "a limit of the file")
		require.NoError(t, take(r, admission.WriteRoutes, "other/1"))
		require.Error(t, take(r, admission.WriteRoutes, "other/1"), "a limit of the flags")
		require.NoError(t, take(r, admission.ReadRoutes, "acme/1"))
		require.NoError(t, take(r, admission.ReadRoutes, "acme/1"), "limits of its own")

		write(`{"limits": [`)
		<-time.After(3 * time.Second)
		require.Error(t, take(r, admission.ReadRoutes, "other/1"))
		write(`{"tenants": {"other": []}}`)
		<-time.After(3 * time.Second)
		require.NoError(t, take(r, admission.ReadRoutes, "other/1"))
	})
}

func TestParseRateFile_ReportsEveryProblemWithItsPlace(t *testing.T) {
	t.Parallel()
	_, err := admission.ParseRateFile([]byte(`{"limits": ["key=1/s", "x"], "tenants": {"a b": [], "acme": ["key=1/w"]}}`), rules(t, "key=2/s"))
	for _, want := range []string{"/limits", "a flag has a limit for key", `"/limits/1": "x"`, `"/tenants/a b": want the name of a tenant`, `"/tenants/acme/0"`, `unit "w"`} {
		require.ErrorContains(t, err, want)
	}
	for _, doc := range []string{`[]`, `{"limit": []}`, `{"limits": 7}`, `{"limits": ["key=1/s"]} x`} {
		_, err := admission.ParseRateFile([]byte(doc), nil)
		require.ErrorContains(t, err, `want {"limits": [LIMIT, ...]`, doc)
	}
}

func TestHeaders_ListAllLimitsThatApply(t *testing.T) {
	t.Parallel()
	r := admission.NewRates(admission.RateConfig{Rules: rules(t, "key=50/s", "tenant:start=600/m,burst=20", "tenant:read=1/s")}, func() time.Time { return time.Unix(1, 0) })
	quotas, err := r.Take(admission.StartRoutes, callerAt("acme/1", "203.0.113.7"))
	require.NoError(t, err)
	policy, limit := admission.Headers(quotas)
	require.Equal(t, `"key";q=50;w=1, "tenant-start";q=600;w=60`, policy)
	require.Equal(t, `"key";r=9;t=1, "tenant-start";r=19;t=1`, limit)
	policy, limit = admission.Headers(nil)
	require.Empty(t, fmt.Sprint(policy, limit))
}
