package workflow

import (
	"cmp"
	"encoding/json"
	"math"
)

// defaultLoopbacks is the default of maxLoopbackIterations, publicClass of complianceClass.
const (
	defaultLoopbacks = 5
	publicClass      = "public"
)

// Settings limit the runs of a workflow.
type Settings struct {
	// TimeoutMillis is the time limit of a run; 0 means none set here.
	TimeoutMillis int64
	// MaxRetries is the default of nodes; 0 if absent.
	MaxRetries int64
	// LogLevel is debug, info, warn, error, or empty.
	LogLevel string
	// MaxLoopbackIterations is 5 if absent.
	MaxLoopbackIterations int64

	schedule  scheduling
	retention string
}

// UnmarshalJSON reads known members by exact name and ignores the others: settings are open, and
// "Timeout" is not timeout.
func (s *Settings) UnmarshalJSON(b []byte) error {
	o := members(b)
	*s = Settings{LogLevel: o.text("logLevel"), MaxLoopbackIterations: defaultLoopbacks}
	s.readSchedule(o)
	s.retention = o.text("retention")
	s.TimeoutMillis, _ = o.integer("timeout")
	s.MaxRetries, _ = o.integer("maxRetries")
	if n, ok := o.integer("maxLoopbackIterations"); ok {
		s.MaxLoopbackIterations = n
	}
	return nil
}

// Metadata is the author's description of the workflow. It is open; only members that affect a host
// are read.
type Metadata struct {
	Tags []string
	// ComplianceClass is public if absent.
	ComplianceClass string
	// MaskingMode overrides the host's; empty if absent.
	MaskingMode string
}

// UnmarshalJSON reads known members and ignores the others.
func (m *Metadata) UnmarshalJSON(b []byte) error {
	o := members(b)
	*m = Metadata{ComplianceClass: o.text("complianceClass"), MaskingMode: members(o["complianceConfig"]).text("maskingMode")}
	m.ComplianceClass = cmp.Or(m.ComplianceClass, publicClass)
	if json.Unmarshal(o["tags"], &m.Tags) != nil {
		m.Tags = nil
	}
	return nil
}

// Channel declares a typed state channel.
type Channel struct {
	// Reducer is a canonical name or vendor.<org>.<name>.
	Reducer string
	// Schema of a value, or nil.
	Schema json.RawMessage
	// Default is the state before the first write, or nil.
	Default json.RawMessage
	// MaxSize and TTLMillis limit the content; 0 means no limit.
	MaxSize   int64
	TTLMillis int64
	// Options of the reducer, or nil.
	Options json.RawMessage
	// Access is "public", "private" or {readers?, writers?}; nil is public.
	Access json.RawMessage
	// SchemaVersion is 1 if absent.
	SchemaVersion int64
	// CompatibleWith lists older versions whose writes are still readable.
	CompatibleWith []int64
	// Sensitive values are masked wherever they leave the run.
	Sensitive bool
}

// UnmarshalJSON reads a channel; integers may be written 1.0 or 1e3.
func (c *Channel) UnmarshalJSON(b []byte) error {
	o := members(b)
	*c = Channel{
		Reducer: o.text("reducer"), Schema: o["schema"], Default: o["default"], Options: o["options"], Access: o["access"],
		SchemaVersion: 1, Sensitive: string(o["sensitive"]) == "true",
	}
	c.MaxSize, _ = o.integer("maxSize")
	c.TTLMillis, _ = o.integer("ttlMs")
	if n, ok := o.integer("schemaVersion"); ok {
		c.SchemaVersion = n
	}
	var versions []json.Number
	if json.Unmarshal(o["compatibleWith"], &versions) == nil {
		for _, v := range versions {
			if n, ok := integer(v); ok {
				c.CompatibleWith = append(c.CompatibleWith, n)
			}
		}
	}
	return nil
}

// object holds the members of a JSON object by exact name. encoding/json alone
// would match struct fields in any case.
type object map[string]json.RawMessage

// members reads an object; empty for any other value, which the shape check rejects.
func members(b json.RawMessage) object {
	var o object
	if json.Unmarshal(b, &o) != nil {
		return nil
	}
	return o
}

// text returns a string member, or "".
func (o object) text(name string) string {
	var s string
	if json.Unmarshal(o[name], &s) != nil {
		return ""
	}
	return s
}

// integer returns an integer member; ok is false if it is not an integer.
func (o object) integer(name string) (n int64, ok bool) {
	var literal json.Number
	if raw := o[name]; len(raw) == 0 || raw[0] == '"' || json.Unmarshal(raw, &literal) != nil {
		return 0, false
	}
	return integer(literal)
}

// integer reads a number without fraction in any notation: in JSON Schema 1.0 is an integer. Beyond
// 2^53 only plain digits are accepted.
func integer(literal json.Number) (int64, bool) {
	if n, err := literal.Int64(); err == nil {
		return n, true
	}
	f, err := literal.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}
