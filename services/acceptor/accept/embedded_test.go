package accept_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
)

// OpenWOP envelope contract §17: an asset that a payload of another kind has as a data: URL is stored
// above the inline limit, like those of the media kinds. The rest of the payload keeps its bytes.
func TestEmbedded_ALargeDataURLIsStored(t *testing.T) {
	t.Parallel()
	large := "DATA:image/png;base64," + base64Of(2000)
	f, s := newFixture(t), &shelf{}
	f.assets, f.policy.MaxInlineBytes = s, 1000
	res := f.accept(doc(note, fmt.Sprintf(`{"text":%q,"n":12345678901234567890,"more":{"a":[%q,"data:text/plain,small"],"b":"x data:y"}}`, large, large)))
	require.Nil(t, res.Refusal, "%s", res.Outcome)
	require.JSONEq(t, `{"text":"https://host.example/corr-1","n":12345678901234567890,"more":{"a":["https://host.example/corr-1","data:text/plain,small"],"b":"x data:y"}}`, string(res.Payload))
	require.Contains(t, string(res.Payload), "12345678901234567890")
	require.Len(t, s.saved[0].Data, 2000)
	require.Equal(t, "image/png", s.saved[0].MimeType)
	for _, e := range f.events() {
		require.NotContains(t, string(e.AppendJSON(nil)), large)
	}
}

func TestEmbedded_WithoutAStoreALargeOneIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.policy.MaxInlineBytes = 1000
	r := refused(t, f.accept(doc(note, fmt.Sprintf(`{"text":"x","more":{"a/b":[1,%q]}}`, "data:;base64,"+base64Of(2000)))), "invalid", fault.EnvelopeInvalid)
	require.Equal(t, "/payload/more/a~1b/1", r.Details[0].InstancePath)
	require.Contains(t, r.Details[0].Message, "has 2000 bytes; the limit is 1000")
	require.Nil(t, f.accept(doc(note, fmt.Sprintf(`{"text":%q}`, "data:;base64,"+base64Of(900)))).Refusal)
}

// OpenWOP envelope contract §11: a secret in the bytes removes the whole asset, however it is encoded
// and however small the asset is.
func TestEmbedded_ASecretRemovesTheAsset(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{
		"base64":          "data:text/plain;base64," + base64Text("before "+canary+" after"),
		"percent-encoded": "data:,before%20" + strings.ReplaceAll(canary, "-", "%2D"),
		"as UTF-16":       "data:;base64," + base64Text("b\x00"+strings.Join(strings.Split(canary, ""), "\x00")),
		"in the text":     "data:text/plain," + canary,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, s := newFixture(t), &shelf{}
			f.assets, f.policy.MaxInlineBytes = s, 1<<20
			res := f.accept(doc(note, fmt.Sprintf(`{"text":%q,"more":{"a":"stays"}}`, url)))
			require.Nil(t, res.Refusal, "%s", res.Outcome)
			var p struct {
				Text string
				More map[string]string
			}
			require.NoError(t, json.Unmarshal(res.Payload, &p))
			require.Equal(t, marker, p.Text)
			require.Equal(t, "stays", p.More["a"])
			require.Empty(t, s.saved)
		})
	}
}

func base64Text(s string) string { return base64Encode([]byte(s)) }
