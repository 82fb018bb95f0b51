// Package a2ui reads A2UI surfaces and checks what people submit through them
// (OpenWOP envelope contract §3.5, §18).
//
// A surface is a closed document: everything there is to show, nothing to fetch
// or to run. What comes back is checked against the fields it has.
package a2ui

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/strictjson"
)

// Surface is a form or a card.
type Surface struct {
	Title      string      `json:"title"`
	Components []Component `json:"components"`
}

// Component is one part of a surface. Kind decides which members count.
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

// Action is what a button does.
type Action struct {
	Target Target `json:"target"`
}

// Target is where what was filled in goes. There is no other way out of a surface.
type Target string

// The two targets.
const (
	Resume   Target = "resume"   // the interrupt's resume value
	Exchange Target = "exchange" // a message of the conversation
)

// Kinds of components that hold a value or do something.
const (
	fieldText     = "field.text"
	fieldDate     = "field.date"
	fieldSelect   = "field.select"
	fieldCheckbox = "field.checkbox"
	actionButton  = "action.button"
)

// Problem is one thing that is wrong.
type Problem struct {
	// Path is a JSON pointer into what was checked.
	Path string
	// Message says what would be right. It holds no submitted value.
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

// Ambiguous finds ids that two components share: what is submitted is keyed by
// them. Paths point into the payload.
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
				Message: "must differ from the id of component " + strconv.Itoa(j) + ": what is submitted is keyed by it",
			})
			continue
		}
		first[c.ID] = i
	}
	return out
}

// Actions are the targets that a reader may offer. A surface that is still being
// streamed has none (OpenWOP envelope contract §18).
func (s *Surface) Actions(partial bool) []Target {
	var out []Target
	for _, c := range s.Components {
		if c.Action != nil && !partial && !slices.Contains(out, c.Action.Target) {
			out = append(out, c.Action.Target)
		}
	}
	return out
}

// CheckSubmit holds submitted values against the surface's fields: its ids and no
// others, what is required, the options there are. A null reads as absent. It
// gives every problem, sorted by path.
func (s *Surface) CheckSubmit(values []byte) []Problem {
	var given map[string]json.RawMessage
	if err := strictjson.Read(values, &given); err != nil || given == nil {
		return []Problem{{Path: "", Message: "want a JSON object of values, keyed by the ids of the surface's fields"}}
	}
	var out []Problem
	bad := func(id, format string, args ...any) {
		out = append(out, Problem{Path: "/" + escape.Replace(id), Message: fmt.Sprintf(format, args...)})
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

// escape writes a name as a token of a JSON pointer.
var escape = strings.NewReplacer("~", "~0", "/", "~1")

// check judges one value that is there; empty: it is right.
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
			return "want a date, as 2026-01-31"
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
			return "want a text"
		}
	}
	return ""
}
