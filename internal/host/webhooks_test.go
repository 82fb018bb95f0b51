package host

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// OpenWOP host contract §10.6: the test switch is rejected in production.
func TestWebhookOptions_RejectTheTestSwitchInProduction(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		value     string
		seams, on bool
		says      string
	}{
		"unset":              {"", false, false, ""},
		"false":              {"false", false, false, ""},
		"true for tests":     {"true", true, true, ""},
		"true in production": {"true", false, false, "unset it, or give --test-seams"},
		"neither":            {"yes", true, false, "want true or false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := defaultWebhooks()
			err := o.validate(tc.seams, func(name string) (string, bool) {
				require.Equal(t, "OPENWOP_WEBHOOK_ALLOW_PRIVATE", name)
				return tc.value, tc.value != ""
			})
			require.Equal(t, tc.on, o.allowPrivate)
			if tc.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.says)
		})
	}
	o := defaultWebhooks()
	o.Allow = []string{"10.0.0.0/8", "no network"}
	require.ErrorContains(t, o.validate(false, func(string) (string, bool) { return "", false }), `--webhook-allow: "no network"`)
}
