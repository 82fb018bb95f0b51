package idempotency_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"testing"

	"github.com/gowebpki/jcs"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/gateway/idempotency"
)

func digest(t *testing.T, doc string) string {
	t.Helper()
	d, err := idempotency.Digest([]byte(doc))
	require.NoError(t, err, doc)
	return d
}

// OpenWOP host contract §2.1, request digest.
func TestDigest_DependsOnTheMeaningOfARequest(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{`{"a":1,"b":[2]}`, `{ "b" : [2.0], "a" : 1 }`, `{"b":[20e-1],"\u0061":1E0}`},
		{`[0]`, `[-0]`, `[0.000]`, `[0e7]`},
		{`[0.1]`, `[1e-1]`, `[0.10]`},
		{`[9007199254740993]`, `[9007199254740993.0]`, `[90071992547409930e-1]`, `[0.9007199254740993E16]`},
		{`{"b":9007199254740993,"a":[true,false,null,"e"]}`, `{"a":[true,false,null,"e"],"b":9007199254740993}`},
	} {
		for _, doc := range same {
			require.Equal(t, digest(t, same[0]), digest(t, doc), doc)
		}
	}
}

func TestDigest_DistinguishesNumbersThatRoundToOneDouble(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{
		{`{"a":1}`, `{"a":2}`},
		{`[9007199254740992]`, `[9007199254740993]`},
		{`[-9007199254740993]`, `[9007199254740993]`},
		{`[0.1]`, `[0.1000000000000000000001]`},
		{`[0]`, `[1e-400]`},
		{`[0]`, `[1e-99999999999]`},
		{`[9007199254740993,9007199254740995]`, `[9007199254740995,9007199254740993]`},
		{`[9007199254740993]`, `["9007199254740993"]`},
		{`[9007199254740993]`, `["9007199254740993e0"]`},
		{`["9007199254740992"]`, `["9007199254740993"]`},
		{`["\"9007199254740993"]`, `["\"9007199254740992"]`},
	} {
		require.NotEqual(t, digest(t, pair[0]), digest(t, pair[1]), "%s and %s", pair[0], pair[1])
	}
}

func TestDigest_RefusesWhatHasNoCanonicalForm(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{``, `{`, `{"a":1,"a":2}`, `[1e400]`, `{"a":"\ud800"}`} {
		_, err := idempotency.Digest([]byte(doc))
		require.Equal(t, fault.ValidationError, fault.CodeOf(err), doc)
	}
}

// Values that doubles represent exactly have the digest of RFC 8785, so records of other versions stay
// valid.
func FuzzDigest(f *testing.F) {
	for _, seed := range []string{
		`{"b":[1,2.5e3,true],"a":{"é":"\u0007\n"}}`, `[9007199254740993]`, `"e"`, `-0`, `[1e-400,1e21]`,
	} {
		f.Add([]byte(seed), 0.5)
	}
	f.Fuzz(func(t *testing.T, doc []byte, n float64) {
		if strictjson.Check(doc, strictjson.Limits{}) != nil {
			return
		}
		form, err := jcs.Transform(doc)
		got, derr := idempotency.Digest(doc)
		require.Equal(t, err == nil, derr == nil)
		if err != nil {
			return
		}
		require.Equal(t, got, digest(t, string(doc)), "the same every time")
		require.Equal(t, sum(form), digest(t, string(form)))
		if number, err := json.Marshal(n); err == nil {
			require.Equal(t, digest(t, string(number)), digest(t, strconv.FormatFloat(n, 'e', -1, 64)))
		}
	})
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(s[:])
}
