package discovery_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/audit"
	"waybill.dev/waybill/services/gateway/discovery"
)

// OpenWOP host contract §1.4, §2.8.
func TestDocument_HasFeedbackWithAnnotations(t *testing.T) {
	t.Parallel()
	require.NotContains(t, newRig().root(t), "feedback")
	require.Equal(t, map[string]any{
		"supported": true,
		"targets":   []any{"run", "event", "node"},
		"signals":   []any{"rating", "correction", "label", "flag"},
	}, newRig(audited).root(t)["feedback"])
}

func audited(c *discovery.Config, _ *dispatcher) {
	c.Audit = &audit.Profile{PublicKey: "MCow", EveryEntries: 1000, IntervalSeconds: 300}
	c.Annotations = true
}

// OpenWOP host contract §1.4, §10.7: named only where a log is kept.
func TestDocument_HasTheAuditProfileOnlyWithAnAuditLog(t *testing.T) {
	t.Parallel()
	require.NotContains(t, newRig().root(t), "auth")
	require.Equal(t, map[string]any{
		"profiles": []any{"openwop-audit-log-integrity"},
		"auditLogIntegrity": map[string]any{
			"hashChain": true, "checkpointSignatureAlgorithm": "ed25519", "checkpointPublicKey": "MCow",
			"checkpointIntervalEntries": 1000.0, "checkpointIntervalSeconds": 300.0,
		},
	}, newRig(audited).root(t)["auth"])
}
