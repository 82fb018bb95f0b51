// Package subject builds and parses the NATS subjects of the run log. No other package contains
// them.
//
// A frame is published to openwop.events.<tenant>.<workflowId>.<runId>.<kind>. Tokens are
// restricted to letters, digits, "_" and "-", so that an id can never widen a subscription.
package subject

import (
	"fmt"
	"strings"
)

// Stream is the name of the JetStream stream that holds the run log.
const Stream = "WAYBILL_RUNS"

const prefix = "openwop.events"

// All matches every frame of every tenant.
const All = prefix + ".>"

// Kind is the effect of a frame on its run's place in the queue.
type Kind string

// The kinds of frames. The first frame of a run is Start or Open.
const (
	Start Kind = "start" // the run was created: queued for a dispatcher
	Open  Kind = "open"  // the run was opened by an external executor: not queued
	Step  Kind = "step"  // the run advanced
	Wake  Kind = "wake"  // a wait ended: queued for a dispatcher
	End   Kind = "end"   // the run ended; only Seal and Erase may follow
	Seal  Kind = "seal"  // the run's other frames are in the cold store, and are removed from the log; only Erase may follow
	Erase Kind = "erase" // the run is erased: its other frames are removed, and readers delete what they have of it
)

// Valid reports whether k is one of these kinds.
func (k Kind) Valid() bool {
	return k.Begins() || k == Step || k == Wake || k == End || k == Seal || k == Erase
}

// Begins reports whether a frame of the kind is a run's first and holds its record.
func (k Kind) Begins() bool { return k == Start || k == Open }

// Queue lists the subjects that hand runs to dispatchers.
func Queue() []string {
	return []string{prefix + ".*.*.*." + string(Start), prefix + ".*.*.*." + string(Wake)}
}

// Erasures matches the frames of all tenants that mark a run as erased.
const Erasures = prefix + ".*.*.*." + string(Erase)

// Seals matches the frames of all tenants that mark a run as sealed, Ends those that end a run.
const (
	Seals = prefix + ".*.*.*." + string(Seal)
	Ends  = prefix + ".*.*.*." + string(End)
)

// Run names the subjects of one run. An empty WorkflowID matches any workflow.
type Run struct{ Tenant, WorkflowID, RunID string }

// Frame returns the subject of a frame of the run.
func (r Run) Frame(k Kind) string {
	return prefix + "." + r.Tenant + "." + r.workflow() + "." + r.RunID + "." + string(k)
}

// All matches every frame of the run.
func (r Run) All() string {
	return prefix + "." + r.Tenant + "." + r.workflow() + "." + r.RunID + ".*"
}

func (r Run) workflow() string {
	if r.WorkflowID == "" {
		return "*"
	}
	return r.WorkflowID
}

// Tenant matches every frame of a tenant.
func Tenant(tenant string) string { return prefix + "." + tenant + ".>" }

// DefaultConsumer is the default name of a tenant's consumer.
const DefaultConsumer = "events"

// Consumer returns the stream-wide name of a tenant's durable consumer. The consumers of all
// tenants and of the host share the stream. Neither tenants nor host consumers have "=" in their
// names, so a name belongs to one tenant.
func Consumer(tenant, name string) string { return tenant + "=" + name }

// Parse splits the subject of a frame.
func Parse(s string) (Run, Kind, error) {
	parts := strings.Split(s, ".")
	if len(parts) != 6 || parts[0]+"."+parts[1] != prefix {
		return Run{}, "", fmt.Errorf("subject %q: want %s.<tenant>.<workflowId>.<runId>.<kind>", s, prefix)
	}
	r, k := Run{Tenant: parts[2], WorkflowID: parts[3], RunID: parts[4]}, Kind(parts[5])
	if !Token(r.Tenant) || !Token(r.WorkflowID) || !Token(r.RunID) || !k.Valid() {
		return Run{}, "", fmt.Errorf("subject %q: bad token or kind", s)
	}
	return r, k, nil
}

// Token reports whether s is a valid token of a subject.
func Token(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
