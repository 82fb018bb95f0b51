// Command gendocs renders the pages of docs/ and the tables of the console that
// follow from the code. It is run from the top of the repository: `make gen`.
package main

import (
	"log"
	"os"
	"path/filepath"

	"waybill.dev/waybill/internal/scalesim"
)

// pages are the files that are generated, by path from the top of the repository.
var pages = map[string]func() string{
	"docs/errors.md":                  errorCodes,
	"docs/events.md":                  eventTypes,
	"console/web/src/gen/errors.json": errorTable,
	"console/web/src/gen/events.json": eventTable,
}

func main() {
	for path, render := range pages {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(render()), 0o644); err != nil {
			log.Fatal(err)
		}
	}
	for page, into := range map[string]func(page, report string) (string, error){
		"docs/scaling.md": scalesim.Into, "docs/kubernetes.md": scalesim.IntoSizing,
	} {
		if err := measured(page, "bench/report.md", into); err != nil {
			log.Fatal(err)
		}
	}
}

// measured puts into a page what follows from what was measured.
func measured(page, report string, into func(page, report string) (string, error)) error {
	before, err := os.ReadFile(page) //nolint:gosec // G304: a page of ours
	if err != nil {
		return err
	}
	figures, err := os.ReadFile(report) //nolint:gosec // G304: the same
	if err != nil {
		return err
	}
	after, err := into(string(before), string(figures))
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(after), 0o644) //nolint:gosec // G306: as every page
}
