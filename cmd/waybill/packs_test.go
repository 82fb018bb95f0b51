package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/clitest"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/schematest"
	"waybill.dev/waybill/services/dispatcher/catalogue"
)

func TestLoadPacks_ReadsEachFolderAndLeavesOtherFilesAlone(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"notes/pack.json": clitest.NotePack, "notes/waybill.json": clitest.NoteKinds, "notes/schemas/note.json": `{"type":"object"}`, "README.md": "of people", ".git/config": "of git",
	})
	require.NoError(t, os.Symlink("note.json", filepath.Join(dir, "notes", "schemas", "same.json")))
	var logged bytes.Buffer
	loaded, err := loadPacks(dir, sampleOffers(), slog.New(slog.NewTextHandler(&logged, nil)))
	require.NoError(t, err)
	require.Len(t, loaded, 1)
	require.Equal(t, "vendor.acme.note", loaded[0].Kinds[0].Name)
	require.Empty(t, logged.String())

	loaded, err = loadPacks("", sampleOffers(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Empty(t, loaded)
}

// No link leads out of a pack, not even into the pack beside it.
func TestLoadPacks_KeepsEachPackWithinItsFolder(t *testing.T) {
	t.Parallel()
	outside := clitest.Folder(t, map[string]string{"note.json": `{"type":"object","title":"SECRET"}`, "pack.json": clitest.NotePack, "waybill.json": clitest.NoteKinds})
	for name, link := range map[string]struct{ at, to string }{
		"a file outside, absolute":  {"notes/schemas/note.json", filepath.Join(outside, "note.json")},
		"a file of another pack":    {"notes/schemas/note.json", "../../other/schemas/note.json"},
		"a folder outside":          {"notes/schemas", outside},
		"a manifest outside":        {"notes/pack.json", filepath.Join(outside, "pack.json")},
		"a pack outside":            {"notes", outside},
		"a link that leads nowhere": {"notes/schemas/note.json", "gone.json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, map[string]string{
				"notes/pack.json": clitest.NotePack, "notes/waybill.json": clitest.NoteKinds, "other/pack.json": strings.Replace(clitest.NotePack, "acme.notes", "other.notes", 1), "other/waybill.json": strings.Replace(clitest.NoteKinds, "acme.note\"", "other.note\"", 1),
				"other/schemas/note.json": `{"type":"object"}`,
			})
			at := filepath.Join(dir, link.at)
			require.NoError(t, os.RemoveAll(at))
			require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o700))
			require.NoError(t, os.Symlink(link.to, at))
			loaded, err := loadPacks(dir, sampleOffers(), slog.New(slog.DiscardHandler))
			require.Empty(t, loaded)
			require.ErrorIs(t, err, errUsage)
			require.ErrorContains(t, err, "pack ")
			require.ErrorContains(t, err, "notes")
			require.NotContains(t, err.Error(), "SECRET")
			require.NotContains(t, err.Error(), outside)
		})
	}
}

func TestLoadPacks_ReadsNoArchiveAndSaysSo(t *testing.T) {
	t.Parallel()
	_, err := loadPacks(clitest.Folder(t, map[string]string{"notes.tgz": "x"}), sampleOffers(), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "pack notes.tgz: archives are not read; unpack it into a folder")
	_, err = loadPacks(filepath.Join(t.TempDir(), "none"), sampleOffers(), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "give an existing directory of packs")
}

// The test process would hang if the pipe were opened.
func TestLoadPacks_OpensNothingButFiles(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"notes/pack.json": clitest.NotePack, "notes/waybill.json": clitest.NoteKinds})
	require.NoError(t, os.Mkdir(filepath.Join(dir, "notes", "schemas"), 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "notes", "schemas", "note.json"), 0o600))
	_, err := loadPacks(dir, sampleOffers(), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "pack vendor.acme.notes (folder notes)")
	require.ErrorContains(t, err, "want a file, and this is none")
}

func TestLoadPacks_SaysWhatHasNoEffect(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"tools/pack.json": `{"name":"vendor.acme.tools","version":"1.0.0","engines":{"openwop":"*"},
		"runtime":{"language":"remote","entry":"https://acme.example"},
		"nodes":[{"typeId":"vendor.acme.write","version":"1","category":"data","role":"pure"}]}`})
	var logged bytes.Buffer
	_, err := loadPacks(dir, sampleOffers(), slog.New(slog.NewTextHandler(&logged, nil)))
	require.NoError(t, err)
	require.Contains(t, logged.String(), "has no runtime for nodes of packs")
	require.Contains(t, logged.String(), "vendor.acme.write")
}

func TestSchemaLint_TakesAPack(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"pack.json": clitest.NotePack, "waybill.json": clitest.NoteKinds, "schemas/note.json": `{"type":"object","properties":{"a":{"oneOf":[{"type":"string"}]}}}`})
	out, err := command(t, "", "schema", "lint", "-o", "json", dir)
	require.ErrorIs(t, err, errFindings)
	var found []finding
	require.NoError(t, json.Unmarshal([]byte(out), &found))
	require.Len(t, found, 1)
	require.Equal(t, filepath.Join(dir, "schemas", "note.json"), found[0].File)
	require.Equal(t, "/properties/a/oneOf", found[0].Path)

	dir = clitest.Folder(t, map[string]string{"pack.json": clitest.NotePack, "waybill.json": strings.Replace(clitest.NoteKinds, "vendor.acme.note\"", "note\"", 1)})
	out, err = command(t, "", "schema", "lint", dir)
	require.ErrorIs(t, err, errFindings)
	require.Contains(t, out, "waybill.json: /envelopeKinds/0/kind: not-a-pack: ")
	require.Contains(t, out, "vendor.<host>.<kind>")

	dir = clitest.Folder(t, map[string]string{"pack.json": clitest.NotePack, "waybill.json": clitest.NoteKinds, "schemas/note.json": `{"type":"object"}`})
	out, err = command(t, "", "schema", "lint", dir)
	require.NoError(t, err)
	require.Empty(t, out)
}

func TestEnvelopeLint_KnowsTheKindsOfPacks(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"notes/pack.json": clitest.NotePack, "notes/waybill.json": clitest.NoteKinds, "notes/schemas/note.json": `{"type":"object","required":["text"]}`})
	for payload, ok := range map[string]bool{`{"text":"x"}`: true, `{}`: false} {
		out, err := command(t, envelopeOf(t, "vendor.acme.note", 2, payload), "envelope", "lint", "-", "--packs", dir)
		require.Equal(t, ok, err == nil, "%s %v", out, err)
	}
}

func envelopeOf(t *testing.T, kind string, version int, payload string) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"type": kind, "schemaVersion": version, "envelopeId": "e", "correlationId": "c", "payload": json.RawMessage(payload),
		"meta": map[string]any{"source": "ai-generation", "ts": "2026-01-31T12:00:00Z"},
	})
	require.NoError(t, err)
	return string(b)
}

// A pack may ask for what only other hosts offer; whoever lints it has none.
func TestSchemaLint_AsksNothingOfAHost(t *testing.T) {
	t.Parallel()
	needy := strings.Replace(clitest.NotePack, `"engines"`, `"peerDependencies":{"aiProviders":{"modelCapabilities":["vision-input"]}},"engines"`, 1)
	dir := clitest.Folder(t, map[string]string{"notes/pack.json": needy, "notes/waybill.json": clitest.NoteKinds, "notes/schemas/note.json": `{"type":"object"}`})
	_, err := command(t, "", "schema", "lint", filepath.Join(dir, "notes"))
	require.NoError(t, err)
	_, err = loadPacks(dir, sampleOffers(), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "host_capability_missing")
	require.ErrorContains(t, err, `pack.json at "/peerDependencies/aiProviders": needs a model with the capability vision-input`)
	require.Len(t, fault.All(err), 1)
}

func TestInRange_ReadsTheRangesOfPacks(t *testing.T) {
	t.Parallel()
	for versions, want := range map[string]bool{
		">=1.0 <2.0.0": true, ">=1.0": true, "^1.0.0": true, "*": true, "1.x": true, "1.1": true, "<1 || >=1.1": true,
		">=2.0.0": false, "~1.0.0": false, ">1.1.0": false, "0.9": false,
	} {
		in, err := inRange("1.1", versions)
		require.NoError(t, err, versions)
		require.Equal(t, want, in, versions)
	}
	for _, versions := range []string{"soon", "", ">=", ">=1.0 <two"} {
		_, err := inRange("1.1", versions)
		require.Error(t, err, "%q", versions)
	}
}

func TestLoadPacks_RefusesAPackForAnotherProtocol(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"notes/pack.json": strings.Replace(clitest.NotePack, ">=1.0", ">=2.0", 1), "notes/waybill.json": clitest.NoteKinds, "notes/schemas/note.json": `{"type":"object"}`})
	_, err := loadPacks(dir, sampleOffers(), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, `pack.json at "/engines/openwop": this host speaks OpenWOP 1.1`)
}

func TestSchemaLint_SaysThatAFolderIsNoPack(t *testing.T) {
	t.Parallel()
	_, err := command(t, "", "schema", "lint", t.TempDir())
	require.ErrorIs(t, err, errUsage)
	require.ErrorContains(t, err, "a folder without a pack.json")
}

func TestServeAcceptor_ReadsPacks(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"notes/pack.json": clitest.NotePack, "notes/waybill.json": strings.Replace(clitest.NoteKinds, "vendor.acme.note\"", "note\"", 1)})
	_, err := command(t, "", "serve", "acceptor", "--grpc-addr", "127.0.0.1:0", "--data-dir", t.TempDir(), "--packs", dir)
	require.ErrorIs(t, err, errUsage)
	require.ErrorContains(t, err, "waybill.json at \"/envelopeKinds/0/kind\"")
}

// sampleOffers is what a host offers that has the stand-in alone.
func sampleOffers() pack.Host {
	return devOffers(catalogue.Builtin(), []string{"sample"}, "sample/sample-1")
}

// OpenWOP envelope contract §16.5: what the gate could satisfy counts.
func TestDevOffers_VouchesForModelsThatCanBeAsked(t *testing.T) {
	t.Parallel()
	require.True(t, sampleOffers().Model("structured-output"))
	require.False(t, sampleOffers().Model("vision-input"))
	with := func(provider, defaultModel string) func(string) bool {
		return devOffers(catalogue.Builtin(), []string{"sample", provider}, defaultModel).Model
	}
	require.True(t, with("anthropic", "sample/sample-1")("vision-input"))
	require.False(t, with("anthropic", "sample/sample-1")("image-output"))
	require.False(t, with("anthropic", "sample/sample-1")("x-host-acme-none"))
	require.True(t, with("gemini", "sample/sample-1")("image-output"), "a rule of the vendor's models")
	require.True(t, with("local", "sample/sample-1")("vision-input"), "a model that the server may have")
	require.False(t, with("local", "sample/sample-1")("image-output"))
	require.True(t, with("gemini", "gemini/some-image-model")("image-output"), "the default model")
}

// Nothing is opened before the packs are read: no port, no data.
func TestDev_EndsAtOnceWhenAPackCannotBeLoaded(t *testing.T) {
	t.Parallel()
	dir, data := clitest.Folder(t, map[string]string{"notes/pack.json": clitest.NotePack, "notes/waybill.json": clitest.NoteKinds}), filepath.Join(t.TempDir(), "data")
	_, err := command(t, "", "dev", "--http-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--data-dir", data, "--packs", dir)
	require.ErrorIs(t, err, errUsage)
	require.ErrorContains(t, err, "pack vendor.acme.notes (folder notes): waybill.json at \"/envelopeKinds/0/schemaRef\": schemas/note.json: the pack has no such file")
	require.NoFileExists(t, filepath.Join(data, "host.key"))
	require.NoDirExists(t, filepath.Join(data, "nats"))
}

// Each file is named that holds no kind, and they are errors of the command line.
func TestDev_NamesEachKindThatCannotBeLoaded(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"vendor.acme.note.schema.json": `{"type":7}`, "vendor.acme.memo.schema.json": `{`})
	_, err := command(t, "", "dev", "--http-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--data-dir", filepath.Join(t.TempDir(), "data"), "--kinds", dir)
	require.ErrorIs(t, err, errUsage)
	require.ErrorContains(t, err, "vendor.acme.note.schema.json: validation_error: kind vendor.acme.note: not a usable JSON Schema")
	require.ErrorContains(t, err, "vendor.acme.memo.schema.json: validation_error: kind vendor.acme.memo: json at")
}

// The pack in the documentation is one.
func TestDocs_ShowAPackThatIsTaken(t *testing.T) {
	t.Parallel()
	blocks := jsonBlocks(t, "kinds.md")
	require.Len(t, blocks, 2)
	loaded, err := loadPacks(clitest.Folder(t, map[string]string{
		"notes/pack.json": blocks[0], "notes/waybill.json": blocks[1], "notes/schemas/note.json": `{"type":"object"}`,
	}), sampleOffers(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Equal(t, "vendor.acme.note", loaded[0].Kinds[0].Name)
}

// jsonBlocks are the JSON documents that a page of the documentation shows.
func jsonBlocks(t *testing.T, page string) (blocks []string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	require.NoError(t, err)
	for rest := string(b); ; {
		var found bool
		if _, rest, found = strings.Cut(rest, "```json\n"); !found {
			return blocks
		}
		var block string
		block, rest, _ = strings.Cut(rest, "```")
		blocks = append(blocks, block)
	}
}

// The example pack is taken, is a published manifest, and is the one that the
// documentation shows.
func TestExamplePacks_AreTaken(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "examples", "packs")
	loaded, err := loadPacks(dir, sampleOffers(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NotEmpty(t, loaded)
	for i, name := range []string{pack.File, pack.OwnFile} {
		b, err := os.ReadFile(filepath.Join(dir, "desk", name))
		require.NoError(t, err)
		require.JSONEq(t, string(b), jsonBlocks(t, "nodes.md")[i])
	}
	doc, err := os.ReadFile(filepath.Join(schematest.Dir(t), "schemas", "node-pack-manifest.schema.json"))
	require.NoError(t, err)
	theirs := schematest.Value(t, doc)
	theirs.(map[string]any)["properties"].(map[string]any)["agents"] = map[string]any{} // of another document
	published, err := schema.Compile("published manifest", schematest.Document(t, theirs))
	require.NoError(t, err)
	manifests, err := filepath.Glob(filepath.Join(dir, "*", pack.File))
	require.NoError(t, err)
	for _, m := range append(manifests, filepath.Join("..", "..", "services", "dispatcher", "node", "coreai", pack.File)) {
		b, err := os.ReadFile(m)
		require.NoError(t, err)
		require.Empty(t, published.Validate(b), m)
	}
}
