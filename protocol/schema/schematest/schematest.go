// Package schematest finds the protocol's published schemas and fixtures for tests. They are stored
// next to the checkout, never in it.
package schematest

import (
	"os"
	"path/filepath"
	"testing"
)

// Dir returns the folder that holds schemas/ and fixtures/: $WAYBILL_SHARED, or "shared" next to
// the checkout. If neither exists, the test is skipped with a message; in CI (CI=true) it fails.
func Dir(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("WAYBILL_SHARED"); dir != "" {
		return mustHold(t, dir)
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return mustHold(t, filepath.Join(filepath.Dir(dir), "shared"))
		}
		if dir == filepath.Dir(dir) {
			return mustHold(t, "")
		}
	}
}

func mustHold(t testing.TB, dir string) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "schemas")); err == nil {
		return dir
	}
	if os.Getenv("CI") != "" && os.Getenv("WAYBILL_SCHEMAS_OPTIONAL") == "" {
		t.Fatalf("published schemas absent: want %s/schemas (set WAYBILL_SHARED)", dir)
	}
	t.Skip("SKIPPED, the published schemas are missing: put them next to the checkout as shared/schemas, or set WAYBILL_SHARED")
	return ""
}
