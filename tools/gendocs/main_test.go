package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
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

// The page in the tree is the one the code makes: `make gen` was not forgotten.
func TestErrorCodes_AreWrittenDown(t *testing.T) {
	t.Parallel()
	committed, err := os.ReadFile("../../docs/errors.md")
	require.NoError(t, err)
	require.Equal(t, errorCodes(), string(committed), "run make gen")
}
