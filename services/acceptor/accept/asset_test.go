package accept_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/acceptor/accept"
)

// shelf stores assets in memory.
type shelf struct {
	saved []accept.Asset
	err   error
}

func (s *shelf) Save(_ context.Context, _ accept.Target, correlationID string, a accept.Asset) (string, error) {
	if s.err != nil {
		return "", s.err
	}
	s.saved = append(s.saved, a)
	return "https://host.example/" + correlationID, nil
}

func base64Of(n int) string { return base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", n))) }

// OpenWOP envelope contract §17: the length of the decoded bytes decides, and the
// payload's own description must match.
func TestAsset_MustMatchItsDescription(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ payload, path string }{
		"right":                {fmt.Sprintf(`{"base64":%q,"bytes":5}`, base64Of(5)), ""},
		"an integer like 5.0":  {fmt.Sprintf(`{"base64":%q,"bytes":5.0}`, base64Of(5)), ""},
		"without padding":      {fmt.Sprintf(`{"base64":%q,"bytes":5}`, strings.TrimRight(base64Of(5), "=")), ""},
		"empty":                {`{"base64":"","bytes":0}`, ""},
		"a url alone":          {`{"url":"https://x.example/a","bytes":99}`, ""},
		"neither":              {`{"bytes":99}`, "/payload"},
		"a script":             {`{"url":"javascript:alert(1)","bytes":9}`, "/payload/url"},
		"a script in capitals": {`{"url":"JavaScript:alert(1)","bytes":9}`, "/payload/url"},
		"a local file":         {`{"url":"file:///etc/passwd","bytes":9}`, "/payload/url"},
		"a blob":               {`{"url":"blob:https://x.example/1","bytes":9}`, "/payload/url"},
		"no host":              {`{"url":"https:///a","bytes":9}`, "/payload/url"},
		"a data: URL":          {`{"url":"data:image/png;base64,AAAA","bytes":3}`, ""},
		"an empty data: URL":   {`{"url":"data:,","bytes":0}`, ""},
		"too few bytes":        {fmt.Sprintf(`{"base64":%q,"bytes":4}`, base64Of(5)), "/payload/bytes"},
		"too many":             {fmt.Sprintf(`{"base64":%q,"bytes":600000000000000000000}`, base64Of(5)), "/payload/bytes"},
		"no base64":            {`{"base64":"%%%","bytes":1}`, "/payload/base64"},
		"a line break":         {`{"base64":"aGVs\nbG8=","bytes":5}`, "/payload/base64"},
		"bits left over":       {`{"base64":"aGVsbG9=","bytes":5}`, "/payload/base64"},
		"the alphabet of URLs": {`{"base64":"_-_-","bytes":3}`, "/payload/base64"},
	} {
		f := newFixture(t)
		res := f.accept(doc(accept.KindImage, tc.payload))
		if tc.path == "" {
			require.Nil(t, res.Refusal, name)
			continue
		}
		r := refused(t, res, accept.Invalid, fault.EnvelopeInvalid)
		require.Equal(t, tc.path, r.Details[0].InstancePath, name)
	}
}

func TestAsset_AboveTheInlineLimitIsStored(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		size   int
		inline bool
	}{{accept.DefaultMaxInlineBytes, true}, {accept.DefaultMaxInlineBytes + 1, false}} {
		f, s := newFixture(t), &shelf{}
		f.assets, f.policy.MaxInlineBytes = s, accept.DefaultMaxInlineBytes
		res := f.accept(doc(accept.KindFile, fmt.Sprintf(`{"name":"a.bin","base64":%q,"url":"https://elsewhere.example/x","bytes":%d,"mimeType":"a/b"}`, base64Of(tc.size), tc.size)))
		require.Nil(t, res.Refusal)
		if tc.inline {
			require.Contains(t, string(res.Payload), "base64")
			require.Empty(t, s.saved)
			continue
		}
		require.JSONEq(t, fmt.Sprintf(`{"name":"a.bin","url":"https://host.example/corr-1","bytes":%d,"mimeType":"a/b"}`, tc.size), string(res.Payload))
		require.Len(t, s.saved, 1)
		require.Len(t, s.saved[0].Data, tc.size)
		require.Equal(t, "a.bin", s.saved[0].Name)
		require.True(t, s.saved[0].Attachment)

		again := f.accept(doc(accept.KindFile, fmt.Sprintf(`{"base64":%q,"bytes":%d}`, base64Of(tc.size), tc.size)))
		require.True(t, again.Recalled)
		require.Len(t, s.saved, 1, "a recalled outcome stores nothing")
	}
}

// OpenWOP envelope contract §26 case 5: an asset has its own limit, checked before
// anything is decoded. The rest of the payload has the limit of any payload.
func TestAsset_HasItsOwnLimit(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	const most = 4 << 20
	text := func(n int) string { return strings.Repeat("A", n) }
	image := func(chars, bytes int, more string) string {
		return doc(accept.KindImage, fmt.Sprintf(`{"base64":%q,"bytes":%d%s}`, text(chars), bytes, more))
	}
	for name, tc := range map[string]struct {
		doc, path, says string
		code            fault.Code
	}{
		"at the limit": {doc: image(most, most/4*3, "")},
		"above it": {
			image(most+4, most/4*3+3, ""),
			"/payload/base64", "has 4194308 characters, the limit is 4194304", fault.EnvelopeInvalid,
		},
		"far above it": {
			image(4*most, 3*most, ""),
			"/payload/base64", "has 16777216 characters, the limit is 4194304", fault.EnvelopeInvalid,
		},
		"an alt text of a MiB": {
			image(most, most/4*3, `,"alt":"`+text(accept.MaxPayloadBytes)+`"`),
			"/payload", "must have at most 1048576 bytes", fault.InvalidEnvelopeShape,
		},
		"base64 in another kind": {
			doc(note, `{"text":"x","more":{"base64":"`+text(2<<20)+`"}}`),
			"", "limit is", fault.InvalidEnvelopeShape,
		},
		"base64 of the envelope": {
			`{"base64":"` + text(2<<20) + `",` + strings.TrimPrefix(image(4, 3, ""), "{"),
			"", "limit is", fault.InvalidEnvelopeShape,
		},
		"a data: URL": {
			doc(accept.KindImage, `{"url":"data:image/png;base64,`+text(accept.DefaultMaxInlineBytes*4/3)+`","bytes":1}`),
			"/payload/url", "put an asset of more than 262144 bytes into base64", fault.EnvelopeInvalid,
		},
		"a small data: URL": {doc: doc(accept.KindImage, `{"url":"data:image/png;base64,AAAA","bytes":3}`)},
	} {
		f, s := newFixture(t), &shelf{}
		f.assets, f.policy.MaxMediaBytes = s, most
		res := f.accept(tc.doc)
		if tc.code == "" {
			require.Nil(t, res.Refusal, name)
			require.Less(t, len(res.Payload), 1000, name)
			continue
		}
		r := refused(t, res, accept.Invalid, tc.code)
		require.Equal(t, tc.path, r.Details[0].InstancePath, name)
		require.Contains(t, r.Details[0].Message, tc.says, name)
		require.Less(t, len(res.Outcome), 2000, "the outcome contains nothing of the asset")
		require.Empty(t, s.saved)
		f.nothingRecorded()
	}
}

// The schema is applied to the start of a long asset, wherever it is cut.
func TestAsset_IsValidatedByItsStart(t *testing.T) {
	t.Parallel()
	for shift := range 12 {
		for _, a := range []string{`A`, `\u0041`, `\/`} {
			n := (64<<10)/len(a) + 100
			text := strings.Repeat("A", shift) + strings.Repeat(a, n-n%4+(4-shift%4)%4)
			chars := strings.ReplaceAll(strings.ReplaceAll(text, `\u0041`, "A"), `\/`, "/")
			res := newFixture(t).accept(doc(accept.KindImage, fmt.Sprintf(`{"base64":"%s","bytes":%d}`, text, len(chars)/4*3)))
			require.Nil(t, res.Refusal, "%d %s: %s", shift, a, res.Outcome)
		}
	}
}

// OpenWOP envelope contract §11: a secret is no reason to refuse. An asset without its
// secret is not a valid asset, so the marker replaces it.
func TestAsset_WithASecretIsRecordedAsTheMarker(t *testing.T) {
	t.Parallel()
	encode := base64.StdEncoding.EncodeToString
	binary := "\x89PNG\xff\xfe" + strings.Repeat("x", 30)
	for name, tc := range map[string]struct {
		data, spelled string
		inline        int
	}{
		"in the base64, inline":          {binary, encode([]byte(binary))[8:24], 1000},
		"in the base64, above the limit": {binary, encode([]byte(binary))[8:24], 0},
		"in the decoded text":            {"the key is " + canary, "", 1000},
		"in that text, above the limit":  {"the key is " + canary, "", 0},
		"between invalid bytes":          {"\xff\xfe" + canary + "\xc3", "", 1000},
		"in UTF-16":                      {"\xff\xfe" + strings.Join(strings.Split(canary, ""), "\x00") + "\x00", "", 1000},
	} {
		f, s := newFixture(t), &shelf{}
		f.assets, f.policy.MaxInlineBytes, f.redactor.spelled = s, tc.inline, tc.spelled
		text := encode([]byte(tc.data))
		res := f.accept(doc(accept.KindImage, fmt.Sprintf(`{"alt":"a key","base64":%q,"bytes":%d}`, text, len(tc.data))))
		accepted(t, res)
		require.JSONEq(t, fmt.Sprintf(`{"alt":"a key","base64":%q,"bytes":%d}`, marker, len(tc.data)), string(res.Payload), name)
		require.Empty(t, s.saved, name)
		for _, e := range f.events() {
			require.NotContains(t, string(e.Payload), text[:8], name)
			require.NotContains(t, string(e.Payload), canary, name)
		}
	}
}

// A data: URL contains an asset.
func TestAsset_WithASecretInItsURLIsRecordedAsTheMarker(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ url, want string }{
		"base64": {
			"data:text/plain;base64," + base64.StdEncoding.EncodeToString([]byte("x "+canary)),
			marker,
		},
		"base64url without padding": {"data:;base64," + base64.RawURLEncoding.EncodeToString([]byte("\xff "+canary)), marker},
		"in capitals":               {"DATA:text/plain;BASE64," + base64.StdEncoding.EncodeToString([]byte(canary)), marker},
		"percent":                   {"data:,x%20" + strings.ReplaceAll(canary, "-", "%2D"), marker},
		"percent in base64": {
			"data:;base64," + strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(canary)), "=", "%3D"),
			marker,
		},
		"none":            {"data:,harmless", "data:,harmless"},
		"a malformed URL": {"data:;base64,*%zz", "data:;base64,*%zz"},
	} {
		f := newFixture(t)
		f.policy.MaxInlineBytes = 1000
		res := f.accept(doc(accept.KindImage, fmt.Sprintf(`{"url":%q,"bytes":1}`, tc.url)))
		if res.Refusal != nil { // not a URL
			require.Equal(t, "not quite one", name)
			continue
		}
		require.JSONEq(t, fmt.Sprintf(`{"url":%q,"bytes":1}`, tc.want), string(res.Payload), name)
	}
}

// The texts of an asset's bytes are not longer than the asset, so any asset within its
// limit can be redacted.
func TestAsset_IsSearchedForSecretsWithAnyBytes(t *testing.T) {
	t.Parallel()
	f, s := newFixture(t), &shelf{}
	f.assets, f.policy.MaxInlineBytes = s, 0
	data := strings.Repeat("\xffa\x00", 100_000)
	res := f.accept(doc(accept.KindFile, fmt.Sprintf(`{"base64":%q,"bytes":%d}`, base64.StdEncoding.EncodeToString([]byte(data)), len(data))))
	accepted(t, res)
	require.Equal(t, data, string(s.saved[0].Data))
	require.LessOrEqual(t, f.redactor.longest.Load(), int64(2*len(data)))
}

func TestAsset_IsUnchangedBySecretsElsewhereInThePayload(t *testing.T) {
	t.Parallel()
	for _, inline := range []int{1000, 0} {
		f, s := newFixture(t), &shelf{}
		f.assets, f.policy.MaxInlineBytes = s, inline
		res := f.accept(doc(accept.KindFile, fmt.Sprintf(`{"name":%q,"base64":%q,"bytes":5,"mimeType":"a/b"}`, canary, base64Of(5))))
		accepted(t, res)
		if inline > 0 {
			require.JSONEq(t, fmt.Sprintf(`{"name":%q,"base64":%q,"bytes":5,"mimeType":"a/b"}`, marker, base64Of(5)), string(res.Payload))
			continue
		}
		require.JSONEq(t, fmt.Sprintf(`{"name":%q,"url":"https://host.example/corr-1","bytes":5,"mimeType":"a/b"}`, marker), string(res.Payload))
		require.Equal(t, accept.Asset{Data: []byte("xxxxx"), MimeType: "a/b", Name: marker, Attachment: true}, s.saved[0])
	}
}

// The asset's text needs a second call of the redactor. If it fails, nothing is recorded
// or stored.
func TestAsset_IsNotStoredIfTheSearchForSecretsFails(t *testing.T) {
	t.Parallel()
	f, s := newFixture(t), &shelf{}
	f.assets, f.policy.MaxInlineBytes = s, 0
	_, err := accept.New(f.kinds, secondFails{f.redactor}, accept.NewLogLedger(f.log, f.clock), f.clock, f.policy).WithAssets(s).
		Run(t.Context(), f.request(doc(accept.KindFile, fmt.Sprintf(`{"base64":%q,"bytes":5}`, base64Of(5)))))
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	require.Empty(t, s.saved)
	f.nothingRecorded()
}

// secondFails is a redactor whose second call fails.
type secondFails struct{ *redactor }

func (r secondFails) Redact(ctx context.Context, run subject.Run, in accept.Texts) (accept.Texts, int, error) {
	if r.calls.Load() > 0 {
		return accept.Texts{}, 0, fault.New(fault.ServiceUnavailable, "away")
	}
	return r.redactor.Redact(ctx, run, in)
}

func TestAsset_RefusedForItsSizeKeepsItsIDs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.policy.MaxMediaBytes = 8
	res := f.accept(doc(accept.KindImage, fmt.Sprintf(`{"base64":%q,"bytes":9}`, base64Of(9))))
	refused(t, res, accept.Invalid, fault.EnvelopeInvalid)
	require.Equal(t, "corr-1", res.Attributes.CorrelationID)
	require.Equal(t, accept.KindImage, res.Attributes.Kind)
}

// A host without an asset store must not put large assets into its log (OpenWOP
// envelope contract §17).
func TestAsset_AboveTheInlineLimitIsRefusedWithoutAStore(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.policy.MaxInlineBytes = 5
	require.Nil(t, f.accept(doc(accept.KindImage, fmt.Sprintf(`{"base64":%q,"bytes":5}`, base64Of(5)))).Refusal)
	f = newFixture(t)
	f.policy.MaxInlineBytes = 5
	r := refused(t, f.accept(doc(accept.KindImage, fmt.Sprintf(`{"base64":%q,"bytes":6}`, base64Of(6)))), accept.Invalid, fault.EnvelopeInvalid)
	require.Equal(t, "/payload/base64", r.Details[0].InstancePath)
	require.Contains(t, r.Details[0].Message, "has 6 bytes when decoded; the limit is 5")
}

// An inline asset must leave room for the rest of a frame.
func TestAsset_InALargePayloadIsStoredBelowTheInlineLimit(t *testing.T) {
	t.Parallel()
	f, s := newFixture(t), &shelf{}
	f.assets = s
	alt := strings.Repeat("x", accept.MaxPayloadBytes-1000)
	res := f.accept(doc(accept.KindImage, fmt.Sprintf(`{"base64":%q,"bytes":9000,"alt":%q}`, base64Of(9000), alt)))
	require.Nil(t, res.Refusal)
	require.Len(t, s.saved, 1)
	require.LessOrEqual(t, len(res.Payload), accept.MaxPayloadBytes)
}

func TestAsset_IsStoredBeforeItsEventIsRecorded(t *testing.T) {
	t.Parallel()
	f, s := newFixture(t), &shelf{err: fault.New(fault.ServiceUnavailable, "away")}
	f.assets, f.policy.MaxInlineBytes = s, accept.DefaultMaxInlineBytes
	n := accept.DefaultMaxInlineBytes + 1
	_, err := f.pipeline().Run(t.Context(), f.request(doc(accept.KindImage, fmt.Sprintf(`{"base64":%q,"bytes":%d}`, base64Of(n), n))))
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	f.nothingRecorded()
	s.err = nil
	res := f.accept(doc(accept.KindImage, fmt.Sprintf(`{"base64":%q,"bytes":%d}`, base64Of(n), n)))
	require.Nil(t, res.Refusal)
}

// OpenWOP envelope contract §6 step 4b: the error is the type, however long the value is.
func TestAsset_ThatIsNoStringIsReportedAsSuch(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"a list":    "[" + strings.Repeat("1,", 50_000) + "1]",
		"an object": `{"a":"` + strings.Repeat("x", 100_000) + `"}`,
	} {
		f := newFixture(t)
		r := refused(t, f.accept(doc(accept.KindImage, `{"base64":`+value+`,"bytes":1}`)), accept.Invalid, fault.EnvelopeInvalid)
		require.Len(t, r.Details, 1, name)
		require.Equal(t, "type", r.Details[0].Keyword, name)
		require.Equal(t, "/payload/base64", r.Details[0].InstancePath, name)
	}
	f := newFixture(t)
	r := refused(t, f.accept(doc(accept.KindImage, `{"base64":[`+strings.Repeat("1,", accept.MaxPayloadBytes)+`1],"bytes":1}`)), accept.Invalid, fault.InvalidEnvelopeShape)
	require.Equal(t, "size", r.Details[0].Keyword)
}

func base64Encode(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
