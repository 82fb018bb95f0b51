// Package hostflags has the flags of a host's settings, one function for each group. The value of a
// setting before the call is the flag's default.
package hostflags

import (
	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/host"
)

// Public are the flags of the public API.
func Public(f *pflag.FlagSet, o *host.Public) {
	f.StringVar(&o.HTTPAddr, "http-addr", "127.0.0.1:8080", "address of the REST API; port 0 uses a free port")
	f.StringVar(&o.GRPCAddr, "grpc-addr", "127.0.0.1:9090", "address of the gRPC API; port 0 uses a free port")
	f.StringVar(&o.MetricsAddr, "metrics-addr", "", "address of Prometheus metrics and profiles; empty disables them")
	f.StringVar(&o.URL, "public-url", "", "public URL of the REST API and prefix of asset URLs; empty uses --http-addr")
	f.StringVar(&o.GRPC, "public-grpc-addr", "", "public HOST:PORT of the gRPC API, for discovery; empty uses --grpc-addr")
	f.StringArrayVar(&o.InterruptKeys, "interrupt-keys", nil, "VERSION=KEY that signs interrupt tokens: base64 of 32 random bytes, or host (repeatable); the highest version signs, all are accepted; default 1=host")
	f.StringArrayVar(&o.APIKeys, "api-key", nil, "KEY=TENANT:SCOPE,SCOPE or KEY=TENANT:* (repeatable), with user:NAME, group:NAME and role:NAME among the scopes; default dev-key=default:*")
	f.BoolVar(&o.TestSeams, "test-seams", false, "serve the protocol's test seams; never in production")
	f.BoolVar(&o.Reflection, "grpc-reflection", o.Reflection, "enable gRPC reflection of the public API, for tools such as grpcurl")
	f.Int64Var(&o.MaxBodyBytes, "max-request-body-bytes", o.MaxBodyBytes, "maximum size of a request body")
	audit(f, &o.Audit)
	webhooks(f, &o.Webhooks)
	f.DurationVar(&o.TokenLifetime, "token-lifetime", o.TokenLifetime, "how long the token of a question in a run's snapshot is valid; it never outlives its question")
	browser(f, &o.Browser)
	admission(f, o)
	callers(f, &o.Callers)
}

func callers(f *pflag.FlagSet, o *host.Callers) {
	patience(f, o)
	f.Int64Var(&o.MaxBytes, "max-bytes-in-flight", o.MaxBytes, "maximum bytes of bodies and answers in memory; more get 503; 0 means 1/48 of the process's memory, at least twice --max-request-body-bytes")
	f.Uint32Var(&o.GRPCStreams, "max-grpc-streams", o.GRPCStreams, "maximum open streams of one gRPC connection")
}

// Assets are the flags of what readers of a separate asset server may hold.
func Assets(f *pflag.FlagSet, o *host.AssetServing) {
	f.Int64Var(&o.Admission.MaxRequests, "max-requests", o.Admission.MaxRequests, "base of the limit on concurrent requests for assets, which is 1/8 of it; more get 503; 0 means no limit")
	f.Int64Var(&o.Admission.MaxUnknown, "max-unknown-requests", o.Admission.MaxUnknown, "maximum concurrent requests for assets from one address; 0 means no limit")
	patience(f, &o.Callers)
	f.Int64Var(&o.Callers.MaxBytes, "max-bytes-in-flight", o.Callers.MaxBytes, "maximum bytes of assets in memory for their readers; more get 503; 0 means 1/48 of the process's memory, at least twice --max-media-base64-bytes")
}

func patience(f *pflag.FlagSet, o *host.Callers) {
	f.DurationVar(&o.Patience.Start, "transfer-start", o.Patience.Start, "time a caller has to start sending a body or reading an answer, on top of --min-transfer-rate; then the connection is closed")
	f.Int64Var(&o.Patience.MinRate, "min-transfer-rate", o.Patience.MinRate, "minimum bytes per second at which callers must send bodies and read answers")
	f.DurationVar(&o.Patience.Total, "transfer-timeout", o.Patience.Total, "maximum time for a whole body")
}

func webhooks(f *pflag.FlagSet, o *host.Webhooks) {
	f.StringArrayVar(&o.Allow, "webhook-allow", nil,
		"non-public network (10.1.0.0/16), address or name (hooks.corp, .corp) that webhooks and callbacks may call (repeatable); allow the addresses of a name, too")
	f.IntVar(&o.PerTenant, "max-webhooks", o.PerTenant, "maximum webhooks of a tenant, and separately maximum servers that its callbacks name")
	f.IntVar(&o.PendingRuns, "webhook-max-runs", o.PendingRuns, "maximum runs with pending deliveries of one webhook; events of further runs are dropped and counted")
	f.IntVar(&o.Deliveries, "webhook-deliveries", o.Deliveries, "maximum concurrent deliveries of a gateway; a tenant has at most a quarter of them, a webhook a sixteenth")
	f.DurationVar(&o.Timeout, "webhook-timeout", o.Timeout, "time limit of one attempt of a delivery")
	f.DurationVar(&o.MaxPause, "webhook-max-pause", o.MaxPause, "longest wait after a failed attempt; the first wait is 5s, and each is twice as long")
	f.IntVar(&o.MaxAttempts, "webhook-max-attempts", o.MaxAttempts, "attempts after which an event is given up")
	f.DurationVar(&o.MaxAge, "webhook-max-age", o.MaxAge, "age of an event after which the next failed attempt is its last")
	f.DurationVar(&o.TokenLifetime, "callback-token-lifetime", o.TokenLifetime, "how long the token in a question at a callbackUrl is valid; it never outlives its question")
}

func audit(f *pflag.FlagSet, o *host.Audit) {
	f.BoolVar(&o.On, "audit", o.On, "keep a tamper-evident audit log of each tenant")
	f.StringVar(&o.KeyFile, "audit-key-file", "", "file with the Ed25519 key (PEM, PKCS #8) that signs audit log checkpoints, the same for all replicas and used for nothing else; empty uses audit.key in --data-dir, created on first use")
}

func browser(f *pflag.FlagSet, o *host.Browser) {
	f.StringVar(&o.BasePath, "base-path", "", "path prefix of the REST API and the console, such as /a/b; probes work without it, too; empty means the root")
	f.DurationVar(&o.StalledAfter, "stalled-after", o.StalledAfter, "time without an event after which a run that the host must advance is shown as stalled")
	f.StringArrayVar(&o.Links, "console-link", nil, "link on run pages of the console, NAME=URL, with {runId}, {workflowId}, {status}, {startedAt} and {completedAt} replaced (repeatable)")
	f.DurationVar(&o.Session, "console-session", o.Session, "how long a sign-in to the console is valid")
	f.BoolVar(&o.Console, "console", o.Console, "serve the web console at /console/")
}

func admission(f *pflag.FlagSet, o *host.Public) {
	a := &o.Admission
	f.Int64Var(&a.MaxRequests, "max-requests", a.MaxRequests, "maximum concurrent requests of a gateway, excluding streams; more get 503; 0 means no limit")
	f.Int64Var(&a.MaxStarts, "max-starts", a.MaxStarts, "maximum concurrent starts of runs, as part of --max-requests; 0 means no limit")
	f.Int64Var(&a.MaxUnknown, "max-unknown-requests", a.MaxUnknown, "maximum concurrent requests and gRPC streams of one address without a valid API key; 0 means no limit; all addresses share 1/8 of --max-requests")
	f.IntVar(&o.MaxStreams, "max-streams", o.MaxStreams, "maximum open event streams of a gateway; more get 429")
	f.StringArrayVar(&o.RateLimits, "rate-limit", nil, "rate limit of each key or each tenant, over all gateways: SCOPE[:CLASS]=N/UNIT[,burst=N], such as key=50/s or tenant:start=600/m (repeatable); more get 429")
	f.StringVar(&o.RateLimitFile, "rate-limits", "", "JSON file of further rate limits, and of those of single tenants, reloaded when it changes; empty means none")
	f.DurationVar(&a.StartDelay, "start-delay", a.StartDelay, "delay from a run's request to its first step above which the gateway rejects starts (503), excluding waits for a slot of --max-runs; 0 means no limit")
}
