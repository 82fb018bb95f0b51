package seam_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/seam"
)

func TestExercise_RefusesUnusableBodies(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, text := range map[string]string{
		"empty": ``, "not JSON": `{`, "array": `[]`, "no envelope": `{}`, "broken envelope": `{"envelope":{]}`,
		"boundary": `{"envelope":{},"runTrustBoundary":"x"}`, "strictness": `{"envelope":{},"envelopeStrictness":"x"}`,
		"counters": `{"envelope":{},"counters":[]}`, "dedup": `{"envelope":{},"persistedDedup":{}}`,
		"projection": `{"envelope":{},"projectTo":{}}`, "mode": `{"envelope":{},"projectTo":{"runId":"r","refusalMode":"x"}}`,
		"long run": `{"envelope":{},"projectTo":{"runId":"` + strings.Repeat("x", 129) + `"}}`,
		"canaries": `{"envelope":{},"byokCanaries":[` + strings.Repeat(`{},`, 64) + `{}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.x.Exercise(t.Context(), tenant, []byte(text))
			require.Equal(t, fault.InvalidArgument, fault.CodeOf(err), "%v", err)
		})
	}
}

// OpenWOP envelope contract §26 case 5: the pipeline refuses a document that strict
// parsers reject, like any other invalid document.
func TestParse_LeavesTheEnvelopeToThePipeline(t *testing.T) {
	t.Parallel()
	for name, doc := range map[string]string{
		"a member twice":          `{"type":"error","type":"error"}`,
		"not UTF-8":               "{\"type\":\"\xff\"}",
		"half a surrogate":        `{"type":"\ud800"}`,
		"nested deep":             strings.Repeat("[", 500) + strings.Repeat("]", 500),
		"nested very deep":        strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000),
		"a text with brackets":    `"}{][,\"\\"`,
		"a number":                `-1.5e3`,
		"a word":                  `true`,
		"an object in a list":     `[{"a":[{"b":"]"}]}]`,
		"an envelope in itself":   `{"envelope":{"envelope":1}}`,
		"one of another spelling": `{"Envelope":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, body := range []string{
				`{"envelope":` + doc + `}`,
				` { "counters" : {} , "envelope" : ` + doc + ` , "nodeAllowedKinds" : ["x"] } `,
			} {
				r, err := seam.Parse([]byte(body))
				require.NoError(t, err)
				require.Equal(t, doc, string(r.Envelope))
			}
			o := newFixture(t)
			out, err := o.x.Exercise(t.Context(), tenant, []byte(`{"envelope":`+doc+`}`))
			require.NoError(t, err)
			require.Contains(t, string(out), `"invalid_envelope_shape`)
		})
	}
	for name, body := range map[string]string{
		"two envelopes":           `{"envelope":{},"envelope":{}}`,
		"two, one of them hidden": `{"envelope":{},"envel\u006fpe":{}}`,
		"brackets that cross":     `{"envelope":{]}}`,
		"words that are none":     `{"envelope":tru}`,
		"nothing":                 `{"envelope":}`,
		"a comma too many":        `{"envelope":1,}`,
		"no comma":                `{"envelope":1 "counters":{}}`,
		"no end":                  `{"envelope":{"a":1}`,
		"more after the end":      `{"envelope":1}}`,
		"a text without end":      `{"envelope":"}`,
		"a member twice around":   `{"envelope":1,"counters":{},"counters":{}}`,
		"not UTF-8 around":        "{\"envelope\":1,\"boundInterruptKind\":\"\xff\"}",
	} {
		_, err := seam.Parse([]byte(body))
		require.Equal(t, fault.InvalidArgument, fault.CodeOf(err), name)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"envelope":{"a":"}\"","a":[1,{}]},"projectTo":{"runId":"r"}}`))
	f.Add([]byte(`{"envelope":1}`))
	f.Add([]byte(`{"envelope":{"type":"error"},"counters":{"schemaRounds":{"current":1,"cap":2}},"projectTo":{"runId":"r"}}`))
	f.Add([]byte(`{"envelope":null,"byokCanaries":[],"priorCorrelations":[{}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := seam.Parse(b)
		if err != nil {
			require.Equal(t, fault.InvalidArgument, fault.CodeOf(err))
			return
		}
		require.NotNil(t, r.Envelope)
		if json.Valid(b) { // then another reader finds the same
			var other map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(b, &other))
			require.Equal(t, string(other["envelope"]), string(r.Envelope))
		}
	})
}
