package outbound

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// readAll returns what a client reads of a body.
func readAll(body string, labeled bool, wrap func(io.Reader) io.Reader) (string, error) {
	b, err := io.ReadAll(newStream(io.NopCloser(wrap(strings.NewReader(body))), labeled))
	return string(b), err
}

// Whatever form an answer has, its reader gets plain server-sent events.
func TestStream_ReadsTheFormsOfServers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ body, want string }{
		"plain":                      {"data: {\"a\":1}\n\ndata: [DONE]\n\n", "data: {\"a\":1}\n\ndata: [DONE]\n\n"},
		"no space after the colon":   {"data:{\"a\":1}\n\n", "data: {\"a\":1}\n\n"},
		"carriage returns":           {"data: 1\r\n\r\ndata: 2\r\n\r\n", "data: 1\n\ndata: 2\n\n"},
		"comments and other fields":  {": hi\nid: 7\nretry: 10\ndata: 1\n\n: ping\n\n", "data: 1\n\n"},
		"a byte order mark":          {"\ufeffdata: 1\n\n", "data: 1\n\n"},
		"empty lines first":          {"\n\n\ndata: 1\n\n", "data: 1\n\n"},
		"keep-alive without a value": {"data: \n\ndata:\n\ndata: 1\n\n", "data: 1\n\n"},
		"no empty line at the end":   {"data: 1\n\ndata: 2\n", "data: 1\n\ndata: 2\n\n"},
		"no line end at the end":     {"data: 1\n\ndata: 2", "data: 1\n\ndata: 2\n\n"},
		"an event of two lines":      {"data: {\"a\":\ndata: 1}\n\n", "data: {\"a\": 1}\n\n"},
		"a named event":              {"event: x\ndata: {\"type\":\"y\"}\n\n", "event: x\ndata: {\"type\":\"y\"}\n\n"},
		"an event named by its type": {"data: {\"type\":\"y\"}\n\n", "event: y\ndata: {\"type\":\"y\"}\n\n"},
		"the name of a keep-alive":   {"event: ping\n\ndata: 1\n\n", "data: 1\n\n"},
		"NaN without an empty line":  {"data: {\"a\":NaN}\ndata: {\"a\":-Infinity}\ndata: 1\n\n", "data: {\"a\":\"\x7f\"}\n\ndata: {\"a\":\"\x7f\x7f\x7f\"    }\n\ndata: 1\n\n"},
		"a keep-alive at the end":    {"data: 1\n\ndata: [keep-alive]", "data: 1\n\n"},
		"a named one at the end":     {"data: 1\n\nevent: ping\ndata: 2026", "data: 1\n\n"},
		"an error without an event": {
			"data: 1\n\n{\"error\":\n {\"code\": 1}\n}\n\n",
			"data: 1\n\nevent: error\ndata: {\"error\": {\"code\": 1} }\n\n",
		},
		"one document":                 {"{\"a\":\n1}\n", "data: {\"a\": 1}\n\ndata: [DONE]\n\n"},
		"a document per line":          {"{\"a\":1}\n{\"a\":2}\n", "data: {\"a\":1}\n\ndata: {\"a\":2}\n\ndata: [DONE]\n\n"},
		"an array of documents":        {"[{\"a\":1},\n{\"a\":2}]", "data: {\"a\":1}\n\ndata: {\"a\":2}\n\ndata: [DONE]\n\n"},
		"a document after white space": {" \r\n\t{\"a\":1}", "data: {\"a\":1}\n\ndata: [DONE]\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, wrap := range []func(io.Reader) io.Reader{
				func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader,
			} {
				got, err := readAll(tc.body, true, wrap)
				require.NoError(t, err)
				require.Equal(t, tc.want, got)
			}
		})
	}
}

func TestStream_FailsHonestly(t *testing.T) {
	t.Parallel()
	whole := func(r io.Reader) io.Reader { return r }
	cut := func(r io.Reader) io.Reader { return io.MultiReader(r, iotest.ErrReader(io.ErrUnexpectedEOF)) }
	for name, tc := range map[string]struct {
		body    string
		labeled bool
		wrap    func(io.Reader) io.Reader
		want    error
	}{
		"nothing, labelled":         {"", true, whole, nil},
		"nothing, without a label":  {"", false, whole, ErrNoStream},
		"text":                      {"hello\nthere\n", false, whole, ErrNoStream},
		"a page":                    {"<html>", true, whole, ErrNoStream},
		"half a document":           {`{"a":`, true, whole, io.ErrUnexpectedEOF},
		"a broken connection":       {"data: 1\n\ndata: 2\n", true, cut, io.ErrUnexpectedEOF},
		"a broken connection, JSON": {`{"a":1`, true, cut, io.ErrUnexpectedEOF},
		"an event that is too long": {"data: " + strings.Repeat("x", maxEvent+1) + "\n\n", true, whole, ErrTooLong},
		"lines that are too long": {
			strings.Repeat("data: "+strings.Repeat("x", maxEvent/2)+"\n", 3),
			true, whole, ErrTooLong,
		},
		"a document that is too long": {`{"a":"` + strings.Repeat("x", 2*maxEvent) + `"}`, true, whole, ErrTooLong},
		"many long events, each in it": {
			strings.Repeat("data: "+strings.Repeat("x", maxEvent/2)+"\n\n", 4),
			true, whole, nil,
		},
	} {
		_, err := readAll(tc.body, tc.labeled, tc.wrap)
		if tc.want == nil {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, tc.want, name)
	}
}

// An event is passed on before the next one arrives.
func TestStream_PassesEachEventOnAtOnce(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	s := newStream(r, true)
	buffer := make([]byte, 64)
	for range 3 {
		go func() { _, _ = w.Write([]byte("data: 1\n\n")) }()
		n, err := s.Read(buffer)
		require.NoError(t, err)
		require.Equal(t, "data: 1\n\n", string(buffer[:n]))
	}
	require.NoError(t, s.Close())
}

func FuzzStream(f *testing.F) {
	for _, seed := range []string{
		"data: 1\n\n", "{\"a\":1}", "\ufeffdata: \r\r", "event: x\ndata: {\"type\":\"y\"}", "[1,2",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		once, err := readAll(body, true, func(r io.Reader) io.Reader { return r })
		pieces, perr := readAll(body, true, iotest.OneByteReader)
		require.Equal(t, once, pieces, "the sizes of reads do not matter")
		require.Equal(t, err == nil, perr == nil)
		if err == nil {
			again, err := readAll(once, true, iotest.HalfReader)
			require.NoError(t, err)
			require.Equal(t, once, again, "what was passed on stays as it is")
		}
	})
}
