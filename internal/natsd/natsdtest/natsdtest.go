// Package natsdtest starts an embedded NATS server, and tells what it leaves behind, for tests that
// look for goroutines.
package natsdtest

import "go.uber.org/goleak"

const server = "github.com/nats-io/nats-server/v2/server."

// LeftBehind are goroutines of a server that was stopped. None is of the host's doing.
func LeftBehind() []goleak.Option {
	var options []goleak.Option
	for _, function := range []string{
		server + "(*jetStream).monitorQueueDepth", // for the whole process
		// One that is stopped amid a batch keeps the store of what came of it, until its
		// timer of ten seconds is up.
		server + "(*msgBlock).flushLoop",
		server + "(*fileStore).flushStreamStateLoop",
		"github.com/nats-io/nats-server/v2/server/ats.Register.func1",
	} {
		options = append(options, goleak.IgnoreAnyFunction(function))
	}
	return options
}
