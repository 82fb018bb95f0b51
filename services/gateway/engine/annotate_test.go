package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/notify"
	"waybill.dev/waybill/internal/publishedtest"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/gateway/engine"
	"waybill.dev/waybill/services/gateway/idempotency"
	"waybill.dev/waybill/services/gateway/wirejson"
)

// annotated returns the service over fakes, with annotations of acme's run_1, which has the events 0
// to 4.
func annotated(t *testing.T) (*rig, *engine.AnnotationStore) {
	t.Helper()
	r := newRig(t)
	hub, err := notify.New(nil, "annotated")
	require.NoError(t, err)
	clock := func() time.Time { return time.Unix(1_700_000_000, 0) }
	book := &engine.AnnotationStore{
		Store: memory.New(), Hub: hub, Clock: clock,
		Redact: func(_ context.Context, _, _ string, texts []string) ([]string, error) {
			for i := range texts {
				texts[i] = strings.ReplaceAll(texts[i], "hunter2", "[REDACTED]")
			}
			return texts, nil
		},
	}
	r.log.get = func(q *eventlogv1.GetRunRequest) (*eventlogv1.GetRunResponse, error) {
		if q.GetTenant() != "acme" || q.GetRunId() != "run_1" {
			return nil, fault.New(fault.RunNotFound, "no run of this id in your tenant")
		}
		return &eventlogv1.GetRunResponse{LastSequence: 4, Snapshot: []byte(`{"workflowId":"wf","nodeStates":{"n":{"status":"completed"}}}`)}, nil
	}
	r.dispatcher.workflows = map[string]string{"acme/wf": `{"nodes":[{"id":"n"},{"id":"later"}]}`}
	r.Service = engine.New(engine.Config{MaxStreams: maxStreams}, engine.Deps{
		Clients:     engine.Clients{EventLog: r.log, Dispatcher: r.dispatcher},
		Annotations: book,
		Idempotency: idempotency.New(memory.New(), clock),
		Clock:       clock,
	})
	return r, book
}

// annotationOf reads a request as REST does.
func annotationOf(t *testing.T, body string) (*hostv1.CreateAnnotationRequest, error) {
	t.Helper()
	req := &hostv1.CreateAnnotationRequest{RunId: "run_1"}
	return req, wirejson.Decode([]byte(body), strictjson.Limits{MaxBytes: 1 << 20, MaxDepth: 8}, req, "runId")
}

func (r *rig) annotate(t *testing.T, key, body string) (string, error) {
	t.Helper()
	req, err := annotationOf(t, body)
	if err != nil {
		return "", err
	}
	res, err := r.CreateAnnotation(as(t, key), req)
	return string(res.GetAnnotation().GetJson()), err
}

func TestCreateAnnotation_AcceptsWhatThePublishedSchemaAccepts(t *testing.T) {
	t.Parallel()
	r, _ := annotated(t)
	var published *jsonschema.Schema
	t.Run("published schema", func(t *testing.T) {
		published = publishedtest.Load(t).Need(t, "annotation-create.schema.json")
	})
	for body, good := range map[string]bool{
		`{"signal":{"kind":"flag"}}`:                                                          true,
		`{"signal":{"kind":"rating","rating":1},"note":""}`:                                   true,
		`{"signal":{"kind":"rating","rating":5},"target":{}}`:                                 true,
		`{"signal":{"kind":"label","label":"good"},"target":{"nodeId":"n"}}`:                  true,
		`{"signal":{"kind":"correction","correction":"x"},"target":{"eventId":"ev_run_1_4"}}`: true,
		`{"signal":{"kind":"label","label":"x","rating":3,"correction":"y"}}`:                 true,
		`{}`:                             false,
		`{"signal":{}}`:                  false,
		`{"signal":{"kind":"applause"}}`: false,
		`{"signal":{"kind":"rating"}}`:   false,
		`{"signal":{"kind":"rating","rating":0}}`:           false,
		`{"signal":{"kind":"rating","rating":6}}`:           false,
		`{"signal":{"kind":"rating","rating":2.5}}`:         false,
		`{"signal":{"kind":"rating","rating":"2"}}`:         false,
		`{"signal":{"kind":"flag","rating":9}}`:             false,
		`{"signal":{"kind":"label"}}`:                       false,
		`{"signal":{"kind":"correction","label":"x"}}`:      false,
		`{"signal":{"kind":"flag","why":"x"}}`:              false,
		`{"signal":{"kind":"flag"},"note":7}`:               false,
		`{"signal":{"kind":"flag"},"actor":{}}`:             false,
		`{"signal":{"kind":"flag"},"runId":"run_2"}`:        false,
		`{"signal":{"kind":"flag"},"target":{"runId":"x"}}`: false,
		`{"signal":{"kind":"flag"},"target":{"eventId":1}}`: false,
		`{"signal":{"kind":"flag"},"target":"n"}`:           false,
	} {
		_, err := r.annotate(t, liveKey, body)
		if good {
			require.NoError(t, err, body)
		} else {
			require.Equal(t, fault.ValidationError, fault.CodeOf(err), body)
		}
		if published != nil {
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
			require.NoError(t, err)
			require.Equal(t, good, published.Validate(v) == nil, "the schema of %s", body)
		}
	}
}

// Limits of this host in addition to the schema.
func TestCreateAnnotation_RejectsUnknownEventsAndLongTexts(t *testing.T) {
	t.Parallel()
	r, _ := annotated(t)
	long := strings.Repeat("é", 8193)
	for _, body := range []string{
		`{"signal":{"kind":"flag"},"target":{"eventId":"ev_run_1_5"}}`,
		`{"signal":{"kind":"flag"},"target":{"eventId":"ev_run_2_0"}}`,
		`{"signal":{"kind":"flag"},"target":{"eventId":"ev_run_1_04"}}`,
		`{"signal":{"kind":"flag"},"target":{"eventId":""}}`,
		`{"signal":{"kind":"flag"},"target":{"nodeId":"` + long + `"}}`,
		`{"signal":{"kind":"flag"},"target":{"nodeId":"hunter2"}}`,
		`{"signal":{"kind":"flag"},"target":{"nodeId":"N"}}`,
		`{"signal":{"kind":"flag"},"target":{"nodeId":""}}`,
		`{"signal":{"kind":"flag"},"note":"` + long + `"}`,
		`{"signal":{"kind":"label","label":"` + long + `"}}`,
		`{"signal":{"kind":"correction","correction":"` + strings.Repeat(long, 8) + `"}}`,
	} {
		_, err := r.annotate(t, liveKey, body)
		require.Equal(t, fault.ValidationError, fault.CodeOf(err), "%.80s", body)
		require.NotContains(t, err.Error(), "hunter2", "the answer does not repeat it")
	}
	_, err := r.annotate(t, liveKey, `{"signal":{"kind":"flag"},"target":{"nodeId":"later"}}`)
	require.NoError(t, err, "a node of the workflow that has not begun")
}

func TestAnnotations_BelongToTheTenantAndNameTheirAuthor(t *testing.T) {
	t.Parallel()
	r, _ := annotated(t)
	doc, err := r.annotate(t, liveKey, `{"signal":{"kind":"correction","correction":"it is hunter2"},"note":"no hunter2"}`)
	require.NoError(t, err)
	require.NotContains(t, doc, "hunter2")
	require.Contains(t, doc, `"target":{"runId":"run_1"}`)
	require.Contains(t, doc, `"actor":{"principalRef":"key_`)
	list, err := r.ListAnnotations(as(t, liveKey), &hostv1.ListAnnotationsRequest{RunId: "run_1"})
	require.NoError(t, err)
	require.Len(t, list.GetAnnotations(), 1)
	require.Equal(t, doc, string(list.GetAnnotations()[0].GetJson()))

	_, err = r.annotate(t, betaKey, `{"signal":{"kind":"flag"}}`)
	require.Equal(t, fault.RunNotFound, fault.CodeOf(err))
	_, err = r.ListAnnotations(as(t, betaKey), &hostv1.ListAnnotationsRequest{RunId: "run_1"})
	require.Equal(t, fault.RunNotFound, fault.CodeOf(err))
	for _, id := range badIDs {
		_, err = r.ListAnnotations(as(t, liveKey), &hostv1.ListAnnotationsRequest{RunId: id})
		require.Equal(t, fault.RunNotFound, fault.CodeOf(err), "%q", id)
	}
}

func TestAnnotations_AreNotProvidedWhenDisabled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.annotate(t, liveKey, `{"signal":{"kind":"flag"}}`)
	require.Equal(t, fault.CapabilityNotProvided, fault.CodeOf(err))
	_, err = r.ListAnnotations(as(t, liveKey), &hostv1.ListAnnotationsRequest{RunId: "run_1"})
	require.Equal(t, fault.CapabilityNotProvided, fault.CodeOf(err))
}

// Streams of the run get a notice in every mode except messages, outside of batches and without a
// sequence.
func TestStream_SendsANoticeOfAnAnnotation(t *testing.T) {
	t.Parallel()
	for mode, hears := range map[string]bool{
		"updates":          true,
		"values":           true,
		"debug":            true,
		"messages":         false,
		"messages,updates": true,
	} {
		for _, buffer := range []int32{0, 5000} {
			r, book := annotated(t)
			f := open(batch(event(0, "run.started")))
			r.log.follow = func(context.Context, *eventlogv1.FollowRequest) *feed { return f }
			sub := &subscriber{ctx: as(t, liveKey)}
			ended := make(chan error, 1)
			go func() {
				ended <- r.StreamRunEvents(&openwopv1.StreamRunEventsRequest{
					RunId:       "run_1",
					StreamModes: []string{mode},
					BufferMs:    buffer,
				}, sub)
			}()
			if hears {
				// Notifications are not buffered: subscribers see later ones only.
				require.Eventually(t, func() bool {
					_, err := book.Add(t.Context(), "acme", engine.Annotation{
						Target: engine.AnnotationTarget{RunID: "run_1"},
						Signal: engine.Signal{Kind: engine.SignalFlag},
					})
					return err == nil && strings.Contains(sub.shown(), `-1 run.annotated {"annotationId":"ann_`)
				}, 30*time.Second, time.Millisecond, "%s %d", mode, buffer)
			} else {
				require.Eventually(t, sub.accepted, 30*time.Second, time.Millisecond)
				_, err := r.annotate(t, liveKey, `{"signal":{"kind":"flag"}}`)
				require.NoError(t, err)
			}
			f.in <- batch(event(1, "run.completed"))
			require.NoError(t, <-ended)
			if !hears {
				require.NotContains(t, sub.shown(), "annotated")
			}
		}
	}
}

// After a disconnect, no notice is sent once the handler has returned.
func TestStream_SendsNoNoticeAfterADisconnect(t *testing.T) {
	t.Parallel()
	r, book := annotated(t)
	sub := &subscriber{ctx: as(t, liveKey), refuses: errors.New("gone")}
	f := open(batch(event(0, "run.started")))
	r.log.follow = func(context.Context, *eventlogv1.FollowRequest) *feed { return f }
	require.Error(t, r.StreamRunEvents(&openwopv1.StreamRunEventsRequest{
		RunId:        "run_1",
		LastSequence: proto.Int64(-1),
	}, sub))
	before := sub.shown()
	_, err := book.Add(t.Context(), "acme", engine.Annotation{
		Target: engine.AnnotationTarget{RunID: "run_1"},
		Signal: engine.Signal{Kind: engine.SignalFlag},
	})
	require.NoError(t, err)
	require.Equal(t, before, sub.shown())
}
