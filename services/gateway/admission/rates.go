package admission

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/lru"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/auth"
)

// Rates limits the rates of requests (OpenWOP host contract §2.0, rate limit). It is safe for
// concurrent use.
//
// Each gateway has a token bucket for each limit and subject. It reports what it admitted to the
// others, which take that from their buckets, below zero if need be. So the rate of all gateways
// together is the limit, however requests are distributed; only bursts can add up for a moment.
type Rates struct {
	clock func() time.Time
	cfg   atomic.Pointer[RateConfig]

	mu      sync.Mutex // guards the fields below
	buckets *lru.Cache[bucketKey, *rate.Limiter]
	// unknown has the buckets of callers without a valid credential. It is separate, so that
	// requests from many addresses cannot evict the buckets of tenants and keys.
	unknown *lru.Cache[bucketKey, *rate.Limiter]
	// used is what was admitted since the last report; nil without Share.
	used    map[bucketKey]int
	refused *prometheus.CounterVec
}

// bucketKey identifies a bucket.
type bucketKey struct {
	// tenant is empty for callers without a valid credential.
	tenant string
	// subject is a key id, or the address of a caller without a valid credential. It is empty
	// for limits of tenants.
	subject string
	rule    RateRule
}

// NewRates makes limits.
func NewRates(cfg RateConfig, clock func() time.Time) *Rates {
	r := &Rates{
		clock:   clock,
		buckets: lru.New[bucketKey, *rate.Limiter](maxNames),
		unknown: lru.New[bucketKey, *rate.Limiter](maxNames),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "waybill", Subsystem: "gateway", Name: "rate_limited_total",
			Help: "Requests over a rate limit (429), by limit.",
		}, []string{"limit"}),
	}
	r.cfg.Store(&cfg)
	return r
}

// Set replaces the limits. The buckets of unchanged ones stay as they are.
func (r *Rates) Set(cfg RateConfig) { r.cfg.Store(&cfg) }

// Collectors returns the metrics.
func (r *Rates) Collectors() []prometheus.Collector { return []prometheus.Collector{r.refused} }

// LimitsDiscovery reports whether discovery is limited.
func (r *Rates) LimitsDiscovery() bool { return r.cfg.Load().Discovery }

// Quota is the state of a limit, for the headers of an answer.
type Quota struct {
	Rule      RateRule
	Remaining int
	// Reset is when the burst is available again.
	Reset time.Duration
}

// Take counts a request of a caller. An error is meant for the caller: the request is over a limit,
// and not counted. The quotas are those of all limits that apply.
func (r *Rates) Take(class RouteClass, from Caller) ([]Quota, error) {
	rules := r.cfg.Load().of(from.tenant)
	if len(rules) == 0 {
		return nil, nil
	}
	now := r.clock()
	var (
		quotas  []Quota
		taken   []*rate.Reservation
		keys    []bucketKey
		longest time.Duration
		over    RateRule
	)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rule := range rules {
		key, ok := keyOf(rule, from)
		if !ok || !rule.applies(class) {
			continue
		}
		b := r.bucket(key)
		res := b.ReserveN(now, 1)
		if wait := res.DelayFrom(now); wait > 0 {
			res.CancelAt(now)
			if wait > longest {
				longest, over = wait, rule
			}
		} else {
			taken, keys = append(taken, res), append(keys, key)
		}
		quotas = append(quotas, quotaOf(rule, b, now))
	}
	if longest > 0 {
		for _, res := range taken {
			res.CancelAt(now)
		}
		r.refused.WithLabelValues(over.Name()).Inc()
		return quotas, over.refusal(longest)
	}
	if r.used != nil {
		for _, key := range keys {
			r.used[key]++
		}
	}
	return quotas, nil
}

// keyOf returns the bucket of a caller; ok is false if the rule does not apply to it.
func keyOf(rule RateRule, from Caller) (key bucketKey, ok bool) {
	key = bucketKey{tenant: from.tenant, rule: rule}
	switch {
	case rule.Scope == PerTenant:
		return key, from.tenant != ""
	case from.tenant == "": // by its address: guessed keys share a limit
		key.subject = from.name
	default:
		key.subject = from.keyID
	}
	return key, true
}

func (r *Rates) bucket(key bucketKey) *rate.Limiter {
	buckets := r.buckets
	if key.tenant == "" {
		buckets = r.unknown
	}
	b, ok := buckets.Get(key)
	if !ok {
		b = rate.NewLimiter(rate.Limit(key.rule.perSecond()), key.rule.Burst)
		buckets.Put(key, b, 1)
	}
	return b
}

func quotaOf(rule RateRule, b *rate.Limiter, now time.Time) Quota {
	tokens := b.TokensAt(now)
	return Quota{
		Rule:      rule,
		Remaining: max(int(math.Floor(tokens)), 0),
		Reset:     time.Duration(max(float64(rule.Burst)-tokens, 0) / rule.perSecond() * float64(time.Second)),
	}
}

// refusal is the error of a request over the limit.
func (r RateRule) refusal(wait time.Duration) error {
	scope, what := string(r.Scope), "requests"
	if r.Class != EveryRoute {
		scope, what = "route", map[RouteClass]string{
			StartRoutes:  "starts of runs",
			StreamRoutes: "new streams",
			ReadRoutes:   "reads",
			WriteRoutes:  "changes",
		}[r.Class]
	}
	wait = wait.Round(time.Millisecond) + time.Millisecond // never too early
	return fault.New(fault.RateLimited, "too many %s: the limit of this %s is %d per %s", what, r.Scope, r.Limit, unitOf(r.Period)).
		With("scope", scope).With("limit", r.Limit).With("retryAfterMs", wait.Milliseconds()).After(wait)
}

func unitOf(period time.Duration) string {
	return map[time.Duration]string{
		time.Second:    "second",
		time.Minute:    "minute",
		time.Hour:      "hour",
		24 * time.Hour: "day",
	}[period]
}

// Headers are the fields RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers); empty
// without limits.
func Headers(quotas []Quota) (policy, limit string) {
	var policies, limits []string
	for _, q := range quotas {
		policies = append(policies, fmt.Sprintf("%q;q=%d;w=%d", q.Rule.Name(), q.Rule.Limit, int(q.Rule.Period.Seconds())))
		limits = append(limits, fmt.Sprintf("%q;r=%d;t=%d", q.Rule.Name(), q.Remaining, int(math.Ceil(q.Reset.Seconds()))))
	}
	return strings.Join(policies, ", "), strings.Join(limits, ", ")
}

// unlimited are the services that every caller may use without a limit: health checks and reflection.
const unlimited = "/grpc."

// check counts a call of a gRPC client.
func (r *Rates) check(ctx context.Context, gate *Gate, method string) error {
	if strings.HasPrefix(method, unlimited) || ClassOf(method) == Free && !r.LimitsDiscovery() {
		return nil
	}
	_, err := r.Take(RouteClassOf(method), gate.Identify(auth.Credential(ctx), PeerAddress(ctx)))
	return err
}

// Unary returns the interceptor that limits calls of gRPC clients.
func (r *Rates) Unary(gate *Gate) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if err := r.check(ctx, gate, info.FullMethod); err != nil {
			return nil, err
		}
		return next(ctx, req)
	}
}

// Stream returns the interceptor that limits streams of gRPC clients.
func (r *Rates) Stream(gate *Gate) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		if err := r.check(ss.Context(), gate, info.FullMethod); err != nil {
			return err
		}
		return next(srv, ss)
	}
}
