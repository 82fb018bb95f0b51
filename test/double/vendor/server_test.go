package vendor_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/test/double/vendor"
)

func TestMain(m *testing.M) {
	// The default client's idle connections do not belong to the server.
	goleak.VerifyTestMain(m, goleak.Cleanup(func(int) { http.DefaultClient.CloseIdleConnections() }))
}

// maxBody is the body limit of the tests' servers, in bytes.
const maxBody = 64

// start starts a server with this handler.
func start(t *testing.T, answer func(http.ResponseWriter, vendor.Call)) *vendor.Server[string] {
	t.Helper()
	s := &vendor.Server[string]{}
	s.Start(maxBody, answer)
	t.Cleanup(s.Close)
	return s
}

// scripted starts a server that answers from its queue, as doubles do.
func scripted(t *testing.T, answer func(vendor.Recorded) string) *vendor.Server[string] {
	t.Helper()
	s := &vendor.Server[string]{}
	s.Start(maxBody, func(w http.ResponseWriter, c vendor.Call) {
		reply := s.Next(c.Recorded, answer, "plain")
		s.Record(c.Recorded, http.StatusAccepted)
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, reply)
	})
	t.Cleanup(s.Close)
	return s
}

func request(t *testing.T, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	return req
}

// post sends a request and returns the body of the answer.
func post(t *testing.T, url, body string) string {
	t.Helper()
	res, err := http.DefaultClient.Do(request(t, url, body))
	require.NoError(t, err)
	raw, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return string(raw)
}

func TestServer_AnswersInTheOrderOfItsQueue(t *testing.T) {
	t.Parallel()
	s := scripted(t, nil)
	s.Enqueue("a", "b")
	s.Enqueue("c")
	for _, want := range []string{"a", "b", "c", "plain", "plain"} {
		require.Equal(t, want, post(t, s.URL(), ""))
	}
	s.Enqueue("d")
	require.Equal(t, "d", post(t, s.URL(), ""))
}

func TestServer_MakesAReplyWhenTheQueueIsEmpty(t *testing.T) {
	t.Parallel()
	s := scripted(t, func(r vendor.Recorded) string { return "made for " + string(r.Body) })
	s.Enqueue("queued")
	require.Equal(t, "queued", post(t, s.URL(), "one"))
	require.Equal(t, "made for two", post(t, s.URL(), "two"))
}

// The answer function needs no lock.
func TestServer_MakesRepliesOneAtATime(t *testing.T) {
	t.Parallel()
	made := 0
	s := scripted(t, func(vendor.Recorded) string {
		before := made
		runtime.Gosched()
		made = before + 1
		return ""
	})
	const calls = 100
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			if res, err := http.DefaultClient.Do(request(t, s.URL(), "")); err == nil { // a failed request is missing below
				_ = res.Body.Close()
			}
		})
	}
	all.Wait()
	s.Close()
	require.Equal(t, calls, made)
}

func TestServer_LetsAnAnswerFunctionReadEarlierRequests(t *testing.T) {
	t.Parallel()
	var s *vendor.Server[string]
	s = scripted(t, func(vendor.Recorded) string {
		s.Enqueue("queued during the call")
		return fmt.Sprint(len(s.Requests()))
	})
	require.Equal(t, "0", post(t, s.URL(), ""))
	require.Equal(t, "queued during the call", post(t, s.URL(), ""))
	require.Equal(t, "2", post(t, s.URL(), ""))
}

func TestServer_ItsZeroValueIsReady(t *testing.T) {
	t.Parallel()
	var s vendor.Server[string]
	s.Enqueue("early")
	require.Empty(t, s.Requests())
	require.Equal(t, "early", s.Next(vendor.Recorded{}, nil, "plain"))
	s.Close()
	require.Equal(t, []string{"Hello", " from", " the", " double"}, vendor.Hello())
}

func TestServer_IsStartedOnce(t *testing.T) {
	t.Parallel()
	s := scripted(t, nil)
	require.PanicsWithValue(t, "vendor: a double is started once", func() { s.Start(1, nil) })
}

func TestServer_RecordsRequests(t *testing.T) {
	t.Parallel()
	s := scripted(t, nil)
	req := request(t, s.URL()+"/v1/x?alt=sse&alt=2", "body")
	req.Header.Set("X-Test", "1")
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.Len(t, s.Requests(), 1, "the record exists before the answer ends")
	require.NoError(t, res.Body.Close())
	post(t, s.URL(), "second")

	got := s.Requests()
	require.Len(t, got, 2)
	require.Equal(t, "POST /v1/x body", got[0].Method+" "+got[0].Path+" "+string(got[0].Body))
	require.Equal(t, []string{"sse", "2"}, got[0].Query["alt"])
	require.Equal(t, "1", got[0].Header.Get("X-Test"))
	require.Equal(t, http.StatusAccepted, got[0].Status)
	require.Equal(t, "second", string(got[1].Body))
	got[0].Path = "changed"
	require.Equal(t, "/v1/x", s.Requests()[0].Path, "the list is the caller's own")
}

func TestServer_ReadsABodyUpToItsBound(t *testing.T) {
	t.Parallel()
	s := start(t, func(w http.ResponseWriter, c vendor.Call) {
		_, _ = fmt.Fprint(w, len(c.Body), c.TooLarge)
	})
	for size, want := range map[int]string{0: "0 false", maxBody - 1: "63 false", maxBody: "64 false", maxBody + 1: "64 true", 9 * maxBody: "64 true"} {
		require.Equal(t, want, post(t, s.URL(), strings.Repeat("x", size)))
	}
}

// A request that breaks off before its end is not a call.
func TestServer_DropsAbortedRequests(t *testing.T) {
	t.Parallel()
	s := scripted(t, nil)
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.URL(), "http://"))
	require.NoError(t, err)
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: double\r\nContent-Length: 9\r\n\r\nhalf")
	require.NoError(t, err)
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	_, err = io.ReadAll(conn)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	s.Close()
	require.Empty(t, s.Requests())
}

func TestServer_RejectsCallsAfterItIsClosed(t *testing.T) {
	t.Parallel()
	s := scripted(t, nil)
	post(t, s.URL(), "")
	s.Close()
	s.Close()
	_, err := http.DefaultClient.Do(request(t, s.URL(), "")) //nolint:bodyclose // there is none
	require.Error(t, err)
	require.Len(t, s.Requests(), 1)
}

func TestServer_GivesTheNextReplyOnlyIfItFits(t *testing.T) {
	t.Parallel()
	s := scripted(t, nil)
	is := func(want string) func(string) bool { return func(r string) bool { return r == want } }
	_, ok := s.Take(is("a"))
	require.False(t, ok, "the queue is empty")
	s.Enqueue("a", "b")
	require.Equal(t, 2, s.Left())
	_, ok = s.Take(is("b"))
	require.False(t, ok, "another reply comes first")
	require.Equal(t, 2, s.Left())
	got, ok := s.Take(is("a"))
	require.True(t, ok)
	require.Equal(t, "a", got)
	require.Equal(t, 1, s.Left())
	require.Equal(t, "b", post(t, s.URL(), ""))
	require.Zero(t, s.Left())
}
