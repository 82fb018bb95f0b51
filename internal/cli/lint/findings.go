package lint

import (
	"errors"
	"fmt"
	"strings"

	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/protocol/strictjson"
)

// finding is a line of the report.
type finding struct {
	File    string   `json:"file"`
	Path    string   `json:"path"`
	Rule    string   `json:"rule"`
	Vendors []string `json:"vendors,omitempty"`
	// Warning marks a finding that hosts accept.
	Warning bool   `json:"warning,omitempty"`
	Message string `json:"message"`
}

// reportFindings writes the findings, one per line in the format of compilers, so that editors can
// jump to the place.
func reportFindings(p *render.Printer, all []finding) error {
	if !p.Format.ForPeople() || p.Query != nil {
		doc, err := render.Encode(append([]finding{}, all...))
		if err != nil {
			return err
		}
		return render.Rows(p, doc, all, func(f finding) []byte { return strictjson.RenderPlain(f) }, func(f finding) string { return f.File }, nil)
	}
	for _, f := range all {
		vendors := ""
		if len(f.Vendors) > 0 {
			vendors = " [" + strings.Join(f.Vendors, ", ") + "]"
		}
		kind := ""
		if f.Warning {
			kind = "warning: "
		}
		if _, err := fmt.Fprintf(p.Out, "%s: %s: %s%s%s: %s\n", f.File, render.Pointer(f.Path), kind, f.Rule, vendors, f.Message); err != nil {
			return err
		}
	}
	return nil
}

// errFindings ends a command that has printed its findings.
var errFindings = errors.New("findings")
