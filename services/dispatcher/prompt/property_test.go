package prompt_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/services/dispatcher/prompt"
)

// spellings are the ways to write a secret that must not be in an event.
func spellings(secret string) map[string]string {
	raw := []byte(secret)
	plain, _ := json.Marshal(secret)
	return map[string]string{
		"as it is":               secret,
		"in JSON":                string(plain[1 : len(plain)-1]),
		"hex":                    hex.EncodeToString(raw),
		"upper hex":              strings.ToUpper(hex.EncodeToString(raw)),
		"base64":                 base64.StdEncoding.EncodeToString(raw),
		"base64 without padding": base64.RawStdEncoding.EncodeToString(raw),
		"base64url":              base64.URLEncoding.EncodeToString(raw),
		"in a query":             url.QueryEscape(secret),
		"in a path":              url.PathEscape(secret),
	}
}

var names = []string{"a", "b", "c", "key"}

// No event contains a secret of eight or more characters, whether it comes from its variable, the
// template or another variable (OpenWOP envelope contract §25, prompt-composed-secret-redaction).
func TestProperty_NoEventShowsASecret(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		secret := "§" + rapid.StringMatching(`[ -~é😀]{8,24}`).Draw(t, "secret")
		ways := spellings(secret)
		said := rapid.Custom(func(t *rapid.T) string {
			return rapid.SampledFrom([]string{
				"", "x", "{{a}}", "{{key}}", "{{ b }}", "{{{c}}}",
				ways["as it is"],
				ways["hex"],
				ways["base64"],
				ways["in a query"],
				ways["in JSON"],
				"<UNTRUSTED>", "\n",
			}).Draw(t, "said")
		})
		text := strings.Join(rapid.SliceOfN(said, 1, 8).Draw(t, "text"), rapid.SampledFrom([]string{"", " "}).Draw(t, "between"))
		b := prompt.Bindings{
			Input:  prompt.Scope{Values: values{"key": json.RawMessage(`"main"`)}, Untrusted: map[string]bool{}},
			Secret: func(id string) (string, bool) { return secret, id == "main" },
		}
		for _, name := range names[:3] {
			value := strings.Join(rapid.SliceOfN(said, 0, 4).Draw(t, name), "")
			var v any = value
			if rapid.Bool().Draw(t, "nested") {
				v = map[string]any{value: []any{value, 1.5, nil}}
			}
			raw, err := json.Marshal(v)
			require.NoError(t, err)
			b.Input.Values[name] = raw
			b.Input.Untrusted[name] = rapid.Bool().Draw(t, "untrusted")
		}
		doc, err := json.Marshal(map[string]any{
			"templateId": "t",
			"version":    "1.0.0",
			"kind":       rapid.SampledFrom(prompt.Kinds()).Draw(t, "kind"),
			"text":       text,
			"variables": []any{
				map[string]any{"name": "key", "type": "string", "required": true, "source": "secret"},
			},
		})
		require.NoError(t, err)
		template, err := prompt.Parse(doc)
		require.NoError(t, err)
		c, ferr := prompt.Compose([]prompt.Part{{Template: template}}, b)
		require.Nil(t, ferr)
		p, err := json.Marshal(c.Payload("n", prompt.Full))
		require.NoError(t, err)
		for way, spelled := range ways {
			require.NotContains(t, string(p), spelled, way)
		}
		if strings.Contains(text, "{{key}}") {
			require.Contains(t, c.Sent.System+c.Sent.User, secret)
			require.Contains(t, string(p), "[REDACTED:main]")
		}
	})
}

// Equal values have equal hashes, independent of the order of their members.
func TestProperty_TheHashDoesNotDependOnOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.MapOfN(rapid.StringMatching(`[a-z]{1,4}`), rapid.StringN(0, 8, -1), 0, 6).Draw(t, "members")
		var keys []string
		for k := range members {
			keys = append(keys, k)
		}
		write := func(order []string) json.RawMessage {
			var parts []string
			for _, k := range order {
				v, err := json.Marshal(members[k])
				require.NoError(t, err)
				parts = append(parts, `"`+k+`" : `+string(v))
			}
			return json.RawMessage("{" + strings.Join(parts, " ,\n") + "}")
		}
		untrusted := map[string]bool{"a": rapid.Bool().Draw(t, "untrusted")}
		payload := func(raw json.RawMessage) string {
			template, err := prompt.Parse([]byte(`{"templateId":"t","version":"1.0.0","kind":"user","text":"{{a}} {{b}}"}`))
			require.NoError(t, err)
			c, ferr := prompt.Compose([]prompt.Part{{Template: template}}, prompt.Bindings{Input: prompt.Scope{
				Values:    values{"b": json.RawMessage(`"B"`), "a": raw},
				Untrusted: untrusted,
			}})
			require.Nil(t, ferr)
			p, err := json.Marshal(c.Payload("n", prompt.Full))
			require.NoError(t, err)
			return string(p)
		}
		require.Equal(t, payload(write(keys)), payload(write(rapid.Permutation(keys).Draw(t, "order"))))
	})
}
