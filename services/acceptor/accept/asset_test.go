package accept_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

// shelf keeps assets in memory.
type shelf struct {
	kept []accept.Asset
	err  error
}

func (s *shelf) Keep(_ context.Context, _ accept.Place, correlationID string, a accept.Asset) (string, error) {
	if s.err != nil {
		return "", s.err
	}
	s.kept = append(s.kept, a)
	return "https://host.example/" + correlationID, nil
}

func base64Of(n int) string { return base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", n))) }

// OpenWOP envelope contract §17: the length of the decoded bytes decides, and
// what it says about itself must be true.
func TestAsset_MustBeWhatThePayloadSays(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ payload, path string }{
		"right":                {fmt.Sprintf(`{"base64":%q,"bytes":5}`, base64Of(5)), ""},
		"an integer like 5.0":  {fmt.Sprintf(`{"base64":%q,"bytes":5.0}`, base64Of(5)), ""},
		"without padding":      {fmt.Sprintf(`{"base64":%q,"bytes":5}`, strings.TrimRight(base64Of(5), "=")), ""},
		"empty":                {`{"base64":"","bytes":0}`, ""},
		"a url alone":          {`{"url":"https://x.example/a","bytes":99}`, ""},
		"neither":              {`{"bytes":99}`, ""},
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

func TestAsset_AboveTheCapIsKeptElsewhere(t *testing.T) {
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
			require.Empty(t, s.kept)
			continue
		}
		require.JSONEq(t, fmt.Sprintf(`{"name":"a.bin","url":"https://host.example/corr-1","bytes":%d,"mimeType":"a/b"}`, tc.size), string(res.Payload))
		require.Len(t, s.kept, 1)
		require.Len(t, s.kept[0].Data, tc.size)
		require.Equal(t, "a.bin", s.kept[0].Name)
		require.True(t, s.kept[0].Attachment)

		again := f.accept(doc(accept.KindFile, fmt.Sprintf(`{"base64":%q,"bytes":%d}`, base64Of(tc.size), tc.size)))
		require.True(t, again.Recalled)
		require.Len(t, s.kept, 1, "an outcome that is recalled stores nothing")
	}
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
