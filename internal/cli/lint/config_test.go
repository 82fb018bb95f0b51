package lint

import (
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/clitest"
	"waybill.dev/waybill/internal/cli/dev"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/serve"
)

// settings lint reports what a host reports when it starts with the file.
func TestSettings_ChecksAConfigurationAsTheHostDoes(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	gateway := []string{"serve", "gateway"}
	dispatcher := []string{"serve", "dispatcher"}
	whole := []string{"dev"}
	for name, tc := range map[string]struct {
		doc     string
		command []string
		at      string // the place in the file
		says    string
	}{
		"a value out of range": {"lease: 1ms\n", dispatcher, "1:1: /lease", "--lease 1ms: want at least 200ms"},
		"the second line": {
			"max-runs: 4\nmax-retry-attempts: 99\n", whole, "2:1: /max-retry-attempts",
			"--max-retry-attempts 99: want 1 to 16",
		},
		"a duration in days":  {"max-run-duration: 1d\n", whole, "1:1: /max-run-duration", "want a duration in h, m, s or ms, such as 24h"},
		"a size with a unit":  {"max-inline-media-bytes: 256KB\n", whole, "1:1: /max-inline-media-bytes", "want a whole number without unit, such as 4 or 1048576"},
		"a word for true":     {"test-seams: yes please\n", whole, "1:1: /test-seams", "want true or false"},
		"a key without value": {"log-level: info\nhttp-addr:\n", whole, "2:1: /http-addr", "has no value; set one"},
		"a key on two lines":  {"log-level: info\nlog-level: warn\n", whole, "2:1: /log-level", "is set in line 1, too"},
		"two documents":       {"log-level: info\n---\nmax-runs: 4\n", whole, "3:1: (root)", "only the first of several YAML documents is read"},
		"a list":              {"- log-level\n", whole, "1:1: (root)", "want a YAML mapping of flag names to values"},
		"a word":              {"unknown-models: maybe\n", whole, "1:1: /unknown-models", `--unknown-models "maybe": want refuse or trust`},
		"a default":           {"default-model: nope/x\n", whole, "1:1: /default-model", "no such provider; there are sample, openai, anthropic, gemini; --provider nope=URL adds one"},
		"a misspelling":       {"provider: house=http://127.0.0.1:1/v1\ndefault-model: hous/x\n", whole, "2:1: /default-model", "no such provider; did you mean house?"},
		"a model that the sample lacks": {
			"default-model: sample/sample-2\n", dispatcher, "1:1: /default-model",
			"the provider sample has no such model; it has sample-1, sample-plain, sample-stumbles, sample-strays",
		},
		"a server without URL":     {"provider: house\n", whole, "1:1: /provider", `--provider "house": want ID=URL`},
		"a server of no URL":       {"provider: house=127.0.0.1\n", whole, "1:1: /provider", "http(s)://host[:port]/path"},
		"a server twice":           {"provider: [a=http://h/v1, a=http://i/v1]\n", whole, "1:1: /provider", "--provider a: is there twice"},
		"a tool of no server":      {"mcp-server: bank=http://h\nidempotent-tool: bnk/pay\n", whole, "2:1: /idempotent-tool", `no --mcp-server has the id "bnk"; did you mean bank?`},
		"an agent twice":           {"a2a-agent: [a=http://h, a=http://i]\n", dispatcher, "1:1: /a2a-agent", "--a2a-agent a: is there twice"},
		"a tenant without key":     {"api-key: k=acme:*\nhide-fallback: amce\n", whole, "2:1: /hide-fallback", "no --api-key is of this tenant; did you mean acme?"},
		"no tenant's name":         {"hide-fallback: a.b\n", dispatcher, "1:1: /hide-fallback", "want the name of a tenant, or * for all"},
		"a scope":                  {"api-key: hush-hush=acme:runs:red\n", gateway, "1:1: /api-key", `scope "runs:red" is not known`},
		"a key twice":              {"api-key: ['hush-hush=acme:*', 'hush-hush=beta:*']\n", whole, "1:1: /api-key", "--api-key no. 2: an earlier one has the same key"},
		"an address":               {"http-addr: '8080'\n", gateway, "1:1: /http-addr", `--http-addr "8080": want HOST:PORT`},
		"a rate":                   {"rate-limit: keys=1/s\n", gateway, "1:1: /rate-limit", `unknown scope "keys"`},
		"a network":                {"webhook-allow: no network\n", gateway, "1:1: /webhook-allow", `--webhook-allow: "no network"`},
		"a placeholder":            {"console-link: 'Traces=https://t/{run}'\n", whole, "1:1: /console-link", "of a run there are {runId}"},
		"a capability":             {"runtime-capability: Big one\n", dispatcher, "1:1: /runtime-capability", "beginning with a small letter"},
		"a log level":              {"log-level: loud\n", whole, "1:1: /log-level", `--log-level "loud": want debug, info, warn or error`},
		"a protocol of OTLP":       {"otlp-protocol: thrift\n", gateway, "1:1: /otlp-protocol", `--otlp-protocol "thrift": want`},
		"a number of copies":       {"log-replicas: 2\n", dispatcher, "1:1: /log-replicas", "--log-replicas 2: want 1, 3 or 5"},
		"a schema of the database": {"postgres-schema: Big One\npostgres-url-file: /none\n", []string{"serve", "eventlog"}, "1:1: /postgres-schema", "want at most 32 of a-z, 0-9 and _"},
		"a kind of lint":           {"kind-lint: hard\n", []string{"serve", "acceptor"}, "1:1: /kind-lint", `--kind-lint "hard": want strict, warn or off`},
		"a key of a token": {
			"interrupt-keys: 1=short\n", []string{"serve", "redactor"}, "1:1: /interrupt-keys", "--interrupt-keys: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(clitest.Folder(t, map[string]string{"config.yaml": tc.doc}), "config.yaml")
			out, _, err := settingsLint(t, "", file)
			require.ErrorIs(t, err, errFindings)
			require.Contains(t, out, "config.yaml:"+tc.at)
			require.Contains(t, out, tc.says)
			require.NotContains(t, out, "hush-hush")

			program, args := dev.Command(), append(tc.command, "--config", file)
			if tc.command[0] == "serve" {
				program = serve.Command()
			} else {
				args = append(args, "--data-dir", t.TempDir())
			}
			require.ErrorContains(t, start(t, program, args...), tc.says)
		})
	}
}

// start runs a command that must not start.
func start(t *testing.T, program *cobra.Command, args ...string) error {
	t.Helper()
	_, err := clitest.Run(t, program, "", args...)
	require.ErrorIs(t, err, exit.ErrUsage)
	require.NotContains(t, err.Error(), "hush-hush")
	return err
}

// Settings that lint cannot know, such as files and variables of the host, are no mistakes of the file.
func TestSettings_AcceptsAConfigurationForAnotherMachine(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	for name, doc := range map[string]string{
		"a gateway":                "nats: nats://nats:4222\nhost-key-file: /secrets/host.key\nrate-limits: /etc/waybill/rate-limits.json\nsecrets-file: /none.yaml\naudit-key-file: /none.pem\n",
		"a dispatcher":             "workflows: /etc/waybill/workflows\nprovider: openai\ndefault-model: openai/gpt-6.1-terra\nprovider-policies: /none.json\ntool-limits: /none.json\n",
		"a server of the settings": "provider-settings: /none.json\nprovider: house\ndefault-model: house/big\n",
		"one document":             "---\nlog-level: info\nkinds: ''\nprovider: []\n---\n",
		"half of a pair":           "peer-ca: /ca.pem\npeer-cert: /tls.crt\npeer-key: /tls.key\nnats-creds: /none.creds\n",
		"tools":                    "mcp-server: bank=stdio:bank-server\nidempotent-tool: bank/pay\na2a-agent: desk=https://desk.example\n",
	} {
		out, _, err := settingsLint(t, doc, "--kind", "config", "-")
		require.NoError(t, err, "%s: %s", name, out)
	}
	out, _, err := settingsLint(t, "http-addr: 127.0.0.1:1\nlease: 10s\nredactor: r:1\n", "--kind", "config", "-")
	require.ErrorIs(t, err, errFindings)
	require.Contains(t, out, "/lease: settings: waybill serve gateway has the other keys, but no such flag; it is a flag of waybill serve dispatcher, waybill dev")
}
