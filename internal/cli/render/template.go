package render

import (
	"fmt"
	"io"
	"strings"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/jsontemplate"
	"waybill.dev/waybill/internal/cli/term"
)

// CompileTemplate reads --template, a template in the language of Go's text/template. What it gives takes
// the place of the document, and is written to out: as text, of which a terminal obeys
// line ends and tabs only.
func CompileTemplate(text string, out io.Writer) (func(doc []byte, each func([]byte) error) error, error) {
	t, err := jsontemplate.Parse("--template", text)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	return func(doc []byte, _ func([]byte) error) error {
		v, err := decode(doc)
		if err != nil {
			return err
		}
		var b strings.Builder
		if err := t.Execute(&b, v); err != nil {
			return exit.With(exit.Usage, err)
		}
		for line := range strings.Lines(b.String()) {
			cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			for i, cell := range cells {
				cells[i] = term.Clean(cell)
			}
			if _, err := fmt.Fprintln(out, strings.Join(cells, "\t")); err != nil {
				return err
			}
		}
		return nil
	}, nil
}
