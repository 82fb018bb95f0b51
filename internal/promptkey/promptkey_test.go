package promptkey_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/promptkey"
)

// The canonical documents are written down by hand, from RFC 8785 and the recipe.
func TestCanonical_FollowsTheRecipe(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ given, want string }{
		"the least": {
			`{"provider":"OpenAI","model":"GPT-x","messages":[{"role":"user","content":"hi"}]}`,
			`{"model":"GPT-x","provider":"openai","recipe":"openwop-semantic-request-v2","request":{"messages":[{"content":"hi","role":"user"}]}}`,
		},
		"numbers as ECMAScript writes them": {
			`{"model":"m","provider":"p","seed":1e2,"temperature":0.50,"topP":1.0,"topK":1e21,"maxOutputTokens":4e-7,"messages":[]}`,
			`{"model":"m","provider":"p","recipe":"openwop-semantic-request-v2","request":{"maxOutputTokens":4e-7,"messages":[],"seed":100,"temperature":0.5,"topK":1e+21,"topP":1}}`,
		},
		"what is absent is left out": {
			`{"model":"m","provider":"p","providerOptions":null,"tools":null,"messages":[{"role":"tool","content":"x","name":null,"toolCallId":"t"}],"responseFormat":{"type":"json","schema":null}}`,
			`{"model":"m","provider":"p","recipe":"openwop-semantic-request-v2","request":{"messages":[{"content":"x","role":"tool","toolCallId":"t"}],"responseFormat":{"type":"json"}}}`,
		},
		"no escaping for HTML, blocks verbatim, messages in order": {
			`{"model":"m","provider":"p","messages":[{"role":"system","content":"<b>&\u00e9\u2028"},{"role":"user","content":[{"z":null,"a":1}]}]}`,
			`{"model":"m","provider":"p","recipe":"openwop-semantic-request-v2","request":{"messages":[{"content":"<b>&é` + "\u2028" + `","role":"system"},{"content":[{"a":1,"z":null}],"role":"user"}]}}`,
		},
		// U+1F600 begins with the unit D83D, before U+FB33 in UTF-16 and behind it in UTF-8.
		"tools by UTF-16 units": {
			`{"model":"m","provider":"p","messages":[],"tools":[{"name":"\ufb33"},{"name":"\ud83d\ude00"},{"name":"b","description":"d"},{"name":"B"}]}`,
			`{"model":"m","provider":"p","recipe":"openwop-semantic-request-v2","request":{"messages":[],"tools":[{"name":"B"},{"description":"d","name":"b"},{"name":"😀"},{"name":"` + "\ufb33" + `"}]}}`,
		},
		"options are the vendor's": {
			`{"model":"m","provider":"P","messages":[],"vendor.p.logitBias":{"a":1},"logitBias":{"a":2},"providerOptions":{"x":true,"vendor.p.y":[2]}}`,
			`{"model":"m","provider":"p","providerOptions":{"vendor.p.logitBias":{"a":1},"vendor.p.x":true,"vendor.p.y":[2]},"recipe":"openwop-semantic-request-v2","request":{"messages":[]}}`,
		},
	} {
		got, err := promptkey.Canonical([]byte(tc.given))
		require.NoError(t, err, name)
		require.Equal(t, tc.want, string(got), name)
		key, err := promptkey.Of([]byte(tc.given))
		require.NoError(t, err)
		sum := sha256.Sum256([]byte(tc.want))
		require.Equal(t, hex.EncodeToString(sum[:]), key)
	}
}

func key(t *testing.T, doc string) string {
	t.Helper()
	k, err := promptkey.Of([]byte(doc))
	require.NoError(t, err, doc)
	return k
}

const plain = `{"provider":"p","model":"m","messages":[{"role":"user","content":"hi"}]}`

func TestOf_DependsOnContentOnly(t *testing.T) {
	t.Parallel()
	with := func(member string) string { return strings.Replace(plain, `"messages"`, member+`,"messages"`, 1) }
	for _, same := range []string{
		with(`"stream":true`), with(`"metadata":{"a":1}`), with(`"user":"u"`), with(`"timeoutMs":5`),
		with(`"traceId":"t"`), with(`"x-request-id":"r"`), with(`"traceparent":"00"`), with(`"credentialRef":"c"`),
		with(`"tenantId":"a","runId":"r"`), with(`"anything":{"else":1}`), with(`"request":{"seed":1}`),
		with(`"temperature":null`), with(`"tools":[]`), with(`"providerOptions":{}`),
		with(`"recipe":"openwop-semantic-request-v2"`), strings.Replace(plain, `"p"`, `"P"`, 1),
	} {
		require.Equal(t, key(t, plain), key(t, same), same)
	}
	seen := map[string]string{key(t, plain): plain}
	for _, other := range []string{
		with(`"maxOutputTokens":1`), with(`"stop":["x"]`), with(`"seed":0`), with(`"temperature":0`),
		with(`"topP":1`), with(`"topK":1`),
		with(`"safetySettings":[]`), with(`"tools":[{"name":"t"}]`), with(`"responseFormat":{"type":"text"}`),
		with(`"providerOptions":{"other":1}`), with(`"vendor.p.more":1`),
		strings.Replace(plain, `"m"`, `"M"`, 1), strings.Replace(plain, `"hi"`, `"e\u0301"`, 1),
		strings.Replace(plain, `"hi"`, `"\u00e9"`, 1),
	} {
		k := key(t, other)
		require.Empty(t, seen[k], other)
		seen[k] = other
	}
}

func TestOf_RejectsInvalidRequests(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`[]`:                           "the request: want an object",
		`{"model":"m"}`:                "/provider:",
		`{"provider":"p"}`:             "/model:",
		`{"provider":"p","model":"m"}`: "/messages:",
		`{"provider":"p","model":"m","request":{"messages":[]}}`:                              "/messages:",
		`{"provider":"p","model":"m","messages":"hi"}`:                                        "/messages:",
		`{"provider":"p","model":"m","messages":[{"role":"boss","content":""}]}`:              "/messages/0/role:",
		`{"provider":"p","model":"m","messages":[{"role":"user"}]}`:                           "/messages/0/content:",
		`{"provider":"p","model":"m","messages":[{"role":"user","content":"","x":1}]}`:        "/messages/0/x: unknown",
		`{"provider":"p","model":"m","messages":[],"tools":[{}]}`:                             "/tools/0/name:",
		`{"provider":"p","model":"m","messages":[],"responseFormat":{"type":"xml"}}`:          "/responseFormat/type:",
		`{"provider":"p","model":"m","messages":[],"recipe":"v1"}`:                            "/recipe:",
		`{"provider":"p","model":"m","messages":[],"vendor.p.x":1,"providerOptions":{"x":2}}`: "/providerOptions/x: ",
		`{"provider":"p","model":"m","messages":[],"providerOptions":{"x":1,"vendor.p.x":2}}`: "/providerOptions/",
		`{"provider":"p","provider":"q","model":"m","messages":[]}`:                           "provider",
		`{"provider":"p","model":"m","messages":[],"providerOptions":3}`:                      "/providerOptions:",
	} {
		_, err := promptkey.Of([]byte(doc))
		require.ErrorContains(t, err, want, doc)
	}
}
