package pack_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/pack"
)

const (
	schemaDoc = `{"type":"object","additionalProperties":false,"required":["text"],"properties":{"text":{"type":"string"}}}`
	kindsOnly = `{"name":"vendor.acme.notes","version":"1.2.0","engines":{"openwop":">=1.0 <2.0.0"}}`
	ownKinds  = `{"envelopeKinds":[{"kind":"vendor.acme.note","version":2,"schemaRef":"schemas/note.json"}]}`
	withNode  = `{"name":"vendor.acme.tools","version":"1.0.0","engines":{"openwop":">=1.0"},
		"runtime":{"language":"javascript","entry":"dist/index.mjs"},
		"nodes":[{"typeId":"vendor.acme.write","version":"1.0.0","category":"data","role":"side-effect",
			"envelopeContractRef":"contracts/write.json","configSchemaRef":"schemas/config.json"}]}`
)

func files(of map[string]string) fs.FS {
	m := fstest.MapFS{}
	for name, text := range of {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func notes() pack.Source {
	return pack.Source{Folder: "notes", FS: files(map[string]string{"pack.json": kindsOnly, "waybill.json": ownKinds, "schemas/note.json": schemaDoc})}
}

func tools() pack.Source {
	return pack.Source{Folder: "tools", FS: files(map[string]string{
		"pack.json": withNode, "contracts/write.json": `{"accepts":["vendor.acme.note","error"],"refusalMode":"discard-and-warn"}`, "schemas/config.json": `{}`,
	})}
}

func TestLoad_GivesPacksInTheOrderOfTheirFolders(t *testing.T) {
	t.Parallel()
	packs, said, err := pack.Load([]pack.Source{tools(), notes()}, pack.Host{})
	require.NoError(t, err)
	require.Len(t, packs, 2)
	require.Equal(t, "notes", packs[0].Folder)
	require.Equal(t, []pack.EnvelopeKind{{
		Name: "vendor.acme.note", Version: 2, Schema: []byte(schemaDoc), File: "schemas/note.json", At: "/envelopeKinds/0",
	}}, packs[0].Kinds)
	require.Equal(t, "discard-and-warn", packs[1].Nodes[0].Contract.RefusalMode)
	require.Equal(t, []pack.Accepted{{Kind: "error", TypeID: "vendor.acme.write"}, {Kind: "vendor.acme.note", TypeID: "vendor.acme.write"}}, packs[1].Accepted())
	require.Len(t, said, 1)
	require.Equal(t, `pack vendor.acme.tools (folder tools): pack.json at "/nodes/0": this host has no runtime for nodes of packs, and waybill.json does not define an implementation for this one; `+
		`runs of workflows with "vendor.acme.write" are rejected with capability_required`, said[0].String())
}

// edited returns the notes pack with changed or additional files.
func edited(manifest string, more map[string]string) []pack.Source {
	of := map[string]string{"pack.json": manifest, "waybill.json": ownKinds, "schemas/note.json": schemaDoc}
	for name, text := range more {
		of[name] = text
	}
	return []pack.Source{{Folder: "notes", FS: files(of)}}
}

func TestLoad_NamesThePackTheFileThePlaceAndTheRemedy(t *testing.T) {
	t.Parallel()
	swap := func(doc string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(doc) }
	own := func(pairs ...string) []pack.Source {
		return edited(kindsOnly, map[string]string{"waybill.json": swap(ownKinds, pairs...)})
	}
	ref := func(to string) []pack.Source { return own("schemas/note.json", to) }
	alone := func(manifest string) []pack.Source {
		return []pack.Source{{Folder: "notes", FS: files(map[string]string{"pack.json": manifest})}}
	}
	in := func(member string) []pack.Source {
		return edited(swap(kindsOnly, `"version":"1.2.0"`, `"version":"1.2.0",`+member), nil)
	}
	kinds := `waybill.json at "/envelopeKinds`
	for name, tc := range map[string]struct {
		sources []pack.Source
		says    []string
	}{
		"no manifest":                          {[]pack.Source{{Folder: "empty", FS: files(nil)}}, []string{"pack empty: pack.json", "no such file"}},
		"a manifest that is a folder":          {[]pack.Source{{Folder: "odd", FS: files(map[string]string{"pack.json/x": "{}"})}}, []string{"want a regular file"}},
		"a manifest too large":                 {edited(strings.Repeat(" ", 300<<10)+kindsOnly, nil), []string{"too large"}},
		"no JSON":                              {edited(`{`, nil), []string{"pack notes: pack.json", "byte 1"}},
		"a name twice":                         {edited(`{"name":"vendor.a.b","name":"vendor.a.c"}`, nil), []string{`"/name"`}},
		"a name in another case":               {edited(swap(kindsOnly, `"name"`, `"Name"`), nil), []string{`"/Name"`, "required member missing: name"}},
		"an unknown member":                    {in(`"envelopes":[]`), []string{`"/envelopes"`, "unknown member"}},
		"another family":                       {edited(swap(kindsOnly, `"name"`, `"kind":"prompt","name"`), nil), []string{`"/kind"`, "kind node only"}},
		"no engines":                           {edited(swap(kindsOnly, `,"engines":{"openwop":">=1.0 <2.0.0"}`, ""), nil), []string{"engines"}},
		"nothing in it":                        {alone(`{"name":"vendor.a.b","version":"1.0.0","engines":{"openwop":"*"},"runtime":{"language":"go","entry":"x"}}`), []string{`pack notes: pack.json at ""`, "nodes", "agents"}},
		"nothing for this host":                {own(`"envelopeKinds"`, `"kinds"`), []string{`waybill.json at "/kinds"`, "unknown member"}},
		"an empty file for this host":          {edited(kindsOnly, map[string]string{"waybill.json": `{}`}), []string{`waybill.json at ""`}},
		"a file for this host that is no JSON": {edited(kindsOnly, map[string]string{"waybill.json": `{`}), []string{"waybill.json", "byte 1"}},
		"a local name":                         {edited(swap(kindsOnly, "vendor.acme.notes", "local.acme.notes"), nil), []string{`"/name"`, "want text that matches"}},
		"a version that is none":               {edited(swap(kindsOnly, "1.2.0", "1.2"), nil), []string{`"/version"`}},
		"a kind of the protocol":               {own("vendor.acme.note\"", "media.image\""), []string{kinds + `/0/kind"`, "vendor.<host>.<kind>"}},
		"a kind without a vendor":              {own("vendor.acme.note\"", "note\""), []string{kinds + `/0/kind"`}},
		"a kind that is a path":                {own("vendor.acme.note\"", "vendor.acme.../x\""), []string{kinds + `/0/kind"`}},
		"a kind twice in a pack": {
			own(`"schemaRef":"schemas/note.json"}`, `"schemaRef":"schemas/note.json"},{"kind":"vendor.acme.note","version":3,"schemaRef":"schemas/note.json"}`),
			[]string{kinds + `/1/kind"`, "already declares this kind"},
		},
		"a version below 0":          {own(`"version":2`, `"version":-1`), []string{kinds + `/0/version"`}},
		"two versions of one kind":   {edited(kindsOnly, map[string]string{"schemas/note.json": `{"x-schemaVersion":3}`}), []string{`schemas/note.json at "/x-schemaVersion"`, "is 3", "has 2"}},
		"a strange version":          {edited(kindsOnly, map[string]string{"schemas/note.json": `{"x-schemaVersion":"2"}`}), []string{"schemas/note.json", "integer of at least 0"}},
		"an endless version":         {edited(kindsOnly, map[string]string{"schemas/note.json": `{"x-schemaVersion":1e99999999}`}), []string{"integer of at least 0"}},
		"a schema that is no object": {edited(kindsOnly, map[string]string{"schemas/note.json": `true`}), []string{"schemas/note.json", "JSON object"}},
		"a schema that is no JSON":   {edited(kindsOnly, map[string]string{"schemas/note.json": `{"a":1,"a":2}`}), []string{`schemas/note.json at "/a"`}},
		"a schema too large":         {edited(kindsOnly, map[string]string{"schemas/note.json": `"` + strings.Repeat("x", 300<<10) + `"`}), []string{kinds + `/0/schemaRef"`, "too large"}},
		"no schema":                  {ref("schemas/other.json"), []string{kinds + `/0/schemaRef"`, "schemas/other.json: the pack has no such file"}},
		"a way up":                   {ref("../notes/schemas/note.json"), []string{kinds + `/0/schemaRef"`, "no .. among them"}},
		"a way up in the middle":     {ref("schemas/../../etc/passwd"), []string{kinds + `/0/schemaRef"`}},
		"an absolute path":           {ref("/etc/passwd"), []string{kinds + `/0/schemaRef"`, "relative"}},
		"a path of Windows":          {ref(`C:\\x.json`), []string{kinds + `/0/schemaRef"`}},
		"a folder as schema":         {ref("schemas"), []string{kinds + `/0/schemaRef"`, "want a regular file"}},
		"the pack as schema":         {ref("."), []string{kinds + `/0/schemaRef"`}},
		"a dependency that is away":  {in(`"dependencies":{"vendor.acme.base":"^1.0.0"}`), []string{`"/dependencies/vendor.acme.base"`, "is missing"}},
		"an action without a node":   {in(`"connector":{"id":"acme","displayName":"A","actions":[{"typeId":"vendor.acme.none","displayName":"N"}]}`), []string{`"/connector/actions/0/typeId"`, "connector_action_unresolved"}},
		"an entry outside":           {edited(swap(withNode, "dist/index.mjs", "../index.mjs"), nil), []string{`"/runtime/entry"`}},
		"a node without a runtime":   {alone(swap(kindsOnly, `"version":"1.2.0"`, `"version":"1.2.0","nodes":[{"typeId":"a","version":"1","category":"data","role":"pure"}]`)), []string{"runtime"}},
		"a contract that is away":    {edited(withNode, map[string]string{"schemas/config.json": `{}`}), []string{`"/nodes/0/envelopeContractRef"`, "contracts/write.json: the pack has no such file"}},
		"a contract without accepts": {edited(withNode, map[string]string{"schemas/config.json": `{}`, "contracts/write.json": `{}`}), []string{`contracts/write.json at ""`, "accepts"}},
		"a contract with a mode of its own": {
			edited(withNode, map[string]string{"schemas/config.json": `{}`, "contracts/write.json": `{"accepts":[],"refusalMode":"ignore"}`}),
			[]string{`contracts/write.json at "/refusalMode"`, "discard-and-warn"},
		},
		"a key that is a path up": {in(`"signing":{"publicKeyRef":"../key.pem"}`), []string{`"/signing/publicKeyRef"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			packs, _, err := pack.Load(tc.sources, pack.Host{})
			require.Empty(t, packs)
			require.Equal(t, fault.ValidationError, fault.CodeOf(err), "%v", err)
			for _, want := range append(tc.says, "pack ") {
				require.Contains(t, err.Error(), want)
			}
		})
	}
}

func TestLoad_NamesBothPacksThatClaimAKind(t *testing.T) {
	t.Parallel()
	other := pack.Source{Folder: "copy", FS: files(map[string]string{
		"pack.json": strings.Replace(kindsOnly, "vendor.acme.notes", "vendor.other.notes", 1), "waybill.json": ownKinds, "schemas/note.json": schemaDoc,
	})}
	_, _, err := pack.Load([]pack.Source{notes(), other}, pack.Host{})
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
	for _, want := range []string{"pack vendor.acme.notes (folder notes)", "declared by pack vendor.other.notes (folder copy)", "/envelopeKinds/0/kind"} {
		require.Contains(t, err.Error(), want)
	}
}

func TestLoad_RejectsADuplicatePack(t *testing.T) {
	t.Parallel()
	twin := notes()
	twin.Folder = "twin"
	_, _, err := pack.Load([]pack.Source{twin, notes()}, pack.Host{})
	require.ErrorContains(t, err, "folder notes also holds pack vendor.acme.notes")
}

// All problems are reported in one call, and nothing is loaded.
func TestLoad_ReportsAllErrorsAndLoadsNone(t *testing.T) {
	t.Parallel()
	packs, said, err := pack.Load([]pack.Source{tools(), {Folder: "empty", FS: files(nil)}, {Folder: "void", FS: files(nil)}}, pack.Host{})
	require.Empty(t, packs)
	require.Empty(t, said)
	require.ErrorContains(t, err, "pack empty")
	require.ErrorContains(t, err, "pack void")
}

// All problems of a pack are reported in one call.
func TestLoad_ReportsAllErrorsOfAPack(t *testing.T) {
	t.Parallel()
	manifest := `{"name":"Acme","version":"1.0.0","engines":{"openwop":"soon"},"runtime":{"language":"javascript","entry":"../index.mjs"},
		"peerDependencies":{"credentials":"supported","a/b":">=1"},
		"nodes":[{"typeId":"vendor.acme.write","version":"1.0.0","category":"data","role":"side-effect","configSchemaRef":"schemas/none.json","inputSchemaRef":"schemas/broken.json"},
			{"typeId":"vendor.acme.write","version":"1.0.0","category":"data","role":"side-effect"}]}`
	packs, _, err := pack.Load([]pack.Source{{Folder: "notes", FS: files(map[string]string{
		"pack.json": manifest, "schemas/broken.json": `{"type":`, "p.json": `{`,
		"waybill.json": `{"envelopeKinds":[{"kind":"core.note","version":1,"schemaRef":"schemas/absent.json"}],"prompts":["p.json"],` +
			`"nodes":{"vendor.acme.ghost":{"base":"core.ai.callPrompt"},"vendor.acme.write":{"base":"core.none","configRefs":{"prompt":"gone.txt"}}}}`,
	})}}, pack.Host{Types: []string{"core.ai.callPrompt"}, InRange: func(string, string) (bool, error) { return false, errors.New("no range") }})
	require.Empty(t, packs)
	var places []string
	for _, e := range fault.All(err) {
		places = append(places, fmt.Sprintf("%s %s", e.Details["file"], e.Details["path"]))
	}
	require.ElementsMatch(t, []string{
		"pack.json /name", "pack.json /nodes/0/configSchemaRef", "pack.json /nodes/1/typeId", "schemas/broken.json /type",
		"pack.json /runtime/entry", "pack.json /engines/openwop", "pack.json /peerDependencies/credentials", "pack.json /peerDependencies/a~1b",
		"waybill.json /envelopeKinds/0/kind", "waybill.json /envelopeKinds/0/schemaRef", "p.json ",
		"waybill.json /nodes/vendor.acme.ghost", "waybill.json /nodes/vendor.acme.write/base", "waybill.json /nodes/vendor.acme.write/configRefs/prompt",
	}, places, "%v", err)
}

// OpenWOP envelope contract §16.5, and §24 C15 for the two spellings.
func TestLoad_RejectsAPackWithUnmetRequirements(t *testing.T) {
	t.Parallel()
	host := pack.Host{Capabilities: []string{"aiProviders", "modelCapabilities"}, Model: func(id string) bool {
		return id == "vision-input" || id == "x-host-acme-ocr"
	}}
	for peers, want := range map[string]struct {
		code fault.Code
		says string
	}{
		`{}`: {"", ""},
		`{"aiProviders":{"modelCapabilities":["vision-input","x-host-acme-ocr"]}}`: {"", ""},
		`{"aiProviders":{"modelCapabilities":["vision-input","audio-input"]}}`:     {fault.HostCapabilityMissing, "/peerDependencies/aiProviders"},
		`{"aiProviders.modelCapabilities":"vision-input"}`:                         {"", ""},
		`{"aiProviders.modelCapabilities":"vision-input, audio-input"}`:            {fault.HostCapabilityMissing, "a model with the capability audio-input"},
		`{"modelCapabilities":"long-context"}`:                                     {fault.HostCapabilityMissing, "long-context"},
		`{"modelCapabilities.vision-input":"supported"}`:                           {"", ""},
		`{"aiProviders.modelCapabilities.reasoning":"supported"}`:                  {fault.HostCapabilityMissing, "reasoning"},
		`{"modelCapabilities":"supported","aiProviders":"supported"}`:              {"", ""},
		`{"credentials":"supported"}`:                                              {fault.HostCapabilityMissing, "the capability credentials"},
		`{"aiProviders":"Vision"}`:                                                 {fault.ValidationError, "want \"supported\""},
		`{"modelCapabilities":"Vision"}`:                                           {fault.ValidationError, "want \"supported\""},
		`{"modelCapabilities":" "}`:                                                {fault.ValidationError, "want \"supported\""},
		`{"a/b":">=1"}`:                                                            {fault.ValidationError, `"/peerDependencies/a~1b"`},
		`{"aiProviders":{"modelCapabilities":["Vision"]}}`:                         {fault.ValidationError, "/peerDependencies/aiProviders/modelCapabilities/0"},
		`{"aiProviders":{}}`:                                                       {fault.ValidationError, "/peerDependencies/aiProviders"},
		`{"other":{"modelCapabilities":["vision-input"]}}`:                         {fault.ValidationError, "/peerDependencies/other"},
	} {
		t.Run(peers, func(t *testing.T) {
			t.Parallel()
			doc := strings.Replace(kindsOnly, `"version":"1.2.0"`, `"version":"1.2.0","peerDependencies":`+peers, 1)
			packs, _, err := pack.Load(edited(doc, nil), host)
			require.Equal(t, want.code, fault.CodeOf(err), "%v", err)
			if want.code == "" {
				require.Len(t, packs, 1)
				return
			}
			require.ErrorContains(t, err, want.says)
		})
	}
}

func TestLoad_SkipsUnmetOptionalRequirementsAndLogsThem(t *testing.T) {
	t.Parallel()
	doc := strings.Replace(kindsOnly, `"version":"1.2.0"`, `"version":"1.2.0","peerDependencies":{"credentials":"supported"},"peerDependenciesMeta":{"credentials":{"optional":true}}`, 1)
	packs, said, err := pack.Load(edited(doc, nil), pack.Host{})
	require.NoError(t, err)
	require.Len(t, packs, 1)
	require.Len(t, said, 1)
	require.Contains(t, said[0].String(), "without the capability credentials")
}

func TestLoad_ChecksVersionRanges(t *testing.T) {
	t.Parallel()
	host := pack.Host{Protocol: "1.1", InRange: func(version, versions string) (bool, error) {
		if versions == "soon" {
			return false, errors.New("no range")
		}
		return strings.Contains(versions, version), nil
	}}
	ranges := func(openwop, notesVersion string) []pack.Source {
		n := files(map[string]string{"pack.json": strings.Replace(kindsOnly, ">=1.0 <2.0.0", openwop, 1), "waybill.json": ownKinds, "schemas/note.json": schemaDoc})
		return []pack.Source{{Folder: "notes", FS: n}, {Folder: "tools", FS: files(map[string]string{
			"pack.json":            strings.NewReplacer(`">=1.0"`, `"1.1"`, `"runtime"`, `"dependencies":{"vendor.acme.notes":"`+notesVersion+`"},"runtime"`).Replace(withNode),
			"contracts/write.json": `{"accepts":[]}`, "schemas/config.json": `{}`,
		})}}
	}
	packs, _, err := pack.Load(ranges("1.0 1.1", "1.2.0"), host)
	require.NoError(t, err)
	require.Len(t, packs, 2)
	for says, sources := range map[string][]pack.Source{
		`"/engines/openwop": this host speaks OpenWOP 1.1, which is outside this range`:                    ranges("2.0", "1.2.0"),
		`"/engines/openwop": want a range of versions`:                                                     ranges("soon", "1.2.0"),
		`"/dependencies/vendor.acme.notes": there is vendor.acme.notes 1.2.0, which is outside this range`: ranges("1.1", "9"),
		`"/dependencies/vendor.acme.notes": want a range of versions`:                                      ranges("1.1", "soon"),
	} {
		packs, _, err := pack.Load(sources, host)
		require.Empty(t, packs)
		require.ErrorContains(t, err, says)
	}
}
