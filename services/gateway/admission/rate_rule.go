package admission

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
)

// RateScope is what a rate limit applies to each of.
type RateScope string

// The scopes.
const (
	// PerKey limits each API key, and each address without a valid key.
	PerKey RateScope = "key"
	// PerTenant limits all keys of each tenant together.
	PerTenant RateScope = "tenant"
)

// RouteClass is a part of the API with a limit of its own.
type RouteClass string

// The classes.
const (
	// EveryRoute is all classes together.
	EveryRoute RouteClass = ""
	// StartRoutes create runs.
	StartRoutes RouteClass = "start"
	// StreamRoutes open streams.
	StreamRoutes RouteClass = "stream"
	// ReadRoutes change nothing.
	ReadRoutes RouteClass = "read"
	// WriteRoutes are all others.
	WriteRoutes RouteClass = "write"
)

var (
	rateScopes   = []string{string(PerKey), string(PerTenant)}
	routeClasses = []string{string(StartRoutes), string(StreamRoutes), string(ReadRoutes), string(WriteRoutes)}
)

// streamMethods are the methods that open streams.
var streamMethods = func() map[string]bool {
	out := map[string]bool{}
	for _, s := range []grpc.ServiceDesc{openwopv1.Engine_ServiceDesc, hostv1.Host_ServiceDesc} {
		for _, m := range s.Streams {
			out["/"+s.ServiceName+"/"+m.StreamName] = true
		}
	}
	return out
}()

// readVerbs begin the names of methods that change nothing.
var readVerbs = []string{"Get", "List", "Poll", "Diff", "Inspect", "Verify", "Export", "Read", "Validate"}

// RouteClassOf returns the class of a public method.
func RouteClassOf(method string) RouteClass {
	name := method[strings.LastIndexByte(method, '/')+1:]
	switch {
	case ClassOf(method) == Start:
		return StartRoutes
	case streamMethods[method]:
		return StreamRoutes
	case slices.ContainsFunc(readVerbs, func(verb string) bool { return strings.HasPrefix(name, verb) }):
		return ReadRoutes
	default:
		return WriteRoutes
	}
}

// RateRule limits the rate of requests: Limit in each Period on average, and Burst at once.
type RateRule struct {
	Scope  RateScope
	Class  RouteClass
	Limit  int
	Period time.Duration
	Burst  int
}

// Name identifies the rule among those of a tenant: its scope and its class.
func (r RateRule) Name() string {
	if r.Class == EveryRoute {
		return string(r.Scope)
	}
	return string(r.Scope) + "-" + string(r.Class)
}

func (r RateRule) applies(class RouteClass) bool { return r.Class == EveryRoute || r.Class == class }

// perSecond is the average rate.
func (r RateRule) perSecond() float64 { return float64(r.Limit) / r.Period.Seconds() }

// periods are the units of a rate.
var periods = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

// maxRate limits the numbers of a rule.
const maxRate = 1_000_000

// rateForm describes the form of a rule.
const rateForm = "want SCOPE[:CLASS]=N/UNIT[,burst=N], such as key=50/s or tenant:start=600/m,burst=20; " +
	"scopes: key, tenant; classes: start, stream, read, write; units: s, m, h, d"

// ParseRateRule reads a rule of the form SCOPE[:CLASS]=N/UNIT[,burst=N].
func ParseRateRule(text string) (RateRule, error) {
	r, err := parseRateRule(text)
	if err != nil {
		return r, fmt.Errorf("%q: %w; %s", text, err, rateForm)
	}
	return r, nil
}

func parseRateRule(text string) (r RateRule, err error) {
	subject, amount, found := strings.Cut(text, "=")
	scope, class, classed := strings.Cut(subject, ":")
	switch {
	case !found:
		return r, errors.New("it has no =")
	case !slices.Contains(rateScopes, scope):
		return r, fmt.Errorf("unknown scope %q", scope)
	case classed && !slices.Contains(routeClasses, class):
		return r, fmt.Errorf("unknown class %q", class)
	}
	r.Scope, r.Class = RateScope(scope), RouteClass(class)
	amount, burst, hasBurst := strings.Cut(amount, ",burst=")
	limit, unit, _ := strings.Cut(amount, "/")
	if r.Period, found = periods[unit]; !found {
		return r, fmt.Errorf("unknown unit %q", unit)
	}
	if r.Limit, err = rateNumber(limit); err != nil {
		return r, err
	}
	r.Burst = r.usualBurst()
	if hasBurst {
		r.Burst, err = rateNumber(burst)
	}
	return r, err
}

func rateNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxRate {
		return 0, fmt.Errorf("%q is no number from 1 to %d", text, maxRate)
	}
	return n, nil
}

// usualBurst is a tenth of a second of the rate. A small limit can be used up at once.
func (r RateRule) usualBurst() int { return max(int(r.perSecond()/10), min(r.Limit, 10)) }

// RateConfig are the limits of all callers. The zero value has none.
type RateConfig struct {
	// Rules apply to tenants without rules of their own, and to callers without a valid key.
	Rules []RateRule
	// Tenants have rules of their own, which replace Rules.
	Tenants map[string][]RateRule
	// Discovery is limited, too. Only tests do that.
	Discovery bool
}

func (c *RateConfig) of(tenant string) []RateRule {
	if own, ok := c.Tenants[tenant]; ok {
		return own
	}
	return c.Rules
}

// ParseRateRules reads rules. Two rules of one name are an error.
func ParseRateRules(texts []string) ([]RateRule, error) {
	var (
		out  []RateRule
		errs []error
	)
	for _, text := range texts {
		r, err := ParseRateRule(text)
		if err == nil && slices.ContainsFunc(out, func(o RateRule) bool { return o.Name() == r.Name() }) {
			err = fmt.Errorf("%q: there is another limit for %s", text, strings.ReplaceAll(r.Name(), "-", ":"))
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, r)
	}
	return out, errors.Join(errs...)
}
