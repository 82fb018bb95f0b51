// Command gendocs renders the pages of docs/ and the tables of the console that
// follow from the code. It is run from the top of the repository: `make gen`.
package main

import (
	"log"
	"os"
	"path/filepath"
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
}
