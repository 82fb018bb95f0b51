package models

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// OpenWOP envelope contract §14.3 and §14.5: the host dies when the second attempt is announced and
// its call is in flight. The next owner of the run makes that attempt, with its budget and
// correction. Nothing is announced twice, and there are no more answers than attempts.
func TestCrash_TheLoopResumesWhereItWas(t *testing.T) {
	t.Parallel()
	needsHost(t)
	checked(t, &harness.Client{}) // load the schemas before the parallel tests
	for i, tc := range []struct {
		name    string
		answers []answer
		events  []string
		budget  int
	}{
		{"after a truncation", []answer{cutOff(long(100), 0), {text: long(100), in: 5, out: 100}}, []string{usage, truncated, retry, logged, usage, artifact, completed, "run.completed"}, 2 * budget},
		{"after a mistake", withUsage(answer{text: wrong}, answer{text: good}), []string{usage, retry, logged, usage, artifact, completed, "run.completed"}, budget},
		{"to its end", withUsage(answer{text: wrong}, answer{text: wrong}, answer{text: wrong}), []string{usage, retry, logged, usage, retry, usage, exhausted, breached, failed, "run.failed"}, budget},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h, lines := hostOnLines(t)
			v := vendors[i%len(vendors)]
			k := &crash{h: h, v: v, line: lines[v.id], shape: "envelope", mode: "whole", name: unsafeInName.ReplaceAllString("loop "+tc.name, "-")}
			k.killAtRetry(t, tc.answers...)
			h.Launch()
			events := finish(t, checked(t, h.Client("dev-key")), k.run)
			require.Equal(t, slices.Concat([]string{"run.started", started}, tc.events), typesBut(events, chunk), "%s", dump(events))
			for n, e := range of(events, retry) {
				require.Contains(t, string(e.Payload), `"attempt":`+string(rune('2'+n)))
			}
			calls := v.desk.of(k.name)
			require.Len(t, calls, len(tc.answers))
			first, err := v.read(calls[0].body)
			require.NoError(t, err)
			second, err := v.read(calls[1].body)
			require.NoError(t, err)
			require.JSONEq(t, string(first.schema), string(second.schema))
			require.Equal(t, tc.budget, second.budget)
			if tc.budget > budget {
				require.Equal(t, first.text, second.text)
				return
			}
			require.Contains(t, second.text, "was not accepted")
		})
	}
}
