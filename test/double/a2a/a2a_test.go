package a2a_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/a2a"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/test/double/a2a"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const hello = `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"hello"}]}}}`

func post(t *testing.T, s *a2a.Server, token, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/invoke", strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(b)
}

func start(t *testing.T) *a2a.Server {
	t.Helper()
	s := a2a.New(a2a.Options{Token: "let-me-in", About: "a double"})
	t.Cleanup(s.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return s
}

func TestServer_AnswersFromItsQueue(t *testing.T) {
	s := start(t)
	s.Enqueue(
		a2a.Reply{Answer: &sdk.Task{ID: "t", ContextID: "c", Status: sdk.TaskStatus{State: sdk.TaskStateCompleted}}},
		a2a.Reply{Err: &a2a.Error{Code: -32603, Message: "no", Data: "why"}},
		a2a.Reply{Status: http.StatusServiceUnavailable, Body: "away"})
	_, answer := post(t, s, "let-me-in", hello)
	require.JSONEq(t, `{"jsonrpc":"2.0","id":1,"result":{"kind":"task","id":"t","contextId":"c","status":{"state":"completed"}}}`, answer)
	_, answer = post(t, s, "let-me-in", hello)
	require.JSONEq(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no","data":"why"}}`, answer)
	status, answer := post(t, s, "let-me-in", hello)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "away", answer)
	require.Zero(t, s.Left())
	_, answer = post(t, s, "let-me-in", hello)
	require.Contains(t, answer, `"parts":[{"kind":"text","text":"hello"}]`, "without a reply it repeats the message")
	require.Len(t, s.Requests(), 4)
	require.JSONEq(t, hello, string(s.Requests()[0].Body))
}

// An invalid request consumes no reply of the queue.
func TestServer_IsAsStrictAsTheProtocol(t *testing.T) {
	s := start(t)
	s.Enqueue(a2a.Reply{Status: http.StatusTeapot})
	for want, body := range map[string]string{
		"-32600": strings.Replace(hello, `"id":1,`, "", 1),
		"-32601": strings.Replace(hello, "message/send", "message/stream", 1),
		"-32602": strings.Replace(hello, `"messageId":"m",`, "", 1),
	} {
		_, answer := post(t, s, "let-me-in", body)
		require.Contains(t, answer, want)
	}
	status, _ := post(t, s, "let-me-in", "{")
	require.Equal(t, http.StatusBadRequest, status)
	status, _ = post(t, s, "other", hello)
	require.Equal(t, http.StatusUnauthorized, status)
	require.Equal(t, 1, s.Left())
}
