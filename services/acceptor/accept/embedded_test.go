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

// Ordinary text may begin with "data:". Its secrets are redacted as in any text, and the rest stays.
func TestEmbedded_TextThatIsNoDataURLStays(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(" and more", 300)
	for _, text := range []string{
		"Data: 3 customers, 2 orders",
		"data: a/b, c",
		"DATA: [1, 2]",
		"Data:\nfirst, second",
		"data:",
		"data: ,",
		"data:three customers, two orders",
		"data:3, 4",
		"data:/x,y",
		"data:a/b ;base64,AAAA",
		"data: text/plain;base64,AAAA",
		"data:a/b;x=1 2,y",
		"data:a/b;x=\"1,y",
		" data:,x",
		"data:a/b without a comma",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			for _, store := range []bool{false, true} {
				f, s := newFixture(t), &shelf{}
				f.policy.MaxInlineBytes = 1000
				if store {
					f.assets = s
				}
				res := f.accept(doc(note, fmt.Sprintf(`{"text":%q,"more":{"a":%q,"b":"data:,x"}}`, text+long, text+" "+canary+" end")))
				require.Nil(t, res.Refusal, "%s", res.Outcome)
				require.JSONEq(t, fmt.Sprintf(`{"text":%q,"more":{"a":%q,"b":"data:,x"}}`, text+long, text+" "+marker+" end"), string(res.Payload))
				require.Empty(t, s.saved)
			}
		})
	}
}

func TestEmbedded_EveryFormOfADataURLIsStored(t *testing.T) {
	t.Parallel()
	plain := strings.Repeat("x", 2000)
	for head, mime := range map[string]string{
		"data:,":                                     "",
		"DATA:,":                                     "",
		"data:;base64,":                              "",
		"data:;charset=utf-8,":                       "",
		"data:text/plain,":                           "text/plain",
		"data:text/plain;charset=US-ASCII,":          "text/plain",
		"Data:image/svg+xml;BASE64,":                 "image/svg+xml",
		"data:application/vnd.a-b.c+json;v=1;b=,":    "application/vnd.a-b.c+json",
		`data:text/plain;name="a, b";base64,`:        "text/plain",
		"data:text/plain;name=a%20b;base64,":         "text/plain",
		"data:anything;base64,":                      "",
		`data:application/x;profile="urn:a;b:c",`:    "application/x",
		"data:text/plain;charset=iso-8859-1;base64,": "text/plain",
	} {
		t.Run(head, func(t *testing.T) {
			t.Parallel()
			body := plain
			if strings.HasSuffix(strings.ToLower(head), ";base64,") {
				body = base64Text(plain)
			}
			f, s := newFixture(t), &shelf{}
			f.assets, f.policy.MaxInlineBytes = s, 1000
			res := f.accept(doc(note, fmt.Sprintf(`{"text":%q}`, head+body)))
			require.Nil(t, res.Refusal, "%s", res.Outcome)
			require.JSONEq(t, `{"text":"https://host.example/corr-1"}`, string(res.Payload))
			require.Equal(t, plain, string(s.saved[0].Data))
			require.Equal(t, mime, s.saved[0].MimeType)
		})
	}
}

// A secret in the head changes the text, and its bytes may hold another secret. Ordinary text in the
// same payload stays.
func TestEmbedded_ASecretInTheHeadRemovesTheAsset(t *testing.T) {
	t.Parallel()
	for _, head := range []string{"data:text/" + canary + ";base64,", `data:text/plain;name="a ` + canary + `";base64,`, "data:" + canary + ";base64,"} {
		f := newFixture(t)
		res := f.accept(doc(note, fmt.Sprintf(`{"text":%q,"more":{"a":%q,"b":"data:x, y"}}`, head+base64Text(canary), "Data: 3, "+canary)))
		require.Nil(t, res.Refusal, "%s", res.Outcome)
		require.JSONEq(t, fmt.Sprintf(`{"text":%q,"more":{"a":%q,"b":"data:x, y"}}`, marker, "Data: 3, "+marker), string(res.Payload), head)
	}
}

func base64Text(s string) string { return base64Encode([]byte(s)) }
