// Package subject builds and parses the NATS names of the run log. It is the
// only place that knows them.
//
// A frame is published to openwop.events.<tenant>.<workflowId>.<runId>.<kind>.
// Tokens are restricted to letters, digits, "_" and "-", so that an id can
// never widen a subscription.
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

// Kind says what a frame does to its run's place in the queue.
type Kind string

// The kinds of frames. A run begins with one of the first two.
const (
	Start Kind = "start" // the run was created: work for a dispatcher
	Open  Kind = "open"  // the run was opened by an executor of its own: work for nobody here
	Step  Kind = "step"  // the run moved on
	Wake  Kind = "wake"  // a wait has ended: work for a dispatcher
	End   Kind = "end"   // the run ended; no frame follows
)

// Valid reports whether k is one of these.
func (k Kind) Valid() bool { return k.Begins() || k == Step || k == Wake || k == End }

// Begins reports whether a frame of the kind is a run's first and holds its record.
func (k Kind) Begins() bool { return k == Start || k == Open }

// Queue lists the subjects that hand runs to dispatchers.
func Queue() []string {
	return []string{prefix + ".*.*.*." + string(Start), prefix + ".*.*.*." + string(Wake)}
}

// Run names the subjects of one run. An empty WorkflowID matches any workflow.
type Run struct{ Tenant, WorkflowID, RunID string }

// Frame is the subject of a frame of the run.
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

// DefaultConsumer is the name of a tenant's consumer where nobody has given another.
const DefaultConsumer = "events"

// Consumer is the name under which the stream knows a durable consumer of a tenant. The
// consumers of all tenants share the stream, with those of the host: no tenant, and no
// consumer of the host, has a "=" in its name, so that a name is one tenant's alone.
func Consumer(tenant, name string) string { return tenant + "=" + name }

// Parse takes the subject of a frame apart.
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

// Token reports whether s may stand between two dots of a subject.
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
