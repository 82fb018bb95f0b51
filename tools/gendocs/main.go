// Command gendocs renders the generated pages of docs/ and tables of the console from the code, and
// llms.txt from the pages. Run it from the top of the repository: `make gen`. The tables of measured
// figures are written by bench/scalesim/pages.
package main

import (
	"log"
	"os"
	"path/filepath"
)

// pages are the files that are generated, by path from the top of the repository.
var pages = map[string]func() (string, error){
	"docs/errors.md":                  always(errorCodes),
	"docs/events.md":                  always(eventTypes),
	"docs/reference/api.md":           apiPage,
	"console/web/src/gen/errors.json": always(errorTable),
	"console/web/src/gen/events.json": always(eventTable),
}

// always adapts a render function that cannot fail.
func always(render func() string) func() (string, error) {
	return func() (string, error) { return render(), nil }
}

func main() {
	for path, render := range pages {
		if err := write(path, render); err != nil {
			log.Fatal(err)
		}
	}
	// Last: it quotes the other pages.
	if err := write(llmsFile, func() (string, error) { return llms(".") }); err != nil {
		log.Fatal(err)
	}
}

const llmsFile = "llms.txt"

// write renders and writes one page.
func write(path string, render func() (string, error)) error {
	text, err := render()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // G301: as every folder of pages
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644) //nolint:gosec // G306: as every page
}
