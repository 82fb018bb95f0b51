package kinds_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/kinds"
)

const (
	name     = "vendor.acme.note"
	tierOne  = `{"type":"object","additionalProperties":false,"required":["text"],"properties":{"text":{"type":"string"}}}`
	optional = `{"type":"object","additionalProperties":false,"properties":{"text":{"type":"string","maxLength":9}}}`
	variants = `{"type":"object","properties":{"v":{"oneOf":[{"type":"string"},{"type":"number"}]}}}`
)

// protocolKinds is the number of kinds of the protocol.
const protocolKinds = 8

func registry(t testing.TB, lint kinds.Lint) *kinds.Registry {
	t.Helper()
	r, err := kinds.New(lint)
	require.NoError(t, err)
	return r
}

// OpenWOP envelope contract §3.1: all four, at version 1.
func TestNew_HasTheKindsOfTheProtocolAtVersionOne(t *testing.T) {
	t.Parallel()
	r := registry(t, kinds.LintStrict)
	require.ElementsMatch(t, append(wire.Universals(), kinds.Core()...), r.Names())
	for _, k := range r.All() {
		require.Equal(t, 1, k.Version)
		require.Equal(t, wire.IsUniversal(k.Name), k.Universal)
		found, ok := r.Find(k.Name)
		require.True(t, ok)
		require.Equal(t, 1, found.Version)
		require.NotNil(t, found.Payload)
		require.Empty(t, schema.Lint(k.Schema, schema.LevelAlways), k.Name)
	}
	_, ok := r.Find("unknown")
	require.False(t, ok)
}

func TestRegister_AcceptsVendorKindsOnly(t *testing.T) {
	t.Parallel()
	long := "vendor.acme."
	for len(long) < 257 {
		long += "x"
	}
	tests := map[string]struct {
		name    string
		version int
		doc     string
		ok      bool
	}{
		"vendor":            {name, 3, tierOne, true},
		"own":               {"vendor.waybill.report", 0, tierOne, true},
		"deep":              {"vendor.acme.prd.create", 1, tierOne, true},
		"universal again":   {"error", 1, tierOne, false},
		"core family":       {"media.image", 1, tierOne, false},
		"legacy":            {"prd.create", 1, tierOne, false},
		"no kind":           {"vendor.acme", 1, tierOne, false},
		"path":              {"vendor.acme.../../etc", 1, tierOne, false},
		"slash":             {"vendor.acme.a/b", 1, tierOne, false},
		"empty segment":     {"vendor.acme..x", 1, tierOne, false},
		"too long":          {long, 1, tierOne, false},
		"negative version":  {name, -1, tierOne, false},
		"no schema":         {name, 1, `{"type":"objekt"}`, false},
		"not JSON":          {name, 1, `{`, false},
		"reference outside": {name, 1, `{"$ref":"https://example.com/x.json"}`, false},
	}
	for label, tc := range tests {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			r := registry(t, kinds.LintOff)
			_, err := r.Register(tc.name, tc.version, []byte(tc.doc))
			if tc.ok {
				require.NoError(t, err)
				k, found := r.Find(tc.name)
				require.True(t, found)
				require.Equal(t, tc.version, k.Version)
				_, err = r.Register(tc.name, tc.version, []byte(tc.doc))
				require.Equal(t, fault.ValidationError, fault.CodeOf(err), "once only")
				return
			}
			require.Equal(t, fault.ValidationError, fault.CodeOf(err))
			require.Len(t, r.Names(), protocolKinds)
		})
	}
}

// OpenWOP envelope contract §4: kinds are served in 2020-12, whatever they were written in.
func TestRegister_ConvertsOlderSchemas(t *testing.T) {
	t.Parallel()
	r := registry(t, kinds.LintOff)
	_, err := r.Register(name, 1, []byte(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"string","nullable":true}`))
	require.NoError(t, err)
	i := slices.IndexFunc(r.All(), func(k kinds.Kind) bool { return k.Name == name })
	require.JSONEq(t, `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":["string","null"]}`, string(r.All()[i].Schema))
	k, ok := r.Find(name)
	require.True(t, ok)
	require.Empty(t, k.Payload.Validate([]byte(`null`)))
}

// OpenWOP envelope contract §20, tierOneSubsetCompliance.
func TestRegister_LintsByLevel(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		lint     kinds.Lint
		doc      string
		ok       bool
		warnings bool
	}{
		"inside, strict":       {kinds.LintStrict, tierOne, true, false},
		"inside, warn":         {kinds.LintWarn, tierOne, true, false},
		"constraints, strict":  {kinds.LintStrict, optional, false, false},
		"constraints, warn":    {kinds.LintWarn, optional, true, false},
		"oneOf, strict (§4.2)": {kinds.LintStrict, variants, false, false},
		"oneOf, warn":          {kinds.LintWarn, variants, true, true},
		"oneOf, off":           {kinds.LintOff, variants, true, false},
		"renamed, warn":        {kinds.LintWarn, `{"type":"object","properties":{"a b":{"type":"string"}},"required":["a b"],"additionalProperties":false}`, true, true},
		"scalar, warn":         {kinds.LintWarn, `{"enum":["yes","no"]}`, true, true},
	}
	for label, tc := range tests {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			r := registry(t, tc.lint)
			warnings, err := r.Register(name, 1, []byte(tc.doc))
			require.Equal(t, tc.ok, err == nil, "%v", err)
			require.Equal(t, tc.warnings, len(warnings) > 0, "%v", warnings)
			for _, w := range warnings {
				require.Contains(t, w, name)
			}
		})
	}
	require.True(t, kinds.LintWarn.Valid())
	require.False(t, kinds.Lint("loud").Valid())
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestLoadDir_RegistersEveryKindOfAFolder(t *testing.T) {
	t.Parallel()
	r := registry(t, kinds.LintWarn)
	warnings, err := r.LoadDir(fstest.MapFS{
		"vendor.acme.note.schema.json":     file(tierOne),
		"vendor.acme.seven.schema.json":    file(`{"x-schemaVersion":7.0,` + tierOne[1:]),
		"vendor.acme.zero.schema.json":     file(`{"x-schemaVersion":0,` + tierOne[1:]),
		"vendor.acme.case.schema.json":     file(`{"X-SchemaVersion":7,` + tierOne[1:]),
		"vendor.acme.variants.schema.json": file(variants),
		"README.md":                        file("not a kind"),
		"sub.schema.json/x":                file("a folder"),
	})
	require.NoError(t, err)
	require.Len(t, warnings, 2, "a misspelled keyword, too")
	require.Len(t, r.Names(), protocolKinds+5)
	for kind, version := range map[string]int{
		"vendor.acme.note":  1,
		"vendor.acme.seven": 7,
		"vendor.acme.zero":  0,
		"vendor.acme.case":  1,
	} {
		k, ok := r.Find(kind)
		require.True(t, ok)
		require.Equal(t, version, k.Version)
	}
}

func TestLoadDir_ReportsEveryUnusableFile(t *testing.T) {
	t.Parallel()
	r := registry(t, kinds.LintWarn)
	_, err := r.LoadDir(fstest.MapFS{
		"vendor.acme.good.schema.json":      file(tierOne),
		"vendor.acme.broken.schema.json":    file(`{`),
		"vendor.acme.half.schema.json":      file(`{"x-schemaVersion":1.5}`),
		"vendor.acme.minus.schema.json":     file(`{"x-schemaVersion":-1}`),
		"vendor.acme.huge.schema.json":      file(`{"x-schemaVersion":1e12}`),
		"vendor.acme.monster.schema.json":   file(`{"x-schemaVersion":1e999999999}`),
		"vendor.acme.words.schema.json":     file(`{"x-schemaVersion":"one"}`),
		"vendor.acme.toobig.schema.json":    file(string(make([]byte, 1<<20+1))),
		"media.image.schema.json":           file(tierOne),
		"clarification.request.schema.json": file(tierOne),
	})
	require.Error(t, err)
	for _, name := range []string{
		"broken", "half", "minus", "huge", "monster", "words", "toobig", "media.image",
		"clarification.request",
	} {
		require.Contains(t, err.Error(), name)
	}
	require.NotContains(t, err.Error(), "good")
}

func TestLoadDir_NeedsAFolder(t *testing.T) {
	t.Parallel()
	_, err := registry(t, kinds.LintWarn).LoadDir(os.DirFS("no-such-folder"))
	require.Error(t, err)
}

func FuzzLoadDir(f *testing.F) {
	f.Add([]byte(tierOne))
	f.Add([]byte(`{"x-schemaVersion":1e3,"$ref":"#"}`))
	protocols := registry(f, kinds.LintWarn)
	f.Fuzz(func(t *testing.T, doc []byte) {
		r := protocols.Clone()
		if _, err := r.LoadDir(fstest.MapFS{name + ".schema.json": &fstest.MapFile{Data: doc}}); err != nil {
			require.Len(t, r.Names(), protocolKinds)
			return
		}
		k, ok := r.Find(name)
		require.True(t, ok)
		require.GreaterOrEqual(t, k.Version, 0)
	})
}

// A schema that compiles is refused if no payload satisfies it. Other mistakes are warnings at all levels.
func TestRegister_WarnsAboutMistakes(t *testing.T) {
	t.Parallel()
	property := func(doc string) string {
		return `{"type":"object","required":["a"],"additionalProperties":false,"properties":{"a":` + doc + `}}`
	}
	for label, tc := range map[string]struct {
		doc, says string
		lint      kinds.Lint
		refused   bool
	}{
		"a contradiction":          {property(`{"type":"string","enum":[1]}`), `"/properties/a/enum": contradiction`, kinds.LintStrict, false},
		"a format":                 {property(`{"type":"string","format":"datetime"}`), "unknown-format", kinds.LintWarn, false},
		"a default":                {property(`{"type":"string","default":1}`), "example", kinds.LintStrict, false},
		"a branch":                 {property(`{"anyOf":[{"type":"string","enum":[1]},{"type":"null"}]}`), "contradiction", kinds.LintWarn, false},
		"no payload":               {`{"type":"object","required":["a"],"properties":{"a":false}}`, "must and must not", kinds.LintWarn, true},
		"no payload, not linted":   {`{"type":"object","required":["a"],"properties":{"a":false}}`, "", kinds.LintOff, false},
		"a misspelled keyword":     {`{"type":"object","propertis":{}}`, "did you mean properties?", kinds.LintWarn, true},
		"a contradiction, at root": {`{"enum":[]}`, "lists no value", kinds.LintWarn, true},
	} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			warnings, err := registry(t, tc.lint).Register(name, 1, []byte(tc.doc))
			if tc.refused {
				require.ErrorContains(t, err, tc.says)
				return
			}
			require.NoError(t, err)
			require.Contains(t, strings.Join(warnings, "\n"), tc.says)
		})
	}
}

func TestRegister_ReportsEveryFindingOfARefusedSchema(t *testing.T) {
	t.Parallel()
	_, err := registry(t, kinds.LintStrict).Register(name, 1, []byte(`{"type":"object","oneOf":[{"type":"string"}],"properties":{"a":{"type":"string","maxLength":3}}}`))
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
	for _, want := range []string{
		`"/oneOf": forbidden-keyword (openai, anthropic, gemini)`, `"": additional-properties-false`,
		`"/properties/a/maxLength": no-string-constraint`,
		`"/properties/a": all-properties-required`,
	} {
		require.Contains(t, err.Error(), want)
	}
}

// OpenWOP envelope contract §20, §24 C16: the protocol's own kinds leave the
// strict subset.
func TestSubset_ClaimsOnlyWhatAllKindsSatisfy(t *testing.T) {
	t.Parallel()
	for lint, want := range map[kinds.Lint]kinds.Lint{
		kinds.LintStrict: kinds.LintWarn, kinds.LintWarn: kinds.LintWarn, kinds.LintOff: kinds.LintOff,
	} {
		require.Equal(t, want, registry(t, lint).Subset(), lint)
	}
}

// envelopes.tierOneSubsetCompliance warn: every kind that leaves the strict subset is logged, those of the
// protocol included.
func TestViolations_ListEveryKindOutsideTheStrictSubset(t *testing.T) {
	t.Parallel()
	r, err := kinds.New(kinds.LintWarn)
	require.NoError(t, err)
	_, err = r.Register("vendor.acme.strict", 1, []byte(`{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"type":"string"}}}`))
	require.NoError(t, err)
	_, err = r.Register("vendor.acme.loose", 1, []byte(`{"type":"object","properties":{"a":{"type":"string","minLength":1}}}`))
	require.NoError(t, err)
	found := map[string][]string{}
	for _, v := range r.Violations() {
		found[v.Kind] = v.Rules
	}
	require.Contains(t, found, "clarification.request")
	require.NotContains(t, found, "vendor.acme.strict")
	require.Greater(t, len(found["vendor.acme.loose"]), 1)
	off, err := kinds.New(kinds.LintOff)
	require.NoError(t, err)
	require.Empty(t, off.Violations())
}
