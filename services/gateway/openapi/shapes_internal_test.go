package openapi

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each member of the files belongs to a message or a document.
func TestShapes_HaveNoUnusedMember(t *testing.T) {
	t.Parallel()
	b, err := newBuilder()
	require.NoError(t, err)
	_, err = b.describe("")
	require.NoError(t, err)
	ids := map[string]bool{}
	for _, item := range b.paths {
		for _, op := range item.(object) {
			ids[op.(object)["operationId"].(string)] = true
		}
	}
	for name := range b.shapes.Members {
		require.True(t, b.used[name], name)
	}
	for _, name := range slices.Concat(b.shapes.Required, b.shapes.Optional, slices.Collect(maps.Keys(b.shapes.Bounds))) {
		require.True(t, b.used[name], name)
	}
	for id := range b.shapes.Codes {
		require.True(t, ids[id], "codes of %s", id)
	}
	for id := range b.shapes.Examples {
		require.True(t, ids[id], "example of %s", id)
	}
}

func TestCamel(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"run.started": "RunStarted", "external-event": "ExternalEvent", "workflow.loopback-limit": "WorkflowLoopbackLimit",
		"envelope.nlToFormat.engaged": "EnvelopeNlToFormatEngaged",
	} {
		require.Equal(t, want, camel(value))
	}
}
