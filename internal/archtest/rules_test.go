package archtest

import (
	"slices"
	"strings"
)

const root = "waybill.dev/waybill"

// rule forbids packages to import others.
type rule struct {
	name string
	// from are the packages it applies to: paths below the root module, "/..." for all below; but
	// are exceptions.
	from, but []string
	// direct are packages that must not be imported, reached are packages that must not be
	// imported indirectly either.
	direct, reached []string
	// except are packages below direct that may be imported.
	except []string
	// only lists the third-party modules that may be imported; nil allows all. The standard
	// library is always allowed, and direct decides about this repository's packages.
	only []string
}

// Packages that domain code must not import.
var (
	transports = []string{"google.golang.org/grpc", "net/http", "github.com/grpc-ecosystem"}
	drivers    = []string{"github.com/nats-io", "database/sql", "modernc.org", "github.com/jackc"}
	messages   = []string{root + "/proto"}
)

// domain is the code that decides: values in, values and errors out.
var domain = []string{
	"services/acceptor/accept", "services/acceptor/kinds", "services/acceptor/seam",
	"services/dispatcher/create", "services/dispatcher/definition", "services/dispatcher/engine",
	"services/dispatcher/engine/quarantine", "services/dispatcher/engine/timers", "services/dispatcher/expr",
	"services/dispatcher/machine", "services/dispatcher/model", "services/dispatcher/node",
	"services/dispatcher/node/media", "services/dispatcher/prompt", "services/dispatcher/provider",
	"services/dispatcher/provider/catalogue", "services/dispatcher/provider/markup",
	"services/dispatcher/provider/mock", "services/dispatcher/provider/sample",
	"services/dispatcher/queue/schedule", "services/dispatcher/retention", "services/dispatcher/tool",
	"services/eventlog/hub", "services/eventlog/ingest",
	"services/eventlog/fold", "services/eventlog/project", "services/eventlog/store", "services/eventlog/tally", "services/eventlog/words",
	"services/gateway/runview",
	"services/redactor/redact", "services/redactor/secrets",
}

// services never import each other: they call each other through generated clients.
var services = []string{"gateway", "acceptor", "dispatcher", "eventlog", "redactor"}

// pure is the domain code without I/O and randomness; the caller passes the time.
var pure = []string{
	"services/acceptor/accept", "services/dispatcher/provider/catalogue", "services/dispatcher/node/media", "services/dispatcher/node",
	"services/dispatcher/prompt", "services/dispatcher/machine",
	"services/eventlog/fold", "services/eventlog/project", "services/eventlog/tally", "services/eventlog/words", "services/gateway/runview",
	"services/redactor/redact",
	"services/dispatcher/expr", "services/dispatcher/definition",
}

func rules() []rule {
	rs := []rule{
		{
			name: "protocol imports the standard library and JSON Schema only",
			from: []string{"protocol/..."},
			direct: slices.Concat(drivers, messages, []string{
				"google.golang.org/grpc", root + "/services", root + "/internal", root + "/cmd",
			}),
			reached: slices.Concat(drivers, []string{"google.golang.org/grpc"}),
			only:    []string{"github.com/santhosh-tekuri/jsonschema/v6", "github.com/dlclark/regexp2/v2"},
		},
		{
			name: "protocol has no I/O", from: []string{"protocol/..."},
			direct: []string{"os", "net/http", "os/exec", "io/ioutil"},
		},
		{
			name: "proto imports no other package of this repository", from: []string{"proto/..."},
			direct: []string{root + "/protocol", root + "/internal", root + "/services", root + "/cmd"},
			only:   []string{"google.golang.org", "github.com/grpc-ecosystem/grpc-gateway/v2"},
		},
		{
			name: "internal packages import no service",
			from: []string{"internal/..."}, but: []string{"internal/host/...", "internal/cli/..."},
			direct: []string{
				root + "/services",
				root + "/internal/host",
				root + "/internal/cli",
				root + "/cmd",
				root + "/examples",
			},
		},
		{
			name: "the host imports no command",
			from: []string{"internal/host/..."},
			direct: []string{
				root + "/internal/cli/dev",
				root + "/internal/cli/serve",
				root + "/internal/cli/session",
				root + "/internal/cli/render",
			},
		},
		{
			name:   "the client imports protocol, and nothing of the host",
			from:   []string{"client/..."},
			direct: slices.Concat(messages, []string{root + "/services", root + "/internal", root + "/cmd", root + "/examples"}),
		},
		{
			name:    "domain code imports no transport, broker, database or message",
			from:    domain,
			direct:  slices.Concat(transports, drivers, messages),
			reached: slices.Concat(transports, drivers, messages),
		},
		{
			name:   "pure code has no I/O and no randomness",
			from:   pure,
			direct: []string{"os", "math/rand", "math/rand/v2", "crypto/rand"},
		},
		{
			name:   "domain code reads no files and no environment",
			from:   domain,
			direct: []string{"os", "os/exec", "syscall"},
		},
		{
			name:   "no package imports a command",
			from:   []string{"..."},
			direct: []string{root + "/cmd", root + "/tools"},
		},
		{
			name: "no other module imports bench",
			from: []string{"..."}, but: []string{"bench/..."},
			direct: []string{root + "/bench"},
		},
		{
			name:   "services import no host",
			from:   []string{"services/..."},
			direct: []string{root + "/internal/host", root + "/internal/cli"},
		},
		{
			name: "the product does not import its tests", from: []string{"..."},
			but:    []string{"test/...", "bench/...", "examples/models", "protocol/schematest"},
			direct: []string{root + "/test", "github.com/stretchr/testify", "go.uber.org/goleak"},
		},
		{
			name:   "a store imports its port and its driver, no transport",
			from:   []string{"services/eventlog/store/sqlite", "services/eventlog/store/postgres"},
			direct: slices.Concat([]string{"google.golang.org/grpc", "net/http", root + "/internal"}, messages),
		},
		{
			name: "a provider imports its vendor's client, no transport", from: []string{"services/dispatcher/provider/..."},
			direct: slices.Concat([]string{"google.golang.org/grpc", root + "/internal"}, drivers, messages),
			except: []string{root + "/internal/projection", root + "/internal/settings"},
		},
	}
	for _, from := range services {
		r := rule{name: "services import no other service", from: []string{"services/" + from + "/..."}}
		for _, to := range services {
			if to != from {
				r.direct = append(r.direct, root+"/services/"+to)
			}
		}
		rs = append(rs, r)
	}
	return rs
}

// appliesTo reports whether the rule applies to a package. Packages named …test serve tests of
// several packages and may import what tests import.
func (r rule) appliesTo(path string) bool {
	rel, ours := strings.CutPrefix(path, root+"/")
	return ours && !strings.HasSuffix(path, "test") && matches(r.from, rel) && !matches(r.but, rel)
}

func matches(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		dir, below := strings.CutSuffix(p, "...")
		return path == strings.TrimSuffix(dir, "/") || below && strings.HasPrefix(path, dir)
	})
}

// under reports whether a package is one of the listed ones or lies below one.
func under(list []string, path string) bool {
	return slices.ContainsFunc(list, func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") })
}
