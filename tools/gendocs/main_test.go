package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

func TestErrorCodes_HasARowForEachCode(t *testing.T) {
	t.Parallel()
	page := errorCodes()
	for _, c := range fault.Codes() {
		require.Equal(t, 1, strings.Count(page, "| `"+string(c)+"` |"), c)
	}
}

func TestErrorCodes_SaysWhatACodeIsOnTheWire(t *testing.T) {
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

// No row breaks its table.
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

// The files in the tree are those the code makes: `make gen` was not forgotten.
func TestPages_AreWrittenDown(t *testing.T) {
	t.Parallel()
	for path, render := range pages {
		committed, err := os.ReadFile("../../" + path)
		require.NoError(t, err)
		require.Equal(t, render(), string(committed), "%s: run make gen", path)
	}
}
