package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/notify"
	"waybill.dev/waybill/internal/publishedtest"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/engine"
)

func newBook(t *testing.T) *engine.AnnotationStore {
	t.Helper()
	hub, err := notify.New(nil, "annotated")
	require.NoError(t, err)
	return &engine.AnnotationStore{
		Store: memory.New(), Hub: hub, Clock: func() time.Time { return time.Unix(1_700_000_000, 0) },
		Redact: func(_ context.Context, tenant, run string, texts []string) ([]string, error) {
			require.Equal(t, "acme/run_1", tenant+"/"+run)
			out := make([]string, len(texts))
			for i, s := range texts {
				out[i] = strings.ReplaceAll(s, "hunter2", "[REDACTED]")
			}
			return out, nil
		},
	}
}

func text(s string) *string { return &s }

func about(s engine.Signal, note *string) engine.Annotation {
	return engine.Annotation{
		Target: engine.AnnotationTarget{RunID: "run_1"},
		Signal: s,
		Actor:  engine.AnnotationActor{PrincipalRef: "key_1"},
		Note:   note,
	}
}

func TestBook_StoresRedactedAnnotations(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	l := b.Listen("acme", "run_1")
	defer l.Close()
	foreign := b.Listen("beta", "run_1")
	defer foreign.Close()
	five := int32(5)
	var stored [][]byte
	for _, a := range []engine.Annotation{
		about(engine.Signal{Kind: engine.SignalCorrection, Correction: text("it is hunter2")}, text("hunter2 and hunter2")),
		about(engine.Signal{Kind: engine.SignalLabel, Label: text("hunter2")}, nil),
		about(engine.Signal{Kind: engine.SignalRating, Rating: &five}, nil),
		about(engine.Signal{Kind: engine.SignalFlag}, nil),
	} {
		doc, err := b.Add(t.Context(), "acme", a)
		require.NoError(t, err)
		require.NotContains(t, string(doc), "hunter2")
		require.Equal(t, string(doc), string(<-l.C()), "followers are notified")
		stored = append(stored, doc)
	}
	list, err := b.List(t.Context(), "acme", "run_1")
	require.NoError(t, err)
	require.Equal(t, stored, list, "oldest first")
	require.Contains(t, string(list[0]), `"correction":"it is [REDACTED]"`)
	require.Contains(t, string(list[0]), `"note":"[REDACTED] and [REDACTED]"`)
	require.Contains(t, string(list[0]), `"principalRef":"key_1"`)

	for _, other := range [][2]string{{"beta", "run_1"}, {"acme", "run_2"}} {
		list, err := b.List(t.Context(), other[0], other[1])
		require.NoError(t, err)
		require.Empty(t, list)
	}
	require.Empty(t, foreign.C())
}

func TestBook_StoresNothingWithoutTheRedactor(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.Redact = func(context.Context, string, string, []string) ([]string, error) { return nil, errors.New("away") }
	_, err := b.Add(t.Context(), "acme", about(engine.Signal{Kind: engine.SignalFlag}, text("x")))
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	_, err = b.Add(t.Context(), "acme", about(engine.Signal{Kind: engine.SignalFlag}, nil))
	require.NoError(t, err, "without texts there is nothing to redact")
	list, err := b.List(t.Context(), "acme", "run_1")
	require.NoError(t, err)
	require.Len(t, list, 1)
}

func TestBook_IsLimited(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	for i := range 1000 {
		_, err := b.Store.Put(t.Context(), fmt.Sprintf("acme.run_1.ann_%d", i), []byte("{}"))
		require.NoError(t, err)
	}
	_, err := b.Add(t.Context(), "acme", about(engine.Signal{Kind: engine.SignalFlag}, nil))
	require.Equal(t, fault.Conflict, fault.CodeOf(err))
}

// away is an unavailable store.
type away struct{ kv.Store }

func (away) Watch(context.Context, string, chan<- struct{}, func(kv.Entry)) error {
	return kv.ErrUnavailable
}

func TestBook_ReportsAnUnavailableStore(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.Store = away{}
	_, err := b.Add(t.Context(), "acme", about(engine.Signal{Kind: engine.SignalFlag}, nil))
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	_, err = b.List(t.Context(), "acme", "run_1")
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
}

func TestAnnotation_SatisfiesThePublishedSchema(t *testing.T) {
	t.Parallel()
	s := publishedtest.Load(t).Need(t, "annotation.schema.json")
	b, three := newBook(t), int32(3)
	for _, a := range []engine.Annotation{
		about(engine.Signal{Kind: engine.SignalRating, Rating: &three}, text("")),
		{
			Target: engine.AnnotationTarget{RunID: "run_1", EventID: "ev_run_1_0", NodeID: "n"},
			Signal: engine.Signal{Kind: engine.SignalFlag},
			Actor:  engine.AnnotationActor{PrincipalRef: "k"},
		},
	} {
		doc, err := b.Add(t.Context(), "acme", a)
		require.NoError(t, err)
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
		require.NoError(t, err)
		require.NoError(t, s.Validate(v))
		require.True(t, json.Valid(doc))
	}
}

// A secret that became known after the workflow was registered is removed from a node's id, too.
func TestAnnotation_HoldsNoSecretInItsTarget(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	doc, err := b.Add(t.Context(), "acme", engine.Annotation{
		Target: engine.AnnotationTarget{RunID: "run_1", NodeID: "n-hunter2"},
		Signal: engine.Signal{Kind: engine.SignalFlag},
	})
	require.NoError(t, err)
	require.NotContains(t, string(doc), "hunter2")
	require.Contains(t, string(doc), `"nodeId":"n-`)
}
