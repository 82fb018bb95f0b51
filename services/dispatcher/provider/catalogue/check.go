package catalogue

import (
	"fmt"
	"slices"
	"strconv"

	"waybill.dev/waybill/protocol/modelgate"
)

// checker collects problems that the JSON Schema cannot express.
type checker struct {
	found []Problem
	// malformed are the models and rules with violations. They are not checked further.
	malformed map[string]bool
}

func (c *checker) add(path, format string, args ...any) {
	c.found = append(c.found, Problem{path, fmt.Sprintf(format, args...)})
}

// check returns contradictions in a document, except in malformed models and rules.
func (d document) check(malformed map[string]bool) []Problem {
	c := &checker{malformed: malformed}
	c.checkNames(d.Models)
	for i, e := range d.Models {
		at := "/models/" + strconv.Itoa(i)
		if malformed[at] {
			continue
		}
		c.checkTraits(at, e.Traits)
		c.checkDisjoint(at+"/unsure", e.Capabilities, e.Unsure)
	}
	rules := map[name]int{}
	for i, r := range d.Rules {
		at := "/rules/" + strconv.Itoa(i)
		if malformed[at] {
			continue
		}
		c.checkTraits(at, r.Traits)
		c.checkDisjoint(at+"/lacks", r.Capabilities, r.Lacks)
		if first, taken := rules[r.key()]; taken {
			c.add(at+"/match", "rule %d has this pattern for the same models already, and would always speak first; keep one of the two", first)
			continue
		}
		rules[r.key()] = i
	}
	return c.found
}

// checkNames rejects duplicate names within a provider.
func (c *checker) checkNames(models []Entry) {
	owners := map[name]int{}
	claim := func(i int, at, n string) {
		key := name{models[i].Provider, n}
		if owner, taken := owners[key]; taken {
			c.add(at, "models/%d goes by this name of the provider %s already; a name is that of one model", owner, key.provider)
			return
		}
		owners[key] = i
	}
	for i, e := range models {
		at := "/models/" + strconv.Itoa(i)
		if c.malformed[at] {
			continue
		}
		claim(i, at+"/model", e.Model)
		for j, n := range e.Aliases {
			claim(i, at+"/aliases/"+strconv.Itoa(j), n)
		}
		for j, n := range e.Snapshots {
			claim(i, at+"/snapshots/"+strconv.Itoa(j), n)
		}
	}
}

// checkTraits rejects contradicting figures and capabilities.
func (c *checker) checkTraits(at string, t Traits) {
	has := func(id modelgate.Capability) bool { return slices.Contains(t.Capabilities, id) }
	if t.ContextTokens > 0 && has(modelgate.LongContext) != (t.ContextTokens >= LongContext) {
		c.add(at+"/contextTokens", "a model has the capability %s if it takes %d tokens or more, and only then; correct one of the two",
			modelgate.LongContext, LongContext)
	}
	if s := t.StructuredOutput; s != "" && has(modelgate.StructuredOutput) == (s == StructuredNone) {
		c.add(at+"/structuredOutput", "a model has the capability %s if this is format or tool, and only then; correct one of the two", modelgate.StructuredOutput)
	}
	if t.ContextTokens > 0 && t.OutputTokens > t.ContextTokens {
		c.add(at+"/outputTokens", "want no more than contextTokens, which holds question and answer")
	}
	last := ""
	for p, where := t.Prices, at+"/prices"; p != nil; p, where = p.Then, where+"/then" {
		if p.Until != "" && p.Until <= last {
			c.add(where+"/until", "want a day after %s, on which the prices before these end", last)
		}
		last = p.Until
	}
}

// checkDisjoint rejects capabilities that are in both lists.
func (c *checker) checkDisjoint(at string, has, not []modelgate.Capability) {
	for i, id := range not {
		if slices.Contains(has, id) {
			c.add(at+"/"+strconv.Itoa(i), "capabilities has this too; name it in one of the two")
		}
	}
}
