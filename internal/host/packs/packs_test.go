package packs

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/clitest"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/schema/schematest"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

func TestLoadPacks_ReadsFoldersAndIgnoresOtherFiles(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"notes/pack.json":         clitest.NotePack,
		"notes/waybill.json":      clitest.NoteKinds,
		"notes/schemas/note.json": `{"type":"object"}`,
		"README.md":               "of people",
		".git/config":             "of git",
	})
	require.NoError(t, os.Symlink("note.json", filepath.Join(dir, "notes", "schemas", "same.json")))
	var logged bytes.Buffer
	loaded, err := Load(dir, sampleOffers(), slog.New(slog.NewTextHandler(&logged, nil)))
	require.NoError(t, err)
	require.Len(t, loaded, 1)
	require.Equal(t, "vendor.acme.note", loaded[0].Kinds[0].Name)
	require.Empty(t, logged.String())

	loaded, err = Load("", sampleOffers(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Empty(t, loaded)
}

// A link must not leave its pack, not even into a sibling pack.
func TestLoadPacks_KeepsEachPackWithinItsFolder(t *testing.T) {
	t.Parallel()
	outside := clitest.Folder(t, map[string]string{
		"note.json":    `{"type":"object","title":"SECRET"}`,
		"pack.json":    clitest.NotePack,
		"waybill.json": clitest.NoteKinds,
	})
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
				"notes/pack.json":         clitest.NotePack,
				"notes/waybill.json":      clitest.NoteKinds,
				"other/pack.json":         strings.Replace(clitest.NotePack, "acme.notes", "other.notes", 1),
				"other/waybill.json":      strings.Replace(clitest.NoteKinds, "acme.note\"", "other.note\"", 1),
				"other/schemas/note.json": `{"type":"object"}`,
			})
			at := filepath.Join(dir, link.at)
			require.NoError(t, os.RemoveAll(at))
			require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o700))
			require.NoError(t, os.Symlink(link.to, at))
			loaded, err := Load(dir, sampleOffers(), slog.New(slog.DiscardHandler))
			require.Empty(t, loaded)
			require.ErrorIs(t, err, exit.ErrUsage)
			require.ErrorContains(t, err, "pack ")
			require.ErrorContains(t, err, "notes")
			require.NotContains(t, err.Error(), "SECRET")
			require.NotContains(t, err.Error(), outside)
		})
	}
}

func TestLoadPacks_RejectsArchives(t *testing.T) {
	t.Parallel()
	_, err := Load(clitest.Folder(t, map[string]string{"notes.tgz": "x"}), sampleOffers(), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "pack notes.tgz: archives are not read; unpack it into a folder")
	_, err = Load(filepath.Join(t.TempDir(), "none"), sampleOffers(), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "give an existing directory of packs")
}

// The test process would hang if the pipe were opened.
func TestLoadPacks_OpensRegularFilesOnly(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"notes/pack.json":    clitest.NotePack,
		"notes/waybill.json": clitest.NoteKinds,
	})
	require.NoError(t, os.Mkdir(filepath.Join(dir, "notes", "schemas"), 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "notes", "schemas", "note.json"), 0o600))
	_, err := Load(dir, sampleOffers(), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "pack vendor.acme.notes (folder notes)")
	require.ErrorContains(t, err, "want a regular file")
}

func TestLoadPacks_LogsPartsWithoutEffect(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"tools/pack.json": `{"name":"vendor.acme.tools","version":"1.0.0","engines":{"openwop":"*"},
		"runtime":{"language":"remote","entry":"https://acme.example"},
		"nodes":[{"typeId":"vendor.acme.write","version":"1","category":"data","role":"pure"}]}`})
	var logged bytes.Buffer
	_, err := Load(dir, sampleOffers(), slog.New(slog.NewTextHandler(&logged, nil)))
	require.NoError(t, err)
	require.Contains(t, logged.String(), "has no runtime for nodes of packs")
	require.Contains(t, logged.String(), "vendor.acme.write")
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

func TestLoadPacks_RejectsAPackForAnotherProtocol(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"notes/pack.json":         strings.Replace(clitest.NotePack, ">=1.0", ">=2.0", 1),
		"notes/waybill.json":      clitest.NoteKinds,
		"notes/schemas/note.json": `{"type":"object"}`,
	})
	_, err := Load(dir, sampleOffers(), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, `pack.json at "/engines/openwop": this host speaks OpenWOP 1.1`)
}

// sampleOffers are the capabilities of a host with the sample provider only.
func sampleOffers() pack.Host {
	return HostOffers(Models{Catalogue: catalogue.Builtin(), Providers: []string{"sample"}, Default: "sample/sample-1"})
}

// OpenWOP envelope contract §16.5: capabilities count if the gate could satisfy them.
func TestDevOffers_CountCapabilitiesOfCallableModels(t *testing.T) {
	t.Parallel()
	require.True(t, sampleOffers().Model("structured-output"))
	require.False(t, sampleOffers().Model("vision-input"))
	with := func(provider, defaultModel string) func(string) bool {
		return HostOffers(Models{Catalogue: catalogue.Builtin(), Providers: []string{"sample", provider}, Default: defaultModel}).Model
	}
	require.True(t, with("anthropic", "sample/sample-1")("vision-input"))
	require.False(t, with("anthropic", "sample/sample-1")("image-output"))
	require.False(t, with("anthropic", "sample/sample-1")("x-host-acme-none"))
	require.True(t, with("gemini", "sample/sample-1")("image-output"), "a rule of the vendor's models")
	require.False(t, with("local", "sample/sample-1")("vision-input"), "a model that the server may have, or not")
	require.True(t, with("local", "local/qwen2.5-vl:7b")("vision-input"), "the default model")
	trusting := HostOffers(Models{Catalogue: catalogue.Builtin(), Providers: []string{"local"}, Default: "sample/sample-1", TrustsUnknown: true})
	require.True(t, trusting.Model("vision-input"), "the gate accepts models that are not listed")
	require.Nil(t, WithoutEnvelopes(trusting).Model)
	require.NotContains(t, WithoutEnvelopes(trusting).Capabilities, "host.aiEnvelope")
	require.Contains(t, trusting.Capabilities, "host.aiEnvelope")
	require.True(t, with("gemini", "gemini/some-image-model")("image-output"), "the default model")
}

// The pack in the documentation is valid.
func TestDocs_ShowAValidPack(t *testing.T) {
	t.Parallel()
	blocks := jsonBlocks(t, "kinds.md")
	require.Len(t, blocks, 2)
	loaded, err := Load(clitest.Folder(t, map[string]string{
		"notes/pack.json": blocks[0], "notes/waybill.json": blocks[1], "notes/schemas/note.json": `{"type":"object"}`,
	}), sampleOffers(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Equal(t, "vendor.acme.note", loaded[0].Kinds[0].Name)
}

// jsonBlocks are the JSON documents that a page of the documentation shows.
func jsonBlocks(t *testing.T, page string) (blocks []string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", page))
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

// The example pack loads, satisfies the published schema, and equals the one in the documentation.
func TestExamplePacks_AreValid(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "..", "examples", "packs")
	loaded, err := Load(dir, sampleOffers(), slog.New(slog.DiscardHandler))
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
	for _, m := range append(manifests, filepath.Join("..", "..", "..", "services", "dispatcher", "node", "coreai", pack.File)) {
		b, err := os.ReadFile(m)
		require.NoError(t, err)
		require.Empty(t, published.Validate(b), m)
	}
}
