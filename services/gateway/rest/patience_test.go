package rest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway"
	"waybill.dev/waybill/services/gateway/interrupttoken"
	"waybill.dev/waybill/services/gateway/rest"
)

// impatient has short time limits.
var impatient = rest.Patience{Start: time.Second, MinRate: 1 << 20, Total: 2 * time.Second}

// listen serves a host over TCP.
func listen(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv
}

// dial sends text, and returns the connection, which is closed after the test.
func dial(t testing.TB, srv *httptest.Server, text string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, err = io.WriteString(c, text)
	require.NoError(t, err)
	return c
}

// answerOn reads an answer from a connection.
func answerOn(t testing.TB, c net.Conn) *http.Response {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// silentPost is a request whose body does not arrive.
func silentPost(path, credential string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: h\r\nAuthorization: %s\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n", path, credential)
}

func interruptToken(t testing.TB) string {
	t.Helper()
	tokens, err := interrupttoken.New(token.Keys{1: make([]byte, 32)})
	require.NoError(t, err)
	text, err := tokens.Sign(interrupttoken.Claims{
		Tenant: "acme", RunID: "run_1", NodeID: "n", InterruptID: "i",
		ExpiresAt: time.Now().Add(time.Hour), Intent: interrupttoken.Resolve,
	})
	require.NoError(t, err)
	return text
}

// A caller without a credential is answered although its body never arrives.
func TestBody_IsNotReadForStrangers(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(c *gateway.Config) {
		c.REST.Patience = rest.Patience{Start: time.Hour, MinRate: 1, Total: time.Hour}
	})
	srv := listen(t, h)
	for path, code := range map[string]int{
		"/v1/runs":                       http.StatusUnauthorized,
		"/v1/runs/run_1/cancel":          http.StatusUnauthorized,
		"/v1/interrupts/x":               http.StatusNotFound,
		"/v1/interrupts/" + "eyJ.forged": http.StatusNotFound,
	} {
		require.Equal(t, code, answerOn(t, dial(t, srv, silentPost(path, "Bearer unknown"))).StatusCode, path)
	}
}

func TestBody_MustArriveInTime(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(c *gateway.Config) { c.REST.Patience = impatient })
	srv := listen(t, h)
	for _, path := range []string{"/v1/runs", "/v1/interrupts/" + interruptToken(t)} {
		c := dial(t, srv, silentPost(path, full))
		res := answerOn(t, c)
		require.Equal(t, http.StatusBadRequest, res.StatusCode, path)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Contains(t, string(body), "too slowly")
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF, "the connection is closed")
	}
	require.Empty(t, h.dispatcher.starts)
}

// A body that trickles has a time limit, although each byte arrives soon after the last.
func TestBody_MustArriveAtALeastRate(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(c *gateway.Config) { c.REST.Patience = impatient })
	srv := listen(t, h)
	c := dial(t, srv, strings.Replace(silentPost("/v1/runs", full), "Length: 9", "Length: 4000", 1))
	done := make(chan *http.Response, 1)
	go func() {
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil {
			_ = res.Body.Close()
		}
		done <- res
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for sent := 0; ; sent++ {
		select {
		case res := <-done:
			require.NotNil(t, res)
			require.Equal(t, http.StatusBadRequest, res.StatusCode)
			require.Less(t, sent, 400, "the body was cut off before its end")
			return
		case <-tick.C:
			_, _ = io.WriteString(c, " ") // it fails once the server has closed
		}
	}
}

// Callers whose bodies do not arrive leave places for others.
func TestBody_SilentCallersDoNotShutOthersOut(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(c *gateway.Config) {
		c.REST.Patience = rest.Patience{Start: time.Minute, MinRate: 1, Total: time.Hour}
		c.Admission.MaxRequests, c.Admission.MaxStarts, c.Admission.MaxUnknown = 80, 40, 8
	})
	srv := listen(t, h)
	path := "/v1/interrupts/" + interruptToken(t)
	for range 200 {
		dial(t, srv, silentPost(path, ""))
		dial(t, srv, silentPost("/v1/runs", beta))
	}
	require.Eventually(t, func() bool {
		stranger := post(t, path, `{"resumeValue":1}`)
		stranger.Header.Del("Authorization")
		stranger.RemoteAddr = "127.0.0.1:1"
		return serve(h, stranger).Code == http.StatusServiceUnavailable &&
			h.as(t, beta, "POST", "/v1/runs", `{"workflowId":"wf"}`).Code == http.StatusServiceUnavailable
	}, 30*time.Second, 10*time.Millisecond, "the silent ones hold their shares")
	for range 20 {
		require.Equal(t, http.StatusOK, h.as(t, full, "GET", "/v1/runs/run_1", "").Code)
		require.Equal(t, http.StatusCreated, h.as(t, full, "POST", "/v1/runs", `{"workflowId":"wf"}`).Code)
		require.Equal(t, http.StatusOK, h.as(t, full, "POST", "/v1/runs/run_1/cancel", "").Code)
	}
}

// A caller that does not read its answer is cut off.
func TestAnswer_MustBeReadInTime(t *testing.T) {
	t.Parallel()
	written := make(chan error, 1)
	big := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var err error
		for range 1000 { // more than all buffers
			if _, err = w.Write(make([]byte, 64<<10)); err != nil {
				break
			}
		}
		written <- err
	})
	srv := listen(t, impatient.Handler(big))
	dial(t, srv, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	select {
	case err := <-written:
		require.Error(t, err)
	case <-time.After(20 * time.Second):
		require.Fail(t, "the answer is still being written")
	}
}

// The limits do not end a connection that is used again, nor a wait within a request.
func TestPatience_EndsWithTheRequest(t *testing.T) {
	t.Parallel()
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(2 * impatient.Total):
		}
		_, _ = io.WriteString(w, "ok")
	})
	srv := listen(t, impatient.Handler(slow))
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, strings.NewReader("body"))
		require.NoError(t, err)
		res, err := srv.Client().Do(req)
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, "ok", string(body))
	}
}

// Bytes are limited, not only requests: what does not fit is refused before it has an effect.
func TestBytes_OfBodiesAndAnswersAreLimited(t *testing.T) {
	t.Parallel()
	const large = 1 << 20
	pool := newPool(2 * large)
	h := newHost(t, func(c *gateway.Config) {
		c.REST.MaxBodyBytes = large
		c.REST.Patience = rest.Patience{Start: time.Minute, MinRate: 1, Total: time.Hour}
		c.Admission.Bytes = pool
	})
	srv := listen(t, h)
	head := strings.Replace(silentPost("/v1/runs", beta), "Length: 9", fmt.Sprintf("Length: %d", large), 1)
	dial(t, srv, head+strings.Repeat(" ", 100<<10))
	require.Eventually(t, func() bool { return pool.Used() > large/2 }, 30*time.Second, time.Millisecond)
	held := pool.Used()
	body := `{"workflowId":"wf","inputs":{"x":"` + strings.Repeat("x", large-100) + `"}}`
	w := h.as(t, beta, "POST", "/v1/runs", body)
	refused(t, w, fault.ServiceUnavailable)
	require.NotEmpty(t, w.Header().Get("Retry-After"))
	require.Empty(t, h.dispatcher.starts)
	require.Equal(t, http.StatusCreated, h.as(t, full, "POST", "/v1/runs", body[:large/2]+`"}}`).Code, "another tenant has its share")
	require.Equal(t, held, pool.Used(), "it is given back")
	chunked := post(t, "/v1/runs", "")
	chunked.ContentLength = -1
	chunked.Body = io.NopCloser(io.MultiReader(strings.NewReader(body)))
	chunked.Header.Set("Authorization", beta)
	cw := httptest.NewRecorder()
	h.ServeHTTP(cw, chunked)
	refused(t, cw, fault.ServiceUnavailable)
	require.Equal(t, held, pool.Used())
}

// Callers that announce bodies and send nothing, or little of them, use no bytes of the others.
func TestBytes_AreCountedAsTheyArrive(t *testing.T) {
	t.Parallel()
	const large = 1 << 20
	pool := newPool(2 * large)
	h := newHost(t, func(c *gateway.Config) {
		c.REST.MaxBodyBytes = large
		c.REST.Patience = rest.Patience{Start: time.Minute, MinRate: 1, Total: time.Hour}
		c.Admission.Bytes = pool
	})
	srv := listen(t, h)
	head := strings.Replace(silentPost("/v1/runs", beta), "Length: 9", fmt.Sprintf("Length: %d", large), 1)
	for range 20 {
		dial(t, srv, head)
		dial(t, srv, head+strings.Repeat(" ", 8<<10))
	}
	require.Eventually(t, func() bool { return pool.Used() > 0 }, 30*time.Second, time.Millisecond)
	body := `{"workflowId":"wf","inputs":{"x":"` + strings.Repeat("x", large-100) + `"}}`
	require.Equal(t, http.StatusCreated, h.as(t, beta, "POST", "/v1/runs", body).Code, "the tenant of the silent callers")
	require.Equal(t, http.StatusCreated, h.as(t, full, "POST", "/v1/runs", body).Code)
}

// A body is read whole, whatever its size and whether its length is announced.
func TestBody_IsReadWhole(t *testing.T) {
	t.Parallel()
	const large = 300 << 10
	h := newHost(t, func(c *gateway.Config) { c.REST.MaxBodyBytes, c.Admission.Bytes = large, newPool(2*large) })
	for _, size := range []int{100, 4095, 4096, 4097, 16 << 10, 64 << 10, 64<<10 + 1, 200 << 10, large - 1, large} {
		body := `{"workflowId":"wf","inputs":{"x":"`
		body += strings.Repeat("x", size-len(body)-3) + `"}}`
		for _, announced := range []bool{true, false} {
			r := post(t, "/v1/runs", body)
			if !announced {
				r.ContentLength = -1
			}
			require.Equal(t, http.StatusCreated, serve(h, r).Code, "%d bytes, announced: %t", size, announced)
		}
	}
	r := post(t, "/v1/runs", strings.Repeat(" ", large+1))
	r.ContentLength = -1
	refused(t, serve(h, r), fault.PayloadTooLarge)
}
