package ownership

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/test/chaos/journal"
	"waybill.dev/waybill/test/harness"
)

// owner is the owner of a run, as the header of a frame names it.
type owner struct {
	process  string
	epoch    int
	released bool
}

// parseOwner reads PROCESS-N@EPOCH or PROCESS-N@EPOCH/released. Frames of other writers have
// no owner.
func parseOwner(writer string) (o owner, ok bool) {
	of, rest, ok := strings.Cut(writer, "@")
	at := strings.LastIndexByte(of, '-')
	if !ok || at < 0 || strings.HasPrefix(of, frame.ExternalPrefix) {
		return owner{}, false
	}
	epoch, state, _ := strings.Cut(rest, "/")
	n, err := strconv.Atoi(epoch)
	return owner{of[:at], n, state == "released"}, err == nil
}

func TestParseOwner(t *testing.T) {
	t.Parallel()
	for writer, want := range map[string]owner{
		"host-7-3@1":          {"host-7", 1, false},
		"host-7-3@2/released": {"host-7", 2, true},
		"host-7-3":            {},
		"beside-host-7@1":     {},
		"host-7-3@":           {},
		"":                    {},
	} {
		got, ok := parseOwner(writer)
		require.Equal(t, want != owner{}, ok, writer)
		if ok {
			require.Equal(t, want, got, writer)
		}
	}
}

// owners are the owners of a run in the order of its log, each once in a row.
func owners(frames []*frame.Frame) (out []owner) {
	for _, f := range frames {
		o, ok := parseOwner(f.Writer)
		if !ok {
			continue
		}
		if last := len(out) - 1; last >= 0 && out[last].process == o.process && out[last].epoch == o.epoch {
			out[last].released = o.released
			continue
		}
		out = append(out, o)
	}
	return out
}

// checkOwners requires that the log of each run is a chain of frames with rising epochs, and
// that each repeated call shows in the log as a change of the owner.
func (r *rig) checkOwners(t *testing.T, events map[string][]harness.Event) {
	t.Helper()
	logs, repeated := journal.Frames(t, r.nats.ClientURL()), r.repeated()
	moved, retried := 0, 0
	for _, id := range slices.Sorted(maps.Keys(r.ids)) {
		frames := logs[r.ids[id]]
		require.NoError(t, frame.VerifyChain(frames))
		chain := owners(frames)
		if assert.NotEmpty(t, chain, "%s: the log names an owner: %q", id, writers(frames)) {
			assert.True(t, slices.IsSortedFunc(chain, func(a, b owner) int { return cmp.Compare(a.epoch, b.epoch) }), "%s: epochs rise: %+v", id, chain)
		}
		if len(chain) > 1 {
			moved++
		}
		if len(repeated[id]) > 0 {
			assert.Greater(t, len(chain), 1, "%s: the log shows who repeated the call: %q", id, writers(frames))
		}
		for _, e := range events[id] {
			if e.Type == "node.retried" {
				retried++
			}
		}
		if t.Failed() {
			t.FailNow() // all runs fail in the same way
		}
	}
	t.Logf("%d runs changed their owner; %d node.retried events", moved, retried)
}

func writers(frames []*frame.Frame) (out []string) {
	for _, f := range frames {
		out = append(out, f.Writer)
	}
	return out
}
