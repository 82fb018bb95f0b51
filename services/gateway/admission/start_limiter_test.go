package admission_test

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/queuetime"
	"waybill.dev/waybill/services/gateway/admission"
)

// plant simulates a host whose dispatcher starts a fixed number of runs per second, in the order of
// admission, and answers a start after a delay. Time advances in milliseconds.
type plant struct {
	now     time.Time
	perSec  float64
	answers time.Duration
	begins  *queuetime.Meter
	queue   []time.Time // request times of admitted runs that have not started
	credit  float64
	open    []started
	// useful are the runs that started within patience, refused the rejected starts.
	useful, late, refused int
	worst                 time.Duration
}

type started struct {
	due   time.Time
	ended func(time.Duration, bool)
}

const patience = 2 * time.Second

func newPlant(perSec float64) *plant {
	return &plant{now: time.Unix(1000, 0), perSec: perSec, answers: 20 * time.Millisecond, begins: queuetime.New(interval)}
}

const interval = 200 * time.Millisecond

func (p *plant) clock() time.Time { return p.now }

// run offers starts to each limiter at a rate, for a duration.
func (p *plant) run(offered float64, d time.Duration, limiters ...*admission.StartLimiter) {
	wish := make([]float64, len(limiters))
	p.pass(d, func() {
		for i, l := range limiters {
			for wish[i] += offered / 1000 / float64(len(limiters)); wish[i] >= 1; wish[i]-- {
				p.ask(l)
			}
		}
	})
}

// tenants offers starts of each tenant at a rate, for a duration, and returns each tenant's admitted
// share.
func (p *plant) tenants(l *admission.StartLimiter, d time.Duration, offered map[string]float64) map[string]float64 {
	wish, asked, taken := map[string]float64{}, map[string]float64{}, map[string]float64{}
	names := slices.Sorted(maps.Keys(offered))
	p.pass(d, func() {
		for _, name := range names {
			for wish[name] += offered[name] / 1000; wish[name] >= 1; wish[name]-- {
				asked[name]++
				if p.askFor(l, name) {
					taken[name]++
				}
			}
		}
	})
	for name := range taken {
		taken[name] /= asked[name]
	}
	return taken
}

// pass advances time, and calls each in every millisecond.
func (p *plant) pass(d time.Duration, each func()) {
	p.useful, p.late, p.refused, p.worst = 0, 0, 0, 0
	for end := p.now.Add(d); p.now.Before(end); p.now = p.now.Add(time.Millisecond) {
		each()
		for len(p.open) > 0 && !p.open[0].due.After(p.now) {
			p.open[0].ended(p.begins.Mean(p.now), true)
			p.open = p.open[1:]
		}
		for p.credit += p.perSec / 1000; p.credit >= 1; p.credit-- {
			p.begin()
		}
	}
}

func (p *plant) ask(l *admission.StartLimiter) { p.askFor(l, "") }

// askFor offers a start of a tenant.
func (p *plant) askFor(l *admission.StartLimiter, tenant string) bool {
	if !l.Take(tenant) {
		p.refused++
		return false
	}
	p.open = append(p.open, started{p.now.Add(p.answers), l.Began()})
	p.begins.Enter(p.now)
	p.queue = append(p.queue, p.now)
	return true
}

func (p *plant) begin() {
	if len(p.queue) == 0 {
		return
	}
	took := p.now.Sub(p.queue[0])
	p.queue = p.queue[1:]
	p.begins.Leave(p.now)
	p.worst = max(p.worst, took)
	if took > patience {
		p.late++
		return
	}
	p.useful++
}

func TestLimiter_AdmitsAllWhileRunsStartInTime(t *testing.T) {
	t.Parallel()
	p := newPlant(500)
	l := admission.NewStartLimiter(500*time.Millisecond, p.clock)
	p.run(450, 10*time.Second, l)
	require.Zero(t, p.refused)
	require.Equal(t, math.Inf(1), l.Rate())
}

// A burst that is processed within the target is not overload.
func TestLimiter_AdmitsAShortBurst(t *testing.T) {
	t.Parallel()
	p := newPlant(500)
	l := admission.NewStartLimiter(500*time.Millisecond, p.clock)
	for range 150 {
		p.ask(l)
	}
	p.run(250, 5*time.Second, l)
	require.Zero(t, p.refused)
}

func TestLimiter_KeepsGoodputUnderOverload(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name            string
		perSec, offered float64
		gateways        int
	}{
		{"a tenth too much", 500, 1.1, 1},
		{"three times, a small host", 50, 3, 1},
		{"three times", 500, 3, 1},
		{"three times, a large host", 5000, 3, 1},
		{"three times, by four gateways", 500, 3, 4},
		{"ten times", 500, 10, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlant(tt.perSec)
			var all []*admission.StartLimiter
			for range tt.gateways {
				all = append(all, admission.NewStartLimiter(500*time.Millisecond, p.clock))
			}
			p.run(tt.perSec*tt.offered, 6*time.Second, all...)
			if tt.offered <= 3 { // at ten times the load the queue fills before the limiter reacts
				t.Logf("at first %.0f%% useful, %d late, worst %s", float64(p.useful)/6/tt.perSec*100, p.late, p.worst)
				require.GreaterOrEqual(t, float64(p.useful)/6, 0.85*tt.perSec, "from the first moment on: %d late, worst %s", p.late, p.worst)
			}
			p.run(tt.perSec*tt.offered, 6*time.Second, all...)
			p.run(tt.perSec*tt.offered, 20*time.Second, all...)
			t.Logf("%.0f%% useful, %d late, worst %s, queue %d", float64(p.useful)/20/tt.perSec*100, p.late, p.worst, len(p.queue))
			require.GreaterOrEqual(t, float64(p.useful)/20, 0.95*tt.perSec, "once it has settled")
			require.Zero(t, p.late)
			require.Less(t, p.worst, 1500*time.Millisecond)
		})
	}
}

// An outage of the disk for a second costs about that second.
func TestLimiter_UsesTheHostAgainAfterAPause(t *testing.T) {
	t.Parallel()
	p := newPlant(500)
	l := admission.NewStartLimiter(500*time.Millisecond, p.clock)
	p.run(1500, 10*time.Second, l)
	p.perSec = 0
	p.run(1500, time.Second, l)
	p.perSec = 500
	p.run(1500, 5*time.Second, l)
	t.Logf("%.0f%% useful, %d late, worst %s", float64(p.useful)/5/500*100, p.late, p.worst)
	require.GreaterOrEqual(t, float64(p.useful)/5, 0.85*500)
}

func TestLimiter_AdmitsAllAgainAfterOverload(t *testing.T) {
	t.Parallel()
	p := newPlant(500)
	l := admission.NewStartLimiter(500*time.Millisecond, p.clock)
	p.run(1500, 10*time.Second, l)
	require.False(t, math.IsInf(l.Rate(), 1))
	p.run(250, 5*time.Second, l)
	p.run(250, 5*time.Second, l)
	require.Zero(t, p.refused)
	require.Equal(t, math.Inf(1), l.Rate())
}

// A tenant below its share is not limited by another tenant. The other tenant gets the remaining
// capacity, and no capacity is wasted.
func TestLimiter_GivesEachTenantItsShare(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		offered map[string]float64
		least   map[string]float64 // minimum admitted share of each tenant
	}{
		{
			"one asks for ten times what the host can do",
			map[string]float64{"crowd": 5000, "small": 50},
			map[string]float64{"small": 0.99, "crowd": 0.08},
		},
		{
			"the other asks for nearly its half",
			map[string]float64{"crowd": 5000, "half": 225},
			map[string]float64{"half": 0.97, "crowd": 0.045},
		},
		{
			"the other seldom asks",
			map[string]float64{"crowd": 5000, "seldom": 0.5},
			map[string]float64{"seldom": 1, "crowd": 0.09},
		},
		{
			"both ask for more than there is",
			map[string]float64{"crowd": 5000, "crowd2": 500},
			map[string]float64{"crowd": 0.045, "crowd2": 0.45},
		},
		{
			"many",
			map[string]float64{"crowd": 5000, "a": 40, "b": 40, "c": 40, "d": 40, "e": 40},
			map[string]float64{"a": 0.97, "b": 0.97, "c": 0.97, "d": 0.97, "e": 0.97},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlant(500)
			l := admission.NewStartLimiter(500*time.Millisecond, p.clock)
			p.tenants(l, 12*time.Second, tt.offered) // until it has settled
			got := p.tenants(l, 20*time.Second, tt.offered)
			t.Logf("taken %v; %.0f%% useful, %d late, worst %s", got, float64(p.useful)/20/500*100, p.late, p.worst)
			for name, least := range tt.least {
				require.GreaterOrEqual(t, got[name], least, name)
			}
			require.GreaterOrEqual(t, float64(p.useful)/20, 0.95*500)
			require.Zero(t, p.late)
		})
	}
}

// With many tenants, no more starts are admitted than without shares, and their state is removed.
func TestLimiter_AdmitsNoMoreWithManyTenants(t *testing.T) {
	t.Parallel()
	p := newPlant(500)
	l := admission.NewStartLimiter(500*time.Millisecond, p.clock)
	n := 0
	wish := 0.0
	crowd := func() {
		for wish += 1.5; wish >= 1; wish-- { // each start is of another tenant
			n++
			p.askFor(l, strconv.Itoa(n))
		}
	}
	p.pass(12*time.Second, crowd)
	p.pass(20*time.Second, crowd)
	t.Logf("%.0f%% useful, %d late, worst %s", float64(p.useful)/20/500*100, p.late, p.worst)
	require.GreaterOrEqual(t, float64(p.useful)/20, 0.9*500)
	require.Zero(t, p.late)
}
