package openapi

import (
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
	for name := range b.shapes.Members {
		require.True(t, b.used[name], name)
	}
	for _, name := range b.shapes.Required {
		require.True(t, b.used[name], name)
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
