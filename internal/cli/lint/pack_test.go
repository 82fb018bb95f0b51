package lint

import (
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/clitest"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

func TestSchemaLint_ChecksAPack(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"pack.json":         clitest.NotePack,
		"waybill.json":      clitest.NoteKinds,
		"schemas/note.json": `{"type":"object","properties":{"a":{"oneOf":[{"type":"string"}]}}}`,
	})
	out, err := command(t, "", "schema", "lint", "-o", "json", dir)
	require.ErrorIs(t, err, errFindings)
	var found []finding
	require.NoError(t, json.Unmarshal([]byte(out), &found))
	require.Len(t, found, 1)
	require.Equal(t, filepath.Join(dir, "schemas", "note.json"), found[0].File)
	require.Equal(t, "/properties/a/oneOf", found[0].Path)

	dir = clitest.Folder(t, map[string]string{
		"pack.json":    clitest.NotePack,
		"waybill.json": strings.Replace(clitest.NoteKinds, "vendor.acme.note\"", "note\"", 1),
	})
	out, err = command(t, "", "schema", "lint", dir)
	require.ErrorIs(t, err, errFindings)
	require.Contains(t, out, "waybill.json: /envelopeKinds/0/kind: not-a-pack: ")
	require.Contains(t, out, "vendor.<host>.<kind>")

	dir = clitest.Folder(t, map[string]string{
		"pack.json":         clitest.NotePack,
		"waybill.json":      clitest.NoteKinds,
		"schemas/note.json": `{"type":"object"}`,
	})
	out, err = command(t, "", "schema", "lint", dir)
	require.NoError(t, err)
	require.Empty(t, out)
}

// A pack may require capabilities of a host. The linter has no host and ignores them.
func TestSchemaLint_IgnoresRequiredHostCapabilities(t *testing.T) {
	t.Parallel()
	needy := strings.Replace(clitest.NotePack, `"engines"`, `"peerDependencies":{"aiProviders":{"modelCapabilities":["vision-input"]}},"engines"`, 1)
	dir := clitest.Folder(t, map[string]string{
		"notes/pack.json":         needy,
		"notes/waybill.json":      clitest.NoteKinds,
		"notes/schemas/note.json": `{"type":"object"}`,
	})
	_, err := command(t, "", "schema", "lint", filepath.Join(dir, "notes"))
	require.NoError(t, err)
	_, err = packs.Load(dir, packs.HostOffers(packs.Models{Catalogue: catalogue.Builtin(), Providers: []string{"sample"}, Default: "sample/sample-1"}), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "host_capability_missing")
	require.ErrorContains(t, err, `pack.json at "/peerDependencies/aiProviders": needs a model with the capability vision-input`)
	require.Len(t, fault.All(err), 1)
}

func TestSchemaLint_RejectsAFolderWithoutAPack(t *testing.T) {
	t.Parallel()
	_, err := command(t, "", "schema", "lint", t.TempDir())
	require.ErrorIs(t, err, exit.ErrUsage)
	require.ErrorContains(t, err, "a folder without a pack.json")
}

const clerk = `{"templateId":"clerk","version":"1.0.0","kind":"system","text":"You are a clerk."}`

func TestSchemaLint_ChecksThePromptTemplatesOfAPack(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"pack.json":    clitest.NotePack,
		"waybill.json": `{"prompts":["good.json","bad.json"]}`,
		"good.json":    clerk,
		"bad.json":     `{"templateId":"b","version":"1.0.0","kind":"user"}`,
	})
	found, err := lintPack(dir, lint{})
	require.NoError(t, err)
	b, err := json.Marshal(found)
	require.NoError(t, err)
	require.Len(t, found, 1, "%s", b)
	require.Equal(t, filepath.Join(dir, "bad.json"), found[0].File)
	require.Equal(t, ruleTemplate, found[0].Rule)
}
