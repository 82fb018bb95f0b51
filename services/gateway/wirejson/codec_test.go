package wirejson_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/gateway/wirejson"
)

func render(t *testing.T, m proto.Message) string {
	t.Helper()
	b, err := wirejson.Append(nil, m)
	require.NoError(t, err)
	return string(b)
}

// Zero values and integers: OpenWOP host contract Appendix C no. 1.
func TestAppend_WritesZeroValuesAndNumbers(t *testing.T) {
	t.Parallel()
	require.JSONEq(t, `{"runId":"r","events":[],"isComplete":false,"isTerminal":false,"lastEventSeq":0,"runStatus":""}`,
		render(t, &hostv1.PollRunEventsResponse{RunId: "r"}))
	require.JSONEq(t, `{"results":[{"runId":"a","ok":false,"error":{"code":"not_found","error":"not_found","message":"m"}},{"runId":"b","ok":true,"status":"cancelled"}]}`,
		render(t, &openwopv1.BulkCancelRunsResponse{Results: []*openwopv1.BulkCancelResult{
			{RunId: "a", Error: &openwopv1.BulkCancelError{Code: "not_found", Error: "not_found", Message: "m"}},
			{RunId: "b", Ok: true, Status: proto.String("cancelled")},
		}}))
}

func TestAppend_OmitsUnsetMembers(t *testing.T) {
	t.Parallel()
	require.JSONEq(t, `{"runId":"r","status":"cancelled"}`, render(t, &openwopv1.CancelRunResponse{RunId: "r", Status: "cancelled"}))
	require.Contains(t, render(t, &openwopv1.CancelRunResponse{AlreadyTerminal: proto.Bool(false)}), `"alreadyTerminal":false`)
}

func TestAppend_KeepsDocumentsByteForByte(t *testing.T) {
	t.Parallel()
	doc := `{"b":12345678901234567890,  "a":1.50}`
	require.Equal(t, doc, render(t, &openwopv1.JsonDocument{Json: []byte(doc)}))
	require.Contains(t, render(t, &hostv1.PollRunEventsResponse{Events: []*openwopv1.JsonDocument{{Json: []byte(doc)}}}), doc)
}

func TestDecode_ReadsARequestExactly(t *testing.T) {
	t.Parallel()
	var m openwopv1.CreateRunRequest
	require.NoError(t, wirejson.Decode([]byte(`{"workflowId":"w","inputs":{"n":12345678901234567890},"tags":["a","b"]}`), strictjson.Default, &m))
	require.Equal(t, "w", m.GetWorkflowId())
	require.Equal(t, `{"n":12345678901234567890}`, string(m.GetInputs().GetJson()))
	require.Equal(t, []string{"a", "b"}, m.GetTags())
	require.Nil(t, m.GetConfigurable())
}

func TestDecode_NamesTheInvalidMember(t *testing.T) {
	t.Parallel()
	cases := []struct{ body, path, says string }{
		{`{"workflowId":1}`, "/workflowId", "want a string, got a number"},
		{`{"workflow_id":"w"}`, "/workflow_id", "did you mean workflowId?"},
		{`{"workflow":"w"}`, "/workflow", "did you mean workflowId?"},
		{`{"tags":"a"}`, "/tags", "want an array"},
		{`{"tags":["a",null]}`, "/tags/1", "want a string, got null"},
		{`{"a/b~c":1}`, "/a~1b~0c", "unknown member"},
		{`[]`, "", "want an object"},
		{`{"workflowId":"a","workflowId":"a"}`, "/workflowId", "two members"},
	}
	for _, c := range cases {
		t.Run(c.body, func(t *testing.T) {
			t.Parallel()
			err := wirejson.Decode([]byte(c.body), strictjson.Default, &openwopv1.CreateRunRequest{})
			e, ok := fault.As(err)
			require.True(t, ok, "%v", err)
			require.Equal(t, fault.ValidationError, e.Code)
			require.Contains(t, e.Message, c.says)
			require.Equal(t, c.path, e.Details["problems"].([]fault.Problem)[0].Path)
		})
	}
}

func TestDecode_TakesPathMembersFromThePathOnly(t *testing.T) {
	t.Parallel()
	err := wirejson.Decode([]byte(`{"runId":"other"}`), strictjson.Default, &openwopv1.CancelRunRequest{}, "runId")
	require.ErrorContains(t, err, "/runId: unknown member")
}

func TestDecode_DistinguishesALargeBodyFromAnInvalidOne(t *testing.T) {
	t.Parallel()
	err := wirejson.Decode([]byte(`{"workflowId":"w"}`), strictjson.Limits{MaxBytes: 4, MaxDepth: 4}, &openwopv1.CreateRunRequest{})
	require.Equal(t, fault.PayloadTooLarge, fault.CodeOf(err))
}

// An accepted document keeps its meaning when it is rendered and read again.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"workflowId":"w","inputs":{"a":[1,2]},"tags":["x"],"metadata":{}}`))
	f.Add([]byte(`{"configurable":{"ai.provider":"x"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var m, again openwopv1.CreateRunRequest
		if err := wirejson.Decode(body, strictjson.Default, &m); err != nil {
			_, ok := fault.As(err)
			require.True(t, ok, "every refusal has a code: %v", err)
			return
		}
		out, err := wirejson.Append(nil, &m)
		require.NoError(t, err)
		require.True(t, json.Valid(out))
		require.NoError(t, wirejson.Decode(out, strictjson.Default, &again))
		require.True(t, proto.Equal(&m, &again))
	})
}

func BenchmarkDecode(b *testing.B) {
	body := []byte(`{"workflowId":"triage","inputs":{"mail":"hello"},"tags":["a"]}`)
	b.ReportAllocs()
	for b.Loop() {
		if err := wirejson.Decode(body, strictjson.Default, &openwopv1.CreateRunRequest{}); err != nil {
			b.Fatal(err)
		}
	}
}
