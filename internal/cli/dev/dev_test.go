package dev

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/clitest"
	"waybill.dev/waybill/internal/cli/exit"
)

func TestDev_EndsAtOnceWhenTheModelsCannotBeLoaded(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	file := filepath.Join(clitest.Folder(t, map[string]string{"models.json": `{"version":1}`}), "models.json")
	_, err := command(t, "", "dev", "--http-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--data-dir", data, "--models", file)
	require.ErrorIs(t, err, exit.ErrUsage)
	require.ErrorContains(t, err, "--models "+file+" is no model catalogue:\nline 1, at \"\": ")
	require.NoDirExists(t, data)
}

// Nothing is opened before the packs are read: no port, no data.
func TestDev_EndsAtOnceWhenAPackCannotBeLoaded(t *testing.T) {
	t.Parallel()
	dir, data := clitest.Folder(t, map[string]string{
		"notes/pack.json":    clitest.NotePack,
		"notes/waybill.json": clitest.NoteKinds,
	}), filepath.Join(t.TempDir(), "data")
	_, err := command(t, "", "dev", "--http-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--data-dir", data, "--packs", dir)
	require.ErrorIs(t, err, exit.ErrUsage)
	require.ErrorContains(t, err, "pack vendor.acme.notes (folder notes): waybill.json at \"/envelopeKinds/0/schemaRef\": schemas/note.json: the pack has no such file")
	require.NoFileExists(t, filepath.Join(data, "host.key"))
	require.NoDirExists(t, filepath.Join(data, "nats"))
}

// Each file is named that holds no kind, and they are errors of the command line.
func TestDev_NamesEachKindThatCannotBeLoaded(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"vendor.acme.note.schema.json": `{"type":7}`,
		"vendor.acme.memo.schema.json": `{`,
	})
	_, err := command(t, "", "dev", "--http-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--data-dir", filepath.Join(t.TempDir(), "data"), "--kinds", dir)
	require.ErrorIs(t, err, exit.ErrUsage)
	require.ErrorContains(t, err, "vendor.acme.note.schema.json: validation_error: kind vendor.acme.note: not a usable JSON Schema")
	require.ErrorContains(t, err, "vendor.acme.memo.schema.json: validation_error: kind vendor.acme.memo: json at")
}
