package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/dev"
	"waybill.dev/waybill/internal/cli/envelopes"
	"waybill.dev/waybill/internal/cli/serve"
	"waybill.dev/waybill/internal/config"
)

var update = flag.Bool("update", false, "write the generated files again")

// generated compares a generated file with the one in the tree, or writes it.
func generated(t *testing.T, name, want string) {
	t.Helper()
	path := "../../" + name
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run make gen")
}

// callerLimits is the section about limits of callers.
const callerLimits = "security.md#limits-on-callers"

// explained are the pages below docs/ that explain a setting.
var explained = map[string]string{
	"a2a-agent": "tools.md", "api-key": "waiting.md#approvers", "asset-keys": "media.md#keys", "audit": "audit.md", "audit-key-file": "audit.md",
	"cold-bucket": "cold-store.md#separate-services", "cold-postgres-url-file": "cold-store.md#separate-services", "hot-window": "cold-store.md",
	"credentials": "models.md#keys-of-tenants", "default-model": "models.md#which-model-is-asked", "durability": "operations.md#durability",
	"hide-fallback": "models.md#the-gate", "idempotent-tool": "tools.md#calls-with-an-unknown-outcome", "interrupt-keys": "waiting.md#tokens", "kind-lint": "kinds.md", "kinds": "kinds.md#add-one", "lease": "operations.md#the-lease",
	"max-handed-out": "scaling.md#delivered-runs", "max-inline-media-bytes": "media.md", "mcp-server": "tools.md", "metrics-addr": "operations.md#health-and-metrics", "models": "catalogue.md",
	"nats-addr": "operations.md#reading-events-over-nats", "otlp-endpoint": "telemetry.md", "packs": "kinds.md#packs", "postgres-url-file": "operations.md#a-read-model-in-postgresql",
	"prompts": "prompts.md", "provider": "models.md#vendors-and-their-keys", "provider-policies": "models.md#model-policies", "provider-settings": "providers.md#describe-a-server", "redact-shapes": "redaction.md",
	"max-requests": "operations.md#too-much-load", "max-starts": "operations.md#too-much-load", "start-delay": "operations.md#too-much-load", "max-queue-wait": "operations.md#too-much-load", "tenant-limits": "fair-shares.md#limits-of-tenants", "tool-limits": "fair-shares.md#limits-of-tools-and-agents", "max-runs": "fair-shares.md",
	"runtime-capability": "nodes.md#a-node-of-a-pack", "secrets-file": "redaction.md", "unknown-models": "models.md#the-gate", "webhook-allow": "webhooks.md", "webhook-max-runs": "webhooks.md#how-much-is-queued",
	"token-file": "services.md#access-between-services", "tls-client-ca": "services.md#access-between-services", "peer-ca": "services.md#access-between-services", "redactor-ca": "services.md#access-between-services",
	"redactor":       "services.md#load-balancing",
	"transfer-start": callerLimits, "transfer-timeout": callerLimits, "min-transfer-rate": callerLimits, "max-unknown-requests": callerLimits,
	"log-recovery-timeout": "operations.md#the-data-directory", "log-recovery-bytes": "operations.md#the-data-directory",
	"max-bytes-in-flight": callerLimits, "max-grpc-streams": callerLimits, "max-streams": callerLimits,
	"rate-limit": "rate-limits.md", "rate-limits": "rate-limits.md#a-file-of-limits", "trace-content": "tracing.md#content",
}

// documented is what serves: `dev`, or a service of `serve`.
type documented struct {
	name  string
	flags *pflag.FlagSet
}

func servers() []documented {
	all := []documented{{"dev", dev.Command().Flags()}}
	serve := serve.Command().Commands()
	slices.SortFunc(serve, func(a, b *cobra.Command) int { return strings.Compare(a.Name(), b.Name()) })
	for _, c := range serve {
		all = append(all, documented{c.Name(), c.Flags()})
	}
	return all
}

// byValue joins the names that have a value in common: "`a`", or "dev `a`; gateway `b`".
func byValue(names []string, value map[string]string, of func(string) string) string {
	var order []string
	groups := map[string][]string{}
	for _, n := range names {
		v := value[n]
		if groups[v] == nil {
			order = append(order, v)
		}
		groups[v] = append(groups[v], n)
	}
	if len(order) == 1 {
		return of(order[0])
	}
	var parts []string
	for _, v := range order {
		if text := of(v); text != "" {
			parts = append(parts, strings.Join(groups[v], ", ")+": "+text)
		}
	}
	return strings.Join(parts, "; ")
}

const configurationHead = `# Configuration

Generated from the flags of the commands by ` + "`make gen`" + `; do not edit. Every flag, variable and key; what they are for is in [operations.md](../operations.md#settings).

A setting has one name. It is a flag, an environment variable (` + "`WAYBILL_`" + ` and the name in capitals, with ` + "`_` for `-`" + `), or a key of the
` + "`--config`" + ` file (the name as it is, without the dashes). The flag wins over the environment, the environment over the file, the file over the default. Several
values of a repeatable flag are divided by ` + "`;`" + ` in the environment and are a list in the file. ` + "`dev`" + ` is the whole host, the others are ` + "`waybill serve`" + `
[services](../services.md).

| flag | environment | default | of | meaning |
|---|---|---|---|---|
`

// shown is a default as a reader writes it.
func shown(v string) string {
	if v == "" || v == "[]" {
		return ""
	}
	return "`" + v + "`"
}

// inCell keeps a text from ending its cell.
func inCell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func configuration(t *testing.T) string {
	t.Helper()
	type setting struct {
		of              []string
		defaults, usage map[string]string
	}
	all := map[string]*setting{}
	for _, c := range servers() {
		c.flags.VisitAll(func(f *pflag.Flag) {
			s := all[f.Name]
			if s == nil {
				s = &setting{defaults: map[string]string{}, usage: map[string]string{}}
				all[f.Name] = s
			}
			s.of = append(s.of, c.name)
			s.defaults[c.name], s.usage[c.name] = f.DefValue, f.Usage
		})
	}
	var b strings.Builder
	b.WriteString(configurationHead)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		meaning := byValue(s.of, s.usage, inCell)
		if page := explained[name]; page != "" {
			meaning += " ([more](../" + page + "))"
		}
		of := strings.Join(s.of, ", ")
		if len(s.of) == len(servers()) {
			of = "all"
		}
		fmt.Fprintf(&b, "| `--%s` | `%s` | %s | %s | %s |\n", name, config.EnvName(name), byValue(s.of, s.defaults, shown), of, meaning)
	}
	for name := range explained {
		require.Contains(t, all, name, "no command has this setting any more")
	}
	return b.String()
}

// The configuration reference has each flag of `waybill dev` and of each service.
func TestGenerated_Configuration(t *testing.T) {
	t.Parallel()
	generated(t, "docs/reference/configuration.md", configuration(t))
}

// The chart knows the flags of each service, and their types, so that it refuses settings that would
// end a pod at its start.
func TestGenerated_FlagsForTheChart(t *testing.T) {
	t.Parallel()
	text := "# Generated from the flags of `waybill serve` by `make gen`; do not edit.\n"
	for _, c := range servers()[1:] { // the first is dev
		text += c.name + ":\n"
		c.flags.VisitAll(func(f *pflag.Flag) { text += fmt.Sprintf("  %s: %s\n", f.Name, f.Value.Type()) })
	}
	generated(t, "deploy/helm/waybill/files/flags.yaml", text)
}

func TestServe_DocumentsEveryFlag(t *testing.T) {
	t.Parallel()
	var doc []byte
	for _, page := range []string{"acceptor-api.md", "reference/configuration.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
		require.NoError(t, err)
		doc = append(doc, text...)
	}
	missing := []string{}
	for _, c := range append(serve.Command().Commands(), envelopes.Accept()) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			helpOnly := c.Name() == "accept" && f.Name != "ca" && f.Name != "plaintext" // not in the pages
			if !helpOnly && !strings.Contains(string(doc), "`--"+f.Name+"`") {
				missing = append(missing, c.Name()+" --"+f.Name)
			}
		})
	}
	require.Empty(t, missing)
}
