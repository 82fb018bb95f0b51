package conformance

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

type auditResult struct {
	FromSeq, ToSeq int
	ChainValid     bool
	Checkpoints    []struct {
		Checkpoint, MerkleRoot, Signature string
		AtSequence                        int
	}
	Anomalies []struct{ AtSeq int }
}

// verified requests a verification and checks the answer against the published schema.
func verified(t *testing.T, c *harness.Client, query string) auditResult {
	t.Helper()
	a := do(t, c, http.MethodGet, "/v1/audit/verify"+query, "")
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
	var r auditResult
	require.NoError(t, a.JSON(&r))
	return r
}

func auditEntries(t *testing.T, c *harness.Client) (out []json.RawMessage) {
	t.Helper()
	for query := "?limit=2"; ; {
		a := do(t, c, http.MethodGet, "/v1/audit"+query, "")
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
		var page struct {
			Entries    []json.RawMessage
			NextCursor string
		}
		require.NoError(t, a.JSON(&page))
		out = append(out, page.Entries...)
		if page.NextCursor == "" {
			return out
		}
		require.Len(t, page.Entries, 2)
		query = "?limit=2&cursor=" + page.NextCursor
	}
}

// OpenWOP host contract §10.7.
func TestAudit_RecordsActionsInOneChain(t *testing.T) {
	t.Parallel()
	c := client(t, otherKey)
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	id := create(t, c, `{"workflowId":"wait"}`).RunID
	a := do(t, c, http.MethodPost, "/v1/runs/"+id+"/cancel", `{"reason":"it holds `+secret+`"}`)
	require.Equal(t, http.StatusOK, a.Status)
	a = do(t, c, http.MethodGet, "/v1/runs/"+id+"/debug-bundle", "")
	require.Equal(t, http.StatusOK, a.Status)

	lines := auditEntries(t, c)
	var prev any
	var types []string
	for i, line := range lines {
		var e map[string]any
		require.NoError(t, json.Unmarshal(line, &e))
		require.Len(t, e, 7)
		require.EqualValues(t, i, e["atSequence"])
		require.Equal(t, prev, e["prevHash"])
		sum := sha256.Sum256(line)
		prev = hex.EncodeToString(sum[:])
		types = append(types, fmt.Sprint(e["action"], " ", e["target"]))
		require.NotContains(t, string(line), secret)
		require.NotContains(t, string(line), otherKey)
	}
	require.Contains(t, types, "run.cancelled runs/"+id)
	require.Contains(t, types, "bundle.exported runs/"+id)
	require.Contains(t, types, "workflow.registered workflows/noop")
	require.Contains(t, strings.Join(types, "\n"), "key.created keys/key_")

	r := verified(t, c, "")
	require.True(t, r.ChainValid)
	require.Empty(t, r.Anomalies)
	require.GreaterOrEqual(t, r.ToSeq, len(lines)-1)
	r = verified(t, c, "?fromSeq=1&toSeq=1")
	require.Equal(t, [2]int{1, 1}, [2]int{r.FromSeq, r.ToSeq})
	for _, query := range []string{"?fromSeq=-1", "?fromSeq=2&toSeq=1", "?fromSeq=x", "?toSeq=1.5", "?toSeq=-1"} {
		a = do(t, c, http.MethodGet, "/v1/audit/verify"+query, "")
		require.Equal(t, http.StatusBadRequest, a.Status, query)
		require.Equal(t, "validation_error", a.Code(), query)
	}
}

func TestAudit_NeedsItsScopeAndShowsNoOtherTenant(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/v1/audit/verify", "/v1/audit"} {
		a := do(t, client(t, readerKey), http.MethodGet, path, "")
		require.Equal(t, http.StatusForbidden, a.Status)
		a = do(t, client(t, ""), http.MethodGet, path, "")
		require.Equal(t, http.StatusUnauthorized, a.Status)
	}
	id := create(t, client(t, otherKey), `{"workflowId":"noop"}`).RunID
	require.Equal(t, http.StatusOK, do(t, client(t, otherKey), http.MethodGet, "/v1/runs/"+id+"/debug-bundle", "").Status)
	for _, line := range auditEntries(t, client(t, quietKey)) {
		require.NotContains(t, string(line), id)
	}
}

// A client can verify the log itself, with the keys from discovery.
func TestAudit_CheckpointsAreSignedWithThePublishedKey(t *testing.T) {
	t.Parallel()
	c := client(t, quietKey)
	var doc struct {
		Auth struct {
			Profiles          []string
			AuditLogIntegrity struct {
				CheckpointPublicKey       string
				CheckpointIntervalEntries int
			}
		}
	}
	require.NoError(t, do(t, c, http.MethodGet, "/.well-known/openwop", "").JSON(&doc))
	require.Contains(t, doc.Auth.Profiles, "openwop-audit-log-integrity")
	require.Equal(t, 1000, doc.Auth.AuditLogIntegrity.CheckpointIntervalEntries)
	der, err := base64.StdEncoding.DecodeString(doc.Auth.AuditLogIntegrity.CheckpointPublicKey)
	require.NoError(t, err)
	public, err := x509.ParsePKIXPublicKey(der)
	require.NoError(t, err)
	// The first checkpoint of a tenant is written at the next timer tick.
	var r auditResult
	require.Eventually(t, func() bool {
		r = verified(t, c, "")
		return len(r.Checkpoints) > 0
	}, 30*time.Second, 100*time.Millisecond)
	root, err := hex.DecodeString(r.Checkpoints[0].MerkleRoot)
	require.NoError(t, err)
	signature, err := base64.StdEncoding.DecodeString(r.Checkpoints[0].Signature)
	require.NoError(t, err)
	require.True(t, ed25519.Verify(public.(ed25519.PublicKey), root, signature)) //nolint:forcetypeassert // the test fails otherwise
	require.True(t, r.ChainValid)
}
