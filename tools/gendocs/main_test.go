package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/rest"
)

func TestErrorCodes_HasARowForEachCode(t *testing.T) {
	t.Parallel()
	page := errorCodes()
	for _, c := range fault.Codes() {
		require.Equal(t, 1, strings.Count(page, "| `"+string(c)+"` |"), c)
	}
}

func TestErrorCodes_ShowsACodeOnTheWire(t *testing.T) {
	t.Parallel()
	page := errorCodes()
	require.Contains(t, page, "| `run_not_found` | 404 | NotFound |  |")
	require.Contains(t, page, "| `service_unavailable` | 503 | Unavailable | yes |")
	require.Contains(t, page, "| `recursion_limit_exceeded` |  |  |  |", "stands in runs only")
}

func TestEventTypes_HasARowForEachType(t *testing.T) {
	t.Parallel()
	page := eventTypes()
	for _, typ := range wire.EventTypes() {
		require.Equal(t, 1, strings.Count(page, "| `"+string(typ)+"` |"), typ)
	}
}

func TestTables_SayWhatThePagesSay(t *testing.T) {
	t.Parallel()
	var codes map[string]map[string]any
	require.NoError(t, json.Unmarshal([]byte(errorTable()), &codes))
	require.Len(t, codes, len(fault.Codes()))
	require.Equal(t, map[string]any{
		"http": 404.0, "grpc": "NotFound", "retry": false, "owner": "caller",
		"meaning": fault.Lookup(fault.RunNotFound).Meaning, "next": fault.Lookup(fault.RunNotFound).Next,
	}, codes["run_not_found"])
	var types map[string]map[string]string
	require.NoError(t, json.Unmarshal([]byte(eventTable()), &types))
	require.Len(t, types, len(wire.EventTypes()))
	require.Equal(t, "artifact", types["artifact.created"]["group"])
}

// No text breaks its table.
func TestPages_AreTables(t *testing.T) {
	t.Parallel()
	for page, cells := range map[string]int{errorCodes(): 7, eventTypes(): 3} {
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, "|") {
				require.Equal(t, cells+1, strings.Count(line, "|"), line)
			}
		}
	}
}

// The committed files equal the generated ones: run `make gen` after a change.
func TestPages_AreWrittenDown(t *testing.T) {
	t.Parallel()
	for path, render := range pages {
		committed, err := os.ReadFile("../../" + path)
		require.NoError(t, err)
		text, err := render()
		require.NoError(t, err)
		require.Equal(t, text, string(committed), "%s: run make gen", path)
	}
	committed, err := os.ReadFile("../../" + llmsFile)
	require.NoError(t, err)
	text, err := llms("../..")
	require.NoError(t, err)
	require.Equal(t, text, string(committed), "%s: run make gen", llmsFile)
}

// The page has every operation and scope of the document.
func TestAPIPage_HasEachOperation(t *testing.T) {
	t.Parallel()
	page, err := apiPage()
	require.NoError(t, err)
	operations := 0
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "| `") {
			operations++
			require.Equal(t, 7, strings.Count(line, "|"), line)
		}
	}
	require.Equal(t, len(rest.Routes)+len(rest.Others)+2, operations, "two are streams, which are not translated")
	require.Contains(t, page, "| `POST /v1/runs` | Create run | `X-Dedup`, `X-Force-Engine-Version` | `workflowId` (required), ")
	require.Contains(t, page, "| `POST /v1/runs/{runId}:fork` | Fork run |  | `mode` (required), `fromSeq`, `runOptionsOverlay` | 201 | `runs:create` and `runs:read` |")
}

// llms.txt quotes the first sentence of each page that has one.
func TestLLMs_QuotesTheFirstSentenceOfAPage(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "docs", "adr"), 0o700))
	for name, text := range map[string]string{
		"README.md":      "# Top\n\nIt is a\n[host](x.md). It runs.\n",
		"docs/README.md": "# All\n\nNot [this](no.md).\n\n## Begin\n\n1. [a.md](a.md), [b.md](b.md): words\n- [decisions](adr): why\n",
		"docs/a.md":      "# First\n\nSays `a`, and [b](b.md). And more.\n",
		"docs/b.md":      "# Second\n\nGenerated from x by `make gen`; do not edit.\n\nLists all\nof them:\n\n| a |\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	got, err := llms(root)
	require.NoError(t, err)
	require.Contains(t, got, "> It is a host. It runs.\n")
	require.Contains(t, got, "\n## Begin\n\n- [First](docs/a.md): Says `a`, and b.\n- [Second](docs/b.md): Lists all of them\n- [Decisions](docs/adr): why\n")
	require.NotContains(t, got, "no.md")
	require.NoError(t, os.WriteFile(filepath.Join(root, "docs/a.md"), []byte("# Empty\n"), 0o600))
	_, err = llms(root)
	require.ErrorContains(t, err, "docs/a.md")
}
