// Command pages writes the output of the scale simulation: the tables of docs/scaling.md and
// docs/kubernetes.md, and bench/scalesim/needs.json. Run it from the top of the repository:
// `make gen`.
package main

import (
	"log"
	"os"

	"waybill.dev/waybill/bench/scalesim"
)

func main() {
	if err := write(); err != nil {
		log.Fatal(err)
	}
}

func write() error {
	report, err := os.ReadFile("bench/report.md")
	if err != nil {
		return err
	}
	m, err := scalesim.Load(string(report))
	if err != nil {
		return err
	}
	needs, err := m.NeedsJSON()
	if err != nil {
		return err
	}
	if err := os.WriteFile("bench/scalesim/needs.json", needs, 0o644); err != nil {
		return err
	}
	for page, insert := range map[string]func(page string) (string, error){
		"docs/scaling.md":    m.InsertScaling,
		"docs/kubernetes.md": m.InsertSizes,
	} {
		before, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		after, err := insert(string(before))
		if err != nil {
			return err
		}
		if err := os.WriteFile(page, []byte(after), 0o644); err != nil {
			return err
		}
	}
	return nil
}
