package lint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/channel"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// checkSettings warns about retries and time limits that never apply.
func (l *linter) checkSettings(n *workflow.Node, t node.Type, at string) {
	retries, own := n.MaxRetries()
	if !own {
		retries = l.def.Settings.MaxRetries
	}
	flow := t.Class == node.Pure && t.Executes() != node.TypeFail
	switch {
	case own && retries > 0 && flow:
		l.warn(at+"/settings", RuleNoEffect, "nodes of type %s make no call, so nothing is retried; remove the retries", n.TypeID)
	case own && l.Limits.MaxNodeExecutions > 0 && retries >= int64(l.Limits.MaxNodeExecutions):
		l.warn(at+"/settings", node.RuleLimit, "allows %d retries; a run may execute %d nodes, retries included (--max-node-executions)", retries, l.Limits.MaxNodeExecutions)
	case retries == 0 && !flow && (own || !t.AsksModel()) && l.hasBackoff(n): // else those of the provider's settings
		l.warn(at+"/settings/retry", RuleNoEffect, "the node has no retries, so the backoff has no effect; set maxRetries")
	}
	if t.Class != node.Pure {
		l.checkShort(at+"/settings/timeoutMs", n.Timeout().Milliseconds(), t.AsksModel())
		l.checkConfigTime(t, n.Config, at)
	}
	if own, whole := n.Timeout().Milliseconds(), l.def.Settings.TimeoutMillis; whole > 0 && own > whole {
		l.warn(at+"/settings/timeoutMs", node.RuleLimit, "is %d; the run ends after %d milliseconds (settings.timeout); lower it, or raise the other", own, whole)
	}
}

func (l *linter) hasBackoff(n *workflow.Node) bool {
	var s struct {
		Retry json.RawMessage `json:"retry"`
	}
	return len(n.Settings) > 0 && strictjson.Read(n.Settings, &s) == nil &&
		slices.ContainsFunc([]string{"backoffMs", "multiplier", "maxBackoffMs"}, func(name string) bool { return isSet(s.Retry, name) })
}

// checkCallTimes warns about time limits of a call that another one makes meaningless.
func (l *linter) checkCallTimes(m modelNode) {
	var c struct {
		Timeouts map[string]json.Number `json:"timeouts"`
	}
	if strictjson.Read(m.n.Config, &c) != nil {
		return
	}
	call, limited := wholeMillis(c.Timeouts["callMs"])
	if whole := m.n.Timeout().Milliseconds(); limited && whole > 0 && call > whole {
		l.warn(m.path("timeouts")+"/callMs", node.RuleLimit, "is %d; the node ends after %d milliseconds (settings.timeoutMs); lower it, or raise the other", call, whole)
	}
	l.checkShort(m.path("timeouts")+"/callMs", call, true)
	for _, name := range []string{"connectMs", "firstByteMs", "silenceMs"} {
		if part, set := wholeMillis(c.Timeouts[name]); set && limited && part > call {
			l.warn(m.path("timeouts")+"/"+name, node.RuleLimit, "is %d; the whole call ends after %d milliseconds (callMs); lower it, or raise the other", part, call)
		}
	}
}

// maxShort is a time in milliseconds below which seconds are probably meant: nothing answers sooner. Up to
// maxMinutes, a number of whole minutes in seconds is probably one, such as 300 or 3600, if models or people
// answer. 0 is no limit.
const (
	maxShort   = 100
	maxMinutes = 5000
)

// checkShort warns about a time limit that is probably meant in seconds. slow means that a model or a person
// answers.
func (l *linter) checkShort(path string, ms int64, slow bool) {
	minutes := slow && ms <= maxMinutes && ms%60 == 0 && ms%500 != 0
	if ms > 0 && (ms <= maxShort || minutes) {
		l.warn(path, node.RuleLimit, "is %d milliseconds, in which hardly anything answers; if seconds are meant, set %d", ms, ms*1000)
	}
}

// checkConfigTime is checkShort for a node that waits for a peer or a person.
func (l *linter) checkConfigTime(t node.Type, config json.RawMessage, at string) {
	var c struct {
		TimeoutMs json.Number `json:"timeoutMs"`
	}
	if !t.AsksModel() && strictjson.Read(config, &c) == nil {
		ms, _ := wholeMillis(c.TimeoutMs)
		l.checkShort(at+"/config/timeoutMs", ms, isGate(t) && t.Executes() != interrupt.TypeInterrupt)
	}
}

func wholeMillis(n json.Number) (int64, bool) {
	ms, err := n.Int64()
	return ms, err == nil && ms > 0
}

// checkRounds finds loops that fail because they have more rounds than their maxIterations, and warns about
// those with more rounds than the workflow allows: these may be registered (OpenWOP host contract §5.6). A
// port overrides the config.
func (l *linter) checkRounds(filled map[string]bool, config json.RawMessage, at string) {
	var c struct {
		Items []json.RawMessage `json:"items"`
		Count int64             `json:"count"`
		Until json.RawMessage   `json:"until"`
		Most  int64             `json:"maxIterations"`
	}
	if strictjson.Read(config, &c) != nil {
		return
	}
	l.checkNoRounds(filled, c.Items, c.Count, config, at)
	if c.Until != nil || filled["items"] {
		return
	}
	certain, most := true, c.Most
	remedy := ", and maxIterations allows %d rounds"
	if most == 0 {
		certain, most = false, min(l.def.Settings.MaxLoopbackIterations, node.MaxLoopIterations)
		remedy = "; a loop without maxIterations has %d (settings.maxLoopbackIterations); set maxIterations"
	}
	if n := int64(len(c.Items)); n > most {
		l.report(certain, at+"/config/items", node.RuleLimit, "has %d items"+remedy, n, most)
	} else if c.Count > most && c.Items == nil && !filled["count"] {
		l.report(certain, at+"/config/count", node.RuleLimit, "is %d"+remedy, c.Count, most)
	}
}

// checkNoRounds warns about loops without a round.
func (l *linter) checkNoRounds(filled map[string]bool, items []json.RawMessage, count int64, config json.RawMessage, at string) {
	switch {
	case filled["items"]:
	case items != nil && len(items) == 0:
		l.warn(at+"/config/items", RuleNoEffect, "is empty, so the loop has no rounds; add items, or fill the port items")
	case items == nil && isSet(config, "count") && count == 0 && !filled["count"]:
		l.warn(at+"/config/count", RuleNoEffect, "is 0, so the loop has no rounds; raise it, or fill the port count")
	}
}

// checkChannels warns about members of channels without effect, and names in access lists that no node has.
func (l *linter) checkChannels() {
	for name, c := range l.def.Channels {
		at := "/channels/" + jsonpointer.Escape(name)
		if c.MaxSize > 0 && (c.Reducer == channel.Replace || c.Reducer == channel.Counter) {
			l.warn(at+"/maxSize", RuleNoEffect, "a channel with reducer %s has one value; remove it", c.Reducer)
		}
		if s, err := schema.Compile("schema", c.Schema); err == nil && c.Reducer == channel.Replace && c.Default != nil {
			for _, v := range s.Validate(c.Default) {
				l.warn(at+"/default"+v.InstancePath, workflow.RuleChannel, "the schema of the channel does not allow it: %s", v.Message)
			}
		}
		if ttl := c.TTLMillis; ttl > 0 && ttl <= maxShort {
			l.warn(at+"/ttlMs", node.RuleLimit, "is %d milliseconds, after which a value is gone before another node reads it; if seconds are meant, set %d", ttl, ttl*1000)
		}
		access := channel.ParseAccess(c.Access)
		for list, allowed := range map[string]*[]string{"readers": access.Readers, "writers": access.Writers} {
			if allowed == nil {
				continue
			}
			for i, who := range *allowed {
				l.checkAccess(fmt.Sprintf("%s/access/%s/%d", at, list, i), who)
			}
		}
	}
}

func (l *linter) checkAccess(path, who string) {
	known := l.nodeIDs()
	for i := range l.def.Nodes {
		known = append(known, l.def.Nodes[i].TypeID)
	}
	if !strings.Contains(who, "*") && !slices.Contains(known, who) {
		l.warn(path, RuleName, "no node of the workflow has this id or type%s", meant(who, known))
	}
}

// leads reports whether an edge leads to a port of a node.
func (l *linter) leads(id, port string) bool {
	return slices.ContainsFunc(l.def.Edges, func(e workflow.Edge) bool { return e.TargetNodeID == id && e.TargetInput == port })
}

// checkWrite finds values that a channel does not accept, and writes without a value.
func (l *linter) checkWrite(n *workflow.Node, at string) {
	var c struct {
		Name  string          `json:"channelName"`
		Value json.RawMessage `json:"value"`
	}
	if strictjson.Read(n.Config, &c) != nil {
		return
	}
	if ch := l.def.Channel(c.Name); ch != nil && !ch.Access.MayWrite(n.ID, n.TypeID) {
		l.problem(at+"/config/channelName", workflow.RuleChannel, "the node may not write to the channel %s; add %q to its access.writers", c.Name, n.ID)
		return
	}
	path, value := at+"/config/value", c.Value
	if pv, own := n.Inputs["value"]; own {
		path, value = at+"/inputs/value/value", pv.Value // nil unless it is static
	} else if l.leads(n.ID, "value") {
		return // an edge overrides the config
	} else if len(value) == 0 && len(l.ports[l.at[n.ID]]) == 0 {
		l.problem(at+"/config", RulePort, "the channel gets no value; set value, or lead an edge to the port value")
		return
	}
	ch := l.def.Channel(c.Name)
	if ch == nil || len(value) == 0 {
		return
	}
	decl := ch.Pinned()
	decl.Default = nil // the first write of a run without one
	if err := ch.Check(channel.New(decl, ""), value, time.Time{}); err != nil {
		l.problem(path, workflow.RuleChannel, "%s", err)
	}
}
