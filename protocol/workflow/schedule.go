package workflow

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// Limits of settings.priority, settings.concurrency and settings.rate.
const (
	MaxPriority    = 10 // and -MaxPriority
	MaxConcurrency = 10_000
	// MaxRate is low because the starts within a period are stored in one record.
	MaxRate   = 1000
	MinPeriod = time.Second
	MaxPeriod = 24 * time.Hour

	maxKeyParts = 8
	// keyPrefix is the start of a key, which names an input.
	keyPrefix = "inputs."
)

// scheduling holds the settings for when runs execute.
type scheduling struct {
	priority          *int
	concurrency, rate *limiting
}

// limiting is a limit and the key that groups runs; an empty key means one group.
type limiting struct {
	key      string
	limit    int
	periodMs int64
}

func (s *Settings) readSchedule(o object) {
	if n, ok := o.integer("priority"); ok {
		p := int(n)
		s.schedule.priority = &p
	}
	s.schedule.concurrency, s.schedule.rate = readLimit(o["concurrency"]), readLimit(o["rate"])
}

func readLimit(raw json.RawMessage) *limiting {
	o := members(raw)
	if o == nil {
		return nil
	}
	l := &limiting{key: o.text("key")}
	n, _ := o.integer("limit")
	l.limit = int(n)
	l.periodMs, _ = o.integer("periodMs")
	return l
}

// checkSchedule checks the settings for when runs execute.
func checkSchedule(d *Definition, found *problems) {
	s := members(members(d.Raw)["settings"])
	if s["priority"] != nil {
		if n, ok := s.integer("priority"); !ok || n < -MaxPriority || n > MaxPriority {
			found.add("/settings/priority", RuleSchedule, "want an integer from -10 to 10; higher is executed first")
		}
	}
	checkLimit(d, s["concurrency"], "/settings/concurrency", MaxConcurrency, "want an integer from 1 to 10000", found, "key", "limit")
	o := checkLimit(d, s["rate"], "/settings/rate", MaxRate, "want an integer from 1 to 1000", found, "key", "limit", "periodMs")
	if o != nil {
		if n, ok := o.integer("periodMs"); !ok || n < MinPeriod.Milliseconds() || n > MaxPeriod.Milliseconds() {
			found.add("/settings/rate/periodMs", RuleSchedule, "want milliseconds, an integer from 1000 to 86400000")
		}
	}
}

// checkLimit checks the members common to both limits and returns the members of the object.
func checkLimit(d *Definition, raw json.RawMessage, at string, most int64, want string, found *problems, known ...string) object {
	if raw == nil {
		return nil
	}
	o := members(raw)
	if strictjson.KindOf(raw) != "an object" {
		found.add(at, RuleSchedule, "want an object with "+strings.Join(known, ", ")+"; key is optional")
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(known, name) {
			found.add(at+pointer(name), RuleSchedule, schema.UnknownMember(name, known, o))
		}
	}
	if n, ok := o.integer("limit"); !ok || n < 1 || n > most {
		found.add(at+"/limit", RuleSchedule, want)
	}
	if o["key"] != nil {
		if why := checkKey(d, o.text("key")); why != "" {
			found.add(at+"/key", RuleSchedule, why)
		}
	}
	return o
}

// checkKey returns the problem with a key; empty if none.
func checkKey(d *Definition, key string) string {
	path, ok := strings.CutPrefix(key, keyPrefix)
	parts := strings.Split(path, ".")
	if !ok || len(parts) > maxKeyParts || slices.Contains(parts, "") {
		why := `want "inputs.NAME", with up to 7 more members behind it, as inputs.order.customerId`
		if slices.ContainsFunc(d.Variables, func(v Variable) bool { return v.Name == key }) {
			why += "; write inputs." + key
		}
		return why
	}
	at := slices.IndexFunc(d.Variables, func(v Variable) bool { return v.Name == parts[0] })
	switch {
	case at < 0:
		var names []string
		for _, v := range d.Variables {
			names = append(names, v.Name)
		}
		return "no variable has the name " + parts[0] + meant(parts[0], names) + "declare it under variables"
	case d.Variables[at].Sensitive:
		return "the variable is sensitive; a key must not be"
	}
	return ""
}

// Schedule returns the settings that a new run with these inputs records; defaults replace absent
// inputs. nil means the workflow sets nothing.
func (d *Definition) Schedule(inputs, defaults map[string]json.RawMessage) *wire.Schedule {
	s := d.Settings.schedule
	if s.priority == nil && s.concurrency == nil && s.rate == nil {
		return nil
	}
	out := &wire.Schedule{Priority: s.priority}
	if c := s.concurrency; c != nil {
		out.Concurrency = &wire.ConcurrencyLimit{Key: c.group(inputs, defaults), Limit: c.limit}
	}
	if r := s.rate; r != nil {
		out.Rate = &wire.RateLimit{Key: r.group(inputs, defaults), Limit: r.limit, PeriodMs: r.periodMs}
	}
	return out
}

// Scheduled reports whether the workflow has settings for when runs execute.
func (d *Definition) Scheduled() bool { return d.Schedule(nil, nil) != nil }

// group returns a digest of the value of the key. Runs without the value form one group.
func (l *limiting) group(inputs, defaults map[string]json.RawMessage) string {
	if l.key == "" {
		return ""
	}
	parts := strings.Split(strings.TrimPrefix(l.key, keyPrefix), ".")
	v, ok := inputs[parts[0]]
	if !ok {
		v = defaults[parts[0]]
	}
	for _, name := range parts[1:] {
		v = members(v)[name]
	}
	sum := sha256.Sum256(canonical(v))
	return hex.EncodeToString(sum[:12])
}

// canonical renders a value so that equal values have equal bytes; an absent value is null.
func canonical(raw json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	_ = d.Decode(&v) // inputs are checked before
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}
