package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/engine"
)

// trace is a well-formed traceparent.
const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestCreateRun_PassesTheWholeRequestToTheDispatcher(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := as(t, testKey, engine.MetaDedup, "Enforce", engine.MetaTransport, "rest", engine.MetaTraceparent, trace)
	res, err := r.CreateRun(ctx, &openwopv1.CreateRunRequest{
		WorkflowId:   "wf",
		Inputs:       doc(`{"n":12345678901234567890}`),
		Configurable: doc(`{"x":1}`),
		Metadata:     doc(`{"m":[]}`),
		Tags:         []string{"a", "b"},
		TenantId:     proto.String("acme"),
		ScopeId:      proto.String("s1"),
		CallbackUrl:  proto.String("https://example.com/cb"),
	})
	require.NoError(t, err)
	require.Len(t, r.dispatcher.starts, 1)
	got := r.dispatcher.starts[0]
	require.Regexp(t, `^run_[0-9a-z]{26}$`, got.GetRunId())
	require.Regexp(t, `^key_`, got.GetPrincipal())
	want := &dispatcherv1.StartRunRequest{
		Tenant:       "acme",
		Principal:    got.GetPrincipal(),
		RunId:        got.GetRunId(),
		WorkflowId:   "wf",
		Inputs:       []byte(`{"n":12345678901234567890}`),
		Configurable: []byte(`{"x":1}`),
		Metadata:     []byte(`{"m":[]}`),
		Tags:         []string{"a", "b"},
		ScopeId:      "s1",
		CallbackUrl:  "https://example.com/cb",
		Transport:    "rest",
		Dedup:        true,
		TestKey:      true,
		Traceparent:  trace,
	}
	require.True(t, proto.Equal(want, got), "%v", got)
	require.Equal(t, "http://host:1/v1/runs/"+res.GetRunId()+"/events", res.GetEventsUrl())
	require.Equal(t, "http://host:1/v1/runs/"+res.GetRunId(), res.GetStatusUrl())
	require.Equal(t, "pending", res.GetStatus())
	require.Equal(t, "201", ctx.metadata(engine.MetaStatus))
	require.Empty(t, ctx.metadata(engine.MetaReplay), "the first answer is no replay")
}

// OpenWOP host contract §3.4: the enum has no value for gRPC, so a run of a gRPC client has
// no transport.
func TestCreateRun_OverGRPCHasNoTransport(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.CreateRun(as(t, liveKey), &openwopv1.CreateRunRequest{WorkflowId: "wf"})
	require.NoError(t, err)
	require.Empty(t, r.dispatcher.starts[0].GetTransport())
}

func TestCreateRun_GivesEveryRunItsOwnID(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	seen := map[string]bool{}
	for range 200 {
		res, err := r.CreateRun(as(t, liveKey), &openwopv1.CreateRunRequest{WorkflowId: "wf"})
		require.NoError(t, err)
		require.False(t, seen[res.GetRunId()])
		seen[res.GetRunId()] = true
	}
}

// place is the pointer of the first problem an error names.
func place(t *testing.T, err error) string {
	t.Helper()
	e, ok := fault.As(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, fault.ValidationError, e.Code)
	var body struct {
		Details struct {
			Problems []struct{ Path, Message string } `json:"problems"`
		} `json:"details"`
	}
	unmarshal(t, e.Envelope(), &body)
	require.NotEmpty(t, body.Details.Problems)
	require.NotEmpty(t, body.Details.Problems[0].Message)
	return body.Details.Problems[0].Path
}

func TestCreateRun_NamesThePlaceOfEveryWrongMember(t *testing.T) {
	t.Parallel()
	wf := func(change func(*openwopv1.CreateRunRequest)) *openwopv1.CreateRunRequest {
		req := &openwopv1.CreateRunRequest{WorkflowId: "wf"}
		change(req)
		return req
	}
	meta := func(s string) *openwopv1.CreateRunRequest {
		return wf(func(r *openwopv1.CreateRunRequest) { r.Metadata = doc(s) })
	}
	tags := func(list ...string) *openwopv1.CreateRunRequest {
		return wf(func(r *openwopv1.CreateRunRequest) { r.Tags = list })
	}
	cases := []struct {
		name, place string
		req         *openwopv1.CreateRunRequest
	}{
		{"no workflow", "/workflowId", &openwopv1.CreateRunRequest{}},
		{"long workflow id", "/workflowId", &openwopv1.CreateRunRequest{WorkflowId: strings.Repeat("w", 129)}},
		{"inputs array", "/inputs", wf(func(r *openwopv1.CreateRunRequest) { r.Inputs = doc(` []`) })},
		{"inputs null", "/inputs", wf(func(r *openwopv1.CreateRunRequest) { r.Inputs = doc(`null`) })},
		{"configurable text", "/configurable", wf(func(r *openwopv1.CreateRunRequest) { r.Configurable = doc(`"x"`) })},
		{"metadata number", "/metadata", meta(`1`)},
		{"metadata too large", "/metadata", meta(`{"x":"` + strings.Repeat("y", 8192-7) + `"}`)},
		{"metadata too deep", "/metadata", meta(`{"a":[{"b":[{}]}]}`)},
		{"empty tag", "/tags/1", tags("a", "")},
		{"long tag", "/tags/0", tags(strings.Repeat("ü", 257))},
		{"many tags", "/tags", tags(make([]string, 101)...)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			_, err := r.CreateRun(as(t, liveKey), c.req)
			require.Equal(t, c.place, place(t, err))
			require.Empty(t, r.dispatcher.starts)
		})
	}
}

func TestCreateRun_AcceptsValuesAtTheLimits(t *testing.T) {
	t.Parallel()
	many := make([]string, 100)
	for i := range many {
		many[i] = strings.Repeat("ü", 256)
	}
	cases := map[string]*openwopv1.CreateRunRequest{
		"longest id":       {WorkflowId: strings.Repeat("w", 128)},
		"most tags":        {WorkflowId: "wf", Tags: many},
		"largest metadata": {WorkflowId: "wf", Metadata: doc(`{"x":"` + strings.Repeat("y", 8192-8) + `"}`)},
		"deepest metadata": {WorkflowId: "wf", Metadata: doc(`{"a":[{"b":[1]}]}`)},
		"braces in text":   {WorkflowId: "wf", Metadata: doc(`{"a":"[[[[[[\"{{{{{{"}`)},
		"space before":     {WorkflowId: "wf", Inputs: doc("\n\t {}")},
		"empty objects":    {WorkflowId: "wf", Inputs: doc(`{}`), Configurable: doc(`{}`), Metadata: doc(`{}`)},
	}
	for name, req := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newRig(t).CreateRun(as(t, liveKey), req)
			require.NoError(t, err)
		})
	}
}

func TestCreateRun_ReportsEveryProblemInOneError(t *testing.T) {
	t.Parallel()
	for _, req := range []*openwopv1.CreateRunRequest{
		{Inputs: doc(`1`), Metadata: doc(`[]`)},
		{WorkflowId: "wf", Tags: []string{"", ""}, CallbackUrl: proto.String("x")},
		{WorkflowId: "wf", Configurable: doc(`{"model":1,"maxTokens":0,"temperature":9}`)},
	} {
		_, err := newRig(t).CreateRun(as(t, liveKey), req)
		e, ok := fault.As(err)
		require.True(t, ok)
		require.Len(t, e.Details["problems"], 3)
	}
}

// Over gRPC the documents' bytes have not been checked before.
func TestCreateRun_RefusesDocumentsThatAreNotStrictJSON(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"", "{", `{"a":1,}`, `{"a":1,"a":2}`, "{\"a\":\"\xff\"}", `{} {}`, `{"a":NaN}`,
		strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65),
	} {
		for _, req := range []*openwopv1.CreateRunRequest{
			{WorkflowId: "wf", Inputs: doc(raw)},
			{WorkflowId: "wf", Configurable: doc(raw)},
			{WorkflowId: "wf", Metadata: doc(raw)},
		} {
			r := newRig(t)
			_, err := r.CreateRun(as(t, liveKey), req)
			require.Equal(t, fault.ValidationError, fault.CodeOf(err), "%.40q", raw)
			require.Empty(t, r.dispatcher.starts)
		}
	}
}

func TestCreateRun_TypesTheReservedKeysOfConfigurable(t *testing.T) {
	t.Parallel()
	bad := map[string][]string{
		"recursionLimit":     {`0`, `-1`, `1.5`, `"5"`, `null`, `true`, `[]`, `1e400`},
		"maxTokens":          {`0`, `2.5`, `"1"`, `null`},
		"runTimeoutMs":       {`0`, `-1`, `"1000"`, `null`, `{}`},
		"temperature":        {`-0.1`, `2.1`, `"1"`, `null`},
		"model":              {`""`, `1`, `null`, `[]`},
		"ai.provider":        {`""`, `1`, `null`},
		"ai.model":           {`""`, `false`},
		"ai.credentialRef":   {`""`, `{}`},
		"reasoningVerbosity": {`""`, `"loud"`, `"Full"`, `7`, `null`},
		"promptOverrides":    {`"x"`, `[]`, `null`, `{"a":1}`},
		"ai":                 {`"x"`, `null`, `{"provider":1}`, `[]`},
		"mockProvider":       {`"x"`, `null`, `[]`},
		"mockProvider/id":    {},
	}
	for key, values := range bad {
		for _, v := range values {
			t.Run(key+" "+v, func(t *testing.T) {
				t.Parallel()
				_, err := newRig(t).CreateRun(as(t, testKey), &openwopv1.CreateRunRequest{
					WorkflowId:   "wf",
					Configurable: doc(fmt.Sprintf(`{%q:%s}`, key, v)),
				})
				require.Equal(t, "/configurable/"+key, place(t, err))
			})
		}
	}
}

func TestCreateRun_ClosesTheMockProvider(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		`{}`:                           "/configurable/mockProvider/id",
		`{"id":""}`:                    "/configurable/mockProvider/id",
		`{"id":1}`:                     "/configurable/mockProvider/id",
		`{"id":"x","extra":1}`:         "/configurable/mockProvider/extra",
		`{"id":"x","ID":"y"}`:          "/configurable/mockProvider/ID",
		`{"id":"` + long(129) + `"}`:   "/configurable/mockProvider/id",
		`{"id":"stream-text"}`:         "",
		`{"id":"` + long(128) + `"}`:   "",
		`{"id":"x","config":{"a":[]}}`: "",
	}
	for mock, want := range cases {
		t.Run(fmt.Sprintf("%.40s", mock), func(t *testing.T) {
			t.Parallel()
			_, err := newRig(t).CreateRun(as(t, testKey), &openwopv1.CreateRunRequest{
				WorkflowId:   "wf",
				Configurable: doc(`{"mockProvider":` + mock + `}`),
			})
			if want == "" {
				require.NoError(t, err, "whether it exists is the dispatcher's to say")
				return
			}
			require.Equal(t, want, place(t, err))
		})
	}
}

func long(n int) string { return strings.Repeat("m", n) }

func TestCreateRun_PassesSoundAndUnknownKeysThroughUntouched(t *testing.T) {
	t.Parallel()
	const overlay = `{"recursionLimit":1,"maxTokens":1.0,"runTimeoutMs":0.5,"temperature":2,"model":"m","ai.provider":"p","ai.model":"m","ai.credentialRef":"r","reasoningVerbosity":"off",` +
		`"promptOverrides":{},"ai":{"provider":"p"}, "acme":{"deep":[1,2.50]},"escalationThreshold":"ignored"}`
	r := newRig(t)
	_, err := r.CreateRun(as(t, liveKey), &openwopv1.CreateRunRequest{WorkflowId: "wf", Configurable: doc(overlay)})
	require.NoError(t, err)
	require.Equal(t, overlay, string(r.dispatcher.starts[0].GetConfigurable()))
}

func TestCreateRun_ChecksTheCallbackAddress(t *testing.T) {
	t.Parallel()
	bad := []string{
		"", "x", "/relative", "http://example.com", "ftp://example.com", "https://",
		"https://user@example.com", "https://u:p@example.com",
		"https://localhost", "https://LOCALHOST./x", "https://a.localhost",
		"https://metadata.google.internal", "https://127.0.0.1", "https://10.0.0.1:8443/x",
		"https://192.168.1.1", "https://172.16.0.1", "https://169.254.169.254/latest", "https://0.0.0.0",
		"https://[::1]", "https://[::]",
		"https://[fe80::1]", "https://[fd00::1]", "https://[::ffff:127.0.0.1]",
		"https://[::ffff:10.0.0.1]", "https://224.0.0.1", "https://255.255.255.255",
		"https://a b", "https://%zz", "://x", "https:example.com",
	}
	for _, u := range bad {
		t.Run("refuses "+u, func(t *testing.T) {
			t.Parallel()
			_, err := newRig(t).CreateRun(as(t, liveKey), &openwopv1.CreateRunRequest{WorkflowId: "wf", CallbackUrl: &u})
			require.Equal(t, "/callbackUrl", place(t, err))
		})
	}
	for _, u := range []string{
		"https://example.com", "https://example.com:8443/a?b#c", "https://8.8.8.8/x",
		"https://[2606:4700::1111]/", "HTTPS://Example.Com",
	} {
		t.Run("takes "+u, func(t *testing.T) {
			t.Parallel()
			_, err := newRig(t).CreateRun(as(t, liveKey), &openwopv1.CreateRunRequest{WorkflowId: "wf", CallbackUrl: &u})
			require.NoError(t, err)
		})
	}
}

func TestCreateRun_RefusesOtherTenantsAndAbsentFamilies(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		req  *openwopv1.CreateRunRequest
		want fault.Code
	}{
		{"other tenant", &openwopv1.CreateRunRequest{WorkflowId: "wf", TenantId: proto.String("beta")}, fault.Forbidden},
		{"empty tenant", &openwopv1.CreateRunRequest{WorkflowId: "wf", TenantId: proto.String("")}, fault.Forbidden},
		{"tenant before shape", &openwopv1.CreateRunRequest{TenantId: proto.String("beta")}, fault.Forbidden},
		{"mode", &openwopv1.CreateRunRequest{WorkflowId: "wf", Mode: proto.String("eval")}, fault.CapabilityNotProvided},
		{"eval suite", &openwopv1.CreateRunRequest{WorkflowId: "wf", EvalSuiteRef: doc(`{}`)}, fault.CapabilityNotProvided},
		{"agent", &openwopv1.CreateRunRequest{WorkflowId: "wf", AgentId: proto.String("a")}, fault.CapabilityNotProvided},
		{
			"residency",
			&openwopv1.CreateRunRequest{WorkflowId: "wf", Residency: doc(`{"region":"eu"}`)},
			fault.ResidencyUnavailable,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			_, err := r.CreateRun(as(t, liveKey), c.req)
			require.Equal(t, c.want, fault.CodeOf(err))
			require.Empty(t, r.dispatcher.starts)
		})
	}
}

func TestCreateRun_ValidatesHeaders(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, key string
		md        []string
		want      fault.Code
	}{
		{"dedup", liveKey, []string{engine.MetaDedup, "enforce"}, ""},
		{"dedup else", liveKey, []string{engine.MetaDedup, "maybe"}, fault.ValidationError},
		{"dedup empty", liveKey, []string{engine.MetaDedup, ""}, fault.ValidationError},
		{"force with a live key", liveKey, []string{engine.MetaForceEngine, "1"}, fault.ForceEngineForbidden},
		{"force nonsense with a live key", liveKey, []string{engine.MetaForceEngine, "x"}, fault.ForceEngineForbidden},
		{"force ours", testKey, []string{engine.MetaForceEngine, "1"}, ""},
		{"force another", testKey, []string{engine.MetaForceEngine, "2"}, fault.UnsupportedForceEngine},
		{"force no number", testKey, []string{engine.MetaForceEngine, "one"}, fault.UnsupportedForceEngine},
		{"long key", liveKey, []string{engine.MetaIdempotencyKey, strings.Repeat("k", 256)}, fault.ValidationError},
		{"empty key", liveKey, []string{engine.MetaIdempotencyKey, ""}, fault.ValidationError},
		{"longest key", liveKey, []string{engine.MetaIdempotencyKey, strings.Repeat("k", 255)}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := newRig(t).CreateRun(as(t, c.key, c.md...), &openwopv1.CreateRunRequest{WorkflowId: "wf"})
			require.Equal(t, c.want, fault.CodeOf(err))
			if c.want == fault.UnsupportedForceEngine {
				e, _ := fault.As(err)
				require.Equal(t, map[string]any{"min": 1, "max": 1}, e.Details)
			}
		})
	}
}
