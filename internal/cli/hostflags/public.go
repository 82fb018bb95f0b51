// Package hostflags has the flags of a host's settings, one function for each group. The value of a
// setting before the call is the flag's default.
package hostflags

import (
	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/host"
)

// Public are the flags of the public API.
func Public(f *pflag.FlagSet, o *host.Public) {
	f.StringVar(&o.HTTPAddr, "http-addr", "127.0.0.1:8080", "address of the REST API; port 0 takes a free one")
	f.StringVar(&o.GRPCAddr, "grpc-addr", "127.0.0.1:9090", "address of the gRPC API; port 0 takes a free one")
	f.StringVar(&o.MetricsAddr, "metrics-addr", "", "address of the Prometheus metrics and of profiles; empty: nowhere")
	f.StringVar(&o.URL, "public-url", "", "URL at which clients reach the REST API; URLs of assets begin with it; empty: that of --http-addr")
	f.StringVar(&o.GRPC, "public-grpc-addr", "", "HOST:PORT at which clients reach the gRPC API, for discovery; empty: that of --grpc-addr")
	f.StringArrayVar(&o.InterruptKeys, "interrupt-keys", nil, "VERSION=KEY that signs the tokens of interrupts: base64 of 32 random bytes, or host (repeatable); the highest signs, all are good; default 1=host")
	f.StringArrayVar(&o.APIKeys, "api-key", nil, "KEY=TENANT:SCOPE,SCOPE or KEY=TENANT:* (repeatable), with user:NAME, group:NAME and role:NAME among the scopes; default dev-key=default:*")
	f.BoolVar(&o.TestSeams, "test-seams", false, "serve the protocol's test seams; never in production")
	f.BoolVar(&o.Reflection, "grpc-reflection", o.Reflection, "let gRPC clients ask the public API what it serves, as grpcurl does")
	f.Int64Var(&o.MaxBodyBytes, "max-request-body-bytes", o.MaxBodyBytes, "largest request body")
	audit(f, &o.Audit)
	f.StringArrayVar(&o.Webhooks.Allow, "webhook-allow", nil,
		"network (10.1.0.0/16), address or name (hooks.corp, .corp) that webhooks and callbacks may call though it is not public (repeatable); a name's addresses have to be allowed, too")
	browser(f, &o.Browser)
	admission(f, o)
}

func audit(f *pflag.FlagSet, o *host.Audit) {
	f.BoolVar(&o.On, "audit", o.On, "keep an audit log of each tenant, which nobody can change unnoticed")
	f.StringVar(&o.KeyFile, "audit-key-file", "", "file with the Ed25519 key (PEM, PKCS #8) that signs checkpoints of the audit log, the same for all replicas and used for nothing else; empty: audit.key in --data-dir, made on first use")
}

func browser(f *pflag.FlagSet, o *host.Browser) {
	f.StringVar(&o.BasePath, "base-path", "", "path below which the REST API and the console are, such as /a/b; probes reach the host without it, too; empty: the root")
	f.DurationVar(&o.StalledAfter, "stalled-after", o.StalledAfter, "after how long without news a run that the host works on is shown as stalled")
	f.StringArrayVar(&o.Links, "console-link", nil, "link that the console shows, NAME=URL; {runId}, {workflowId}, {status}, {startedAt} and {completedAt} in the URL are those of a run (repeatable)")
	f.BoolVar(&o.Console, "console", o.Console, "serve the web console at /console/")
}

func admission(f *pflag.FlagSet, o *host.Public) {
	a := &o.Admission
	f.Int64Var(&a.MaxRequests, "max-requests", a.MaxRequests, "requests that a gateway takes at a time, streams not counted; further ones are told to come again (503); 0: no bound")
	f.Int64Var(&a.MaxStarts, "max-starts", a.MaxStarts, "starts of runs among --max-requests; 0: no bound")
	f.DurationVar(&a.StartDelay, "start-delay", a.StartDelay, "how long runs may take from their request to their first step before the gateway takes fewer (503); waiting for a free place of --max-runs is not counted; 0: it takes all")
}
