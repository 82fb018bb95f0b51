package model_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/dataurl"
	"waybill.dev/waybill/services/dispatcher/model"
)

func asset(n int) string { return base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", n))) }

const omitted = "[omitted: an asset of more than 30 bytes]"

func TestFilter_ReplacesWhatIsTooLargeAndNothingElse(t *testing.T) {
	t.Parallel()
	small, large := asset(30), asset(31)
	escaped := strings.ReplaceAll(strings.ReplaceAll(large, "e", `\u0065`), "/", `\/`)
	for name, tc := range map[string]struct{ text, shown string }{
		"no asset":                {`{"text":"hello"}`, ``},
		"at the cap":              {`{"base64":"` + small + `","bytes":30}`, ``},
		"above it":                {`{"base64":"` + large + `","bytes":31}`, `{"base64":"` + omitted + `","bytes":31}`},
		"without padding":         {`{"base64":"` + strings.TrimRight(large, "=") + `"}`, `{"base64":"` + omitted + `"}`},
		"blanks around the colon": {"{\"base64\" \n:\t\"" + large + "\"}", "{\"base64\" \n:\t\"" + omitted + "\"}"},
		"a spelled-out name":      {`{"b\u0061se6\u0034":"` + large + `"}`, `{"b\u0061se6\u0034":"` + omitted + `"}`},
		"escapes in the value":    {`{"base64":"` + escaped + `"}`, `{"base64":"` + omitted + `"}`},
		"escapes at the cap":      {`{"base64":"` + strings.ReplaceAll(small, "e", `\u0065`) + `"}`, ``},
		"several":                 {`[{"base64":"` + large + `"},{"base64":"` + small + `"},{"base64":"` + large + `"}]`, `[{"base64":"` + omitted + `"},{"base64":"` + small + `"},{"base64":"` + omitted + `"}]`},
		"an odd quote before it":  {`a 5" lamp: {"base64":"` + large + `"} and 6" more`, `a 5" lamp: {"base64":"` + omitted + `"} and 6" more`},
		"in a fence":              {"```json\n{\"base64\":\"" + large + "\"}\n```", "```json\n{\"base64\":\"" + omitted + "\"}\n```"},
		"an empty text before it": {`{"alt":"","base64":"` + large + `"}`, `{"alt":"","base64":"` + omitted + `"}`},
		"cut off":                 {`{"base64":"` + large, `{"base64":"` + omitted},
		"cut off before the cap":  {`{"base64":"` + small, ``},
		"a data: URL":             {`{"url":"data:image/png;base64,` + large + `"}`, `{"url":"data:` + omitted + `"}`},
		"in capitals":             {`{"url":"DATA:image/png;base64,` + large + `"}`, `{"url":"DATA:` + omitted + `"}`},
		"a small data: URL":       {`{"url":"data:,hello"}`, ``},
		"white space before it":   {`{"url":" data:image/png;base64,` + large + `"}`, ``},
		"white space in its head": {`{"url":"data: text/plain;base64,` + large + `"}`, ``},
		"a quoted comma":          {`{"url":"data:text/plain;x=\"a, b\",` + large + `"}`, `{"url":"data:` + omitted + `"}`},
		"a text about data":       {`{"text":"data: ` + strings.Repeat("three customers, two orders, ", 9) + `"}`, ``},
		"a text without a comma":  {`{"text":"Data:\n` + strings.Repeat("- an item\n", 200) + `","n":1}`, ``},
		"an asset after a text":   {`{"text":"data: one, two","base64":"` + large + `"}`, `{"text":"data: one, two","base64":"` + omitted + `"}`},
		"a quoted word in a text": {`{"text":"data: the \"one, two\" of it, ` + strings.Repeat("more ", 20) + `"}`, ``},
		"another member":          {`{"base64x":"` + large + `"}`, ``},
		"another member's text":   {`{"text":"` + strings.Repeat("no base64 here ", 20) + `"}`, ``},
		"the name as a value":     {`{"kind":"base64","text":"` + large + `"}`, ``},
		"a number":                {`{"base64":123456789012345678901234567890123456789012345678901234567890}`, ``},
	} {
		want := tc.shown
		if want == "" {
			want = tc.text
		}
		require.Equal(t, want, model.NewMediaFilter(30).Write(tc.text, true), name)
		for cut := range len(tc.text) {
			f := model.NewMediaFilter(30)
			require.Equal(t, want, f.Write(tc.text[:cut], false)+f.Write(tc.text[cut:], true), "%s, cut at %d", name, cut)
		}
	}
}

func TestFilter_LetsTextOnWhileItArrives(t *testing.T) {
	t.Parallel()
	f := model.NewMediaFilter(30)
	require.Equal(t, `{"alt":"a la`, f.Write(`{"alt":"a la`, false), "text is not held back")
	require.Equal(t, `mp","base64":"`, f.Write(`mp","base64":"AAAA`, false))
	require.Empty(t, f.Write(asset(24), false), "it may be within the limit")
	require.Equal(t, omitted, f.Write(asset(24), false), "it exceeds the limit")
	require.Empty(t, f.Write(asset(300), false))
	require.Equal(t, `","bytes":1}`, f.Write(`AAAA","bytes":1}`, true))
}

func TestFilter_WithACapOfZeroShowsNoAsset(t *testing.T) {
	t.Parallel()
	require.Equal(t, `{"base64":"[omitted: an asset of more than 0 bytes]"}`, model.NewMediaFilter(0).Write(`{"base64":"`+asset(1)+`"}`, true))
	require.Equal(t, `{"base64":""}`, model.NewMediaFilter(0).Write(`{"base64":""}`, true))
}

// FuzzFilter checks that the pieces of a text do not change the output, and that the output of a
// valid document has no asset above the limit.
func FuzzFilter(f *testing.F) {
	f.Add(`{"base64":"`+asset(31)+`"}`, 5)
	f.Add(`{"base\u0036\u0034" : "`+asset(9)+`"}`, 12)
	f.Add(`{"url":"d\u0061ta:x"} "base64":"\u00"`, 20)
	f.Add(`""base64":"\\"`, 3)
	f.Add(`{"url":"data:;x=\",\" ;base64,AAAAAAAAAAAA"}`, 9)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		const limit = 6
		whole := model.NewMediaFilter(limit).Write(text, true)
		if cut = max(0, cut); cut < len(text) {
			w := model.NewMediaFilter(limit)
			if pieces := w.Write(text[:cut], false) + w.Write(text[cut:], true); pieces != whole {
				t.Fatalf("%q in two pieces is %q, in one %q", text, pieces, whole)
			}
		}
		if !json.Valid([]byte(text)) {
			return
		}
		var v any
		d := json.NewDecoder(strings.NewReader(whole))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%q became %q: %v", text, whole, err)
		}
		if large := find(v, limit); large != "" {
			t.Fatalf("%q shows %s", text, large)
		}
	})
}

// find returns the size of an asset above the limit; empty if there is none.
func find(v any, limit int) string {
	switch v := v.(type) {
	case string:
		if n := dataurl.Head(v); n > 0 && n <= 1000 {
			if chars := utf8.RuneCountInString(strings.ReplaceAll(v[n:], "=", "")); chars*3/4 > limit {
				return fmt.Sprintf("a data: URL of %d characters", chars)
			}
		}
	case []any:
		for _, x := range v {
			if s := find(x, limit); s != "" {
				return s
			}
		}
	case map[string]any:
		for name, x := range v {
			if s, ok := x.(string); ok && name == "base64" {
				data, err := base64.StdEncoding.DecodeString(s)
				if err == nil && len(data) > limit {
					return fmt.Sprintf("%d bytes", len(data))
				}
			}
			if s := find(x, limit); s != "" {
				return s
			}
		}
	}
	return ""
}
