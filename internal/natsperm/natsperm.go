// Package natsperm defines the NATS permissions of a client that reads a tenant's run events: it
// may only read from durable consumers that the host has created for it, filtered to its tenant.
//
// Permissions alone do not isolate such a client. A request may name any reply subject, and the
// server does not check whether the client may publish there. A reply to a subject of the log would
// be a frame of another tenant. Each client therefore has its own NATS account, which is empty and
// imports the permitted requests from the host's account: replies stay in the requesting account.
//
// The client may not create consumers either: the request's body names a delivery subject in the
// host's account, and servers do not check bodies.
package natsperm

import (
	"fmt"
	"time"

	"waybill.dev/waybill/protocol/subject"
)

// Reader is a client that reads the run events of one tenant.
type Reader struct {
	// User is the client's name, and part of its inbox prefix.
	User   string
	Tenant string
	// Consumers are the names of its permitted consumers, without the tenant's.
	Consumers []string
}

// HostAccount is the NATS account of the host and its log, on an external server.
const HostAccount = "WAYBILL"

// Account is the client's own NATS account.
func (r Reader) Account() string { return "reader_" + r.User }

// Inbox is the client's inbox prefix. No other client may subscribe to it.
func (r Reader) Inbox() string { return "_INBOX_" + r.User }

// Publish lists the subjects that the client may publish to. They include the names of its
// consumers: with a wildcard it could read from another tenant's consumers, or from the
// dispatchers'. Stream info is not permitted, because it reveals the subjects of all tenants.
func (r Reader) Publish() []string {
	var out []string
	for _, c := range r.Consumers {
		at := subject.Stream + "." + subject.Consumer(r.Tenant, c)
		out = append(out, api+"INFO."+at, api+"MSG.NEXT."+at, "$JS.ACK."+at+".>")
	}
	return out
}

const (
	api = "$JS.API.CONSUMER."
	// apiInfo must be imported from the host. Otherwise the server provides an API without
	// JetStream in the account, and sends two answers to each request.
	apiInfo = "$JS.API.INFO"
)

// Imports lists what the client's account imports from the host's. The client can use only those
// also in Publish.
func (r Reader) Imports() []string { return append([]string{apiInfo}, r.Publish()...) }

// Limits of a reader's account. Requests are short. The server buffers sent messages,
// subscriptions, and unread data per connection, up to its max_pending. A puller chooses the number
// of heartbeats, so the number of connections is the effective limit.
const (
	MaxPayload       = 4 << 10 // bytes per message
	MaxConnections   = 4       // of all clients with the credentials
	MaxSubscriptions = 8       // per connection
)

// Limits returns the limits in the syntax of the server's configuration.
func Limits() string {
	return fmt.Sprintf("{max_payload: %d, max_connections: %d, max_subscriptions: %d}", MaxPayload, MaxConnections, MaxSubscriptions)
}

// Export is a service that the host's account offers to readers' accounts.
type Export struct {
	Subject string
	// Streamed services answer a request more than once.
	Streamed bool
	// Within is the maximum time until the answer, or the next one: the server keeps the reply
	// route for so long, and later answers are lost.
	Within time.Duration
}

const (
	answerWithin = 10 * time.Second
	// pullWithin exceeds maxPull: a pull without a message ends earlier.
	pullWithin = 2 * time.Minute
)

// Exports lists the exports of the host's account. They name no tenant: the imports of a reader's
// account restrict what it may request.
func Exports() []Export {
	return []Export{
		{Subject: apiInfo, Within: answerWithin},
		{Subject: api + "INFO." + subject.Stream + ".*", Within: answerWithin},
		{Subject: api + "MSG.NEXT." + subject.Stream + ".*", Streamed: true, Within: pullWithin},
		{Subject: "$JS.ACK." + subject.Stream + ".>", Within: answerWithin},
	}
}

// Subscribe lists the subjects that the client may subscribe to. Event subjects are not among them,
// because they would also show frames that the log then rejects.
func (r Reader) Subscribe() []string { return []string{r.Inbox() + ".>"} }
