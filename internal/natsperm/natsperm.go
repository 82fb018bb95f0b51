// Package natsperm says what a client that reads a tenant's run events may do on a NATS
// server, and nothing else: read from durable consumers of its own, filtered to its
// tenant.
package natsperm

import (
	"fmt"

	"waybill.dev/waybill/protocol/subject"
)

// Reader is a client that reads the run events of one tenant.
type Reader struct {
	// User is the client's name; its replies come to an inbox that begins with it.
	User   string
	Tenant string
	// Consumers are the names of those that it may make, ask about, read from and delete.
	Consumers []string
}

// consumerSeparator stands in no tenant's name: a consumer is one tenant's.
const consumerSeparator = "="

// Consumer is the full name of a tenant's consumer. Consumers share the stream, so that
// their names begin with whose they are. The one without a name has the tenant's.
func Consumer(tenant, name string) string {
	if name == "" {
		return tenant
	}
	return tenant + consumerSeparator + name
}

// Check tells what cannot stand in a subject.
func (r Reader) Check() error {
	for _, s := range []string{r.User, r.Tenant} {
		if !subject.Token(s) {
			return fmt.Errorf("%q: want letters, digits, _ and -", s)
		}
	}
	return nil
}

// Inbox is where the client's replies come: no other client may listen there. Clients are
// told it as their inbox prefix.
func (r Reader) Inbox() string { return "_INBOX_" + r.User }

// Publish are the subjects that the client may publish to. The name of each consumer is
// part of them: with a free one a client could read from another tenant's, or from the
// dispatchers'. So is the filter, which the server holds the request against. The
// stream cannot be asked about itself: it would name the subjects of everybody.
func (r Reader) Publish() []string {
	api, out := "$JS.API.CONSUMER.", []string{"$JS.API.INFO"}
	for _, c := range r.Consumers {
		at := subject.Stream + "." + c
		out = append(
			out, api+"CREATE."+at+"."+subject.Tenant(r.Tenant), api+"INFO."+at, api+"DELETE."+at, api+"MSG.NEXT."+at,
			"$JS.ACK."+at+".>",
		)
	}
	return out
}

// Subscribe are the subjects that the client may subscribe to. Those of events are not
// among them: they would show frames that the log then refuses.
func (r Reader) Subscribe() []string { return []string{r.Inbox() + ".>"} }
