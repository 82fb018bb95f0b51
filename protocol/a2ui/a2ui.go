// Package a2ui reads A2UI surfaces and validates submitted values (OpenWOP envelope contract §3.5,
// §18).
//
// A surface is a closed document: it contains everything to display, and nothing to fetch or to
// run. Submitted values are validated against its fields.
package a2ui

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/strictjson"
)

// Surface is a form or a card.
type Surface struct {
	Title      string      `json:"title"`
	Components []Component `json:"components"`
}

// Component is one part of a surface. Kind determines which members count.
type Component struct {
	Kind     string   `json:"component"`
	ID       string   `json:"id"`
	Label    string   `json:"label"`
	Text     string   `json:"text"`
	Required bool     `json:"required"`
	Options  []Option `json:"options"`
	Default  bool     `json:"default"`
	Action   *Action  `json:"action"`
}

// Option is a choice of a field.select.
type Option struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

// Action is the action of a button.
type Action struct {
	Target Target `json:"target"`
}

// Target is the recipient of the submitted values. A surface has no other output.
type Target string

// The two targets.
const (
	Resume   Target = "resume"   // the interrupt's resume value
	Exchange Target = "exchange" // a message of the conversation
)

// Kinds of components with a value or an action.
const (
	fieldText     = "field.text"
	fieldDate     = "field.date"
	fieldSelect   = "field.select"
	fieldCheckbox = "field.checkbox"
	actionButton  = "action.button"
)

// Problem is one error.
type Problem struct {
	// Path is a JSON pointer into the checked document.
	Path string
	// Message states what is allowed. It holds no submitted value.
	Message string
}

// Parse reads the payload of a ui.a2ui-surface envelope that satisfies its schema.
func Parse(payload []byte) (*Surface, error) {
	var p struct {
		Surface Surface `json:"surface"`
	}
	if err := strictjson.Read(payload, &p); err != nil {
		return nil, fmt.Errorf("read surface: %w", err)
	}
	return &p.Surface, nil
}

func (c *Component) isField() bool {
	switch c.Kind {
	case fieldText, fieldDate, fieldSelect, fieldCheckbox:
		return true
	}
	return false
}

// Ambiguous finds components with the same id, because submitted values are keyed by id. Paths
// point
// into the payload.
func (s *Surface) Ambiguous() []Problem {
	var out []Problem
	first := map[string]int{}
	for i := range s.Components {
		c := &s.Components[i]
		if !c.isField() && c.Kind != actionButton {
			continue
		}
		if j, taken := first[c.ID]; taken {
			out = append(out, Problem{
				Path:    "/surface/components/" + strconv.Itoa(i) + "/id",
				Message: "must differ from the id of component " + strconv.Itoa(j) + ": submitted values are keyed by id",
			})
			continue
		}
		first[c.ID] = i
	}
	return out
}

// Actions returns the targets that a client may offer. A surface that is still streaming has none
// (OpenWOP envelope contract §18).
func (s *Surface) Actions(partial bool) []Target {
	var out []Target
	for _, c := range s.Components {
		if c.Action != nil && !partial && !slices.Contains(out, c.Action.Target) {
			out = append(out, c.Action.Target)
		}
	}
	return out
}

// CheckSubmit validates submitted values against the surface's fields: known ids, required fields,
// valid options. A null counts as absent. It returns all problems, sorted by path.
func (s *Surface) CheckSubmit(values []byte) []Problem {
	var given map[string]json.RawMessage
	if err := strictjson.Read(values, &given); err != nil || given == nil {
		return []Problem{{Path: "", Message: "want a JSON object of values, keyed by the ids of the surface's fields"}}
	}
	var out []Problem
	bad := func(id, format string, args ...any) {
		out = append(out, Problem{Path: "/" + jsonpointer.Escape(id), Message: fmt.Sprintf(format, args...)})
	}
	fields := map[string]*Component{}
	for i := range s.Components {
		if c := &s.Components[i]; c.isField() {
			fields[c.ID] = c
		}
	}
	for id, raw := range given {
		c, known := fields[id]
		if !known {
			bad(id, "the surface has no field of this id")
			continue
		}
		if isNull(raw) {
			continue
		}
		if wrong := c.check(raw); wrong != "" {
			bad(id, "%s", wrong)
		}
	}
	for id, c := range fields {
		if c.Required && (given[id] == nil || isNull(given[id]) || string(given[id]) == `""`) {
			bad(id, "required")
		}
	}
	slices.SortFunc(out, func(a, b Problem) int { return strings.Compare(a.Path+a.Message, b.Path+b.Message) })
	return out
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// check validates one present value; empty means valid.
func (c *Component) check(raw json.RawMessage) string {
	var text string
	isText := json.Unmarshal(raw, &text) == nil
	switch c.Kind {
	case fieldCheckbox:
		if s := string(raw); s != "true" && s != "false" {
			return "want true or false"
		}
	case fieldDate:
		if _, err := time.Parse(time.DateOnly, text); !isText || (text != "" && err != nil) {
			return "want a date such as 2026-01-31"
		}
	case fieldSelect:
		options := map[string]bool{}
		for _, o := range c.Options {
			options[o.Value] = true
		}
		if !isText || (!options[text] && (text != "" || c.Required)) {
			return "want one of " + strings.Join(slices.Sorted(maps.Keys(options)), ", ")
		}
	case fieldText:
		if !isText {
			return "want a string"
		}
	}
	return ""
}
