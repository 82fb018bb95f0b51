package ladder_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/ladder"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// The logs that the console's ladder is tested with: both have to draw the same.
const logs = "../../../console/web/src/ladder/logs"

func read(t *testing.T, path string) []wire.Event {
	t.Helper()
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("SKIPPED, %s is missing: check out console/web", path)
	}
	require.NoError(t, err)
	var log struct{ Events []wire.Event }
	require.NoError(t, json.Unmarshal(b, &log))
	return log.Events
}

func only(t *testing.T, name string) *ladder.Execution {
	t.Helper()
	all := ladder.Read(read(t, filepath.Join(logs, name+".json")))
	require.Len(t, all, 1)
	return all[0]
}

// picture is an execution in a few lines: each call's attempt, cause and end, and the
// gates of each document.
func picture(x *ladder.Execution) []string {
	marks := map[ladder.State]string{
		ladder.Passed:        "+",
		ladder.Refused:       "x",
		ladder.NotReached:    ".",
		ladder.NotApplicable: " ",
	}
	var out []string
	for _, c := range x.Calls {
		parts := []string{fmt.Sprint(c.Attempt), c.Cause, c.End(x.Result == "open")}
		for _, e := range c.Envelopes {
			drawn := ""
			for _, r := range e.Rungs {
				drawn += marks[r.State]
			}
			parts = append(parts, drawn)
		}
		out = append(out, strings.Join(parts, " | "))
	}
	return out
}

// The same table is the console's (console/web/src/ladder/ladder.test.ts).
func TestRead_DrawsWhatTheConsoleDraws(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		log      string
		lines    []string
		headline string
	}{
		{"contract", []string{"1 | first | refused | +++x...."}, "Stopped at gate 4 of 8, contract: media.image"},
		{"discard", []string{"1 | first | accepted | +++x.... | ++++++++"}, "Taken at once"},
		{
			"corrected",
			[]string{
				"1 | first | schema violation | ++x.....", "2 | retry | schema violation | ++x.....",
				"3 | retry | accepted | ++++++++",
			},
			"Taken on attempt 3 after two schema violations",
		},
		{
			"exhausted",
			[]string{
				"1 | first | schema violation | ++x.....", "2 | retry | schema violation | ++x.....",
				"3 | retry | schema violation | ++x.....",
			},
			"Given up after three attempts: three schema violations",
		},
		{
			"truncated",
			[]string{"1 | first | truncated", "2 | retry | accepted | ++++++++"},
			"Taken on attempt 2 after one truncation",
		},
		{
			"truncated-out",
			[]string{"1 | first | truncated", "2 | retry | truncated", "3 | retry | truncated"},
			"Given up after three attempts: three truncations",
		},
		{"refusal", []string{"1 | first | declined"}, "The model declined, which is final"},
		{
			"unknown-kind",
			[]string{"1 | first | wrong kind or version | +x......", "2 | retry | accepted | ++++++++"},
			"Taken on attempt 2 after one wrong kind or version",
		},
		{
			"shape",
			[]string{
				"1 | first | schema violation | x.......", "2 | retry | schema violation | x.......",
				"3 | retry | accepted | ++++++++",
			},
			"Taken on attempt 3 after two schema violations",
		},
		{
			"version",
			[]string{"1 | first | wrong kind or version | ++x.....", "2 | retry | accepted | ++++++++"},
			"Taken on attempt 2 after one wrong kind or version",
		},
		{
			"dedup",
			[]string{"1 | first | schema violation | ++++++++ | ++x.....", "2 | retry | accepted | ++++++++ | ++++++++"},
			"Taken on attempt 2 after one schema violation",
		},
		{
			"limits",
			[]string{"1 | first | refused | ++++++++ | ++++++++ | ++++++++ | ++++++++ | ++++++++ | ++++x..."},
			"Stopped at gate 5 of 8, limits",
		},
		{
			"cantsay",
			[]string{
				"1 | first | no JSON", "2 | retry | no JSON", "3 | retry | no JSON",
				"4 | prose-fallback | accepted | ++++++++",
			},
			"Put into the schema by one further call after three answers without JSON",
		},
		{"fence", []string{"1 | first | accepted | ++++++++"}, "Taken at once"},
		{"clarify", []string{"1 | first | accepted | ++++++++"}, "Waiting for an answer to the model's question"},
		{
			"schema-request",
			[]string{"1 | first | accepted | ++++++++", "2 | next-turn | accepted | ++++++++"},
			"Taken on attempt 2",
		},
	} {
		t.Run(tc.log, func(t *testing.T) {
			t.Parallel()
			x := only(t, tc.log)
			require.Equal(t, tc.lines, picture(x))
			require.Equal(t, tc.headline, x.Story().Headline)
		})
	}
}

func TestRead_SaysWhatTheContractRefusedAndAccepts(t *testing.T) {
	t.Parallel()
	x := only(t, "contract")
	stop := x.Calls[0].Envelopes[0].Stop()
	require.Equal(t, fault.EnvelopeContractViolation, stop.Code)
	require.Equal(t, "media.image", stop.RefusedKind)
	require.Contains(t, stop.AcceptedKinds, "vendor.waybill.ticket.triage")
	var text strings.Builder
	require.NoError(t, ladder.Write(&text, []*ladder.Execution{x}, false))
	for _, want := range []string{
		"1 shape      ✓ passed", "2 kind       ✓ passed", "3 payload    ✓ passed", "4 contract   ✕ refused",
		"5 limits     · not reached", "8 routing    · not reached", "refused   media.image", "next (workflow author): ",
	} {
		require.Contains(t, text.String(), want)
	}
	require.NotContains(t, text.String(), "\x1b")
}

func TestRead_NamesThePlacesOfAViolation(t *testing.T) {
	t.Parallel()
	x := only(t, "corrected")
	require.Equal(t, []ladder.Problem{
		{Message: "required member missing: summary", SchemaPointer: "/required", InstancePointer: "/summary"},
		{
			Message:         "want type null or string",
			SchemaPointer:   "/properties/action/anyOf/0/properties/orderId/type",
			InstancePointer: "/action/orderId",
		},
	}, x.Calls[1].Envelopes[0].Stop().Problems)
}

// Whatever recorded an envelope in the golden corpus is on a ladder, once.
func TestRead_ShowsEachRecordedEnvelopeOfTheCorpus(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../test/golden/corpus/*.json")
	require.NoError(t, err)
	require.Greater(t, len(files), 60)
	for _, file := range files {
		events := read(t, file)
		all := ladder.Read(events)
		shown := map[string]int{}
		for _, x := range all {
			require.NotEmpty(t, x.Story().Headline, file)
			for _, c := range x.Calls {
				for _, e := range c.Envelopes {
					require.Len(t, e.Rungs, len(ladder.Gates), file)
					stopped := e.Outcome == ladder.OutcomeRefused || e.Outcome == ladder.OutcomeDiscarded
					require.Equal(t, stopped, e.Stop() != nil, file)
					require.NotEmpty(t, ladder.Find(all, e.Key), file)
					if e.Outcome == ladder.OutcomeAccepted && !e.Value {
						shown[e.Events[0].EventID]++
					}
				}
			}
		}
		for _, e := range events {
			if e.CausationID != "" && (e.Type == "artifact.created" || e.Type == "clarification.requested") {
				require.Equal(t, 1, shown[e.EventID], "%s: event %d", file, e.Sequence)
			}
		}
	}
}

func TestFind_KnowsAnEnvelopeByEachOfItsNames(t *testing.T) {
	t.Parallel()
	all := ladder.Read(read(t, "../../../test/golden/corpus/asks-3.json"))
	require.NotEmpty(t, all)
	x := all[0]
	e := x.Calls[0].Envelopes[0]
	for _, name := range []string{
		e.Key, e.EnvelopeID, e.CorrelationID, e.Events[0].EventID, fmt.Sprint(e.Events[0].Sequence),
	} {
		found := ladder.Find(all, name)
		require.Len(t, found, 1, name)
		require.Equal(t, e, found[0].Calls[0].Envelopes[0], name)
	}
	require.Len(t, ladder.Find(all, x.NodeID), 1)
	require.Len(t, ladder.Find(all, x.NodeID+".1.1"), 1)
	require.Empty(t, ladder.Find(all, "nobody"))
	require.Contains(t, ladder.Names(all), e.Key)
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"eventId":"e","sequence":1,"type":"envelope.retry.attempted","nodeId":"n","payload":{"attempt":2,"reason":"schema-violation","previousError":"x (/properties/a)"}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var e wire.Event
		if json.Unmarshal(doc, &e) != nil {
			return
		}
		var text strings.Builder
		require.NoError(t, ladder.Write(&text, ladder.Read([]wire.Event{e, e}), false))
		require.NotContains(t, text.String(), "\x1b")
	})
}
