package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKinds_AreThoseOfTheHost(t *testing.T) {
	t.Parallel()
	u := at(t, shared.Host(t).HTTP, testKey)
	require.Regexp(t, `(?m)^clarification.request +1 +/schemas/envelopes/clarification.request.schema.json$`, u.ok("kind", "list").out)
	var all []struct {
		Kind          string
		SchemaVersion int
	}
	require.NoError(t, json.Unmarshal([]byte(u.ok("kind", "ls", "-o", "json").out), &all))
	require.Greater(t, len(all), 3)
	for _, k := range all {
		require.Positive(t, k.SchemaVersion, k.Kind)
	}
}
