package tool

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Limits are the operator's limits of the calls of MCP servers, their tools and A2A agents, from one
// JSON file:
//
//	{"mcpServers": {
//	   "bank": {
//	     "concurrency": {"limit": 8},
//	     "tools": {"charge": {
//	       "concurrency": {"key": "arguments.account", "limit": 1},
//	       "rate": {"limit": 10, "periodMs": 1000}}}},
//	   "*": {"concurrency": {"limit": 32}}},
//	 "a2aAgents": {"planner": {"rate": {"key": "tenant", "limit": 60, "periodMs": 60000}}}}
//
// Calls of a higher priority try again sooner. A server or agent without an entry has that of "*". The limits of a server and of its tool both
// apply. The nil Limits has none. They are immutable and safe for concurrent use.
type Limits struct {
	servers map[string]serverLimit
	agents  map[string]Limit
}

// Limit limits the calls of a server, a tool or an agent.
type Limit struct {
	// Priority is that of the calls among those that wait for the same limit, -10 to 10.
	Priority    int          `json:"priority"`
	Concurrency *Concurrency `json:"concurrency"`
	Rate        *Rate        `json:"rate"`
}

// Concurrency limits the calls in flight.
type Concurrency struct {
	// Key makes it a limit for each tenant (tenant) or each value of an argument (arguments.NAME).
	Key   string `json:"key"`
	Limit int    `json:"limit"`
}

// Rate limits the calls within a period.
type Rate struct {
	Key      string `json:"key"`
	Limit    int    `json:"limit"`
	PeriodMs int64  `json:"periodMs"`
}

type serverLimit struct {
	Limit

	Tools map[string]Limit `json:"tools"`
}

// anyPeer is the entry of servers and agents without one of their own.
const anyPeer = "*"

const (
	keyTenant    = "tenant"
	keyArguments = "arguments."
	maxKeyParts  = 8
)

//go:embed limits.schema.json
var limitsSchema []byte

// LimitsSchema is the JSON Schema of the operator's document.
func LimitsSchema() []byte { return limitsSchema }

// ParseLimits parses the operator's document. servers and agents are the ids that the host has; nil
// knows all. The error has a line for each invalid value, with its path.
func ParseLimits(doc []byte, servers, agents *settings.Names) (*Limits, error) {
	var file struct {
		Schema  string                 `json:"$schema"` // for editors
		Servers map[string]serverLimit `json:"mcpServers"`
		Agents  map[string]Limit       `json:"a2aAgents"`
	}
	f := settings.Read(doc, &file)
	if len(file.Servers)+len(file.Agents) == 0 { // an empty file is probably a mistake
		f.Wrong("", "want mcpServers, a2aAgents or both, each with at least one entry")
	}
	for _, id := range slices.Sorted(maps.Keys(file.Servers)) {
		at := settings.Path("/mcpServers", id)
		checkPeer(f, at, id, "MCP server", "--mcp-server", servers)
		s := file.Servers[id]
		s.check(f, at, false)
		if id == anyPeer && s.Tools != nil {
			f.Wrong(at+"/tools", "limit a tool in the entry of its server")
		}
		for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
			s.Tools[name].check(f, settings.Path(at+"/tools", name), true)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(file.Agents)) {
		at := settings.Path("/a2aAgents", id)
		checkPeer(f, at, id, "A2A agent", "--a2a-agent", agents)
		file.Agents[id].check(f, at, false)
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	return &Limits{file.Servers, file.Agents}, nil
}

func checkPeer(f *settings.File, at, id, what, flag string, known *settings.Names) {
	if id != anyPeer {
		f.Named(at, id, known, what, "* is all others ("+flag+")")
	}
}

// check reports values out of range to f.
func (l Limit) check(f *settings.File, at string, arguments bool) {
	f.Range(at+"/priority", int64(l.Priority), -workflow.MaxPriority, workflow.MaxPriority)
	if c := l.Concurrency; c != nil {
		f.Range(at+"/concurrency/limit", int64(c.Limit), 1, workflow.MaxConcurrency)
		checkKey(f, at+"/concurrency/key", c.Key, arguments)
	}
	if r := l.Rate; r != nil {
		f.Range(at+"/rate/limit", int64(r.Limit), 1, workflow.MaxRate)
		f.Range(at+"/rate/periodMs", r.PeriodMs, workflow.MinPeriod.Milliseconds(), workflow.MaxPeriod.Milliseconds())
		checkKey(f, at+"/rate/key", r.Key, arguments)
	}
}

func checkKey(f *settings.File, at, key string, arguments bool) {
	path, ok := strings.CutPrefix(key, keyArguments)
	parts := strings.Split(path, ".")
	switch {
	case key == "" || key == keyTenant:
	case !arguments:
		f.Wrong(at, "%q: want tenant; arguments.NAME is for a tool", key)
	case !ok || len(parts) > maxKeyParts || slices.Contains(parts, ""):
		f.Wrong(at, "%q: want tenant or arguments.NAME, with up to 7 more members behind it", key)
	}
}

// CallLimit is one limit of a call. Calls with the same ID share it.
type CallLimit struct {
	// ID are the peer, the kind of limit and the value of its key. Name is the limit in words.
	ID   []string
	Name string
	// Concurrency limits the calls in flight, Rate those that begin within Period. One is 0.
	Concurrency, Rate int
	Period            time.Duration
}

// Call is a call of a tool or an agent.
type Call struct {
	TypeID string
	Tenant string
	Config json.RawMessage
	// Arguments are the tool's; nil for an agent.
	Arguments json.RawMessage
}

// Of returns the limits of a call, those of the tool before those of its server, and its priority: that
// of the tool, else of the server.
func (l *Limits) Of(c Call) (out []CallLimit, priority int) {
	if l == nil {
		return nil, 0
	}
	var config struct {
		Server string `json:"server"`
		Tool   string `json:"tool"`
		Agent  string `json:"agent"`
	}
	if strictjson.Read(c.Config, &config) != nil {
		return nil, 0 // such a node calls nothing
	}
	switch c.TypeID {
	case node.TypeMCPCallTool:
		own, ok := l.servers[config.Server]
		if !ok {
			own = l.servers[anyPeer]
		}
		out = own.Tools[config.Tool].of(out, c, "mcp", config.Server, config.Tool)
		out = own.of(out, c, "mcp", config.Server)
		priority = cmp.Or(own.Tools[config.Tool].Priority, own.Priority)
	case node.TypeA2ASendMessage:
		own, ok := l.agents[config.Agent]
		if !ok {
			own = l.agents[anyPeer]
		}
		out, priority = own.of(out, c, "a2a", config.Agent), own.Priority
	}
	return out, priority
}

// of appends the limits of a call of a peer.
func (l Limit) of(out []CallLimit, c Call, peer ...string) []CallLimit {
	limit := func(kind, key string) CallLimit {
		return CallLimit{
			ID:   slices.Concat(peer, []string{kind, c.group(key)}),
			Name: kind + " of " + strings.Join(peer, ":"),
		}
	}
	if b := l.Concurrency; b != nil {
		own := limit("concurrency", b.Key)
		own.Concurrency = b.Limit
		out = append(out, own)
	}
	if r := l.Rate; r != nil {
		own := limit("rate", r.Key)
		own.Rate, own.Period = r.Limit, time.Duration(r.PeriodMs)*time.Millisecond
		out = append(out, own)
	}
	return out
}

// group returns the value of a key. Calls without the argument form one group.
func (c Call) group(key string) string {
	if key == "" {
		return ""
	}
	if key == keyTenant {
		return "tenant:" + c.Tenant
	}
	v := c.Arguments
	for part := range strings.SplitSeq(strings.TrimPrefix(key, keyArguments), ".") {
		var members map[string]json.RawMessage
		if json.Unmarshal(v, &members) != nil {
			return ""
		}
		v = members[part]
	}
	if len(v) == 0 {
		return ""
	}
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber()
	var value any
	_ = d.Decode(&value) // the arguments were rendered as JSON
	canonical, err := json.Marshal(value)
	if err != nil {
		canonical = v
	}
	return "value:" + string(canonical)
}
