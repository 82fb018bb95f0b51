package settingsfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/protocol/strictjson"
)

// doubts collects probable mistakes.
type doubts struct {
	on    Host
	found strictjson.Problems
}

func (d *doubts) add(path, format string, args ...any) {
	d.found = append(d.found, strictjson.Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

// doubtsOf finds the probable mistakes of each kind. A member of another type is reported by the kind's
// Check, and has the zero value here.
var doubtsOf = map[string]func(d *doubts, doc []byte){
	Models:              (*doubts).models,
	ProviderSettings:    (*doubts).providerSettings,
	"secrets-file":      (*doubts).secrets,
	"provider-policies": (*doubts).policies,
	"rate-limits":       (*doubts).rateLimits,
	"tenant-limits":     (*doubts).tenantLimits,
	"tool-limits":       (*doubts).toolLimits,
}

// sortedKeys returns the names of the members.
func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }

// policies doubts policies that allow or restrict nothing.
func (d *doubts) policies(doc []byte) {
	var file struct {
		Tenants map[string]map[string]struct {
			Mode   string   `json:"mode"`
			Models []string `json:"allowedModels"`
		} `json:"tenants"`
	}
	_ = json.Unmarshal(doc, &file) // Check reports it
	if len(file.Tenants) == 0 {
		d.add("/tenants", "has no tenant, so all may use all models")
	}
	for _, tenant := range sortedKeys(file.Tenants) {
		at := settings.Path("/tenants", tenant)
		if len(file.Tenants[tenant]) == 0 {
			d.add(at, "has no provider, so it sets nothing")
		}
		for _, provider := range sortedKeys(file.Tenants[tenant]) {
			p, at := file.Tenants[tenant][provider], settings.Path(at, provider)
			if p.Mode == "restricted" && p.Models != nil && len(p.Models) == 0 {
				d.add(at+"/allowedModels", "allows no model; want models, or the mode disabled")
			}
			if p.Mode == "required" && provider == "sample" {
				d.add(at+"/mode", "the sample provider takes no key, so none can be required")
			}
			d.allowedModels(at+"/allowedModels", p.Models)
		}
	}
}

// allowedModels doubts models that are blank, or that an earlier one contains.
func (d *doubts) allowedModels(at string, models []string) {
	for i, m := range models {
		path := fmt.Sprintf("%s/%d", at, i)
		if strings.TrimSpace(m) == "" {
			d.add(path, "is blank and allows no model")
			continue
		}
		for k, other := range models {
			prefix, wild := strings.CutSuffix(other, "*")
			switch {
			case k < i && other == m:
				d.add(path, "is listed twice; remove one of the two")
			case k != i && other != m && wild && !strings.ContainsAny(prefix, "*?[") && strings.HasPrefix(m, prefix):
				d.add(path, "has no effect, because %s allows it", other)
			default:
				continue
			}
			break
		}
	}
}

// tenantLimits doubts entries that limit nothing.
func (d *doubts) tenantLimits(doc []byte) {
	var file struct {
		Tenants map[string]struct {
			Weight      json.RawMessage `json:"weight"`
			Priority    json.RawMessage `json:"priority"`
			Retention   json.RawMessage `json:"retention"`
			Concurrency json.RawMessage `json:"concurrency"`
			Rate        *rate           `json:"rate"`
		} `json:"tenants"`
	}
	_ = json.Unmarshal(doc, &file) // Check reports it
	if len(file.Tenants) == 0 {
		d.add("/tenants", "has no tenant, so nothing is limited")
	}
	names := sortedKeys(file.Tenants)
	_, star := file.Tenants["*"]
	for i, tenant := range names {
		t, at := file.Tenants[tenant], settings.Path("/tenants", tenant)
		set := len(t.Weight) + len(t.Priority) + len(t.Retention) + len(t.Concurrency)
		if set == 0 && t.Rate == nil && star && tenant != "*" {
			d.add(at, `is empty, so the tenant has no limits: those of "*" are for tenants without an entry`)
		} else if set == 0 && t.Rate == nil {
			d.add(at, "is empty and limits nothing")
		}
		if all := file.Tenants["*"]; set > 0 && tenant != "*" && len(t.Concurrency) == 0 && t.Rate == nil && len(all.Concurrency) > 0 {
			d.add(at, `has no concurrency of its own, and the one of "*" is for tenants without an entry: entries are not merged`)
		}
		for _, other := range names[:i] {
			if strings.EqualFold(other, tenant) {
				d.add(at, "differs from %s by case only; names of tenants have a case, so these are two tenants", other)
			}
		}
		d.period(at+"/rate", t.Rate)
	}
}

// rate is a limit per period.
type rate struct {
	Limit    int64 `json:"limit"`
	PeriodMs int64 `json:"periodMs"`
}

// period doubts periods that were probably meant in seconds.
func (d *doubts) period(at string, r *rate) {
	if r != nil && (r.PeriodMs == 3600 || r.PeriodMs == 86400 || r.PeriodMs > 0 && r.PeriodMs <= 60) {
		d.add(at+"/periodMs", "is %d milliseconds; if you mean seconds, write %d", r.PeriodMs, r.PeriodMs*1000)
	}
}

// rateLimits doubts files without limits, and bursts of more than a day's rate.
func (d *doubts) rateLimits(doc []byte) {
	var file struct {
		Limits  []string            `json:"limits"`
		Tenants map[string][]string `json:"tenants"`
	}
	_ = json.Unmarshal(doc, &file) // Check reports it
	all := len(file.Limits)
	for _, t := range file.Tenants {
		all += len(t)
	}
	if all == 0 {
		d.add("", "has no limit, so the file has no effect")
	}
	d.rates("/limits", file.Limits)
	for _, tenant := range sortedKeys(file.Tenants) {
		d.rates(settings.Path("/tenants", tenant), file.Tenants[tenant])
	}
}

// toolLimits doubts entries that limit nothing.
func (d *doubts) toolLimits(doc []byte) {
	type tool struct {
		Priority    json.RawMessage `json:"priority"`
		Concurrency *struct {
			Key   string `json:"key"`
			Limit int64  `json:"limit"`
		} `json:"concurrency"`
		Rate *rate `json:"rate"`
	}
	var file struct {
		Servers map[string]struct {
			tool
			Tools map[string]tool `json:"tools"`
		} `json:"mcpServers"`
		Agents map[string]tool `json:"a2aAgents"`
	}
	_ = json.Unmarshal(doc, &file) // Check reports it
	empty := func(t tool) bool { return len(t.Priority) == 0 && t.Concurrency == nil && t.Rate == nil }
	for _, id := range sortedKeys(file.Servers) {
		s, at := file.Servers[id], settings.Path("/mcpServers", id)
		switch {
		case strings.Contains(id, "://"):
			d.add(at, "is an address; want the id of --mcp-server ID=URL")
		case strings.Contains(id, "/"):
			server, name, _ := strings.Cut(id, "/")
			d.add(at, "is no id of a server; write the limit of the tool %s under %s, in tools", name, server)
		case empty(s.tool) && len(s.Tools) == 0:
			d.add(at, "limits nothing")
		}
		d.period(at+"/rate", s.Rate)
		for _, name := range sortedKeys(s.Tools) {
			t, at := s.Tools[name], settings.Path(at+"/tools", name)
			switch {
			case strings.TrimSpace(name) == "":
				d.add(at, "is blank, and no tool has this name")
			case empty(t):
				d.add(at, "limits nothing")
			case t.Concurrency != nil && t.Concurrency.Key == "" && s.Concurrency != nil && s.Concurrency.Key == "" && t.Concurrency.Limit > s.Concurrency.Limit:
				d.add(at+"/concurrency/limit", "is above the limit of the server, %d, which is reached first", s.Concurrency.Limit)
			}
			d.period(at+"/rate", t.Rate)
		}
	}
	for _, id := range sortedKeys(file.Agents) {
		at := settings.Path("/a2aAgents", id)
		if empty(file.Agents[id]) {
			d.add(at, "limits nothing")
		}
		d.period(at+"/rate", file.Agents[id].Rate)
	}
}
