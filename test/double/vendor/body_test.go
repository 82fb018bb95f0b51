package vendor_test

import (
	"bufio"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/double/vendor"
)

// read returns a body and whether it ended normally.
func read(t *testing.T, url string) (body string, whole bool) {
	t.Helper()
	res, err := http.DefaultClient.Do(request(t, url, ""))
	if err != nil { // closed before the first byte
		return "", false
	}
	raw, err := io.ReadAll(res.Body)
	require.NoError(t, res.Body.Close())
	return string(raw), err == nil
}

// open returns a response with an unread body.
func open(t *testing.T, url string) *http.Response {
	t.Helper()
	res, err := http.DefaultClient.Do(request(t, url, ""))
	require.NoError(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// A body is cut at the same byte whether it is written in pieces or in one call.
func TestBody_IsCutAtEveryByte(t *testing.T) {
	t.Parallel()
	pieces := []string{"data: one\n\n", "", "x", "data: ü\n\n"}
	const all = "data: one\n\nxdata: ü\n\n"
	for name, write := range map[string]func(*vendor.Body){
		"pieces": func(b *vendor.Body) {
			for _, p := range pieces {
				b.Send(p)
			}
		},
		"at once": func(b *vendor.Body) {
			_, _ = b.Write([]byte(all))
			_, _ = b.Write(nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var cut *vendor.Cut
			s := start(t, func(w http.ResponseWriter, c vendor.Call) { write(c.Begin(w, cut)) })
			got, whole := read(t, s.URL())
			require.Equal(t, all, got, "nil truncates nothing")
			require.True(t, whole)
			for at := range len(all) + 3 {
				for _, clean := range []bool{true, false} {
					cut = &vendor.Cut{At: at, Clean: clean}
					got, whole := read(t, s.URL())
					require.Equal(t, all[:min(at, len(all))], got)
					require.Equal(t, clean || at > len(all), whole, "at %d", at)
				}
			}
		})
	}
}

func TestBody_IsCutInAnError(t *testing.T) {
	t.Parallel()
	s := start(t, func(w http.ResponseWriter, c vendor.Call) {
		b := c.Begin(w, &vendor.Cut{At: 3, Clean: true})
		b.WriteHeader(http.StatusTeapot)
		_, err := io.WriteString(b, "teapot")
		_, again := io.WriteString(b, "more")
		b.Send("and more")
		if err == nil || again == nil {
			panic("a write after the end must fail")
		}
	})
	res := open(t, s.URL())
	raw, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, "tea", string(raw))
	require.Equal(t, http.StatusTeapot, res.StatusCode)
}

// The caller receives a piece before the next one is made.
func TestBody_SendsAtTheTestsPace(t *testing.T) {
	t.Parallel()
	steps := make(chan struct{})
	s := start(t, func(w http.ResponseWriter, c vendor.Call) {
		b := c.Begin(w, nil)
		b.Send("") // the headers
		for _, p := range []string{"a\n", "b\n"} {
			b.Pace(0, steps)
			b.Send(p)
		}
	})
	res := open(t, s.URL())
	lines := bufio.NewReader(res.Body)
	for _, want := range []string{"a\n", "b\n"} {
		steps <- struct{}{}
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, want, line)
	}
}

func TestBody_EndsAsRequested(t *testing.T) {
	t.Parallel()
	type row struct {
		end   vendor.End
		cut   *vendor.Cut
		want  string
		whole bool
	}
	clean := &vendor.Cut{At: 1, Clean: true}
	for _, r := range []row{
		{end: vendor.EndWhole, want: "piece end", whole: true},
		{end: vendor.EndError, want: "piece end", whole: true},
		{end: vendor.EndOwn, want: "piece end", whole: true},
		{end: vendor.EndSilent, want: "piece", whole: true},
		{end: vendor.EndCut, want: "piece"},
		{end: vendor.EndCut, cut: clean, want: "p", whole: true},
		{end: vendor.EndStall, cut: clean, want: "p", whole: true},
		{end: vendor.EndWhole, cut: clean, want: "p", whole: true},
	} {
		s := start(t, func(w http.ResponseWriter, c vendor.Call) {
			b := c.Begin(w, r.cut)
			b.Send("piece")
			if !b.Ends(r.end) {
				b.Send(" end")
			}
		})
		got, whole := read(t, s.URL())
		require.Equal(t, r.want, got, r.end)
		require.Equal(t, r.whole, whole, r.end)
	}
}

func TestBody_StallsUntilTheServerCloses(t *testing.T) {
	t.Parallel()
	var closing atomic.Bool
	stalled := make(chan bool, 1)
	s := start(t, func(w http.ResponseWriter, c vendor.Call) {
		defer func() { stalled <- closing.Load() }()
		b := c.Begin(w, nil)
		b.Send("piece")
		b.Ends(vendor.EndStall)
	})
	res := open(t, s.URL())
	piece := make([]byte, len("piece"))
	_, err := io.ReadFull(res.Body, piece)
	require.NoError(t, err)
	closing.Store(true)
	s.Close()
	require.True(t, <-stalled)
	rest, err := io.ReadAll(res.Body)
	require.Error(t, err)
	require.Empty(t, rest)
}

func TestJSON_PanicsForInvalidDocuments(t *testing.T) {
	t.Parallel()
	require.JSONEq(t, `{"a":1}`, string(vendor.JSON(map[string]int{"a": 1})))
	require.Panics(t, func() { vendor.JSON(make(chan int)) })
}
