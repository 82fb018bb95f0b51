package acceptor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/runlog/memory"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	runlogv1 "waybill.dev/waybill/proto/gen/go/waybill/runlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor"
	"waybill.dev/waybill/services/acceptor/seam"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAccept_RecordsAndAnswersTheSameAgain(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	req := h.request(t, good)
	first, err := h.Accept(t.Context(), req)
	require.NoError(t, err)
	require.JSONEq(t, `{"status":"accepted","recordedEventIds":["ev_run-1_0"],"envelopeId":"e","normalizedMeta":{"contentTrust":"trusted"}}`, string(first.GetOutcome()))
	require.Equal(t, `{"text":"<hi>","n":12345678901234567890}`, string(first.GetPayload()))
	require.EqualValues(t, 1, first.GetHead().GetNext())

	frames, err := h.log.Run(t.Context(), subject.Run{Tenant: "acme", RunID: "run-1"})
	require.NoError(t, err)
	require.Equal(t, subject.Step, frames[1].Kind)
	require.Equal(t, frames[1].Hash, first.GetHead().GetHash())
	require.Equal(t, "["+string(first.GetEvents()[0])+"]", string(frames[1].Body), "the bytes of the log")

	again, err := h.Accept(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, first.String(), again.String())
	require.NoError(t, frame.VerifyChain(frames))
}

func TestAccept_RefusalIsAnAnswer(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	req := h.request(t, strings.Replace(good, `"text":"<hi>"`, `"text":7`, 1))
	resp, err := h.Accept(t.Context(), req)
	require.NoError(t, err)
	var o struct{ Status, Reason string }
	require.NoError(t, json.Unmarshal(resp.GetOutcome(), &o))
	require.Equal(t, "invalid", o.Status)
	require.True(t, strings.HasPrefix(o.Reason, "envelope_invalid: "), o.Reason)
	require.Equal(t, req.GetHead().GetPos(), resp.GetHead().GetPos())
	require.Empty(t, resp.GetEvents())
	require.Len(t, h.log.Frames(), 1)
}

func TestAccept_AppliesContractLimitsTrustAndApproval(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*acceptorv1.AcceptRequest)
		status string
		reason string
	}{
		"contract": {
			func(r *acceptorv1.AcceptRequest) { r.Contract = &acceptorv1.Contract{RefusalMode: "discard-and-warn"} },
			"gated", `"refusalMode":"discard-and-warn"`,
		},
		"turn is full": {func(r *acceptorv1.AcceptRequest) { r.TurnCount = 5 }, "breached", "envelopesPerTurn limit of 5"},
		"approval": {
			func(r *acceptorv1.AcceptRequest) { r.ApprovalContext, r.TrustBoundary = true, "untrusted" },
			"invalid", "untrusted_content_blocks_approval",
		},
		"untrusted": {
			func(r *acceptorv1.AcceptRequest) { r.TrustBoundary = "untrusted" },
			"accepted", `"contentTrust":"untrusted"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, nil)
			req := h.request(t, good)
			tc.change(req)
			resp, err := h.Accept(t.Context(), req)
			require.NoError(t, err)
			require.Contains(t, string(resp.GetOutcome()), `"status":"`+tc.status+`"`)
			require.Contains(t, string(resp.GetOutcome()), tc.reason)
		})
	}
}

func TestAccept_StrictRefusesALowerVersion(t *testing.T) {
	t.Parallel()
	lower := strings.Replace(good, `"schemaVersion":2`, `"schemaVersion":1`, 1)
	h := start(t, nil)
	resp, err := h.Accept(t.Context(), h.request(t, lower))
	require.NoError(t, err)
	require.Contains(t, string(resp.GetOutcome()), "accepted")
	require.Contains(t, h.lines.String(), `"envelope_schema_version_drift":true`)

	h = start(t, func(c *acceptor.Config) { c.Strictness = acceptor.StrictnessStrict })
	resp, err = h.Accept(t.Context(), h.request(t, lower))
	require.NoError(t, err)
	require.Contains(t, string(resp.GetOutcome()), "unknown_schema_version")
}

func TestAccept_RefusesUnusableRequests(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	for name, change := range map[string]func(*acceptorv1.AcceptRequest){
		"no run":       func(r *acceptorv1.AcceptRequest) { r.Run = nil },
		"no workflow":  func(r *acceptorv1.AcceptRequest) { r.Run.WorkflowId = "" },
		"wild run":     func(r *acceptorv1.AcceptRequest) { r.Run.RunId = "*" },
		"no node":      func(r *acceptorv1.AcceptRequest) { r.NodeId = "" },
		"answer size":  func(r *acceptorv1.AcceptRequest) { r.Answer = &acceptorv1.AnswerPart{Size: -1} },
		"answer index": func(r *acceptorv1.AcceptRequest) { r.Answer = &acceptorv1.AnswerPart{Size: 2, Index: 2} },
		"answer below": func(r *acceptorv1.AcceptRequest) { r.Answer = &acceptorv1.AnswerPart{Size: 2, Index: -1} },
		"answer with":  func(r *acceptorv1.AcceptRequest) { r.Answer = &acceptorv1.AnswerPart{Size: 2, With: []int32{1}} },
		"answer event": func(r *acceptorv1.AcceptRequest) {
			r.Answer = &acceptorv1.AnswerPart{Size: 2, Index: 1, With: []int32{-1}}
		},
		"boundary":     func(r *acceptorv1.AcceptRequest) { r.TrustBoundary = "x" },
		"refusal mode": func(r *acceptorv1.AcceptRequest) { r.Contract = &acceptorv1.Contract{RefusalMode: "x"} },
	} {
		req := &acceptorv1.AcceptRequest{
			Run:    &runlogv1.RunRef{Tenant: "a", WorkflowId: "w", RunId: "r"},
			NodeId: "n",
			Head:   &runlogv1.Head{Pos: 1},
		}
		change(req)
		_, err := h.Accept(t.Context(), req)
		require.Equal(t, fault.ValidationError, fault.CodeOf(err), name)
	}
}

// A request that the redactor never accepts is not retryable.
func TestAccept_ReportsTooManyTextsForTheRedactor(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	req := h.request(t, good)
	req.Contract = &acceptorv1.Contract{}
	for i := range maxItems {
		req.Contract.Accepts = append(req.Contract.Accepts, fmt.Sprint("vendor.x.y", i))
	}
	_, err := h.Accept(t.Context(), req)
	require.Equal(t, fault.PayloadTooLarge, fault.CodeOf(err), "%v", err)
}

// OpenWOP envelope contract §26 case 12.
func TestAccept_FailsClosedWithoutARedactor(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	req := h.request(t, good)
	h.stopRedactor()
	_, err := h.Accept(t.Context(), req)
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	f, _ := fault.As(err)
	require.Positive(t, f.RetryAfter)
	require.Len(t, h.log.Frames(), 1)
}

func TestAccept_LogsNoContent(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	h.redactor.secrets["run-1"] = []*redactorv1.Secret{{Id: "k", Value: canary}}
	for _, e := range []string{
		strings.Replace(good, "<hi>", canary, 1),
		strings.Replace(good, `"text":"<hi>"`, `"`+canary+`":1`, 1),
		strings.Replace(good, `"c"`, `"`+canary+`"`, 1),
	} {
		resp, err := h.Accept(t.Context(), h.request(t, e))
		require.NoError(t, err)
		require.NotContains(t, resp.String(), canary)
		h.log.Wipe()
	}
	require.Equal(t, 3, strings.Count(h.lines.String(), `"msg":"envelope",`), h.lines.String())
	require.NotContains(t, h.lines.String(), canary)
	require.NotContains(t, h.lines.String(), "REDACTED")
}

func TestListKinds_ListsNameVersionSchemaAndLimits(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	resp, err := h.ListKinds(t.Context(), &acceptorv1.ListKindsRequest{})
	require.NoError(t, err)
	versions := map[string]int32{}
	for _, k := range resp.GetKinds() {
		versions[k.GetName()] = k.GetVersion()
		require.Equal(t, wire.IsUniversal(k.GetName()), k.GetUniversal())
		_, err := schema.Compile(k.GetName(), k.GetSchema())
		require.NoError(t, err)
	}
	require.Equal(t, map[string]int32{
		"clarification.request": 1, "schema.request": 1, "schema.response": 1, "error": 1,
		"media.image": 1, "media.audio": 1, "media.file": 1, "ui.a2ui-surface": 1, note: 2,
	}, versions)
	require.Equal(t, "warn", resp.GetStrictness())
	require.EqualValues(t, []int32{5, 2, 3}, []int32{
		resp.GetEnvelopesPerTurn(), resp.GetSchemaRounds(), resp.GetClarificationRounds(),
	})
}

func TestExercise_NeedsTestSeams(t *testing.T) {
	t.Parallel()
	body := []byte(`{"envelope":` + strings.Replace(good, "<hi>", canary, 1) + `,"byokCanaries":[{"value":"` + canary + `","secretId":"k"}]}`)
	_, err := start(t, nil).Exercise(t.Context(), &acceptorv1.ExerciseRequest{Tenant: "acme", Body: body})
	require.Equal(t, fault.NotFound, fault.CodeOf(err))

	h := start(t, func(c *acceptor.Config) { c.TestSeams = true })
	resp, err := h.Exercise(t.Context(), &acceptorv1.ExerciseRequest{Tenant: "acme", Body: body})
	require.NoError(t, err)
	require.Contains(t, string(resp.GetOutcome()), `"redactionCount":1`)
	require.NotContains(t, string(resp.GetOutcome()), canary)
	require.Empty(t, h.redactor.secrets, "canaries are forgotten")
	require.Empty(t, h.log.Frames(), "the seam records nothing in the run log")

	for _, bad := range []*acceptorv1.ExerciseRequest{
		{Tenant: "acme", Body: []byte(`{}`)},
		{Tenant: "acme", Body: []byte(`{"envelope":{},"byokCanaries":[{"value":"` + canary + `","secretId":""}]}`)},
	} {
		_, err := h.Exercise(t.Context(), bad)
		require.Equal(t, fault.InvalidArgument, fault.CodeOf(err))
		require.NotContains(t, err.Error(), canary)
	}
	_, err = h.Exercise(t.Context(), &acceptorv1.ExerciseRequest{Body: body})
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
	h.stopRedactor()
	_, err = h.Exercise(t.Context(), &acceptorv1.ExerciseRequest{Tenant: "acme", Body: body})
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
}

func TestConfig_ValidateReportsEveryProblem(t *testing.T) {
	t.Parallel()
	require.NoError(t, acceptor.DefaultConfig().Validate())
	bad := acceptor.Config{Limits: acceptor.Limits{EnvelopesPerTurn: -1, SchemaRounds: -1, ClarificationRounds: 1 << 30}}
	_, err := acceptor.New(bad, acceptor.Deps{})
	for _, part := range []string{"envelopes_per_turn", "schema_rounds", "clarification_rounds", "strictness", "lint"} {
		require.ErrorContains(t, err, part)
	}
	_, err = acceptor.New(acceptor.DefaultConfig(), acceptor.Deps{})
	require.ErrorContains(t, err, "run log")
}

func TestNew_RefusesAnUnusableKind(t *testing.T) {
	t.Parallel()
	cfg := acceptor.DefaultConfig()
	cfg.KindsDir = fstest.MapFS{"media.image.schema.json": {Data: []byte(`{}`)}}
	_, err := acceptor.New(cfg, acceptor.Deps{
		Log:      memory.New(),
		Redactor: redactorv1.NewRedactorClient(nil),
		Clock:    time.Now,
	})
	require.ErrorContains(t, err, "media.image")
}

// Concurrent clients over one log get one outcome.
func TestAccept_RacingClientsGetOneOutcome(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	req := h.request(t, good)
	const racers = 6
	var (
		wg    sync.WaitGroup
		resps [racers]*acceptorv1.AcceptResponse
		errs  [racers]error
	)
	for i := range racers {
		wg.Go(func() { resps[i], errs[i] = h.Accept(context.Background(), req) })
	}
	wg.Wait()
	for i := range racers {
		require.NoError(t, errs[i])
		require.Equal(t, resps[0].String(), resps[i].String())
	}
	require.Len(t, h.log.Frames(), 2)
}

func TestAccept_ConflictAndEndedRunsAreFaults(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	req := h.request(t, good)
	run := subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: "run-1"}
	old := frame.Head{Pos: req.GetHead().GetPos(), Hash: req.GetHead().GetHash()}
	end := frame.New(run, subject.End, old, nil)
	pos, err := h.log.Append(t.Context(), end, old.Pos)
	require.NoError(t, err)

	_, err = h.Accept(t.Context(), req)
	require.Equal(t, fault.Conflict, fault.CodeOf(err))
	req.Head = &runlogv1.Head{Pos: pos, Hash: end.Hash, Next: int32(end.Last + 1)} //nolint:gosec // G115: a test
	_, err = h.Accept(t.Context(), req)
	require.Equal(t, fault.RunTerminal, fault.CodeOf(err))
	req.Run.RunId = "run-2"
	_, err = h.Accept(t.Context(), req)
	require.Equal(t, fault.RunNotFound, fault.CodeOf(err))
}

func TestNew_WarnsOfKindsOutsideTheSubset(t *testing.T) {
	t.Parallel()
	dir := fstest.MapFS{note + ".schema.json": {Data: []byte(`{"oneOf":[{"type":"object"},{"type":"string"}]}`)}}
	h := start(t, func(c *acceptor.Config) { c.KindsDir = dir })
	require.Contains(t, h.lines.String(), note)
	require.Contains(t, h.lines.String(), "oneOf")

	cfg := acceptor.DefaultConfig()
	cfg.KindsDir, cfg.Lint = dir, "strict"
	_, err := acceptor.New(cfg, acceptor.Deps{Log: memory.New(), Redactor: redactorv1.NewRedactorClient(nil)})
	require.ErrorContains(t, err, note)
}

func TestExercise_StoresItsStateInTheInjectedStore(t *testing.T) {
	t.Parallel()
	body := []byte(`{"envelope":` + good + `,"hostSupportedEnvelopes":["` + note + `"],"projectTo":{"runId":"t-1","nodeId":"n"}}`)
	store := kvmemory.New()
	state := seam.NewShared(store, time.Now)
	h := startWith(t, func(c *acceptor.Config) { c.TestSeams = true }, store)
	resp, err := h.Exercise(t.Context(), &acceptorv1.ExerciseRequest{Tenant: "acme", Body: body})
	require.NoError(t, err)
	events, err := state.Events(t.Context(), "acme", "t-1")
	require.NoError(t, err)
	require.Len(t, events, 1)
	require.Contains(t, string(resp.GetOutcome()), events[0].EventID)

	again := startWith(t, func(c *acceptor.Config) { c.TestSeams = true }, store) // after a restart
	second, err := again.Exercise(t.Context(), &acceptorv1.ExerciseRequest{Tenant: "acme", Body: body})
	require.NoError(t, err)
	require.Equal(t, string(resp.GetOutcome()), string(second.GetOutcome()))
	events, err = state.Events(t.Context(), "acme", "t-1")
	require.NoError(t, err)
	require.Len(t, events, 1)
}
