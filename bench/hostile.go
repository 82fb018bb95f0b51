package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/services/acceptor/kinds"
)

// hostile is a schema designed to be as expensive as possible, with a payload for it.
type hostile struct {
	name            string
	schema, payload string
}

// hostiles are schemas that are large in effect: deep, wide, or recursive.
func hostiles() []hostile {
	nested := func(n int, open, inner, end string) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	list := func(n int, item func(int) string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = item(i)
		}
		return strings.Join(items, ",")
	}
	// doubled references the next definition twice, n levels deep.
	doubled := func(n int) string {
		return `{"$ref":"#/$defs/d0","$defs":{` + list(n, func(i int) string {
			return fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1)
		}) + fmt.Sprintf(`,"d%d":{"type":"object"}}}`, n)
	}
	// within is a union of k references to the next definition, n levels deep.
	within := func(n, k int, last string) string {
		return `{"$ref":"#/$defs/d0","$defs":{` + list(n, func(i int) string {
			return fmt.Sprintf(`"d%d":{"anyOf":[`, i) + list(k, func(int) string { return fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1) }) + `]}`
		}) + fmt.Sprintf(`,"d%d":%s}}`, n, last)
	}
	// both are two definitions that both apply in each of n members.
	both := func(n int, e, f string) string {
		return `{"type":"object","properties":{` + list(n, func(i int) string {
			return fmt.Sprintf(`"p%d":{"allOf":[{"$ref":"#/$defs/e"},{"$ref":"#/$defs/f"}]}`, i)
		}) +
			`},"$defs":{"e":` + e + `,"f":` + f + `}}`
	}
	keys := func(n, first, step int) string {
		return `{"const":{"x":{` + list(n, func(i int) string { return fmt.Sprintf(`"k%d":0`, first+i*step) }) + `}}}`
	}
	numbers := func(n int) string { return "[" + list(n, strconv.Itoa) + "]" }
	return []hostile{
		{"as deep as is taken", nested(30, `{"properties":{"a":`, `{"type":"string"}`, `}}`), nested(30, `{"a":`, `"x"`, `}`)},
		{"deeper than is taken", nested(500, `{"not":`, `{}`, `}`), `{}`},
		{"an enum of 200,000 values", `{"enum":` + numbers(200_000) + `}`, `1`},
		{"an enum of 21,000 values", `{"items":{"enum":` + numbers(21_000) + `}}`, numbers(21_000)},
		{"21,000 required members", `{"required":[` + list(21_000, func(i int) string { return fmt.Sprintf(`"%x"`, i) }) + `]}`, `{}`},
		{
			"1,200 properties", `{"properties":{` + list(1200, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"integer"}`, i) }) + `}}`,
			`{` + list(1200, func(i int) string { return fmt.Sprintf(`"p%d":%d`, i, i) }) + `}`,
		},
		{
			"570 properties of nine keywords each", `{"properties":{` + list(570, func(i int) string {
				return fmt.Sprintf(`"p%d":{"type":["string","null"],"minLength":1,"maxLength":9,"pattern":"a%d","minimum":1,"maximum":2,"title":"x","format":"email","default":1}`, i, i)
			}) + `}}`, `{` + list(570, func(i int) string { return fmt.Sprintf(`"p%d":%d`, i, i) }) + `}`,
		},
		{
			"4,000 properties", `{"properties":{` + list(4000, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"integer"}`, i) }) + `}}`,
			`{` + list(4000, func(i int) string { return fmt.Sprintf(`"p%d":%d`, i, i) }) + `}`,
		},
		{"10,000 properties", `{"properties":{` + list(10_000, func(i int) string { return fmt.Sprintf(`"p%d":{}`, i) }) + `}}`, `{}`},
		{
			"a definition that is itself, twice", `{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"properties":{"x":{"$ref":"#/$defs/a"}},"required":["y"]},{"properties":{"x":{"$ref":"#/$defs/a"}}}]}}}`,
			nested(60, `{"x":`, `{}`, `}`),
		},
		{"a reference to itself", `{"$ref":"#"}`, `{}`},
		{"references doubled 10 times", doubled(10), `{}`},
		{"references doubled 40 times", doubled(40), `{}`},
		{"unions of two unions, 40 deep", within(40, 2, `{"type":"string"}`), `"x"`},
		{"unions of 26 unions, 8 deep", within(8, 26, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`), `{"a":"x"}`},
		{"unions of two unions, 40 deep, with members", strings.ReplaceAll(within(40, 2, `{"type":"string"}`), `{"anyOf"`, `{"properties":{"z":{"type":"string"}},"anyOf"`), `"x"`},
		{"an object compared at 200 places", both(200, keys(1500, 0, 1), keys(1500, 1499, -1)), `{"p0":1}`},
		{"a long text compared at 200 places", both(200, `{"enum":["`+strings.Repeat("x", 20_000)+`"]}`, `{"enum":["`+strings.Repeat("x", 20_000)+`"]}`), `{"p0":1}`},
		{
			"900 properties of four keywords each", `{"type":"object","properties":{` + list(900, func(i int) string {
				return fmt.Sprintf(`"p%d":{"type":"string","pattern":"a","minLength":1,"maxLength":3}`, i)
			}) + `}}`, `{"p0":1}`,
		},
		{
			"490 properties of four keywords each", `{"type":"object","properties":{` + list(490, func(i int) string {
				return fmt.Sprintf(`"p%d":{"type":"string","pattern":"a","minLength":1,"maxLength":3}`, i)
			}) + `}}`, `{"p0":1}`,
		},
		{"a union of 300 objects", `{"anyOf":[` + list(300, func(i int) string {
			return fmt.Sprintf(`{"properties":{"k":{"const":%d}},"required":["k"]}`, i)
		}) + `]}`, `{"k":-1}`},
		{"a union of 540 objects", `{"anyOf":[` + list(540, func(i int) string {
			return fmt.Sprintf(`{"properties":{"k":{"const":%d}},"required":["k"]}`, i)
		}) + `]}`, `{"k":-1}`},
		{"unique items over 20,000 objects", `{"uniqueItems":true}`, `[` + list(20_000, func(i int) string { return fmt.Sprintf(`{"i":%d}`, i) }) + `]`},
		{"a pattern of nested stars", `{"type":"string","pattern":"^(((a*)*)*)*$"}`, `"` + strings.Repeat("a", 50_000) + `!"`},
		{"a pattern that repeats 1,000 times 1,000", `{"type":"string","pattern":"(a{1000}){1000}"}`, `"a"`},
		{
			"1,000 patterns over 1,000 names", `{"patternProperties":{` + list(1000, func(i int) string { return fmt.Sprintf(`"x.*%d$":{}`, i) }) + `}}`,
			`{` + list(1000, func(i int) string { return fmt.Sprintf(`"xxxxxxxx%d":0`, i) }) + `}`,
		},
		{"a number of 100,000 digits", `{"multipleOf":3}`, strings.Repeat("9", 100_000)},
	}
}

// hostileRow is the cost of a schema and its payload.
type hostileRow struct {
	name     string
	register cost
	refused  bool // the schema
	validate cost // zero if the schema was rejected
	verdict  string
	project  cost // for the vendor with the highest cost; also for schemas that no kind may have
}

// Limits for an external schema.
const (
	hostileTime  = 50 * time.Millisecond
	hostileBytes = 16 << 20
)

// hostileSchemas registers each as a kind and validates its payload. The minimum of several tries
// counts, because other load only adds.
func hostileSchemas(tries int) []hostileRow {
	var rows []hostileRow
	for _, h := range slices.Concat(hostiles(), found()) {
		row := h.measure()
		for range tries - 1 {
			again := h.measure()
			row.register, row.validate, row.project = row.register.least(again.register), row.validate.least(again.validate), row.project.least(again.project)
		}
		rows = append(rows, row)
	}
	return rows
}

func (h hostile) measure() hostileRow {
	const name = "vendor.bench.hostile"
	row := hostileRow{name: h.name, project: h.projected()}
	registry, err := kinds.New(kinds.LintWarn)
	if err != nil {
		panic(err) // the protocol's own kinds
	}
	row.register = costOf(func() { _, err = registry.Register(name, 1, []byte(h.schema)) })
	if err != nil {
		row.refused = true
		return row
	}
	kind, _ := registry.Find(name)
	row.verdict = "valid"
	row.validate = costOf(func() {
		if wrong := kind.Payload.Validate([]byte(h.payload)); len(wrong) > 0 {
			row.verdict = "invalid: " + wrong[0].Keyword
		}
	})
	return row
}

// projected is the cost of a node's schema before a vendor's model is called.
func (h hostile) projected() (worst cost) {
	for _, v := range projection.Vendors() {
		c := costOf(func() { _, _ = projection.Compile([]byte(h.schema), v) })
		worst = cost{cpu: max(worst.cpu, c.cpu), wall: max(worst.wall, c.wall), mallocs: max(worst.mallocs, c.mallocs), bytes: max(worst.bytes, c.bytes)}
	}
	return worst
}

// least returns the smaller of two measurements.
func (c cost) least(d cost) cost {
	return cost{cpu: min(c.cpu, d.cpu), wall: min(c.wall, d.wall), mallocs: min(c.mallocs, d.mallocs), bytes: min(c.bytes, d.bytes)}
}

func (c cost) bounded() bool { return c.cpu <= hostileTime && c.bytes <= hostileBytes }

// met reports whether registering, validating and projecting stay within the limits. A rejection
// must not cost more than acceptance.
func (r hostileRow) met() bool {
	return r.register.bounded() && r.validate.bounded() && r.project.bounded()
}

func hostileTable(p func(string, ...any), rows []hostileRow) {
	p("| schema | registering: CPU, memory | then | validating: CPU, memory | verdict | projecting: CPU, memory | within all bounds |\n|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		then, second, verdict := "taken", r.validate.String(), r.verdict
		if r.refused {
			then, second, verdict = "refused", "–", "–"
		}
		met := "yes"
		if !r.met() {
			met = "**no**"
		}
		p("| %s | %s | %s | %s | %s | %s | %s |\n", r.name, r.register, then, second, verdict, r.project, met)
	}
}

// String formats time and memory.
func (c cost) String() string {
	return fmt.Sprintf("%s, %.1f MB", ms(c.cpu), float64(c.bytes)/(1<<20))
}
