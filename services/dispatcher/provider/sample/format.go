package sample

import "regexp"

// format is a string format of JSON Schema: how to find one in a text, if that
// is likely, and a fixed one, which leads nowhere.
type format struct {
	find  *regexp.Regexp
	fixed string
}

var (
	findDate  = regexp.MustCompile(`\b20\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])\b`)
	findTime  = regexp.MustCompile(`\b20\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ`)
	findEmail = regexp.MustCompile(`\b[A-Za-z0-9]+(?:[._+-][A-Za-z0-9]+)*@[A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)*\.[A-Za-z]{2,}\b`)
	findURI   = regexp.MustCompile(`\bhttps?://[A-Za-z0-9.-]+[A-Za-z0-9](?:/[A-Za-z0-9._~/-]*)?`)
	findUUID  = regexp.MustCompile(`\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b`)
)

var formats = map[string]format{
	"date-time":             {findTime, "2026-01-01T00:00:00Z"},
	"date":                  {findDate, "2026-01-01"},
	"time":                  {nil, "00:00:00Z"},
	"duration":              {nil, "P1D"},
	"email":                 {findEmail, "sample@example.com"},
	"idn-email":             {findEmail, "sample@example.com"},
	"hostname":              {nil, "example.com"},
	"idn-hostname":          {nil, "example.com"},
	"ipv4":                  {nil, "192.0.2.1"},
	"ipv6":                  {nil, "2001:db8::1"},
	"uri":                   {findURI, "https://example.com/sample"},
	"uri-reference":         {findURI, "https://example.com/sample"},
	"iri":                   {findURI, "https://example.com/sample"},
	"iri-reference":         {findURI, "https://example.com/sample"},
	"uri-template":          {nil, "https://example.com/{id}"},
	"uuid":                  {findUUID, "00000000-0000-4000-8000-000000000000"},
	"json-pointer":          {nil, "/sample"},
	"relative-json-pointer": {nil, "0"},
	"regex":                 {nil, "sample"},
}

// formatted is a string of a format that has the length; ok is false if the
// format is unknown or too long for it.
func (g *generator) formatted(name string, want length) (s string, ok bool) {
	f, known := formats[name]
	if !known {
		return "", false
	}
	if f.find != nil {
		for _, s := range g.source.find(f.find) {
			if want.holds(s) {
				return s, true
			}
		}
	}
	return f.fixed, want.holds(f.fixed)
}
