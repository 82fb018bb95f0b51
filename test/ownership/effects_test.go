package ownership

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// call is one execution of an effect, as the model or the tool sees it.
type call struct {
	// id is of the prompt or the charge; by is the dispatcher that called.
	id, by string
	began  time.Time
	// ended is zero while the call is in progress.
	ended time.Time
	// answered is false for a call whose caller closed the connection first.
	answered bool
}

// inFlight reports whether the call was in progress at a time. A call that was answered within
// the second before counts: its result may not be recorded yet.
func (c call) inFlight(at time.Time) bool {
	return c.began.Before(at) && (c.ended.IsZero() || !c.answered || c.ended.After(at.Add(-time.Second)))
}

// effects counts the calls of all dispatchers.
type effects struct {
	takes time.Duration

	mu  sync.Mutex // guards the fields below
	all []*call
	// held keeps calls in progress until it is closed; nil lets them end.
	held chan struct{}
}

// hold keeps all further calls in progress until release is called, however slow the machine is.
func (e *effects) hold() (release func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	held := make(chan struct{})
	e.held = held
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.held = nil
		close(held)
	}
}

// wait lasts as long as a call. It returns false if the caller closed the connection first.
func (e *effects) wait(ctx context.Context, held <-chan struct{}) bool {
	if held != nil {
		select {
		case <-held:
			return true
		case <-ctx.Done():
			return false
		}
	}
	timer := time.NewTimer(e.takes)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// do is one call. It returns false if the caller closed the connection.
func (e *effects) do(ctx context.Context, id, by string) bool {
	c := &call{id: id, by: by, began: time.Now()}
	e.mu.Lock()
	e.all = append(e.all, c)
	held := e.held
	e.mu.Unlock()
	answered := e.wait(ctx, held)
	e.mu.Lock()
	defer e.mu.Unlock()
	c.ended, c.answered = time.Now(), answered
	return answered
}

// calls returns the calls so far that match; nil matches all.
func (e *effects) calls(match func(call) bool) (out []call) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.all {
		if match == nil || match(*c) {
			out = append(out, *c)
		}
	}
	return out
}

// active returns how many calls of a dispatcher are in progress.
func (e *effects) active(by string) int {
	return len(e.calls(func(c call) bool { return c.by == by && c.ended.IsZero() }))
}

// byID groups the calls, each group in the order of their starts.
func (e *effects) byID() map[string][]call {
	out := map[string][]call{}
	for _, c := range e.calls(nil) {
		out[c.id] = append(out[c.id], c)
	}
	return out
}

// repeated returns the calls of each id that was called more than once.
func (e *effects) repeated() map[string][]call {
	out := e.byID()
	for id, calls := range out {
		if len(calls) == 1 {
			delete(out, id)
		}
	}
	return out
}

// summary describes the count for the log of a test.
func (e *effects) summary() string {
	calls, overlapping := 0, 0
	for _, of := range e.byID() {
		calls += len(of)
		if slices.ContainsFunc(of[1:], func(c call) bool { return of[0].ended.IsZero() || c.began.Before(of[0].ended) }) {
			overlapping++
		}
	}
	return fmt.Sprintf("%d calls for %d ids; %d ids more than once, %d of them at the same time", calls, len(e.byID()), len(e.repeated()), overlapping)
}

// promptID finds the id in a request to the model.
var promptID = regexp.MustCompile(`\[id:([a-z0-9-]+)\]`)

const modelName = "gpt-double"

// answer is what the model says: the payload of a ticket.
const answer = `{"category":"other","urgency":"low","nextStep":"None.","summary":"Nothing."}`

// chunk is an event of a streamed answer.
func chunk(delta, rest string) string {
	return fmt.Sprintf(`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":%q,"choices":[{"index":0,"delta":%s,`+"%s\n\n", modelName, delta, rest)
}

// piece is a piece of the answer's text.
func piece(text string) string {
	delta, _ := json.Marshal(map[string]string{"role": "assistant", "content": text}) // strings only
	return chunk(string(delta), `"finish_reason":null}]}`)
}

var answerEnd = chunk("{}", `"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}`) + "data: [DONE]\n\n"

const answerWhole = `{"id":"c","object":"chat.completion","created":1,"model":"` + modelName + `","choices":[{"index":0,"message":{"role":"assistant","content":"Done."},"finish_reason":"stop"}],` +
	`"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}`

// firstPieces is how many pieces of a streamed answer come before the call takes its time.
const firstPieces = 3

// model serves the chat completions API to one dispatcher, and returns its URL.
func (e *effects) model(t *testing.T, by string) string {
	t.Helper()
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		id := promptID.FindSubmatch(body)
		if id == nil {
			http.Error(w, `{"error":{"message":"no id in the prompt","type":"invalid_request_error"}}`, http.StatusBadRequest)
			return
		}
		var asked struct{ Stream bool }
		_ = json.Unmarshal(body, &asked) // it had an id
		pieces := strings.SplitAfter(answer, ",")
		if asked.Stream {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, p := range pieces[:firstPieces] {
				_, _ = io.WriteString(w, piece(p)) // the caller may be gone
			}
			_ = http.NewResponseController(w).Flush()
		}
		if !e.do(r.Context(), string(id[1]), by) {
			return
		}
		if asked.Stream {
			for _, p := range pieces[firstPieces:] {
				_, _ = io.WriteString(w, piece(p))
			}
			_, _ = io.WriteString(w, answerEnd)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answerWhole) // the caller may be gone
	})) + "/v1"
}

// tool serves an MCP server with the tool "charge" to one dispatcher, and returns its URL.
func (e *effects) tool(t *testing.T, by string) string {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "bank", Version: "1"}, nil)
	s.AddTool(&sdk.Tool{Name: "charge", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var arguments struct{ ID string }
			if err := json.Unmarshal(r.Params.Arguments, &arguments); err != nil {
				return nil, err
			}
			e.do(ctx, arguments.ID, by)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "charged"}}}, nil
		})
	url := serve(t, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(func() { // before the server closes
		for session := range s.Sessions() {
			_ = session.Close()
		}
	})
	return url
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	return srv.URL
}

// once requires that each of n ids was called exactly once.
func (e *effects) once(t *testing.T, n int) {
	t.Helper()
	t.Log(e.summary())
	require.Len(t, e.byID(), n, "each id is called")
	require.Empty(t, e.repeated(), "%s", e.summary())
}
