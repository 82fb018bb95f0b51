package models

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// flood is a server of all three vendors with endless answers. The case in the prompt selects the
// kind.
type flood struct {
	server *httptest.Server
	// most is the length in bytes of the longest answer before the host closed the connection.
	most atomic.Int64
	// held counts answers in progress.
	held atomic.Int64
}

func newFlood(t *testing.T) *flood {
	t.Helper()
	f := &flood{}
	f.server = httptest.NewServer(f)
	t.Cleanup(f.server.Close)
	return f
}

func (f *flood) addresses() map[string]string {
	return map[string]string{"openai": f.server.URL + "/v1", "anthropic": f.server.URL, "gemini": f.server.URL}
}

// words are the parts of a vendor's events around the text.
type words struct{ begin, before, after, nothing string }

func wordsOf(path string) words {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return words{
			before: `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":{"content":"`,
			after:  `"}}]}` + "\n\n", nothing: ": keep-alive\n\n",
		}
	case strings.HasSuffix(path, "/messages"):
		return words{
			begin: "event: message_start\n" + `data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude-opus-4-6","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}` +
				"\n\nevent: content_block_start\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n",
			before: "event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`,
			after:  `"}}` + "\n\n", nothing: "event: ping\ndata: {\"type\":\"ping\"}\n\n",
		}
	default:
		return words{
			before: `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"`, after: `"}]}}],"modelVersion":"gemini-2.5-flash"}` + "\r\n\r\n",
			nothing: `data: {"modelVersion":"gemini-2.5-flash"}` + "\r\n\r\n",
		}
	}
}

var floodOf = regexp.MustCompile(`\[case:([a-z]+)-`)

// megabytes is an answer length, in bytes, above the log's limit.
const megabytes = 10 << 20

// ServeHTTP answers until the host closes the connection.
func (f *flood) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	how := floodOf.FindSubmatch(body)
	if err != nil || how == nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	f.held.Add(1)
	defer f.held.Add(-1)
	say, sent := wordsOf(r.URL.Path), int64(0)
	write := func(s string) bool {
		n, err := io.WriteString(w, s)
		sent += int64(n)
		return err == nil && r.Context().Err() == nil
	}
	piece := strings.Repeat("flood-", 1<<10)
	going := write(say.begin)
	switch string(how[1]) {
	case "endless": // event after event
		for going {
			going = write(say.before + piece + say.after)
		}
	case "event": // one endless event
		for going = write(say.before); going; {
			going = write(piece)
		}
	case "large": // one event of ten megabytes
		_ = write(say.before + strings.Repeat("x", megabytes) + say.after)
	case "pings": // nothing but pings
		for going {
			going = write(strings.Repeat(say.nothing, 1<<8))
		}
	}
	for most := f.most.Load(); sent > most && !f.most.CompareAndSwap(most, sent); most = f.most.Load() {
	}
}

// peak returns the peak memory of a process, in bytes.
func peak(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	require.NoError(t, err)
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(b)
	require.NotNil(t, m)
	kb, err := strconv.Atoi(string(m[1]))
	require.NoError(t, err)
	return kb << 10
}

// raced reports whether the host was built with the race detector, which needs more memory and
// time.
func raced(t *testing.T) bool {
	t.Helper()
	info, err := buildinfo.ReadFile(harness.Binary(t))
	require.NoError(t, err)
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// allowed is the memory limit of one answer, in addition to the idle host. An answer is limited to
// 2 MiB of text and an event to 16 MiB, of which some copies exist while it is read. The rest is
// garbage not yet collected.
func allowed(t *testing.T, how string) int {
	t.Helper()
	mb := map[string]int{"endless": 48, "event": 112, "large": 112, "pings": 48}[how]
	if raced(t) {
		mb *= 8
	}
	return mb << 20
}

// ended waits for the end of a run. It honours the Retry-After of a host that is behind.
func ended(t *testing.T, c *harness.Client, id string) ([]harness.Event, error) {
	t.Helper()
	for {
		events, err := c.Finish(t.Context(), id)
		if err == nil || !strings.Contains(err.Error(), "service_unavailable") {
			return events, err
		}
		select {
		case <-time.After(time.Second): // its Retry-After
		case <-t.Context().Done():
			return nil, err
		}
	}
}

func TestFlood_EndlessAnswersEndWithACodeAndBoundedMemory(t *testing.T) {
	needsHost(t)
	f := newFlood(t)
	h := harness.StartWith(t, harness.Options{Args: append(hostArgs(f.addresses()), "--durability", "process"), Env: keys(vendors)})
	require.NoError(t, h.Deploy(workflows(), "dev-key"))
	c := checked(t, h.Client("dev-key"))
	idle, floods := peak(t, h.PID), 20
	if raced(t) {
		floods = 6
	}
	for _, how := range []string{"endless", "event", "large"} {
		var ids []string
		for i := range floods {
			v := vendors[i%len(vendors)]
			ids = append(ids, start(t, c, asks([]string{"envelope-streamed", "value-whole"}[i/3%2], fmt.Sprintf("%s-%d", how, i), v, v.seeing, "")))
		}
		var wg sync.WaitGroup
		for _, id := range ids {
			wg.Go(func() {
				events, err := ended(t, c, id)
				if err != nil || events[len(events)-1].Type != "run.failed" || !strings.Contains(string(events[len(events)-1].Payload), `"code":"content_too_long"`) {
					t.Errorf("%s: %v %v", how, err, typesBut(events, chunk))
				}
			})
		}
		wg.Wait()
		require.Less(t, peak(t, h.PID)-idle, floods*allowed(t, how), how)
		t.Logf("%s: peak of %d MiB, %d MiB when idle; the longest answer had %d MiB", how, peak(t, h.PID)>>20, idle>>20, f.most.Load()>>20)
	}
	require.Less(t, f.most.Load(), int64(64<<20), "the host must close the connection")
	require.Eventually(t, func() bool { return f.held.Load() == 0 }, 30*time.Second, time.Millisecond, "a connection is still open")
	requireUsable(t, c)
}

// A call with endless pings continues until it is cancelled.
func TestFlood_EndlessPingsCanBeCancelled(t *testing.T) {
	needsHost(t)
	f := newFlood(t)
	h := harness.StartWith(t, harness.Options{Args: append(hostArgs(f.addresses()), "--durability", "process"), Env: keys(vendors)})
	require.NoError(t, h.Deploy(workflows(), "dev-key"))
	c := checked(t, h.Client("dev-key"))
	idle := peak(t, h.PID)
	var ids []string
	for i, v := range vendors {
		ids = append(ids, start(t, c, asks("envelope-streamed", fmt.Sprintf("pings-%d", i), v, v.seeing, "")))
	}
	require.Eventually(t, func() bool { return f.held.Load() == int64(len(vendors)) }, 30*time.Second, time.Millisecond)
	for _, id := range ids {
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+id+"/cancel", "")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
		events := finish(t, c, id)
		require.Equal(t, "run.cancelled", events[len(events)-1].Type)
	}
	require.Eventually(t, func() bool { return f.held.Load() == 0 }, 30*time.Second, time.Millisecond, "a connection is still open")
	require.Less(t, peak(t, h.PID)-idle, len(vendors)*allowed(t, "pings"))
	requireUsable(t, c)
}

// requireUsable executes a run that needs no model.
func requireUsable(t *testing.T, c *harness.Client) {
	t.Helper()
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", workflow("still", node("a", "core.noop", "{}", "{}")))
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	events := finish(t, c, start(t, c, `{"workflowId":"still","inputs":{"case":"none"}}`))
	require.Equal(t, "run.completed", events[len(events)-1].Type)
}
