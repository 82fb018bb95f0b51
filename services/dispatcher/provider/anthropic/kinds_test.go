package anthropic_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/schema/schematest"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/anthropic"
	double "waybill.dev/waybill/test/double/anthropic"
)

var _ provider.Strict = (*anthropic.Provider)(nil)

// What the protocol's own kinds are projected to is taken by the vendor's strict
// mode, and an answer of it comes back whole, either way.
func TestCall_AsksForEveryPublishedKind(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(schematest.Dir(t), "schemas", "envelopes", "*.schema.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	r := newRig(t, func(_ *anthropic.Config, o *double.Options) { o.RequireSchema = true })
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		p, problems := projection.Compile(source, r.Dialect("m"))
		require.Empty(t, problems, file)
		for _, via := range []provider.SchemaVia{provider.ViaFormat, provider.ViaTool} {
			req := ask()
			req.Schema, req.Via = p.Schema(), via
			res, _ := r.call(t, req)
			require.Equal(t, provider.StopClean, res.Stop)
			projected, err := schema.Compile("projected", p.Schema())
			require.NoError(t, err)
			require.Empty(t, projected.Validate(json.RawMessage(res.Text)), "%s: %s", file, res.Text)
		}
	}
}
