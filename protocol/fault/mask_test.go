package fault_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
)

const (
	looksSecret = "sk_live_51H8abcdefghijklmnop"
	looksSigned = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
)

// OpenWOP host contract §2.0, leakage.
func TestEnvelope_MasksCredentials(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/inputs/" + looksSecret + ": unknown member": "/inputs/[REDACTED]: unknown member",
		"/" + looksSigned + ": unknown member":        "/[REDACTED]: unknown member",
		"pk_test_12345678 and hk_live_12345678":       "[REDACTED] and [REDACTED]",
		"sk-proj-12345678":                            "[REDACTED]",
		strings.Repeat("Ab3+", 8) + "==":              "[REDACTED]",
		// A credential is masked including further characters of the word.
		"/inputs/" + looksSecret + "/c4e7+a8=35: unknown member":               "/inputs/[REDACTED]: unknown member",
		`port "` + strings.Repeat("Ab3+", 8) + `/Qx7~1Zw9": unknown`:           `port "[REDACTED]": unknown`,
		"aVeryLongNameOfAMemberThatSomebodyHasChosen/" + looksSecret + "~x, y": "aVeryLongNameOfAMemberThatSomebodyHasChosen/[REDACTED], y",
		// Ordinary error texts are unchanged.
		"no run of this id in your tenant":                   "no run of this id in your tenant",
		"run_06gzrgcz75tj1arxptsr4mpddm":                     "run_06gzrgcz75tj1arxptsr4mpddm",
		"conformance-envelope-truncation-cap-exhaustion-1":   "conformance-envelope-truncation-cap-exhaustion-1",
		"core.ai.structuredOutput, task_queue, risk-manager": "core.ai.structuredOutput, task_queue, risk-manager",
		"/configurable/ai.credentialRef":                     "/configurable/ai.credentialRef",
		"01234567-89ab-7cde-8f01-23456789abcd":               "01234567-89ab-7cde-8f01-23456789abcd",
		"aVeryLongNameOfAMemberThatSomebodyHasChosen":        "aVeryLongNameOfAMemberThatSomebodyHasChosen",
		strings.Repeat("9", 40):                              strings.Repeat("9", 40),
	} {
		e := fault.New(fault.ValidationError, "%s", text).With("path", text).With("n", json.Number("9007199254740993")).
			With("problems", []struct {
				Path string `json:"path"`
			}{{text}}).With("by", map[string]any{text: []string{text}})
		var got struct {
			Message string
			Details struct {
				Path     string
				N        json.Number
				Problems []struct{ Path string }
				By       map[string][]string
			}
		}
		require.NoError(t, json.Unmarshal(e.Envelope(), &got))
		require.Equal(t, want, got.Message)
		require.Equal(t, want, got.Details.Path)
		require.Equal(t, want, got.Details.Problems[0].Path)
		require.Equal(t, map[string][]string{want: {want}}, got.Details.By)
		require.Equal(t, "9007199254740993", got.Details.N.String())
		require.Equal(t, text, e.Message, "the error itself, which is logged, is unchanged")
	}
}

func FuzzEnvelope(f *testing.F) {
	f.Add(looksSecret, "\n"+strings.Repeat("A1", 20))
	f.Fuzz(func(t *testing.T, message, detail string) {
		b := fault.New(fault.ValidationError, "%s", message+".").With("d", detail).Envelope()
		e, err := fault.ParseEnvelope(b)
		require.NoError(t, err)
		again, err := fault.ParseEnvelope(e.Envelope())
		require.NoError(t, err)
		require.Equal(t, e, again, "masking is idempotent")
	})
}
