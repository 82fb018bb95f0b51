package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// The life of a webhook on the command line.
func TestWebhooks_AreManagedOnTheCommandLine(t *testing.T) {
	t.Parallel()
	h := harness.Start(t)
	u := at(t, h.HTTP, "dev-key")
	require.Contains(t, u.ok("webhook", "list").err, "no webhooks")

	var hook struct{ WebhookID, Secret string }
	out := u.ok("webhook", "register", "https://1.1.1.1/in", "--event", "run.completed", "--event", "run.failed", "--tag", "billing", "-o", "json").out
	require.NoError(t, json.Unmarshal([]byte(out), &hook))
	require.Len(t, hook.Secret, 64)
	table := u.ok("webhook", "list").out
	require.Regexp(t, `(?m)^WEBHOOK +STATUS +FAILURES +DROPPED +EVENTS +URL`, table)
	require.Regexp(t, hook.WebhookID+` +active +0 +0 +run.completed,run.failed +https://1.1.1.1/in`, table)
	require.Equal(t, hook.WebhookID+"\n", u.ok("webhook", "list", "-o", "name").out)
	require.NotContains(t, u.ok("webhook", "list", "-o", "json").out, hook.Secret)

	require.Contains(t, u.ok("webhook", "deliveries", hook.WebhookID).err, "no failed deliveries")
	require.Contains(t, u.ok("webhook", "deliveries", hook.WebhookID, "--pending").err, "no pending deliveries")
	rotated := u.ok("webhook", "rotate", hook.WebhookID, "--overlap", "1h").out
	require.Regexp(t, `(?m)^secret +[0-9a-f]{64}$`, rotated)
	require.NotContains(t, rotated, hook.Secret)

	r := u.run("webhook", "redeliver", hook.WebhookID, "run_none/0")
	require.Equal(t, 5, r.status, "there is no such delivery: %s", r.err)

	require.Equal(t, hook.WebhookID+" deleted\n", u.ok("webhook", "rm", hook.WebhookID).out)
	require.Equal(t, 5, u.run("webhook", "delete", hook.WebhookID).status)
	require.Equal(t, 5, u.run("webhook", "deliveries", hook.WebhookID).status)
	for _, args := range [][]string{
		{"webhook", "register", "https://1.1.1.1/in"},
		{"webhook", "rotate", hook.WebhookID, "--overlap", "1500ms"},
		{"webhook", "list", "--limit", "0"},
		{"webhook", "redeliver", hook.WebhookID, "run_1"},
		{"webhook", "redeliver", hook.WebhookID, "run_1/-1"},
		{"webhook", "redeliver", hook.WebhookID},
	} {
		require.Equal(t, 2, u.run(args...).status, "%v", args)
	}
}
