package redact_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/redactor/redact"
)

func TestJSON_RedactsEveryLeafAndKey(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{secret("k", "sk-live-0001"), secret("q", `pass"word/é`)})
	tests := map[string]struct {
		in, want string
		count    int
	}{
		"nothing keeps its bytes": {
			" { \"a\" : 1.50e+3 , \"b\":\"\\u00e9\\/x and more\" } ",
			" { \"a\" : 1.50e+3 , \"b\":\"\\u00e9\\/x and more\" } ", 0,
		},
		"leaf":                     {`{"a":"x sk-live-0001"}`, `{"a":"x [REDACTED:k]"}`, 1},
		"top-level string":         {`"sk-live-0001"`, `"[REDACTED:k]"`, 1},
		"top-level number":         {`12345678901234567890`, `12345678901234567890`, 0},
		"nested in arrays":         {`[[{"a":["sk-live-0001"]}],null,true]`, `[[{"a":["[REDACTED:k]"]}],null,true]`, 1},
		"key":                      {`{"sk-live-0001":1}`, `{"[REDACTED:k]":1}`, 1},
		"key and value":            {`{"sk-live-0001":"sk-live-0001"}`, `{"[REDACTED:k]":"[REDACTED:k]"}`, 2},
		"written with escapes":     {`{"a":"s\u006b-live-0001"}`, `{"a":"[REDACTED:k]"}`, 1},
		"value that needs escapes": {`{"a":"<pass\"word\/\u00e9>"}`, `{"a":"<[REDACTED:q]>"}`, 1},
		"JSON in a string":         {`{"a":"{\"p\":\"pass\\\"word/é\"}"}`, `{"a":"{\"p\":\"[REDACTED:q]\"}"}`, 1},
		"neighbours keep bytes": {
			`{"n":9007199254740993, "a":"sk-live-0001" ,"z":1.0}`,
			`{"n":9007199254740993, "a":"[REDACTED:k]" ,"z":1.0}`, 1,
		},
		"markers are kept":        {`{"a":"[REDACTED:k] [REDACTED:other]"}`, `{"a":"[REDACTED:k] [REDACTED:other]"}`, 0},
		"equal keys get suffixes": {`{"sk-live-0001":1,"\u0073k-live-0001x":2,"sk-live-0001x":3}`, ``, -1},
		"two keys, one marker": {
			`{"asecret:k":0,"sk-live-0001":1,"secret:k":2}`,
			`{"a[REDACTED:k]":0,"[REDACTED:k]":1,"[REDACTED:k]#2":2}`, 3,
		},
		"marker key already there": {`{"sk-live-0001":1,"[REDACTED:k]":2}`, `{"[REDACTED:k]#2":1,"[REDACTED:k]":2}`, 1},
		"suffixed key is there too": {
			`{"sk-live-0001":1,"[REDACTED:k]":2,"[REDACTED:k]#2":[{}]}`,
			`{"[REDACTED:k]#3":1,"[REDACTED:k]":2,"[REDACTED:k]#2":[{}]}`, 1,
		},
		"same key in another one": {`{"sk-live-0001":{"sk-live-0001":1}}`, `{"[REDACTED:k]":{"[REDACTED:k]":1}}`, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, n, err := s.JSON([]byte(tc.in), strictjson.Limits{})
			if tc.count < 0 { // duplicate keys on the way in
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, string(got))
			require.Equal(t, tc.count, n)
			require.NoError(t, strictjson.Check(got, strictjson.Limits{}))
		})
	}
}

func TestJSON_RefusesInvalidDocuments(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{secret("k", "sk-live-0001")})
	for _, doc := range []string{
		``, `{`, `{"a":1}x`, `{"a":1,"a":2}`, "\"\xff\"",
		strings.Repeat("[", 200) + strings.Repeat("]", 200),
	} {
		_, _, err := s.JSON([]byte(doc), strictjson.Limits{})
		require.Error(t, err, doc)
	}
}

func TestJSON_DoesNotModifyItsInput(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{secret("k", "sk-live-0001")})
	in := []byte(`{"a":"sk-live-0001","b":2}`)
	before := string(in)
	_, _, err := s.JSON(in, strictjson.Limits{})
	require.NoError(t, err)
	require.Equal(t, before, string(in))
}

// naive is a slow reference implementation of JSON.
func naive(s *redact.Scrubber, v any) any {
	switch v := v.(type) {
	case string:
		out, _ := s.Text(v)
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = naive(s, v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			key, _ := s.Text(k)
			out[key] = naive(s, x)
		}
		return out
	}
	return v
}

func drawValue(t *rapid.T, set []redact.Secret, depth int) any {
	kinds := 4
	if depth > 0 {
		kinds = 6
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return json.Number(rapid.SampledFrom([]string{"0", "-1.5e9", "123456789012345678901", "1.0"}).Draw(t, "number"))
	case 2, 3:
		return drawText(t, set)
	case 4:
		out := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			out = append(out, drawValue(t, set, depth-1))
		}
		return out
	default:
		out := map[string]any{}
		for i := range rapid.IntRange(0, 3).Draw(t, "members") {
			out[fmt.Sprintf("%d%s", i, drawText(t, set))] = drawValue(t, set, depth-1)
		}
		return out
	}
}

func TestJSON_AgreesWithTheReferenceImplementation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		set := drawSet(t)
		s, v := redact.Compile(set), drawValue(t, set, 3)
		in, err := json.Marshal(v)
		require.NoError(t, err)
		got, _, err := s.JSON(in, strictjson.Limits{})
		require.NoError(t, err)
		want, err := json.Marshal(naive(s, v))
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got))
	})
}

func BenchmarkJSON(b *testing.B) {
	s := redact.Compile(manySecrets(50))
	var doc strings.Builder
	doc.WriteString(`{"items":[`)
	for i := range 20 {
		fmt.Fprintf(&doc, `{"id":%d,"title":"Item number %d, with a text of some length","tags":["a","b"],"ok":true},`, i, i)
	}
	miss := doc.String() + `null]}`
	hit := doc.String() + `"` + manySecrets(50)[3].Value.Reveal() + `"]}`
	for name, in := range map[string]string{"miss": miss, "hit": hit} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := s.JSON([]byte(in), strictjson.Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestJSON_LimitsAreTheCallers(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{secret("k", "sk-live-0001")})
	doc := []byte(`{"a":[{"b":"sk-live-0001"}]}`)
	for name, l := range map[string]strictjson.Limits{"bytes": {MaxBytes: len(doc) - 1}, "depth": {MaxDepth: 2}} {
		_, _, err := s.JSON(doc, l)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "sk-live", name)
	}
	_, n, err := s.JSON(doc, strictjson.Limits{MaxBytes: len(doc), MaxDepth: 3})
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

// Thousands of keys with the same secret get different names, in linear time.
func TestJSON_ManyKeysBecomeEqual(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	const keys = 5000
	set := []redact.Secret{}
	for i := range 50 {
		set = append(set, secret("same", fmt.Sprintf("value-%04d-%04d", i, i)))
	}
	s := redact.Compile(set)
	var doc strings.Builder
	doc.WriteByte('{')
	for i := range keys {
		if i > 0 {
			doc.WriteByte(',')
		}
		// Equal after redaction: the value and its encodings have the same marker.
		fmt.Fprintf(&doc, `"%s%s":%d`, set[i%50].Value.Reveal(), strings.Repeat("secret:same", i/50), i)
	}
	doc.WriteByte('}')
	out, n, err := s.JSON([]byte(doc.String()), strictjson.Limits{MaxBytes: 8 << 20})
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, keys)
	var m map[string]int
	require.NoError(t, json.Unmarshal(out, &m))
	require.Len(t, m, keys, "no member is lost")
	require.NoError(t, strictjson.Check(out, strictjson.Limits{MaxBytes: 8 << 20}))
}

// Nested objects have separate sets of names.
func TestJSON_SuffixesAreLocalToTheirObject(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{secret("k", "sk-live-0001")})
	in := `[{"sk-live-0001":{"sk-live-0001":[{"secret:k":"}"}],"secret:k":"{\""},"secret:k":[[]]},{"sk-live-0001":-1.0e5}]`
	want := `[{"[REDACTED:k]":{"[REDACTED:k]":[{"[REDACTED:k]":"}"}],"[REDACTED:k]#2":"{\""},"[REDACTED:k]#2":[[]]},{"[REDACTED:k]":-1.0e5}]`
	out, n, err := s.JSON([]byte(in), strictjson.Limits{})
	require.NoError(t, err)
	require.Equal(t, want, string(out))
	require.Equal(t, 6, n)
}

// Redacting twice equals redacting once: recorded documents may be redacted again.
func TestJSON_IsStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		set := drawSet(t)
		s := redact.Compile(set)
		in, err := json.Marshal(drawValue(t, set, 3))
		require.NoError(t, err)
		once, _, err := s.JSON(in, strictjson.Limits{})
		require.NoError(t, err)
		twice, n, err := s.JSON(once, strictjson.Limits{})
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
		require.Zero(t, n)
	})
}

func TestScrubber_IsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	s := redact.Compile(manySecrets(20))
	doc := []byte(`{"a":"` + manySecrets(20)[3].Value.Reveal() + `"}`)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				if out, n, err := s.JSON(doc, strictjson.Limits{}); err != nil || n != 1 || string(out) != `{"a":"[REDACTED:key-3]"}` {
					t.Errorf("got %s, %d, %v", out, n, err)
				}
				if out, _ := s.Text("nothing"); out != "nothing" {
					t.Errorf("got %s", out)
				}
			}
		})
	}
	wg.Wait()
}
