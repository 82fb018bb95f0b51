package sweep

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

func TestMain(m *testing.M) {
	m.Run()
	harness.Clean()
}

// sample is the ratio of batches to those of a sample.
const sample = 3

// TestSweep_NoSecretLeaves plants 50 secrets in each encoding that the redactor supports, proves
// that each arrived, and searches every output byte for it (OpenWOP envelope contract §11, §25
// secret-leakage).
func TestSweep_NoSecretLeaves(t *testing.T) {
	t.Parallel()
	secrets := makeSecrets()
	for name, c := range map[string]struct {
		args    []string
		batches []batch
		// brief skips the places that the second layer does not affect.
		brief bool
		// own plants the tenant's keys as well.
		own bool
		// stop ends the host: cleanly, killed, or with a goroutine dump.
		stop func(*harness.Host)
		// last is a text that the output then has.
		last string
	}{
		// The first layer must suffice alone.
		"of those registered, without shapes": {[]string{"--redact-shapes=false"}, knownBatches(append(own(), secrets...)), false, true, (*harness.Host).Quit, "SIGQUIT: quit"},
		"of those registered, with shapes":    {nil, knownBatches(append(own(), secrets...)), true, false, (*harness.Host).Kill, ""},
		"of those that look like one":         {nil, shapedBatches(), false, false, func(h *harness.Host) { h.Stop() }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, secrets, c.batches, c.args...)
			r.deploy()
			for i, b := range c.batches {
				r.requests(b)
				if c.brief && !everyBatch() && i%4 > 0 {
					continue
				}
				r.answers(b)
				r.accepts(b, fmt.Sprint("sweep-", i))
				if everyBatch() || c.brief || b.shaped() || i%2 == 0 { // each batch of shapes has other rules
					r.vendors(b, i)
					r.talks(b)
					r.relays(b)
					r.fails(b, i)
					r.composes(b, i)
				}
				if c.brief || !everyBatch() && i%sample > 0 {
					continue
				}
				r.wrong(b)
				r.wrongCalls(b)
				r.definitions(b)
				r.keyed(b)
				r.toolResults(b)
				r.reasons(b)
				r.forks(b, r.waits(b))
				r.questions(b)
				r.families(b)
				r.channels(b)
				r.expressions(b)
				r.hooks(b)
				r.plantOutsideLog(b, r.runs[len(r.runs)-1])
				r.panics(b)
				r.doors(b, fmt.Sprint("door-", i))
				r.seamComposes(b)
			}
			all := c.batches
			if c.own {
				r.owned(tenantBatches(), len(all))
				all = append(slices.Clone(all), tenantBatches()...)
			}
			r.end(c.batches, c.stop, c.last)
			r.search(all)
		})
	}
}

// accepts plants in an envelope from an external executor.
func (r *rig) accepts(b batch, runID string) {
	r.t.Helper()
	a := r.do(http.MethodPost, seams+"envelope/accept", mustJSON(map[string]any{
		"envelope":  json.RawMessage(envelope(b, "error", map[string]any{"code": "x.y", "message": "m", b.at("name"): b.at("payload")})),
		"projectTo": map[string]any{"runId": runID, "nodeId": "n"},
	}))
	r.prove(b, string(a.Body), "name")
}

// finderOf prepares the search for all planted texts; names describes each text.
func finderOf(t *testing.T, batches []batch) (f *finder, names []string) {
	t.Helper()
	var texts []string
	for _, b := range batches {
		for _, it := range b.items {
			texts, names = append(texts, it.trace), append(names, it.marker+", "+b.name)
		}
	}
	f = newFinder(texts)
	require.NotNil(t, f)
	return f, names
}

// search searches every sink for all planted texts.
func (r *rig) search(batches []batch) {
	r.t.Helper()
	require.Equal(r.t, r.planted, r.started)
	require.Equal(r.t, r.planted, r.finished)
	f, names := finderOf(r.t, batches)
	shown, size := 0, 0
	for where, content := range r.all {
		b := content.Bytes()
		size += len(b)
		for _, h := range f.find(b) {
			if shown++; shown <= 40 {
				r.t.Errorf("%s shows in %s, after %q", names[h.text], where, h.before)
			}
		}
	}
	require.Greater(r.t, size, 1<<20, "the sinks have something in them")
	r.t.Logf("planted %d texts in %d runs and %d refused requests, %d proved to have arrived; looked in %d MB of %d sinks",
		len(names), r.finished, r.refused, r.proved, size>>20, len(r.all))
}
