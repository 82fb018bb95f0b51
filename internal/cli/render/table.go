package render

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/term"
)

// Column is a column of a table of Ts.
type Column[T any] struct {
	Name string
	// Wide columns are shown with -o wide or if named in --columns.
	Wide bool
	// Flex columns are cut if the line exceeds the width of the terminal.
	Flex  bool
	Value func(T) string
	// Word returns the word that determines the color; nil disables color.
	Word func(T) string
}

// Rows writes a list. doc is the JSON document of the list, row returns the document of a row, name
// its id.
func Rows[T any](p *Printer, doc []byte, rows []T, row func(T) []byte, name func(T) string, columns []Column[T]) error {
	shown, err := pick(columns, p.Columns, p.Format == Wide)
	if err != nil {
		return err
	}
	switch {
	case p.Query != nil:
		return p.Query(doc, p.one)
	case p.Format.ForPeople():
		return writeTable(p, rows, shown)
	case p.Format == JSONL:
		for _, r := range rows {
			if err := p.one(row(r)); err != nil {
				return err
			}
		}
		return nil
	case p.Format == Name:
		for _, r := range rows {
			if err := line(p.Out, name(r)); err != nil {
				return err
			}
		}
		return nil
	default:
		return p.one(doc)
	}
}

// pick selects columns by name, in the order of names.
func pick[T any](all []Column[T], names []string, wide bool) ([]Column[T], error) {
	var out []Column[T]
	if len(names) == 0 {
		for _, c := range all {
			if wide || !c.Wide {
				out = append(out, c)
			}
		}
		return out, nil
	}
	for _, n := range names {
		found := false
		for _, c := range all {
			if strings.EqualFold(c.Name, n) {
				out, found = append(out, c), true
			}
		}
		if !found {
			var known []string
			for _, c := range all {
				known = append(known, strings.ToLower(c.Name))
			}
			return nil, exit.Usagef("--columns: unknown column %q; want %s", n, strings.Join(known, ", "))
		}
	}
	return out, nil
}

// gap is the space between columns, narrowest the minimum width of a cut column.
const (
	gap       = 2
	narrowest = 5
)

func writeTable[T any](p *Printer, rows []T, columns []Column[T]) error {
	cells := make([][]string, len(rows)+1)
	widths := make([]int, len(columns))
	for i := range cells {
		cells[i] = make([]string, len(columns))
		for j, c := range columns {
			text := c.Name
			if i > 0 {
				text = term.Clean(c.Value(rows[i-1]))
				if text == "" {
					text = "-"
				}
			}
			cells[i][j] = text
			widths[j] = max(widths[j], utf8.RuneCountInString(text))
		}
	}
	fit(widths, columns, p.Width)
	for i, row := range cells {
		var b strings.Builder
		for j, text := range row {
			text = Cut(text, widths[j])
			pad := widths[j] + gap - utf8.RuneCountInString(text)
			if i > 0 && p.Color && columns[j].Word != nil {
				text = term.Paint(text, columns[j].Word(rows[i-1]))
			}
			b.WriteString(text)
			if j < len(row)-1 {
				b.WriteString(strings.Repeat(" ", pad))
			}
		}
		if err := line(p.Out, b.String()); err != nil {
			return err
		}
	}
	return nil
}

// fit narrows the widest flexible columns until the line fits.
func fit[T any](widths []int, columns []Column[T], width int) {
	for width > 0 {
		total, widest := gap*(len(widths)-1), -1
		for j, w := range widths {
			total += w
			if columns[j].Flex && w > narrowest && (widest < 0 || w > widths[widest]) {
				widest = j
			}
		}
		if total <= width || widest < 0 {
			return
		}
		widths[widest] = max(narrowest, widths[widest]-(total-width))
	}
}

// Cut shortens a text to width characters and marks the cut with an ellipsis.
func Cut(text string, width int) string {
	if width <= 0 || utf8.RuneCountInString(text) <= width {
		return text
	}
	r := []rune(text)
	return string(r[:width-1]) + "…"
}

// Pairs writes one name and value per line, without pairs that have an empty value.
func Pairs(w io.Writer, pairs ...string) error {
	width := 0
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			width = max(width, utf8.RuneCountInString(pairs[i]))
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%-*s  %s\n", width, pairs[i], term.Clean(pairs[i+1])); err != nil {
			return err
		}
	}
	return nil
}
