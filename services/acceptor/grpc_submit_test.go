package acceptor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	runlogv1 "waybill.dev/waybill/proto/gen/go/waybill/runlog/v1"
	"waybill.dev/waybill/protocol/fault"
)

const form = `{"type":"ui.a2ui-surface","schemaVersion":1,"envelopeId":"e","correlationId":"form","payload":{"catalogVersion":"0.9.1","surface":{"components":[` +
	`{"component":"field.text","id":"why","label":"Why?","required":true},` +
	`{"component":"field.select","id":"size","label":"Size","options":[{"value":"s","label":"Small"},{"value":"l","label":"Large"}]},` +
	`{"component":"action.button","id":"go","label":"Go","action":{"target":"resume"}}]}},"meta":{"source":"ai-generation","ts":"2026-01-31T12:00:00Z"}}`

// OpenWOP envelope contract §18, on submit: only known field ids, required fields, valid
// options, and then the resumeSchema.
func TestCheckSubmit_ValidatesAgainstTheRecordedSurface(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	h.open(t, externalRun, "untrusted")
	require.Contains(t, string(h.anywhere(t, []byte(form)).GetOutcome()), `"accepted"`)
	before := len(h.frames(t))
	for name, tc := range map[string]struct{ values, schema, path string }{
		"fits":               {`{"why":"too small","size":"l"}`, ``, ""},
		"fits the schema":    {`{"why":"too small"}`, `{"properties":{"why":{"minLength":3}}}`, ""},
		"required":           {`{"size":"s"}`, ``, "/why"},
		"no such option":     {`{"why":"x","size":"xl"}`, ``, "/size"},
		"no such field":      {`{"why":"x","color":"red"}`, ``, "/color"},
		"against the schema": {`{"why":"x"}`, `{"properties":{"why":{"minLength":3}}}`, "/why"},
		"no object":          {`"why"`, ``, ""},
		"no JSON":            {`{`, ``, ""},
	} {
		res, err := h.CheckSubmit(t.Context(), &acceptorv1.CheckSubmitRequest{
			Run: externalRun, CorrelationId: "form", Values: []byte(tc.values), ResumeSchema: []byte(tc.schema),
		})
		require.NoError(t, err, name)
		require.Equal(t, "untrusted", res.GetContentTrust(), "it advances no approval")
		if strings.HasPrefix(name, "fits") {
			require.Empty(t, res.GetProblems(), name)
			continue
		}
		require.Len(t, res.GetProblems(), 1, name)
		require.Equal(t, tc.path, res.GetProblems()[0].GetPath(), name)
		require.NotEmpty(t, res.GetProblems()[0].GetMessage())
	}
	require.Len(t, h.frames(t), before, "nothing is recorded")
}

func TestCheckSubmit_LimitsTheProblems(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	h.open(t, externalRun, "")
	h.anywhere(t, []byte(form))
	var values strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&values, `,"m%d":1`, i)
	}
	res, err := h.CheckSubmit(t.Context(), &acceptorv1.CheckSubmitRequest{
		Run:           externalRun,
		CorrelationId: "form",
		Values:        []byte(`{"why":"x"` + values.String() + `}`),
	})
	require.NoError(t, err)
	require.Len(t, res.GetProblems(), 32)
	require.Equal(t, "trusted", res.GetContentTrust())
}

func TestCheckSubmit_ShowsNoSecret(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	_, err := h.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: externalRun, NoTenantSecrets: true})
	require.NoError(t, err)
	h.register(t, externalRun.GetRunId(), "k", canary)
	h.anywhere(t, []byte(form))
	req := &acceptorv1.CheckSubmitRequest{
		Run:           externalRun,
		CorrelationId: "form",
		Values:        []byte(`{"why":"` + canary + `","` + canary + `":1}`),
	}
	res, err := h.CheckSubmit(t.Context(), req)
	require.NoError(t, err)
	require.NotContains(t, res.String(), canary)
	require.Equal(t, "/[REDACTED:k]", res.GetProblems()[0].GetPath())
	h.redactor.restart()
	_, err = h.CheckSubmit(t.Context(), req)
	h.refused(t, err, 3, "run")
}

func TestCheckSubmit_RefusesInvalidRequests(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	h.open(t, externalRun, "")
	h.anywhere(t, []byte(form))
	h.anywhere(t, numbered("c1"))
	theirs := &runlogv1.RunRef{Tenant: "other", WorkflowId: "agent", RunId: "theirs-1"}
	for name, tc := range map[string]struct {
		req  *acceptorv1.CheckSubmitRequest
		code fault.Code
	}{
		"nothing recorded": {
			&acceptorv1.CheckSubmitRequest{Run: externalRun, CorrelationId: "x", Values: []byte(`{}`)},
			fault.NotFound,
		},
		"no surface": {
			&acceptorv1.CheckSubmitRequest{Run: externalRun, CorrelationId: "c1", Values: []byte(`{}`)},
			fault.NotFound,
		},
		"another tenant's": {
			&acceptorv1.CheckSubmitRequest{Run: theirs, CorrelationId: "form", Values: []byte(`{}`)},
			fault.RunNotFound,
		},
		"no run": {&acceptorv1.CheckSubmitRequest{CorrelationId: "form"}, fault.ValidationError},
		"an unusable schema": {
			&acceptorv1.CheckSubmitRequest{
				Run:           externalRun,
				CorrelationId: "form",
				Values:        []byte(`{"why":"x"}`),
				ResumeSchema:  []byte(`{"type":7}`),
			},
			fault.ValidationError,
		},
		"too much": {
			&acceptorv1.CheckSubmitRequest{Run: externalRun, CorrelationId: "form", Values: make([]byte, 2<<20)},
			fault.PayloadTooLarge,
		},
	} {
		_, err := h.CheckSubmit(t.Context(), tc.req)
		require.Equal(t, tc.code, fault.CodeOf(err), "%s: %v", name, err)
	}
	_, err := h.CloseRun(t.Context(), &acceptorv1.CloseRunRequest{Run: externalRun, Status: "completed"})
	require.NoError(t, err)
	_, err = h.CheckSubmit(t.Context(), &acceptorv1.CheckSubmitRequest{
		Run:           externalRun,
		CorrelationId: "form",
		Values:        []byte(`{}`),
	})
	require.Equal(t, fault.RunTerminal, fault.CodeOf(err), "the run has ended")
}
