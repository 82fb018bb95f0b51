package runview

import (
	"errors"
	"fmt"
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
	// Since selects runs created at that time or later.
	Since time.Time
}

// The names before the colon.
const (
	nameStatus   = "status"
	nameWorkflow = "workflow"
	nameTag      = "tag"
	nameCode     = "code"
	nameKind     = "kind"
	nameProvider = "provider"
	nameSince    = "since"
)

// FilterNames are the valid names.
var FilterNames = []string{nameStatus, nameWorkflow, nameTag, nameCode, nameKind, nameProvider, nameSince}

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
	case nameSince:
		if f.Since, err = instant(value, now); err != nil {
			return fmt.Errorf("%s: %q: %w", name, value, err)
		}
	}
	return nil
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
