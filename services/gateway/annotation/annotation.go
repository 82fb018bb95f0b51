// Package annotation keeps what people and programs say of a run: ratings, labels,
// corrections, flags. They lie beside the run's log and never in it, so a fork does not
// have them and a replay does not see them (OpenWOP host contract §2.8).
package annotation

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
)

// Name is that of the live notification, and of the hub that carries it.
const Name = "run.annotated"

// Target is what an annotation is about: the run, or more closely an event or a node
// of it.
type Target struct {
	RunID   string `json:"runId"`
	EventID string `json:"eventId,omitempty"`
	NodeID  string `json:"nodeId,omitempty"`
}

// Kind is what a signal says.
type Kind string

// The kinds of signals.
const (
	Rating     Kind = "rating"
	Correction Kind = "correction"
	Label      Kind = "label"
	Flag       Kind = "flag"
)

// Kinds lists them.
func Kinds() []Kind { return []Kind{Rating, Correction, Label, Flag} }

// Targets lists what can be annotated.
func Targets() []string { return []string{"run", "event", "node"} }

// Signal is what is said.
type Signal struct {
	Kind       Kind    `json:"kind"`
	Rating     *int32  `json:"rating,omitempty"`
	Correction *string `json:"correction,omitempty"`
	Label      *string `json:"label,omitempty"`
}

// Actor is who says it.
type Actor struct {
	PrincipalRef string `json:"principalRef"`
}

// Annotation is one, as it is stored and served.
type Annotation struct {
	ID        string  `json:"annotationId"`
	Target    Target  `json:"target"`
	Signal    Signal  `json:"signal"`
	Actor     Actor   `json:"actor"`
	Note      *string `json:"note,omitempty"`
	CreatedAt string  `json:"createdAt"`
}

// maxPerRun bounds the annotations of one run, which are served all at once.
const maxPerRun = 1000

// Scrub takes secrets out of texts that are about a run.
type Scrub func(ctx context.Context, tenant, runID string, texts []string) ([]string, error)

// Book keeps the annotations of runs. It is safe for concurrent use.
type Book struct {
	Store kv.Store
	Hub   *notify.Hub
	Scrub Scrub
	Clock func() time.Time
}

func prefix(tenant, runID string) string { return tenant + "." + runID + "." }

// Add stores an annotation of a run, tells those who follow the run, and gives it as a
// document. The run is known to be the tenant's.
func (b *Book) Add(ctx context.Context, tenant string, a Annotation) ([]byte, error) {
	if err := b.clean(ctx, tenant, &a); err != nil {
		return nil, err
	}
	there, err := kv.List(ctx, b.Store, prefix(tenant, a.Target.RunID))
	if err != nil {
		return nil, unavailable(err)
	}
	if len(there) >= maxPerRun {
		return nil, fault.New(fault.Conflict, "the run has %d annotations, and takes no more", maxPerRun).With("limit", maxPerRun)
	}
	id := uuid.Must(uuid.NewV7()) // the random source never fails; later ids sort behind earlier ones
	a.ID, a.CreatedAt = "ann_"+strings.ReplaceAll(id.String(), "-", ""), wire.FormatTime(b.Clock())
	doc, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("render annotation: %w", err)
	}
	if _, err := b.Store.Update(ctx, prefix(tenant, a.Target.RunID)+a.ID, doc, 0); err != nil {
		return nil, unavailable(err)
	}
	// Who is not told finds it in the list.
	_ = b.Hub.Publish(notify.Topic{Tenant: tenant, ID: a.Target.RunID}, doc)
	return doc, nil
}

// clean takes secrets out of what was written. Without the redactor nothing is stored.
func (b *Book) clean(ctx context.Context, tenant string, a *Annotation) error {
	var texts []string
	members := []**string{&a.Signal.Correction, &a.Signal.Label, &a.Note}
	for _, m := range members {
		if *m != nil {
			texts = append(texts, **m)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	clean, err := b.Scrub(ctx, tenant, a.Target.RunID, texts)
	if err != nil || len(clean) != len(texts) {
		return fault.New(fault.ServiceUnavailable, "the redactor cannot be reached, and nothing is stored without it; try again").
			After(time.Second).Wrap(errors.Join(errors.New("annotation is not scrubbed"), err))
	}
	for _, m := range members {
		if *m != nil {
			*m, clean = &clean[0], clean[1:]
		}
	}
	return nil
}

// List gives the annotations of a run as documents, oldest first.
func (b *Book) List(ctx context.Context, tenant, runID string) ([][]byte, error) {
	entries, err := kv.List(ctx, b.Store, prefix(tenant, runID))
	if err != nil {
		return nil, unavailable(err)
	}
	out := make([][]byte, len(entries))
	for i, e := range entries {
		out[i] = e.Value
	}
	return out, nil
}

// Listen hears of new annotations of a run; the caller closes it.
func (b *Book) Listen(tenant, runID string) *notify.Listener {
	return b.Hub.Listen(notify.Topic{Tenant: tenant, ID: runID})
}

func unavailable(err error) error {
	return fault.New(fault.ServiceUnavailable, "the store of annotations cannot be reached; try again").After(time.Second).Wrap(err)
}
