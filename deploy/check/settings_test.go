package check

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/config"
	"waybill.dev/waybill/test/harness"
)

var (
	flag = regexp.MustCompile(`(?m)^\s+--([a-z0-9-]+)`)
	// Variables named after a server of --provider, --mcp-server or --a2a-agent.
	ofServer = regexp.MustCompile(`^WAYBILL_(PROVIDER|MCP|A2A)_[A-Z0-9]`)
)

// flagsOf returns the flags of a command, none if it does not exist.
var flagsOf = func() func(*testing.T, ...string) []string {
	var (
		mu    sync.Mutex
		known = map[string][]string{}
	)
	return func(t *testing.T, command ...string) []string {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		name := strings.Join(command, " ")
		if flags, ok := known[name]; ok {
			return flags
		}
		out, status := harness.Command(t, append(slices.Clone(command), "--help")...)
		var flags []string
		if status == 0 && strings.Contains(out, "waybill "+name+" [flags]") {
			for _, m := range flag.FindAllStringSubmatch(out, -1) {
				flags = append(flags, m[1])
			}
		}
		known[name] = flags
		return flags
	}
}()

// A service with an unknown setting ends at its start.
func TestSettings_AreFlagsOfTheService(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, runs the binary: run without -short")
	}
	eachDeployment(t, func(t *testing.T, s set, o *object, d deployment) {
		c := d.Template.Spec.Containers[0]
		require.Equal(t, []string{"serve", o.service(), "--config", "/etc/waybill/config/config.yaml"}, c.Args)
		for key := range settings(t, s, o.service()) {
			require.Contains(t, flagsOf(t, "serve", o.service()), key)
		}
		for _, e := range c.Env {
			if !strings.HasPrefix(e.Name, "WAYBILL_") || ofServer.MatchString(e.Name) {
				continue
			}
			key := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(e.Name, "WAYBILL_")), "_", "-")
			require.Equal(t, e.Name, config.EnvName(key))
			require.Contains(t, flagsOf(t, "serve", o.service()), key)
		}
	})
}

// Files that settings name are mounted.
func TestSettings_NameFilesThatAreThere(t *testing.T) {
	t.Parallel()
	eachDeployment(t, func(t *testing.T, s set, o *object, d deployment) {
		p := d.Template.Spec
		volumes := map[string]bool{}
		for _, v := range p.Volumes {
			volumes[v.Name] = true
		}
		for key, value := range settings(t, s, o.service()) {
			if !strings.HasPrefix(value, "/etc/waybill/") {
				continue
			}
			there := false
			for _, m := range p.Containers[0].Mounts {
				there = there || volumes[m.Name] && (value == m.Path || strings.HasPrefix(value, m.Path+"/"))
			}
			require.True(t, there, "%s: --%s %s is mounted by nothing", o.name(), key, value)
		}
	})
}

// World-readable objects have no secrets.
func TestSettings_HoldNoSecrets(t *testing.T) {
	t.Parallel()
	eachSet(t, func(t *testing.T, s set) {
		for _, o := range s.of("Deployment") {
			for key, value := range settings(t, s, o.service()) {
				require.NotContains(t, []string{"api-key", "asset-keys", "interrupt-keys"}, key, o.name())
				require.False(t, key == "nats" && strings.Contains(value, "@"), "%s: a password in --nats", o.name())
			}
		}
	})
}
