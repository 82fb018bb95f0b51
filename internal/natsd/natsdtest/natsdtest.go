// Package natsdtest starts an embedded NATS server, and lists the goroutines it leaves, for leak
// checks.
package natsdtest

import "go.uber.org/goleak"

const server = "github.com/nats-io/nats-server/v2/server."

// LeftBehind lists goroutines of a stopped server. The host started none of them.
func LeftBehind() []goleak.Option {
	var options []goleak.Option
	for _, function := range []string{
		server + "(*jetStream).monitorQueueDepth", // one per process
		// A server stopped during a batch keeps the batch's store until a timer of ten seconds.
		server + "(*msgBlock).flushLoop",
		server + "(*fileStore).flushStreamStateLoop",
		"github.com/nats-io/nats-server/v2/server/ats.Register.func1",
	} {
		options = append(options, goleak.IgnoreAnyFunction(function))
	}
	return options
}
