package settingsfile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/host/models"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/suggest"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
	"waybill.dev/waybill/services/gateway/admission"
)

// rates doubts a limit of a class that that of all classes makes void, and bursts above a day's rate.
func (d *doubts) rates(at string, texts []string) {
	rules := make([]admission.RateRule, len(texts))
	for i, text := range texts {
		rules[i], _ = admission.ParseRateRule(text) // Check reports it
	}
	perDay := func(r admission.RateRule) float64 {
		return float64(r.Limit) * float64(24*time.Hour) / float64(r.Period)
	}
	for i, r := range rules {
		if r.Period == 0 {
			continue
		}
		path := fmt.Sprintf("%s/%d", at, i)
		if float64(r.Burst) > perDay(r) {
			d.add(path, "the burst is more than the limit allows in a day")
		}
		for k, all := range rules {
			if all.Period != 0 && all.Scope == r.Scope && all.Class == admission.EveryRoute && r.Class != admission.EveryRoute && perDay(all) <= perDay(r) {
				d.add(path, "has no effect, because %s is lower and includes these routes", texts[k])
			}
		}
	}
}

// smallContext is a number of tokens that is probably meant in thousands.
const smallContext = 1000

// models doubts entries that say nothing, and rules that no model gets to.
func (d *doubts) models(doc []byte) {
	var file struct {
		AsOf      string                     `json:"asOf"`
		Providers map[string]json.RawMessage `json:"providers"`
		Models    []catalogue.Entry          `json:"models"`
		Rules     []catalogue.Rule           `json:"rules"`
	}
	if json.Unmarshal(doc, &file) != nil {
		return // Check reports it
	}
	if len(file.Models)+len(file.Rules)+len(file.Providers) == 0 {
		d.add("", "has no models, no rules and no providers, so the file has no effect")
	}
	if file.AsOf > time.Now().UTC().AddDate(0, 0, 1).Format(time.DateOnly) {
		d.add("/asOf", "is in the future; want the day on which the file was checked")
	}
	for i, m := range file.Models {
		at := fmt.Sprintf("/models/%d", i)
		d.provider(at+"/provider", m.Provider)
		if strings.HasPrefix(m.Model, m.Provider+"/") {
			d.add(at+"/model", "begins with its provider; want %s, unless the server itself uses the long name", strings.TrimPrefix(m.Model, m.Provider+"/"))
		}
		d.context(at, m.ContextTokens)
	}
	for i, r := range file.Rules {
		at := fmt.Sprintf("/rules/%d", i)
		if r.Provider != "" {
			d.provider(at+"/provider", r.Provider)
		}
		d.context(at, r.ContextTokens)
		t := r.Traits
		if len(t.Capabilities)+len(r.Lacks)+t.ContextTokens+t.OutputTokens == 0 && t.StructuredOutput == "" && t.SchemaDialect == "" && t.Sampling == nil && t.Prices == nil {
			d.add(at, "says nothing about its models; add capabilities, or remove the rule")
		}
		for _, earlier := range file.Rules[:i] {
			prefix, wild := strings.CutSuffix(earlier.Match, "*")
			if wild && !strings.Contains(prefix, "*") && strings.HasPrefix(r.Match, prefix) && earlier.Provider == r.Provider {
				d.add(at+"/match", "no model gets to this rule: %s is earlier and matches all of them; move it up", earlier.Match)
				break
			}
		}
	}
}

func (d *doubts) context(at string, tokens int) {
	if tokens > 0 && tokens < smallContext {
		d.add(at+"/contextTokens", "is %d tokens; if you mean thousands, write %d", tokens, tokens*1000)
	}
}

// provider doubts a provider that is close to a vendor.
func (d *doubts) provider(at, id string) {
	known := models.VendorIDs()
	if d.on.Providers != nil {
		known = d.on.Providers.Known
	}
	if near := suggest.Names(id, known, 1); len(near) > 0 && !slices.Contains(known, id) {
		d.add(at, "no known provider has this id; did you mean %s?", near[0])
	}
}

// placeholders are values that documentation has in place of a secret. Lower case.
var placeholders = []string{"changeme", "change-me", "change_me", "placeholder", "todo", "your-secret", "yoursecret", "xxxxxxxx", "example", "secret", "password", "passw0rd", "default", "admin123"}

// secrets doubts values that are no secrets. Its findings have neither ids nor values.
func (d *doubts) secrets(doc []byte) {
	all, wrong := hostfile.ParseSecrets(doc)
	var file yaml.Node
	if len(wrong) > 0 || yaml.Unmarshal(doc, &file) != nil {
		return // Check reports it
	}
	lines := hostfile.LinesOf(&file)
	first := map[string]int{}
	for _, s := range all {
		line := lines[s.ID]
		add := func(format string, args ...any) {
			d.found = append(d.found, strictjson.Problem{Message: fmt.Sprintf(format, args...), Position: strictjson.Position{Line: line, Column: min(line, 1)}})
		}
		value := string(s.Value)
		switch {
		case strings.HasPrefix(value, "${") && strings.HasSuffix(value, "}"):
			add("the value is a variable's name in ${}, which is not replaced; write the value")
		case slices.Contains(placeholders, strings.ToLower(value)):
			add("the value is a placeholder or a common word, which is masked in all texts; write the secret")
		case strings.TrimSpace(value) != value:
			add("the value has blanks or line ends around it, and is not found without them")
		}
		if other, twice := first[value]; twice && other > 0 {
			add("the value is also that of line %d; remove one of the two", other)
		} else {
			first[value] = line
		}
	}
}
