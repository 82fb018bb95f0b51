package strictjson_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
)

func TestEach_VisitsMembersInOrder(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]struct {
		members string
		ok      bool
	}{
		`{}`:                                 {"", true},
		" { } ":                              {"", true},
		`{"a":1}`:                            {"a=1 ", true},
		` { "b" : [1, 2] , "a":{"c":"}"} } `: {`b=[1, 2] a={"c":"}"} `, true},
		`{"a":1,"a":{"b":1,"b":2}}`:          {`a=1 a={"b":1,"b":2} `, true},
		`{"\u0061":null}`:                    {"a=null ", true},
		`{"a":1}x`:                           {"a=1 ", false},
		`{"a":1,}`:                           {"a=1 ", false},
		`{"a":1,"b":}`:                       {"a=1 ", false},
		`{"a":1`:                             {"a=1 ", false},
		`{"a" 1}`:                            {"", false},
		`{a:1}`:                              {"", false},
		`[1]`:                                {"", false},
		`null`:                               {"", false},
		``:                                   {"", false},
		`{"a":"\ud800"}`:                     {`a="\ud800" `, true},
	} {
		var read strings.Builder
		ok := strictjson.Each([]byte(doc), func(name, value []byte) { read.WriteString(string(name) + "=" + string(value) + " ") })
		require.Equal(t, want.ok, ok, doc)
		require.Equal(t, want.members, read.String(), doc)
	}
}

// Requested values are read, others are skipped, and a value of another type is an error.
func TestCursor_ReadsInOnePass(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{"list":[{"text":"a\u00e9\ud83d\ude00\n\"","n":1,"more":{"x":[1]}}, {"text":null} ],"other":[]}`: "aé😀\n\" 1; null 0; sound",
		` {"list" : [] } `:      "sound",
		`{}`:                    "sound",
		`{"list":[{"text":7}]}`: " 0; unsound",
		`{"list":[{"n":"7"}]}`:  " 0; unsound",
		`{"list":[7]}`:          " 0; unsound",
		`{"list":{}}`:           "unsound",
		`{"list":[{}] `:         " 0; unsound",
		`{"list":[{}]} x`:       " 0; unsound",
		`{"list":[{}],}`:        " 0; unsound",
		`{"list":[{},]}`:        " 0;  0; unsound",
		`{"list":[{"text":"\ud83d\u0041b\ud83d\ud83d\ude00\ude00"}]}`: "\ufffdAb\ufffd😀\ufffd 0; sound",
		`{"list":[{"text":nul"abc"}]}`:                                " 0; unsound",
		`{"list":[{"text":nullx}]}`:                                   "null 0; unsound",
		`{"list":[{"more":[tru]}]}`:                                   " 0; unsound",
		`[]`:                                                          "unsound",
		``:                                                            "unsound",
	} {
		var read strings.Builder
		c := strictjson.Reading([]byte(doc))
		c.Object(func(name []byte) {
			if string(name) != "list" {
				return
			}
			c.Array(func() {
				text, n := "", 0
				c.Object(func(name []byte) {
					switch string(name) {
					case "text":
						if c.Null() {
							text = "null"
						} else {
							text = c.Text()
						}
					case "n":
						c.Set(&n)
					}
				})
				fmt.Fprintf(&read, "%s %d; ", text, n)
			})
		})
		if c.Sound() {
			read.WriteString("sound")
		} else {
			read.WriteString("unsound")
		}
		require.Equal(t, want, read.String(), doc)
	}
}

// Appending to a returned slice does not change the document.
func TestEach_SlicesCannotGrowIntoTheDocument(t *testing.T) {
	t.Parallel()
	doc := []byte(`{"a":1,"b":2}`)
	strictjson.Each(doc, func(_, value []byte) { _ = append(value, "zzz"...) })
	require.Equal(t, `{"a":1,"b":2}`, string(doc)) //nolint:testifylint // the very bytes
}

func FuzzEach(f *testing.F) {
	f.Add([]byte(`{"a":{"b":[1,"x"]},"c":"\u00e9"}`))
	f.Add([]byte(`{"a":1,"a":2}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		got := map[string]string{}
		ok := strictjson.Each(doc, func(name, value []byte) {
			require.True(t, json.Valid(value), "%q", value)
			got[string(name)] = string(value)
		})
		var want map[string]json.RawMessage
		if err := json.Unmarshal(doc, &want); !ok {
			return
		} else if err != nil {
			require.NoError(t, err)
		}
		require.Len(t, got, len(want))
		for name, value := range want {
			require.Equal(t, string(value), got[name])
		}
	})
}

func FuzzString(f *testing.F) {
	f.Add([]byte(`"a\n\u00e9"`))
	f.Add([]byte(` "\ud800" `))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, ok := strictjson.String(raw)
		var want string
		err := json.Unmarshal(raw, &want)
		isText := err == nil && strings.HasPrefix(strings.TrimLeft(string(raw), " \t\r\n"), `"`)
		require.Equal(t, isText, ok, "%q", raw)
		if ok {
			require.Equal(t, want, got)
		}
		c := strictjson.Reading(raw)
		text := c.Text()
		require.Equal(t, isText && utf8.Valid(raw), c.Sound(), "%q", raw)
		if c.Sound() {
			require.Equal(t, want, text)
		}
	})
}

func BenchmarkEach(b *testing.B) {
	doc := sampleBody()
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		strictjson.Each(doc, func(_, _ []byte) {})
	}
}
