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
	if err := simulated("docs/scaling.md", "bench/report.md"); err != nil {
		log.Fatal(err)
	}
}

// simulated puts into a page what the simulation of many installations says.
func simulated(page, report string) error {
	before, err := os.ReadFile(page) //nolint:gosec // G304: a page of ours
	if err != nil {
		return err
	}
	measured, err := os.ReadFile(report) //nolint:gosec // G304: the same
	if err != nil {
		return err
	}
	after, err := scalesim.Into(string(before), string(measured))
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(after), 0o644) //nolint:gosec // G306: as every page
}
