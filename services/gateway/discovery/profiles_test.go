package discovery_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// within returns the member of a document at a path; nil if it is absent.
func within(doc map[string]any, path ...string) any {
	var v any = doc
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

func listed(v any, want string) bool {
	list, _ := v.([]any)
	return slices.Contains(list, any(want))
}

// profiles are the predicates of OpenWOP host contract §11.1 over the document, and whether this host
// satisfies them.
var profiles = map[string]struct {
	holds func(map[string]any) bool
	want  bool
}{
	"openwop-core": {func(c map[string]any) bool {
		version, _ := within(c, "protocolVersion").(string)
		_, kinds := within(c, "supportedEnvelopes").([]any)
		_, versions := within(c, "schemaVersions").(map[string]any)
		whole := true
		for _, name := range []string{"clarificationRounds", "schemaRounds", "envelopesPerTurn"} {
			n, is := within(c, "limits", name).(float64)
			whole = whole && is && n >= 0 && n == float64(int(n))
		}
		return strings.HasPrefix(version, "1.") && kinds && versions && whole
	}, true},
	"openwop-interrupts": {
		func(c map[string]any) bool { return listed(within(c, "supportedEnvelopes"), "clarification.request") },
		true,
	},
	"openwop-stream-sse and openwop-stream-poll": {
		func(c map[string]any) bool { return listed(within(c, "supportedTransports"), "rest") },
		true,
	},
	"openwop-secrets": {
		func(c map[string]any) bool { return listed(within(c, "secrets", "scopes"), "user") },
		false,
	},
	"openwop-provider-policy": {
		func(c map[string]any) bool { return listed(within(c, "aiProviders", "policies", "modes"), "optional") },
		true,
	},
	"openwop-replay-fork": {func(c map[string]any) bool {
		modes, _ := within(c, "replay", "modes").([]any)
		return within(c, "replay", "supported") == true && len(modes) > 0
	}, true},
	"openwop-fixtures": {
		func(c map[string]any) bool { f, _ := within(c, "fixtures").([]any); return len(f) > 0 },
		true,
	},
	"openwop-discovery-auth-scoped": {
		func(c map[string]any) bool { return within(c, "discovery", "authScoped", "supported") == true },
		false,
	},
	"openwop-debug-bundle": {func(c map[string]any) bool { return within(c, "debugBundle", "supported") == true }, true},
	"openwop-memory":       {func(c map[string]any) bool { return within(c, "memory") != nil }, false},
	"openwop-experimental": {func(c map[string]any) bool {
		for _, block := range c {
			if m, is := block.(map[string]any); is && m["tier"] != nil {
				return true
			}
		}
		return false
	}, false},
	"production": {func(c map[string]any) bool { return within(c, "production") != nil }, false},
}

// The profiles implied by the document are exactly those that the host supports.
func TestProfiles_FollowFromTheDocument(t *testing.T) {
	t.Parallel()
	root := newRig(seamed, full).root(t)
	for name, p := range profiles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, p.want, p.holds(root))
		})
	}
}
