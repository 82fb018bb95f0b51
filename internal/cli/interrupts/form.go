package interrupts

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/runs"
	"waybill.dev/waybill/internal/cli/term"
	"waybill.dev/waybill/protocol/a2ui"
	"waybill.dev/waybill/protocol/interrupt"
)

// form returns the form of the interrupt; nil if it has none, or an invalid one.
func (o *open) form() *a2ui.Surface {
	if o.interrupt == nil || o.interrupt.Kind != interrupt.Custom {
		return nil
	}
	d := o.data()
	if d.CustomKind != a2ui.Kind {
		return nil
	}
	s, wrong := a2ui.Read(d.Payload)
	if len(wrong) > 0 {
		return nil
	}
	return s
}

// The components that take input, and the checkbox.
const (
	fieldPrefix   = "field."
	fieldCheckbox = "field.checkbox"
)

// fields returns the components that take input.
func fields(s *a2ui.Surface) []a2ui.Component {
	return slices.DeleteFunc(slices.Clone(s.Components), func(c a2ui.Component) bool { return !strings.HasPrefix(c.Kind, fieldPrefix) })
}

// writeForm prints a form.
func writeForm(w io.Writer, s *a2ui.Surface) error {
	if _, err := fmt.Fprintln(w, "\nform (text from the workflow or a model):"); err != nil {
		return err
	}
	for _, c := range s.Components {
		text := c.Text
		if strings.HasPrefix(c.Kind, fieldPrefix) {
			text = c.ID + ": " + c.Label
			if c.Required {
				text += " (required)"
			}
			for _, o := range c.Options {
				text += "\n    " + term.Clean(o.Value+"  "+o.Label)
			}
		}
		if text == "" {
			continue
		}
		for line := range strings.SplitSeq(text, "\n") {
			if _, err := fmt.Fprintf(w, "  %s\n", term.Clean(line)); err != nil {
				return err
			}
		}
	}
	return nil
}

// howForm returns the flags that answer a form.
func howForm(s *a2ui.Surface) string {
	var out []string
	for _, c := range fields(s) {
		if c.Required {
			out = append(out, "--answer "+c.ID+"=…")
		}
	}
	return strings.Join(out, " ")
}

// replies builds an answer from ID=VALUE pairs: the values of a form, or the answers of a
// clarification.
func (o *open) replies(pairs []string) (json.RawMessage, error) {
	s := o.form()
	all := map[string]json.RawMessage{}
	for _, pair := range pairs {
		id, text, ok := strings.Cut(pair, "=")
		if !ok || id == "" {
			return nil, exit.Usagef("--answer %q: want ID=VALUE", pair)
		}
		value := runs.Value
		if s != nil && !ticked(s, id) {
			value = verbatim
		}
		v, err := value(text)
		if err != nil {
			return nil, err
		}
		all[id] = v
	}
	if s != nil {
		return render.Encode(all)
	}
	return render.Encode(map[string]any{"answers": all})
}

// ticked reports whether a field is a checkbox, which has a boolean value. Others have text.
func ticked(s *a2ui.Surface, id string) bool {
	return slices.ContainsFunc(s.Components, func(c a2ui.Component) bool { return c.ID == id && c.Kind == fieldCheckbox })
}

func verbatim(text string) (json.RawMessage, error) { return render.Encode(text) }
