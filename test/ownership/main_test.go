// Package ownership runs several dispatcher processes on one NATS server, and counts their
// calls of a model and of a tool from outside: a run is executed by one dispatcher at a time.
//
// `go test` runs a short form of the tests without a crash. OWNERSHIP=rest adds the other
// tests, and OWNERSHIP=full runs all of them at full size. OWNERSHIP_ROUNDS repeats the
// saturation test. OWNERSHIP_NOISE is added to the limit of a hand-over, for a busy machine.
package ownership

import (
	"cmp"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

func TestMain(m *testing.M) {
	m.Run()
	harness.Clean()
}

// Values of OWNERSHIP.
const (
	formRest = "rest"
	formFull = "full"
)

// size is how much a test does.
type size struct {
	// slots is --max-runs of each dispatcher; 0 uses the default.
	slots int
	runs  int
	// takes is the duration of a call.
	takes time.Duration
}

// pick returns the size for this form. It skips the test under -short.
func pick(t *testing.T, short, full size) size {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED, starts real processes: run without -short")
	}
	if os.Getenv("OWNERSHIP") == formFull {
		return full
	}
	return short
}

// together runs the short form of a test in parallel with the others.
func together(t *testing.T) {
	t.Helper()
	if os.Getenv("OWNERSHIP") != formFull {
		t.Parallel()
	}
}

// needsRest skips a test that CI does not run.
func needsRest(t *testing.T) {
	t.Helper()
	if v := os.Getenv("OWNERSHIP"); v != formRest && v != formFull {
		t.Skip("SKIPPED, takes minutes: set OWNERSHIP=rest or OWNERSHIP=full, or run `make faults`")
	}
}

// rounds is how often the saturation test is repeated.
func rounds(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("OWNERSHIP_ROUNDS"), "1"))
	require.NoError(t, err)
	return n
}

// handover is the time within which another dispatcher continues a released run. With the default
// noise it still differs from the lease of 15 s.
const handover = 200 * time.Millisecond

// noise is the tolerance for the scheduling of a busy machine.
func noise(t *testing.T) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(cmp.Or(os.Getenv("OWNERSHIP_NOISE"), "5s"))
	require.NoError(t, err)
	return d
}
