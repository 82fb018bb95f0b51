package create_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/create"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/node"
)

func nodeJSON(id, typ string) string {
	return fmt.Sprintf(`{"id":%q,"typeId":%q,"name":"n","position":{"x":0,"y":0},"config":{},"inputs":{}}`, id, typ)
}

func doc(id, nodes, rest string) string {
	return fmt.Sprintf(`{"id":%q,"name":"n","version":"1","nodes":[%s],"triggers":[],"metadata":{},"settings":{}%s}`, id, nodes, rest)
}

var gated = doc("gated", strings.Replace(nodeJSON("gate", "core.approvalGate"), `"config":{}`, `"config":{"title":"t","actions":["accept"]}`, 1), `,"edges":[],"variables":[]`)

var documents = []string{
	doc("plain", nodeJSON("a", "core.noop"), `,"edges":[],"variables":[{"name":"who","type":"string","defaultValue":"you"}]`),
	doc("other", nodeJSON("a", "core.noop"), `,"edges":[],"variables":[]`),
	doc("needs", nodeJSON("a", "core.noop"), `,"edges":[],"variables":[{"name":"mail","type":"string","required":true}]`),
	gated,
	strings.Replace(doc("limited", nodeJSON("a", "core.noop"), `,"edges":[],"variables":[{"name":"who","type":"string","defaultValue":"you"}]`),
		`"settings":{}`, `"settings":{"priority":3,"concurrency":{"key":"inputs.who","limit":2}}`, 1),
	doc("foreign", nodeJSON("a", "core.dispatch"), `,"edges":[],"variables":[]`),
	doc("closed", nodeJSON("a", "core.noop"), `,"edges":[],"variables":[],"configurableSchema":{"type":"object","additionalProperties":false,"properties":{"recursionLimit":{"type":"integer"}}}`),
}

// shelf holds definitions by id.
type shelf map[string]*definition.Entry

func (s shelf) Get(_ context.Context, _, id string) (*definition.Entry, error) {
	if e := s[id]; e != nil {
		return e, nil
	}
	return nil, fault.New(fault.WorkflowNotFound, "no such workflow")
}

func (s shelf) ByDigest(_ context.Context, digest string) (*definition.Entry, error) {
	for _, e := range s {
		if e.Digest == digest {
			return e, nil
		}
	}
	return nil, fault.New(fault.WorkflowNotFound, "no such document")
}

type redactor struct {
	down  atomic.Bool
	fails error
}

func (r *redactor) Redact(_ context.Context, _, _ string, _ bool, docs [][]byte) ([][]byte, bool, error) {
	if r.down.Load() {
		return nil, false, errors.New("down")
	}
	if r.fails != nil {
		return nil, false, r.fails
	}
	changed := false
	out := make([][]byte, len(docs))
	for i, d := range docs {
		out[i] = []byte(strings.NewReplacer("hunter2-hunter2", "[REDACTED:s]", "4929123456789012", `"[REDACTED:s]"`).Replace(string(d)))
		changed = changed || string(out[i]) != string(d)
	}
	return out, changed, nil
}

type rig struct {
	*create.Starter
	log *memory.Log
	red *redactor
	at  *atomic.Int64
}

func newRig(t *testing.T, more ...string) rig {
	t.Helper()
	defs := shelf{}
	for _, d := range append(slices.Clone(documents), more...) {
		def, problems := workflow.Parse([]byte(d))
		require.Empty(t, problems)
		defs[def.ID] = &definition.Entry{Def: def, Graph: workflow.Compile(def), Digest: def.Digest()}
	}
	r := rig{log: memory.New(), red: &redactor{}, at: &atomic.Int64{}}
	r.at.Store(1_700_000_000_000)
	r.Starter = create.New(create.Deps{
		Storage:   create.Storage{Log: r.log, Claims: kvmemory.New(), Definitions: defs},
		Redaction: create.Redaction{Redactor: r.red},
		Checks:    create.Checks{Types: node.Builtin()},
		Models:    create.Models{Providers: []string{"sample"}, MockProviders: []string{"stream-text"}},
		Limits:    create.Limits{MaxDuration: time.Hour, MaxExecutions: 100},
		Clock:     func() time.Time { return time.UnixMilli(r.at.Load()) },
	})
	return r
}

func request(workflow, runID string, mod ...func(*create.Request)) create.Request {
	req := create.Request{Tenant: "acme", Principal: "key_1", WorkflowID: workflow, RunID: runID}
	for _, m := range mod {
		m(&req)
	}
	return req
}

func with(inputs, configurable string) func(*create.Request) {
	return func(r *create.Request) {
		r.Inputs, r.Configurable = json.RawMessage(inputs), json.RawMessage(configurable)
	}
}

func TestStart_WritesTheRecordAndNothingElse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, err := r.Start(t.Context(), request("plain", "run_1", with(`{"n":12345678901234567890}`, "")))
	require.NoError(t, err)
	require.Equal(t, create.Created{RunID: "run_1", WorkflowID: "plain"}, c)
	frames := r.log.Frames()
	require.Len(t, frames, 1)
	require.Equal(t, subject.Start, frames[0].Kind)
	rec, err := frames[0].Record()
	require.NoError(t, err)
	require.Equal(t, "12345678901234567890", string(rec.Inputs["n"]))
	require.Equal(t, `"you"`, string(rec.Defaults["who"]))
	require.NotEmpty(t, rec.WorkflowDigest)
}

// Rejected creations return their code and write nothing (OpenWOP host contract §2.3).
func TestStart_RefusesBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	test := func(r *create.Request) { r.TestKey = true }
	mock := with("", `{"mockProvider":{"id":"stream-text"}}`)
	cases := []struct {
		name string
		req  create.Request
		code fault.Code
		says string
	}{
		{"an unknown workflow", request("ghost", "r"), fault.WorkflowNotFound, ""},
		{"a node type that is not there", request("foreign", "r"), fault.CapabilityRequired, "core.dispatch"},
		{"a missing input", request("needs", "r"), fault.ValidationError, "/inputs/mail"},
		{"an input of the wrong type", request("needs", "r", with(`{"mail":7}`, "")), fault.ValidationError, "/inputs/mail"},
		{
			"configurable outside its schema", request("closed", "r", with("", `{"x":1}`)),
			fault.ValidationError, "/configurable",
		},
		{"an unknown provider", request("plain", "r", with("", `{"ai.provider":"ghost"}`)), fault.ValidationError, "sample"},
		{
			"an unknown provider, nested", request("plain", "r", with("", `{"ai":{"provider":"ghost"}}`)),
			fault.ValidationError, "sample",
		},
		{"a credential", request("plain", "r", with("", `{"ai.credentialRef":"x"}`)), fault.CredentialForbidden, ""},
		{"a mock provider without a test key", request("plain", "r", mock), fault.MockProviderForbidden, ""},
		{
			"an unknown mock provider",
			request("plain", "r", test, with("", `{"mockProvider":{"id":"ghost"}}`)),
			fault.UnsupportedMockProvider, "",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			_, err := r.Start(t.Context(), c.req)
			require.Equal(t, c.code, fault.CodeOf(err), "%v", err)
			require.ErrorContains(t, err, c.says)
			require.Empty(t, r.log.Frames())
		})
	}
	r := newRig(t)
	_, err := r.Start(t.Context(), request("plain", "r", mock, test))
	require.NoError(t, err, "a test key may")
}

func TestStart_SecretsNeverReachTheRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.Start(t.Context(), request("plain", "run_1", with(`{"who":"hunter2-hunter2"}`, `{"note":"hunter2-hunter2"}`), func(q *create.Request) {
		q.Tags, q.Metadata = []string{"hunter2-hunter2"}, json.RawMessage(`{"hunter2-hunter2":1}`)
	}))
	require.NoError(t, err)
	body := string(r.log.Frames()[0].Body)
	require.NotContains(t, body, "hunter2")
	require.Equal(t, 4, strings.Count(body, "[REDACTED:s]"))
}

// Secrets of digits may be numbers, in a request that has no text.
func TestStart_SecretsInNumbersNeverReachTheRecord(t *testing.T) {
	t.Parallel()
	for name, mod := range map[string]func(*create.Request){
		"inputs":   with(`{"who":"me","n":4929123456789012}`, ""),
		"metadata": func(q *create.Request) { q.Metadata = json.RawMessage(`{"a":[{"b":4929123456789012}]}`) },
	} {
		r := newRig(t)
		_, err := r.Start(t.Context(), request("plain", "run_1", mod))
		require.NoError(t, err, name)
		body := string(r.log.Frames()[0].Body)
		require.NotContains(t, body, "4929123456789012", name)
		require.Contains(t, body, "[REDACTED:s]", name)
	}
}

// A placeholder in a URL could change the host that is called.
func TestStart_RefusesACallbackURLThatWouldBeRedacted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.Start(t.Context(), request("plain", "run_1", func(q *create.Request) { q.CallbackURL = "https://answers.example/hunter2-hunter2" }))
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
	require.ErrorContains(t, err, "/callbackUrl")
	require.NotContains(t, err.Error(), "hunter2")
	require.Empty(t, r.log.Frames())
}

func TestStart_WritesNothingWithoutTheRedactor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.red.down.Store(true)
	_, err := r.Start(t.Context(), request("plain", "run_1", with(`{"who":"somebody with a long name"}`, "")))
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	require.Empty(t, r.log.Frames())
}

func keyed(digest string) func(*create.Request) {
	return func(r *create.Request) { r.Digest = digest }
}

func TestStart_ARepeatedRequestMeetsTheFirstOnesFrame(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.Start(t.Context(), request("plain", "run_k", keyed("d1")))
	require.NoError(t, err)
	r.at.Add(5000) // another time: another frame, the same request
	again, err := r.Start(t.Context(), request("plain", "run_k", keyed("d1")))
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, "run_k", again.RunID)
	_, err = r.Start(t.Context(), request("plain", "run_k", keyed("d2")))
	require.Equal(t, fault.IdempotencyKeyMismatch, fault.CodeOf(err))
	_, err = r.Start(t.Context(), request("other", "run_k", keyed("d3")))
	require.Equal(t, fault.IdempotencyKeyMismatch, fault.CodeOf(err), "under another workflow, too")
	require.Len(t, r.log.Frames(), 1)
}

func TestStart_RacersWithOneKeyMakeOneRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var made atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			c, err := r.Start(t.Context(), request("plain", "run_k", keyed("d1")))
			if err != nil {
				t.Error(err)
			}
			if !c.Replayed {
				made.Add(1)
			}
		})
	}
	wg.Wait()
	require.Equal(t, int32(1), made.Load(), "exactly one was not a replay")
	require.Len(t, r.log.Frames(), 1)
}

func TestStart_ReportsAnUnavailableLogAndARetryIsSafe(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.log.FailNext(errors.New("disk full"))
	_, err := r.Start(t.Context(), request("plain", "run_1", keyed("d")))
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	require.NotContains(t, err.(*fault.Error).Message, "disk full") //nolint:errorlint // faults are returned bare
	_, err = r.Start(t.Context(), request("plain", "run_1", keyed("d")))
	require.NoError(t, err)
}

// A record that exceeds the log's limits is a final error, and no run is started.
func TestStart_ARecordThatIsTooLargeIsRefusedForGood(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"log": &runlog.TooLargeError{Size: 2, Limit: 1}, "redactor": fault.New(fault.PayloadTooLarge, "no"),
		"redactor, of its depth": fault.New(fault.ValidationError, "no").With("rule", "depth"),
	} {
		r := newRig(t)
		if name == "log" {
			r.log.FailNext(err)
		} else {
			r.red.fails = err
		}
		_, err := r.Start(t.Context(), request("plain", "run_1", keyed("d"), func(r *create.Request) { r.Inputs = json.RawMessage(`{"who":"somebody"}`) }))
		require.Equal(t, fault.PayloadTooLarge, fault.CodeOf(err), name)
		require.Empty(t, r.log.Frames())
	}
}

func scoped(runID string) create.Request {
	return request("plain", runID, func(r *create.Request) { r.Dedup, r.ScopeID = true, "scope" })
}

func TestDedup_LetsOneRunOfAScopeBeActive(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.Start(t.Context(), scoped("run_1"))
	require.NoError(t, err)
	_, err = r.Start(t.Context(), scoped("run_2"))
	e, ok := fault.As(err)
	require.True(t, ok)
	require.Equal(t, fault.RunAlreadyActive, e.Code)
	require.Equal(t, "run_1", e.Details["activeRunId"])
	require.Equal(t, "cloud", e.Details["activeHost"])

	last := r.log.Frames()[0]
	end := frame.New(last.Run, subject.End, last.Head(), []wire.Event{wire.Draft{Type: wire.EventRunCompleted}.Place("run_1", 0, time.Now())})
	_, err = r.log.Append(t.Context(), end, last.Pos)
	require.NoError(t, err)
	_, err = r.Start(t.Context(), scoped("run_3"))
	require.NoError(t, err, "the first has ended")
}

func TestDedup_AClaimWithoutARunLapses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.log.FailNext(errors.New("down"))
	_, err := r.Start(t.Context(), scoped("run_1"))
	require.Error(t, err)
	_, err = r.Start(t.Context(), scoped("run_2"))
	require.Equal(t, fault.RunAlreadyActive, fault.CodeOf(err), "whether run_1 came about is not known yet")
	r.at.Add(31_000)
	_, err = r.Start(t.Context(), scoped("run_2"))
	require.NoError(t, err, "no start frame came: the claim has lapsed")
}

// A repeated key returns the run that it created, even if the workflow has changed.
func TestDedup_AReplayNeitherClaimsNorGivesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := scoped("run_1")
	first.Digest = "d1"
	_, err := r.Start(t.Context(), first)
	require.NoError(t, err)
	other := first
	other.Digest = "d2"
	_, err = r.Start(t.Context(), other)
	require.Equal(t, fault.IdempotencyKeyMismatch, fault.CodeOf(err))
	_, err = r.Start(t.Context(), scoped("run_2"))
	require.Equal(t, fault.RunAlreadyActive, fault.CodeOf(err), "the first run still holds the scope")
	again, err := r.Start(t.Context(), first)
	require.NoError(t, err)
	require.True(t, again.Replayed)
}

func TestStart_RecordsTheTimeoutOfTheRun(t *testing.T) {
	t.Parallel()
	for configurable, want := range map[string]int64{
		``:                        0,
		`{"runTimeoutMs":1500.9}`: 1500,
		`{"runTimeoutMs":1e300}`:  3_162_240_000_000,
		`{"runTimeoutMs":0.2}`:    1,
	} {
		r := newRig(t)
		_, err := r.Start(t.Context(), request("plain", "run_1", with("", configurable)))
		require.NoError(t, err)
		rec, err := r.log.Frames()[0].Record()
		require.NoError(t, err)
		require.Equal(t, want, rec.DurationMs, configurable)
		require.EqualValues(t, 3_600_000, rec.WorkMs, "the host's own limit is recorded separately")
	}
}

func TestStart_RecordsTheNodeLimitOfTheRun(t *testing.T) {
	t.Parallel()
	for configurable, want := range map[string]int{``: 100, `{"recursionLimit":7.0}`: 7, `{"recursionLimit":1e30}`: 100} {
		r := newRig(t)
		_, err := r.Start(t.Context(), request("plain", "run_1", with("", configurable)))
		require.NoError(t, err)
		rec, err := r.log.Frames()[0].Record()
		require.NoError(t, err)
		require.Equal(t, want, rec.MaxExecutions, configurable)
	}
}

func TestDedup_EightRacersStartOneRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var started atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			_, err := r.Start(t.Context(), scoped(fmt.Sprintf("run_%d", i)))
			switch fault.CodeOf(err) {
			case "":
				started.Add(1)
			case fault.RunAlreadyActive:
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, int32(1), started.Load())
}
