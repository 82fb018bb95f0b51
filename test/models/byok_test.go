package models

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// The tenants of the host where each tenant brings its own keys.
const (
	northKey = "hk_live_8a3c5e7092b1d4f6" // north
	southKey = "hk_live_1f0e2d3c4b5a6978" // south
)

// tenantKey returns a tenant's key at a vendor.
func tenantKey(tenant, vendor string) string { return "sk-" + tenant + "-" + vendor + "-77aa88bb99cc" }

// byok is a host with a directory of tenants' keys.
type byok struct {
	h   *harness.Host
	dir string
	log *output
}

// output records the host's output.
type output struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

// Write appends to the record.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

// String returns the whole record.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func newBYOK(t *testing.T, addresses map[string]string) *byok {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED, starts a real process: run without -short")
	}
	b := &byok{dir: t.TempDir(), log: &output{}}
	for _, v := range vendors {
		b.rotate(t, "north", v.id, tenantKey("north", v.id))
	}
	b.rotate(t, "south", "openai", tenantKey("south", "openai"))
	b.h = harness.StartWith(t, harness.Options{
		Args: append(hostArgs(addresses), "--durability", "process", "--credentials", b.dir, "--log-level", "debug",
			"--redact-shapes=false", // secrets must be redacted because they are registered
			"--api-key", northKey+"=north:*", "--api-key", southKey+"=south:*"),
		Env: keys(vendors), Output: b.log,
	})
	require.NoError(t, b.h.Deploy(workflows(), northKey, southKey))
	return b
}

// rotate replaces a key atomically, as a mounted secret does.
func (b *byok) rotate(t *testing.T, tenant, vendor, key string) {
	t.Helper()
	path := filepath.Join(b.dir, tenant, vendor, "main")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path+".new", []byte(key+"\n"), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

const ownKey = `,"ai.credentialRef":"main"`

// shown returns everything that a reader can get of a run.
func shown(t *testing.T, c *harness.Client, id string) string {
	t.Helper()
	var b strings.Builder
	for _, path := range []string{"", "/debug-bundle", "/events/poll", ":view"} {
		a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+id+path, "")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
		b.Write(a.Body)
	}
	_, err := c.Stream(within(t, 30*time.Second), "/v1/runs/"+id+"/events", func(f harness.Frame) bool {
		b.WriteString(f.Data)
		return true
	})
	require.NoError(t, err)
	return b.String()
}

// requireHidden checks that neither a key nor its beginning is readable anywhere.
func requireHidden(t *testing.T, key, where, marker string) {
	t.Helper()
	require.NotContains(t, where, key)
	require.NotContains(t, where, key[:len(key)-4])
	require.Contains(t, where, marker)
}

// A tenant's call uses the tenant's key. A model that repeats the key does not disclose it (OpenWOP
// envelope contract §11).
func TestBYOK_OwnKeysAreSentAndNeverShown(t *testing.T) {
	t.Parallel()
	b := newBYOK(t, urls(vendors))
	for _, v := range vendors {
		for _, mode := range []string{"streamed", "whole"} {
			for shape := range shapes {
				t.Run(strings.Join([]string{v.id, shape, mode}, "/"), func(t *testing.T) {
					key := tenantKey("north", v.id)
					name := strings.Join([]string{"byok", v.id, shape, mode}, "-")
					// The key arrives in pieces within a valid answer.
					v.desk.put(name, answer{text: `{"answer":42,"note":"my key is ` + key + `, said the model"}`, in: 5, out: 30})
					c := checked(t, b.h.Client(northKey))
					id := start(t, c, asks(shape+"-"+mode, name, v, v.seeing, ownKey))
					events := finish(t, c, id)
					require.Equal(t, "run.completed", events[len(events)-1].Type, "%s", dump(events))
					calls := v.desk.of(name)
					require.Len(t, calls, 1)
					require.Equal(t, key, v.keyOf(calls[0].header))
					requireHidden(t, key, shown(t, c, id), "[REDACTED:"+v.id+".main]")
					requireHidden(t, key, dump(events), "[REDACTED:"+v.id+".main]")
				})
			}
		}
	}
	for _, v := range vendors {
		require.NotContains(t, b.log.String(), tenantKey("north", v.id))
		require.NotContains(t, b.log.String(), v.key)
	}
}

func TestBYOK_EachTenantUsesItsOwnKeyAndNeverTheHosts(t *testing.T) {
	t.Parallel()
	b := newBYOK(t, urls(vendors))
	v := vendors[0]
	for api, tenant := range map[string]string{northKey: "north", southKey: "south"} {
		name := "tenant-" + tenant
		v.desk.put(name, answer{text: good, in: 5, out: 5})
		c := checked(t, b.h.Client(api))
		finish(t, c, start(t, c, asks("value-whole", name, v, v.seeing, ownKey)))
		require.Equal(t, tenantKey(tenant, v.id), v.keyOf(v.desk.of(name)[0].header))
	}

	// The other tenant has no key at the other vendors, and none under another name. The host's own
	// key is no substitute, and no model is called.
	c := checked(t, b.h.Client(southKey))
	for name, body := range map[string]string{
		"missing-vendor": asks("value-whole", "missing-vendor", vendors[1], vendors[1].seeing, ownKey),
		"missing-ref":    asks("value-whole", "missing-ref", v, v.seeing, `,"ai.credentialRef":"other"`),
	} {
		events := finish(t, c, start(t, c, body))
		requireHas(t, `{"error":{"code":"credential_required"}}`, events[len(events)-1].Payload)
		require.Empty(t, of(events, again), "a retry cannot help")
		require.Empty(t, of(events, usage))
		for _, v := range vendors {
			require.Empty(t, v.desk.of(name))
		}
	}

	// Without a ref the host's key is used.
	v.desk.put("hosts", answer{text: good, in: 5, out: 5})
	finish(t, c, start(t, c, asks("value-whole", "hosts", v, v.seeing, "")))
	require.Equal(t, v.key, v.keyOf(v.desk.of("hosts")[0].header))
}

// A key replaced on disk applies from the next call, also within a run. Both keys are redacted.
func TestBYOK_ARotatedKeyAppliesFromTheNextCall(t *testing.T) {
	t.Parallel()
	v := vendors[0]
	l := newLine(t, v)
	b := newBYOK(t, map[string]string{v.id: l.url})
	c := checked(t, b.h.Client(northKey))
	config := `{"prompt":"` + question + `","outputSchema":` + answerSchema + `}`
	doc := workflow("twice", node("one", "core.ai.structuredOutput", config, "{}")+","+node("two", "core.ai.structuredOutput", config, "{}"))
	doc = strings.Replace(doc, `"edges":[]`, `"edges":[{"id":"e","sourceNodeId":"one","targetNodeId":"two"}]`, 1)
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", doc)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)

	before, after := tenantKey("north", v.id), "sk-north-rotated-0f9e8d7c6b5a"
	echo := answer{text: `{"answer":42,"note":"` + before + ` and ` + after + `"}`, in: 5, out: 30}
	v.desk.put("rotated", echo, echo)
	first := l.holdAnswer()
	id := start(t, c, asks("twice", "rotated", v, v.seeing, ownKey))
	reach(t, first.reached)
	b.rotate(t, "north", v.id, after)
	close(first.open)
	events := finish(t, c, id)
	require.Equal(t, "run.completed", events[len(events)-1].Type, "%s", dump(events))
	calls := v.desk.of("rotated")
	require.Len(t, calls, 2)
	require.Equal(t, before, v.keyOf(calls[0].header))
	require.Equal(t, after, v.keyOf(calls[1].header))
	last := string(of(events, completed)[1].Payload)
	requireHidden(t, before, last, "[REDACTED:openai.main] and")
	requireHidden(t, after, last, "and [REDACTED:openai.main]")
}
