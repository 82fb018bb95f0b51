package prompt_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/prompt"
)

const mib = 1 << 20

// long is a JSON string of n characters.
func long(char string, n int) json.RawMessage { return wire.AppendString(nil, strings.Repeat(char, n)) }

// A template of 64 KiB can name a value of a megabyte thousands of times.
func TestCompose_BoundsWhatItMakes(t *testing.T) {
	t.Parallel()
	in := prompt.Bindings{
		Secret: func(string) (string, bool) { return "abcdefgh", true },
		Input: prompt.Scope{Values: values{
			"a":       long("x", mib),
			"s":       long("x", 64<<10),
			"key":     long("k", 128),
			"spelled": long("abcdefgh", mib/8-1),
			"open":    long("x", mib),
			"tail":    long("x", 2*mib+1),
		}, Untrusted: map[string]bool{"open": true}},
	}
	path := func(name, path string) string {
		return variable(name, "string", required+`,"extractPath":"`+path+`"`)
	}
	for name, tc := range map[string]struct {
		text, variables, variable string
		fits                      bool
	}{
		"a value in one place":        {text: "{{a}}", fits: true},
		"a value in two places":       {text: "{{a}}{{a}}", fits: true},
		"in one too many":             {text: "{{a}}{{a}}{{a}}", variable: "a"},
		"a short one in many":         {text: strings.Repeat("{{s}} ", 100), variable: "s"},
		"marks count":                 {text: "{{open}}{{a}}", variable: "a"},
		"the values are not inserted": {text: "x", variables: path("p", "a") + "," + path("q", "a"), fits: true},
		"there are too many of them": {
			text:      "x",
			variables: path("p", "a") + "," + path("q", "a") + "," + path("r", "a"),
			variable:  "r",
		},
		"one of them is too long": {text: "x", variables: variable("tail", "string", required), variable: "tail"},
		"the template's own text": {text: "{{a}}{{a}}" + strings.Repeat("x", 5)},
		"the mark is longer than it is": {
			text:      "{{spelled}}",
			variables: variable("key", "string", required+`,"source":"secret"`),
			variable:  "spelled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := one(t, "user", tc.text, tc.variables, in)
			if tc.fits {
				require.Nil(t, err)
				require.LessOrEqual(t, len(c.Sent.User), 2*mib)
				return
			}
			require.Nil(t, c)
			require.NotNil(t, err)
			require.Equal(t, fault.ContentTooLong, err.Code)
			require.Equal(t, "prompt:t@1.0.0", err.Details["template"])
			if tc.variable == "" {
				require.NotContains(t, err.Details, "variable")
				return
			}
			require.Equal(t, tc.variable, err.Details["variable"])
			require.Less(t, len(err.Message), 300)
		})
	}
}

// The limit applies to all templates of a node together.
func TestCompose_BoundsAllPartsTogether(t *testing.T) {
	t.Parallel()
	b := prompt.Bindings{Input: prompt.Scope{Values: values{"a": long("x", mib*3/4)}}}
	var parts []prompt.Part
	for _, kind := range []string{"system", "user", "few-shot"} {
		parts = append(parts, prompt.Part{Template: parse(t, `{"templateId":"`+kind+`","version":"1.0.0","kind":"`+kind+`","text":"{{a}}"}`)})
	}
	_, err := prompt.Compose(parts[:2], b)
	require.Nil(t, err)
	_, err = prompt.Compose(parts, b)
	require.NotNil(t, err)
	require.Equal(t, fault.ContentTooLong, err.Code)
	require.Equal(t, "prompt:few-shot@1.0.0", err.Details["template"])
}

// An event too large for a frame is recorded without its texts.
func TestRender_BoundsTheEvent(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	for size, shows := range map[int]bool{mib / 2: true, 3 * mib: false, 5 * mib: true} {
		call := prompt.Call{Messages: []prompt.Message{{Role: "user", Content: long("x", size)}, {Role: "user", Content: json.RawMessage(`"short"`)}}}
		s, err := prompt.NewSent(call, nil, unchanged)
		require.NoError(t, err)
		doc := s.Payload("n", wire.Trusted, prompt.Full).Render()
		require.Less(t, len(doc), 7*mib)
		var p prompt.Payload
		require.NoError(t, json.Unmarshal(doc, &p))
		require.Equal(t, s.Payload("n", wire.Trusted, prompt.Hashed).Hash, p.Hash)
		require.Equal(t, shows, p.Composed != nil, size)
		if size > 4*mib {
			require.Contains(t, *p.Composed, "5242880 bytes, sha256:")
			require.Contains(t, *p.Composed, `"short"`)
		}
	}
}

// unchanged is a redactor that finds nothing.
func unchanged(doc []byte) ([]byte, error) { return doc, nil }
