package runview

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"waybill.dev/waybill/protocol/wire"
)

// Filter selects runs of a list. It is written as words of the form name:value:
//
//	status:failed workflow:triage since:2h tag:"order 7"
//
// A run must match every field that is set; empty fields match all runs.
type Filter struct {
	Status     wire.Status
	WorkflowID string
	Tag        string
	// Code is the error code that ended the run.
	Code string
	// Kind is the kind of an envelope that a model produced in the run. Provider is the
	// provider of a model call, made or substituted.
	Kind, Provider string
	// Model is the model of a call.
	Model string
	// Since selects runs created at that time or later, Until those created before.
	Since, Until time.Time
	// MinCost selects runs that cost at least this many US dollars; nil does not filter.
	MinCost *float64
	// Waiting selects runs that have been waiting for a person or another system since that time or
	// longer.
	Waiting time.Time
	// Text selects runs whose contents have, for each word of it, one that begins with it.
	Text string
}

// The names before the colon.
const (
	nameStatus   = "status"
	nameWorkflow = "workflow"
	nameTag      = "tag"
	nameCode     = "code"
	nameKind     = "kind"
	nameProvider = "provider"
	nameModel    = "model"
	nameSince    = "since"
	nameUntil    = "until"
	nameCost     = "cost"
	nameWaiting  = "waiting"
	nameText     = "text"
)

// anyWait is the value of waiting: for runs that wait, however long.
const anyWait = "any"

// FilterNames are the valid names.
var FilterNames = []string{nameStatus, nameWorkflow, nameTag, nameCode, nameKind, nameProvider, nameModel, nameSince, nameUntil, nameCost, nameWaiting, nameText}

// MaxFilterBytes is the maximum length of a filter.
const MaxFilterBytes = 1024

// ParseFilter reads a filter. Time spans count back from now. Errors name the word and say
// what is allowed.
func ParseFilter(text string, now time.Time) (Filter, error) {
	var f Filter
	if len(text) > MaxFilterBytes {
		return f, fmt.Errorf("want at most %d bytes", MaxFilterBytes)
	}
	seen := map[string]bool{}
	for rest := strings.TrimLeftFunc(text, unicode.IsSpace); rest != ""; rest = strings.TrimLeftFunc(rest, unicode.IsSpace) {
		name, value, after, err := word(rest)
		if err != nil {
			return Filter{}, err
		}
		if seen[name] {
			return Filter{}, fmt.Errorf("%s: duplicate; a run must match all words, so give each name once", name)
		}
		seen[name], rest = true, after
		if err := f.set(name, value, now); err != nil {
			return Filter{}, err
		}
	}
	return f, nil
}

// word splits off the first word: NAME:VALUE or NAME:"VALUE".
func word(text string) (name, value, rest string, err error) {
	end := strings.IndexFunc(text, func(c rune) bool { return c == ':' || unicode.IsSpace(c) })
	if end < 0 || text[end] != ':' {
		plain, _, _ := strings.Cut(text, " ")
		return "", "", "", fmt.Errorf("%q: want NAME:VALUE; names are %s", plain, list())
	}
	name, text = text[:end], text[end+1:]
	if !slices.Contains(FilterNames, name) {
		return "", "", "", fmt.Errorf("%q: unknown name; names are %s", name, list())
	}
	if strings.HasPrefix(text, `"`) {
		quoted, err := strconv.QuotedPrefix(text)
		if err == nil {
			value, err = strconv.Unquote(quoted)
		}
		if err != nil {
			return "", "", "", fmt.Errorf("%s: missing closing quote", name)
		}
		rest = text[len(quoted):]
		if rest != "" && !strings.ContainsFunc(rest[:1], unicode.IsSpace) {
			return "", "", "", fmt.Errorf("%s: want a space after the closing quote", name)
		}
	} else if end := strings.IndexFunc(text, unicode.IsSpace); end >= 0 {
		value, rest = text[:end], text[end:]
	} else {
		value = text
	}
	if value == "" {
		return "", "", "", fmt.Errorf("%s: want a value after the colon", name)
	}
	return name, value, rest, nil
}

func list() string { return strings.Join(FilterNames, ", ") }

func (f *Filter) set(name, value string, now time.Time) (err error) {
	switch name {
	case nameStatus:
		if f.Status = wire.Status(value); !slices.Contains(wire.Statuses(), f.Status) {
			return fmt.Errorf("%s: %q: want one of %v", name, value, wire.Statuses())
		}
	case nameWorkflow:
		f.WorkflowID = value
	case nameTag:
		f.Tag = value
	case nameCode:
		f.Code = value
	case nameKind:
		f.Kind = value
	case nameProvider:
		f.Provider = value
	case nameModel:
		f.Model = value
	case nameSince:
		f.Since, err = instant(value, now)
	case nameUntil:
		f.Until, err = instant(value, now)
	case nameCost:
		f.MinCost, err = dollars(value)
	case nameText:
		f.Text = value
	case nameWaiting:
		if f.Waiting = now; value != anyWait {
			f.Waiting, err = instant(value, now)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %q: %w", name, value, err)
	}
	return nil
}

var errDollars = errors.New("want the least cost in US dollars, such as 0.05")

func dollars(text string) (*float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || n < 0 {
		return nil, errDollars
	}
	return &n, nil
}

// units are the units of time spans.
var units = map[byte]time.Duration{
	's': time.Second,
	'm': time.Minute,
	'h': time.Hour,
	'd': 24 * time.Hour,
	'w': 7 * 24 * time.Hour,
}

// maxSpan limits a time span to avoid overflow.
const maxSpan = 1_000_000

var errInstant = errors.New("want a duration such as 90s, 15m, 2h, 7d or 1w, a day such as 2026-11-22, or a time of RFC 3339")

// instant reads a time span before now, a day, or a time.
func instant(text string, now time.Time) (time.Time, error) {
	last := text[len(text)-1]
	if unit, ok := units[last]; ok {
		n, err := strconv.Atoi(text[:len(text)-1])
		if err != nil || n < 1 || n > maxSpan/int(max(1, unit/time.Hour)) {
			return time.Time{}, errInstant
		}
		return now.Add(-time.Duration(n) * unit), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, errInstant
}
