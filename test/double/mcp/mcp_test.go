package mcp_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/test/double/mcp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bearer sends a token with every request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

func connect(t *testing.T, s *mcp.Server, token string, notes chan<- string) (*sdk.ClientSession, error) {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { notes <- r.Params.Message },
	})
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: s.URL(), HTTPClient: &http.Client{Transport: bearer{token}}, DisableStandaloneSSE: true, MaxRetries: -1,
	}, nil)
	if err == nil {
		t.Cleanup(func() { _ = session.Close() })
	}
	return session, err
}

func call(t *testing.T, session *sdk.ClientSession) (string, error) {
	t.Helper()
	p := &sdk.CallToolParams{Name: mcp.Tool, Arguments: map[string]any{"a": 1}}
	p.SetProgressToken("p")
	res, err := session.CallTool(t.Context(), p)
	if err != nil {
		return "", err
	}
	text, ok := res.Content[0].(*sdk.TextContent)
	require.True(t, ok)
	return text.Text, nil
}

func TestServer_AnswersFromItsQueue(t *testing.T) {
	s := mcp.New(mcp.Options{Token: "let-me-in", About: "a double"})
	t.Cleanup(s.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	notes := make(chan string, 1)
	session, err := connect(t, s, "let-me-in", notes)
	require.NoError(t, err)
	require.Equal(t, "a double", session.InitializeResult().Instructions)
	s.Enqueue(mcp.Reply{Result: mcp.Text("hello"), Notes: []string{"wait"}}, mcp.Reply{Err: &jsonrpc.Error{Code: -32000, Message: "no"}})
	require.Equal(t, 2, s.Left())
	said, err := call(t, session)
	require.NoError(t, err)
	require.Equal(t, "hello", said)
	require.Equal(t, "wait", <-notes)
	_, err = call(t, session)
	require.ErrorContains(t, err, "no")
	said, err = call(t, session)
	require.NoError(t, err)
	require.JSONEq(t, `{"a":1}`, said, "without a reply it repeats its arguments")
	require.Zero(t, s.Left())
	last := s.Requests()[len(s.Requests())-1]
	require.Contains(t, string(last.Body), `"tools/call"`)
	require.Equal(t, "Bearer let-me-in", last.Header.Get("Authorization"))

	s.Enqueue(mcp.Reply{Status: http.StatusServiceUnavailable, Body: "away", Header: http.Header{"Retry-After": {"7"}}})
	_, err = call(t, session)
	require.Error(t, err)
	require.Zero(t, s.Left())
}

func TestServer_RequiresItsToken(t *testing.T) {
	s := mcp.New(mcp.Options{Token: "let-me-in"})
	t.Cleanup(s.Close)
	_, err := connect(t, s, "other", nil)
	require.Error(t, err)
}
