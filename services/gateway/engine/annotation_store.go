package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/notify"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/redaction"
)

// AnnotationEvent names the live notification about a new annotation, and the hub that
// carries it.
const AnnotationEvent = "run.annotated"

// AnnotationTarget is what an annotation is about: a run, or an event or node of it.
type AnnotationTarget struct {
	RunID   string `json:"runId"`
	EventID string `json:"eventId,omitempty"`
	NodeID  string `json:"nodeId,omitempty"`
}

// AnnotationTargets lists the kinds of targets.
func AnnotationTargets() []string { return []string{"run", "event", "node"} }

// SignalKind is the kind of a signal.
type SignalKind string

// The kinds of signals.
const (
	SignalRating     SignalKind = "rating"
	SignalCorrection SignalKind = "correction"
	SignalLabel      SignalKind = "label"
	SignalFlag       SignalKind = "flag"
)

// SignalKinds lists them.
func SignalKinds() []SignalKind {
	return []SignalKind{SignalRating, SignalCorrection, SignalLabel, SignalFlag}
}

// Signal is the content of an annotation.
type Signal struct {
	Kind       SignalKind `json:"kind"`
	Rating     *int32     `json:"rating,omitempty"`
	Correction *string    `json:"correction,omitempty"`
	Label      *string    `json:"label,omitempty"`
}

// AnnotationActor is the author of an annotation.
type AnnotationActor struct {
	PrincipalRef string `json:"principalRef"`
}

// Annotation is an annotation as it is stored and returned.
type Annotation struct {
	ID        string           `json:"annotationId"`
	Target    AnnotationTarget `json:"target"`
	Signal    Signal           `json:"signal"`
	Actor     AnnotationActor  `json:"actor"`
	Note      *string          `json:"note,omitempty"`
	CreatedAt string           `json:"createdAt"`
}

// maxAnnotations limits the annotations of one run. A list returns all of them.
const maxAnnotations = 1000

// AnnotationStore keeps annotations of runs: ratings, labels, corrections and flags. They
// are stored outside the run's log, so a fork does not copy them and a replay does not see
// them (OpenWOP host contract §2.8). It is safe for concurrent use.
type AnnotationStore struct {
	Store  kv.Store
	Hub    *notify.Hub
	Redact redaction.Texts
	Clock  func() time.Time
}

func annotationPrefix(tenant, runID string) string { return tenant + "." + runID + "." }

// Add stores an annotation, notifies followers of the run, and returns the stored document.
// The caller has checked that the run belongs to the tenant.
func (s *AnnotationStore) Add(ctx context.Context, tenant string, a Annotation) ([]byte, error) {
	if err := s.redactTexts(ctx, tenant, &a); err != nil {
		return nil, err
	}
	prefix := annotationPrefix(tenant, a.Target.RunID)
	stored, err := kv.List(ctx, s.Store, prefix)
	if err != nil {
		return nil, annotationsUnavailable(err)
	}
	if len(stored) >= maxAnnotations {
		return nil, fault.New(fault.Conflict, "the run has %d annotations, which is the limit", maxAnnotations).With("limit", maxAnnotations)
	}
	id := uuid.Must(uuid.NewV7()) // the random source never fails; later ids sort after earlier ones
	a.ID, a.CreatedAt = "ann_"+strings.ReplaceAll(id.String(), "-", ""), wire.FormatTime(s.Clock())
	doc, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("render annotation: %w", err)
	}
	if _, err := s.Store.Update(ctx, prefix+a.ID, doc, 0); err != nil {
		return nil, annotationsUnavailable(err)
	}
	// A follower that misses the notification finds the annotation in the list.
	_ = s.Hub.Publish(notify.Topic{Tenant: tenant, ID: a.Target.RunID}, doc)
	return doc, nil
}

// redactTexts removes secrets from the texts of an annotation.
func (s *AnnotationStore) redactTexts(ctx context.Context, tenant string, a *Annotation) error {
	var texts []string
	node := &a.Target.NodeID // a secret may have become known after the workflow was registered
	if *node == "" {
		node = nil
	}
	members := []**string{&a.Signal.Correction, &a.Signal.Label, &a.Note, &node}
	for _, m := range members {
		if *m != nil {
			texts = append(texts, **m)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	redacted, err := s.Redact(ctx, tenant, a.Target.RunID, texts)
	if err != nil || len(redacted) != len(texts) {
		return redaction.Unavailable("the annotation was not stored", errors.Join(errors.New("annotation is not redacted"), err))
	}
	for _, m := range members {
		if *m != nil {
			*m, redacted = &redacted[0], redacted[1:]
		}
	}
	if node != nil {
		a.Target.NodeID = *node
	}
	return nil
}

// List returns the annotations of a run as documents, oldest first.
func (s *AnnotationStore) List(ctx context.Context, tenant, runID string) ([][]byte, error) {
	entries, err := kv.List(ctx, s.Store, annotationPrefix(tenant, runID))
	if err != nil {
		return nil, annotationsUnavailable(err)
	}
	out := make([][]byte, len(entries))
	for i, e := range entries {
		out[i] = e.Value
	}
	return out, nil
}

// Get returns an annotation of a run. Errors: fault.RunNotFound if it was erased with its run.
func (s *AnnotationStore) Get(ctx context.Context, tenant, runID, id string) ([]byte, error) {
	e, err := s.Store.Get(ctx, annotationPrefix(tenant, runID)+id)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fault.NoRun()
	}
	if err != nil {
		return nil, annotationsUnavailable(err)
	}
	return e.Value, nil
}

// Listen subscribes to new annotations of a run. The caller closes the listener.
func (s *AnnotationStore) Listen(tenant, runID string) *notify.Listener {
	return s.Hub.Listen(notify.Topic{Tenant: tenant, ID: runID})
}

func annotationsUnavailable(err error) error {
	return fault.New(fault.ServiceUnavailable, "the annotation store is unavailable; retry").After(time.Second).Wrap(err)
}
