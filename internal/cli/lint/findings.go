package lint

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/protocol/strictjson"
)

// finding is a line of the report.
type finding struct {
	File string `json:"file"`
	// Line and Column are the place in the file, counted from 1; 0 if it is unknown.
	Line    int      `json:"line,omitempty"`
	Column  int      `json:"column,omitempty"`
	Path    string   `json:"path"`
	Rule    string   `json:"rule"`
	Vendors []string `json:"vendors,omitempty"`
	// Warning marks a finding that hosts accept.
	Warning bool   `json:"warning,omitempty"`
	Message string `json:"message"`
}

// in sets the place of a finding in its document.
func (f finding) in(doc []byte) finding {
	at := strictjson.Positions(doc)(f.Path)
	f.Line, f.Column = at.Line, at.Column
	return f
}

// The formats of reports for code hosts, in addition to those of all commands.
const (
	formatSARIF  = "sarif"
	formatGitHub = "github"
)

// reportFindings writes the findings, one per line in the format of compilers, so that editors can
// jump to the place.
func reportFindings(p *render.Printer, format string, all []finding) error {
	switch {
	case format == formatSARIF:
		return reportSARIF(p, all)
	case format == formatGitHub:
		return reportGitHub(p, all)
	case !p.Format.ForPeople() || p.Query != nil:
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
		if _, err := fmt.Fprintf(p.Out, "%s: %s: %s%s%s: %s\n", f.place(), render.Pointer(f.Path), kind, f.Rule, vendors, f.Message); err != nil {
			return err
		}
	}
	return nil
}

// place is FILE:LINE:COLUMN.
func (f finding) place() string {
	if f.Line == 0 {
		return f.File
	}
	return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
}

// reportGitHub writes workflow commands, which GitHub Actions shows as annotations.
func reportGitHub(p *render.Printer, all []finding) error {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	root := sourceRoot()
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	for _, f := range all {
		level := "error"
		if f.Warning {
			level = "warning"
		}
		at := "file=" + property.Replace(root.nameOf(f.File))
		if f.Line > 0 {
			at += fmt.Sprintf(",line=%d,col=%d", f.Line, f.Column)
		}
		if _, err := fmt.Fprintf(p.Out, "::%s %s,title=%s::%s\n", level, at, property.Replace(f.Rule), data.Replace(render.Pointer(f.Path)+": "+f.Message)); err != nil {
			return err
		}
	}
	return nil
}

// errFindings ends a command that has printed its findings.
var errFindings = errors.New("findings")

// countError is errFindings with its numbers.
type countError struct{ findings, files int }

func (e countError) Error() string {
	return plural(e.findings, "finding") + " in " + plural(e.files, "file")
}

func (e countError) Is(target error) bool { return target == errFindings }

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// locateFiles sets the places of findings whose files can be read again.
func locateFiles(all []finding) {
	docs := map[string][]byte{}
	for i, f := range all {
		if f.Line > 0 {
			continue
		}
		doc, known := docs[f.File]
		if !known {
			doc, _ = os.ReadFile(f.File) // without a file there is no place
			docs[f.File] = doc
		}
		if doc != nil {
			all[i] = f.in(doc)
		}
	}
}
