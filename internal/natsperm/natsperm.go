// Package natsperm says what a client that reads a tenant's run events may do on a NATS
// server, and nothing else: read from durable consumers that the host's side has made for
// it, filtered to its tenant.
//
// Permissions alone do not fence such a client in: it may name any subject as the one to
// which the server answers, and the server asks nobody whether it may write there. An
// answer to a subject of the log is a frame of another tenant. So each client has a NATS
// account, in which there is nothing, and imports what it may ask of the host's: answers
// end in the account from which was asked.
//
// Nor may it make a consumer itself: the body of that request names where messages go, in
// the host's account, and no server looks into bodies.
package natsperm

import (
	"fmt"
	"time"

	"waybill.dev/waybill/protocol/subject"
)

// Reader is a client that reads the run events of one tenant.
type Reader struct {
	// User is the client's name; its replies come to an inbox that begins with it.
	User   string
	Tenant string
	// Consumers are the names of those that it may ask about and read from, without the
	// tenant's.
	Consumers []string
}

// HostAccount is the name of the NATS account that the host and its log are in, on a server
// that is not the embedded one.
const HostAccount = "WAYBILL"

// Account is the name of the NATS account that the client is in, alone.
func (r Reader) Account() string { return "reader_" + r.User }

// Inbox is where the client's replies come: no other client may listen there. Clients are
// told it as their inbox prefix.
func (r Reader) Inbox() string { return "_INBOX_" + r.User }

// Publish are the subjects that the client may publish to. The name of each consumer is
// part of them: with a free one a client could read from another tenant's, or from the
// dispatchers'. The stream cannot be asked about itself: it would name the subjects of
// everybody.
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
	// apiInfo has to be imported from the host, or the server gives the account without
	// JetStream an API that says so, and two answers to each request.
	apiInfo = "$JS.API.INFO"
)

// Imports are what the client's account imports from the host's. What is not in Publish as
// well, the client cannot ask for.
func (r Reader) Imports() []string { return append([]string{apiInfo}, r.Publish()...) }

// What a reader's account is held to: requests are short, and the server keeps what it is sent,
// what is subscribed to, and for each connection what that has not read yet, up to its max_pending.
// Heartbeats of pulls are as many as who pulls wants, so that connections are what bounds it.
const (
	MaxPayload       = 4 << 10 // bytes of a message
	MaxConnections   = 4       // of all who share the credentials
	MaxSubscriptions = 8       // of a connection
)

// Limits are these in the words of the server's configuration.
func Limits() string {
	return fmt.Sprintf("{max_payload: %d, max_connections: %d, max_subscriptions: %d}", MaxPayload, MaxConnections, MaxSubscriptions)
}

// Export is a service that the host's account offers to those of readers.
type Export struct {
	Subject string
	// Streamed services answer a request more than once.
	Streamed bool
	// Within is how long an answer, or the next, may take: for so long the server keeps the
	// way back to who asked, and what comes later is lost.
	Within time.Duration
}

const (
	answerWithin = 10 * time.Second
	// pullWithin is more than maxPull: a pull that nothing came for has ended before.
	pullWithin = 2 * time.Minute
)

// Exports are those of the host's account. They name no tenant: what a reader may ask of
// them, the imports of its account say.
func Exports() []Export {
	return []Export{
		{Subject: apiInfo, Within: answerWithin},
		{Subject: api + "INFO." + subject.Stream + ".*", Within: answerWithin},
		{Subject: api + "MSG.NEXT." + subject.Stream + ".*", Streamed: true, Within: pullWithin},
		{Subject: "$JS.ACK." + subject.Stream + ".>", Within: answerWithin},
	}
}

// Subscribe are the subjects that the client may subscribe to. Those of events are not
// among them: they would show frames that the log then refuses.
func (r Reader) Subscribe() []string { return []string{r.Inbox() + ".>"} }
