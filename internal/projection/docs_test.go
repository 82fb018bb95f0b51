package projection_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/projection"
)

// The worked example of the documentation is what the code does, and the page
// names the month of the table.
func TestDocs_ShowWhatTheCodeDoes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "structured-output.md"))
	require.NoError(t, err)
	require.Contains(t, string(page), "As of "+projection.AsOf)
	var blocks []string
	for i, part := range strings.Split(string(page), "```") {
		if json, ok := strings.CutPrefix(part, "json\n"); ok && i%2 == 1 {
			blocks = append(blocks, strings.TrimSpace(json))
		}
	}
	require.Len(t, blocks, 4, "source, projection, answer, restored")
	p := project(t, blocks[0], projection.OpenAI)
	var plain bytes.Buffer
	require.NoError(t, json.Compact(&plain, []byte(blocks[1])))
	require.Equal(t, plain.String(), string(p.Schema()))
	restored, err := p.Restore(json.RawMessage(blocks[2]))
	require.NoError(t, err)
	require.Equal(t, blocks[3], string(restored))
}
