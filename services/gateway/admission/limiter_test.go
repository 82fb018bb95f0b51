package admission_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/sojourn"
	"waybill.dev/waybill/services/gateway/admission"
)

// plant is a host whose dispatcher begins so many runs a second, in the order in which they were
// taken, and answers a start after a while; time passes by the millisecond.
type plant struct {
	now     time.Time
	perSec  float64
	answers time.Duration
	begins  *sojourn.Meter
	queue   []time.Time // when those were asked for that have not begun
	credit  float64
	open    []started
	// useful are those that began within patience, refused those that were not taken.
	useful, late, refused int
	worst                 time.Duration
}

type started struct {
	due   time.Time
	ended func(time.Duration, bool)
}

const patience = 2 * time.Second

func newPlant(perSec float64) *plant {
	return &plant{now: time.Unix(1000, 0), perSec: perSec, answers: 20 * time.Millisecond, begins: sojourn.New(interval)}
}

const interval = 200 * time.Millisecond

func (p *plant) clock() time.Time { return p.now }

// run lets so many starts a second be asked of each limiter, for a while.
func (p *plant) run(offered float64, d time.Duration, limiters ...*admission.Limiter) {
	p.useful, p.late, p.refused, p.worst = 0, 0, 0, 0
	wish := make([]float64, len(limiters))
	for end := p.now.Add(d); p.now.Before(end); p.now = p.now.Add(time.Millisecond) {
		for i, l := range limiters {
			for wish[i] += offered / 1000 / float64(len(limiters)); wish[i] >= 1; wish[i]-- {
				p.ask(l)
			}
		}
		for len(p.open) > 0 && !p.open[0].due.After(p.now) {
			p.open[0].ended(p.begins.Mean(p.now), true)
			p.open = p.open[1:]
		}
		for p.credit += p.perSec / 1000; p.credit >= 1; p.credit-- {
			p.begin()
		}
	}
}

func (p *plant) ask(l *admission.Limiter) {
	if !l.Take() {
		p.refused++
		return
	}
	p.open = append(p.open, started{p.now.Add(p.answers), l.Began()})
	p.begins.Enter(p.now)
	p.queue = append(p.queue, p.now)
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

func TestLimiter_TakesAllWhileRunsBeginInTime(t *testing.T) {
	t.Parallel()
	p := newPlant(500)
	l := admission.NewLimiter(500*time.Millisecond, p.clock)
	p.run(450, 10*time.Second, l)
	require.Zero(t, p.refused)
	require.Equal(t, math.Inf(1), l.Rate())
}

// A crowd that comes at once and is worked off within the target is no overload.
func TestLimiter_TakesACrowdThatIsSoonWorkedOff(t *testing.T) {
	t.Parallel()
	p := newPlant(500)
	l := admission.NewLimiter(500*time.Millisecond, p.clock)
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
			var all []*admission.Limiter
			for range tt.gateways {
				all = append(all, admission.NewLimiter(500*time.Millisecond, p.clock))
			}
			p.run(tt.perSec*tt.offered, 6*time.Second, all...)
			if tt.offered <= 3 { // of ten times the queue is there before anybody sees it
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

// A disk that is gone for a second costs that second, and not many more.
func TestLimiter_UsesTheHostAgainAfterAPause(t *testing.T) {
	t.Parallel()
	p := newPlant(500)
	l := admission.NewLimiter(500*time.Millisecond, p.clock)
	p.run(1500, 10*time.Second, l)
	p.perSec = 0
	p.run(1500, time.Second, l)
	p.perSec = 500
	p.run(1500, 5*time.Second, l)
	t.Logf("%.0f%% useful, %d late, worst %s", float64(p.useful)/5/500*100, p.late, p.worst)
	require.GreaterOrEqual(t, float64(p.useful)/5, 0.85*500)
}

func TestLimiter_TakesAllAgainAfterOverload(t *testing.T) {
	t.Parallel()
	p := newPlant(500)
	l := admission.NewLimiter(500*time.Millisecond, p.clock)
	p.run(1500, 10*time.Second, l)
	require.False(t, math.IsInf(l.Rate(), 1))
	p.run(250, 5*time.Second, l)
	p.run(250, 5*time.Second, l)
	require.Zero(t, p.refused)
	require.Equal(t, math.Inf(1), l.Rate())
}
