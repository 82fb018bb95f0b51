package sweep

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
)

// reads returns all read methods of the public API, with the text in their parameters.
func (r *rig) reads(ctx context.Context, text string) map[string]func(...grpc.CallOption) (proto.Message, error) {
	e, h := openwopv1.NewEngineClient(r.conn), hostv1.NewHostClient(r.conn)
	return map[string]func(...grpc.CallOption) (proto.Message, error){
		"GetRun": func(o ...grpc.CallOption) (proto.Message, error) {
			return e.GetRun(ctx, &openwopv1.GetRunRequest{RunId: text}, o...)
		},
		"PollRunEvents": func(o ...grpc.CallOption) (proto.Message, error) {
			return h.PollRunEvents(ctx, &hostv1.PollRunEventsRequest{RunId: text}, o...)
		},
		"ListAnnotations": func(o ...grpc.CallOption) (proto.Message, error) {
			return h.ListAnnotations(ctx, &hostv1.ListAnnotationsRequest{RunId: text}, o...)
		},
		"GetDebugBundle": func(o ...grpc.CallOption) (proto.Message, error) {
			return h.GetDebugBundle(ctx, &hostv1.GetDebugBundleRequest{RunId: text}, o...)
		},
		"GetRunView": func(o ...grpc.CallOption) (proto.Message, error) {
			return h.GetRunView(ctx, &hostv1.GetRunViewRequest{RunId: text}, o...)
		},
	}
}

// refusals returns calls that must fail.
func (r *rig) refusals(ctx context.Context, text string) map[string]func(...grpc.CallOption) (proto.Message, error) {
	e, h := openwopv1.NewEngineClient(r.conn), hostv1.NewHostClient(r.conn)
	calls := r.reads(ctx, text)
	calls["GetWorkflow"] = func(o ...grpc.CallOption) (proto.Message, error) {
		return e.GetWorkflow(ctx, &openwopv1.GetWorkflowRequest{WorkflowId: text}, o...)
	}
	calls["CreateRun"] = func(o ...grpc.CallOption) (proto.Message, error) {
		return e.CreateRun(ctx, &openwopv1.CreateRunRequest{WorkflowId: text}, o...)
	}
	calls["CreateRun, inputs"] = func(o ...grpc.CallOption) (proto.Message, error) {
		return e.CreateRun(ctx, &openwopv1.CreateRunRequest{WorkflowId: "echo", Inputs: &openwopv1.JsonDocument{Json: []byte(`{"a":` + text)}}, o...)
	}
	calls["CancelRun"] = func(o ...grpc.CallOption) (proto.Message, error) {
		return e.CancelRun(ctx, &openwopv1.CancelRunRequest{RunId: text, Reason: &text}, o...)
	}
	calls["ListRuns"] = func(o ...grpc.CallOption) (proto.Message, error) {
		return h.ListRuns(ctx, &hostv1.ListRunsRequest{Status: &text, Cursor: &text}, o...)
	}
	calls["PutWorkflow"] = func(o ...grpc.CallOption) (proto.Message, error) {
		return h.PutWorkflow(ctx, &hostv1.PutWorkflowRequest{Definition: &openwopv1.JsonDocument{Json: []byte(`{"id":` + mustJSON(text) + `}`)}}, o...)
	}
	calls["GetEnvelopeSchema"] = func(o ...grpc.CallOption) (proto.Message, error) {
		return h.GetEnvelopeSchema(ctx, &hostv1.GetEnvelopeSchemaRequest{File: text}, o...)
	}
	r.controls(ctx, text, calls)
	for _, method := range []string{"/openwop.v1.Engine/", "/", "/none/"} {
		calls["no method below "+method] = func(o ...grpc.CallOption) (proto.Message, error) {
			m := &openwopv1.GetRunRequest{}
			return m, r.conn.Invoke(ctx, method+oneLine(text), m, m, o...)
		}
	}
	return calls
}

// controls adds calls that would change a run or its annotations.
func (r *rig) controls(ctx context.Context, text string, calls map[string]func(...grpc.CallOption) (proto.Message, error)) {
	e, h, here := openwopv1.NewEngineClient(r.conn), hostv1.NewHostClient(r.conn), r.runs[0]
	value := document(map[string]any{text: text})
	for name, call := range map[string]func(...grpc.CallOption) (proto.Message, error){
		"PauseRun": func(o ...grpc.CallOption) (proto.Message, error) {
			return e.PauseRun(ctx, &openwopv1.PauseRunRequest{RunId: text, Reason: &text}, o...)
		},
		"PauseRun, policy": func(o ...grpc.CallOption) (proto.Message, error) {
			return e.PauseRun(ctx, &openwopv1.PauseRunRequest{RunId: here, DrainPolicy: &text}, o...)
		},
		"PauseRun, ended": func(o ...grpc.CallOption) (proto.Message, error) {
			return e.PauseRun(ctx, &openwopv1.PauseRunRequest{RunId: here, Reason: &text}, o...)
		},
		"ResumeRun": func(o ...grpc.CallOption) (proto.Message, error) {
			return e.ResumeRun(ctx, &openwopv1.ResumeRunRequest{RunId: here, Reason: &text}, o...)
		},
		"ResolveInterruptByRun": func(o ...grpc.CallOption) (proto.Message, error) {
			return e.ResolveInterruptByRun(ctx, &openwopv1.ResolveInterruptByRunRequest{RunId: here, NodeId: text, ResumeValue: value}, o...)
		},
		"ResolveInterruptByToken": func(o ...grpc.CallOption) (proto.Message, error) {
			return e.ResolveInterruptByToken(ctx, &openwopv1.ResolveInterruptByTokenRequest{Token: text, ResumeValue: value}, o...)
		},
		"InspectInterruptByToken": func(o ...grpc.CallOption) (proto.Message, error) {
			return e.InspectInterruptByToken(ctx, &openwopv1.InspectInterruptByTokenRequest{Token: text}, o...)
		},
		"ForkRun": func(o ...grpc.CallOption) (proto.Message, error) {
			return e.ForkRun(ctx, &openwopv1.ForkRunRequest{RunId: here, Mode: text}, o...)
		},
		"ForkRun, overlay": func(o ...grpc.CallOption) (proto.Message, error) {
			return e.ForkRun(ctx, &openwopv1.ForkRunRequest{RunId: here, Mode: "branch", FromSeq: proto.Int32(1), RunOptionsOverlay: value}, o...)
		},
		"DiffRuns": func(o ...grpc.CallOption) (proto.Message, error) {
			return h.DiffRuns(ctx, &hostv1.DiffRunsRequest{RunId: here, Against: text}, o...)
		},
		"RegisterWebhook": func(o ...grpc.CallOption) (proto.Message, error) {
			return e.RegisterWebhook(ctx, &openwopv1.RegisterWebhookRequest{Url: text, Events: []string{text}, Secret: &text}, o...)
		},
		"UnregisterWebhook": func(o ...grpc.CallOption) (proto.Message, error) {
			return e.UnregisterWebhook(ctx, &openwopv1.UnregisterWebhookRequest{WebhookId: text, TenantId: &text}, o...)
		},
		"RotateWebhookSecret": func(o ...grpc.CallOption) (proto.Message, error) {
			return h.RotateWebhookSecret(ctx, &hostv1.RotateWebhookSecretRequest{WebhookId: text}, o...)
		},
		"ListWebhookDeliveries": func(o ...grpc.CallOption) (proto.Message, error) {
			return h.ListWebhookDeliveries(ctx, &hostv1.ListWebhookDeliveriesRequest{WebhookId: text, Status: &text}, o...)
		},
		"CreateAnnotation": func(o ...grpc.CallOption) (proto.Message, error) {
			return h.CreateAnnotation(ctx, &hostv1.CreateAnnotationRequest{RunId: here, Signal: &hostv1.AnnotationSignal{Kind: text}, Note: &text}, o...)
		},
		"ListAuditEntries": func(o ...grpc.CallOption) (proto.Message, error) {
			return h.ListAuditEntries(ctx, &hostv1.ListAuditEntriesRequest{Cursor: &text}, o...)
		},
	} {
		calls[name] = call
	}
}

func (r *rig) authorized(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+r.client.Key)
}

// clients are those of the two public services.
type clients struct {
	openwopv1.EngineClient
	hostv1.HostClient
}

// overGRPC makes a call that must succeed, and records its answer.
func (r *rig) overGRPC(call func(context.Context, clients, ...grpc.CallOption) (proto.Message, error)) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	var head, tail metadata.MD
	m, err := call(r.authorized(ctx), clients{openwopv1.NewEngineClient(r.conn), hostv1.NewHostClient(r.conn)}, grpc.Header(&head), grpc.Trailer(&tail))
	require.NoError(r.t, err)
	r.message("gRPC", m, nil, head, tail)
}

func document(v any) *openwopv1.JsonDocument {
	return &openwopv1.JsonDocument{Json: []byte(mustJSON(v))}
}

// calls reads a run over gRPC.
func (r *rig) calls(ctx context.Context, runID string) {
	r.t.Helper()
	ctx = r.authorized(ctx)
	for name, call := range r.reads(ctx, runID) {
		var head, tail metadata.MD
		res, err := call(grpc.Header(&head), grpc.Trailer(&tail))
		require.NoError(r.t, err, name)
		r.message("gRPC", res, nil, head, tail)
	}
	// SSE shows all modes of each run, by the same code.
	require.NoError(r.t, r.follow(ctx, runID, modes[len(r.runs)%len(modes)]))
}

// follow reads a stream to its end, with headers and trailers.
func (r *rig) follow(ctx context.Context, runID, mode string) error {
	r.t.Helper()
	stream, err := openwopv1.NewEngineClient(r.conn).StreamRunEvents(ctx, &openwopv1.StreamRunEventsRequest{RunId: runID, StreamModes: []string{mode}})
	require.NoError(r.t, err)
	for {
		m, err := stream.Recv()
		if err == nil {
			r.message("gRPC stream", m, nil)
			continue
		}
		head, herr := stream.Header()
		if herr != nil {
			r.add("gRPC stream errors", []byte(herr.Error()))
		}
		if errors.Is(err, io.EOF) {
			r.message("gRPC stream", nil, nil, head, stream.Trailer())
			return nil
		}
		r.message("gRPC stream", nil, err, head, stream.Trailer())
		return err
	}
}

// wrongCalls plants one secret at a time in calls that are rejected.
func (r *rig) wrongCalls(b batch) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 60*time.Second)
	defer cancel()
	ctx = r.authorized(ctx)
	for i := 3; i < len(b.items); i += 9 {
		text := b.items[i].text
		for name, call := range r.refusals(ctx, text) {
			var head, tail metadata.MD
			_, err := call(grpc.Header(&head), grpc.Trailer(&tail))
			require.Error(r.t, err, name)
			require.NotContains(r.t, []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Canceled}, status.Code(err), "%s: %s", name, err)
			r.message("gRPC", nil, err, head, tail)
			r.refused++
		}
		require.Error(r.t, r.follow(ctx, text, "debug"))
		require.Error(r.t, r.follow(ctx, r.runs[0], text))
		r.refused += 2
		if oneLine(text) == text {
			strange := metadata.AppendToOutgoingContext(r.t.Context(), "authorization", "Bearer not "+text, "x-own", text)
			require.Error(r.t, r.follow(strange, r.runs[0], "debug"))
			r.refused++
		}
	}
}
