package store_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/archive"
	"waybill.dev/waybill/internal/archive/store"
)

func TestCheck_RefusesOtherTargets(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"":                          "empty",
		" ":                         "empty",
		"gs://bucket/x":             `scheme "gs" is not supported`,
		"https://h/bucket":          `scheme "https" is not supported`,
		"s3://":                     "want s3://BUCKET/PREFIX",
		"s3:///x":                   "want s3://BUCKET/PREFIX",
		"s3://bucket:9000/x":        "without port",
		"s3://bucket/x?region=y":    "without port, query",
		"s3://AKIA:hidden@bucket/x": "AWS_SECRET_ACCESS_KEY",
	} {
		err := store.Check(target)
		require.ErrorContains(t, err, want, target)
		require.NotContains(t, err.Error(), "hidden")
	}
	for _, target := range []string{"/srv/archive", "archive", "s3://bucket", "s3://bucket/", "s3://my.bucket/a/b"} {
		require.NoError(t, store.Check(target), target)
	}
}

func TestDirectory_KeepsWholeFiles(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "new", "archive")
	target, err := store.Open(t.Context(), at)
	require.NoError(t, err)
	require.NoError(t, store.Prepare(target))
	const name = "acme/triage/run_1.0123456789abcdef.json.gz"
	_, err = target.Get(t.Context(), name)
	require.ErrorIs(t, err, archive.ErrNotFound)
	// A process died while it wrote the file, and another one writes it now.
	dir := filepath.Join(at, "acme", "triage")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	left := filepath.Join(dir, ".run_1.0123456789abcdef.json.gz.1.partial")
	require.NoError(t, os.WriteFile(left, []byte("hal"), 0o600))
	yesterday := time.Now().Add(-24 * time.Hour)
	require.NoError(t, os.Chtimes(left, yesterday, yesterday))
	writing := filepath.Join(dir, ".run_1.0123456789abcdef.json.gz.2.partial")
	require.NoError(t, os.WriteFile(writing, []byte("hal"), 0o600))
	names, err := target.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, names)

	for _, content := range []string{"first", "second"} {
		require.NoError(t, target.Put(t.Context(), name, []byte(content)))
		got, err := target.Get(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, content, string(got))
	}
	require.NoFileExists(t, left)
	require.FileExists(t, writing)
	require.NoError(t, target.Put(t.Context(), "acme/a/run_0.0123456789abcdef.json.gz", []byte("x")))
	names, err = target.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"acme/a/run_0.0123456789abcdef.json.gz", name}, names)
	info, err := os.Stat(filepath.Join(at, filepath.FromSlash(name)))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestOpenSource_ReadsAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mail.json")
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	source, err := store.OpenSource(t.Context(), path)
	require.NoError(t, err)
	names, err := source.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"mail.json"}, names)
	got, err := source.Get(t.Context(), names[0])
	require.NoError(t, err)
	require.Equal(t, "x", string(got))
	require.Error(t, source.Put(t.Context(), "a", nil))
	_, err = store.OpenSource(t.Context(), path+".none")
	require.ErrorIs(t, err, os.ErrNotExist)
}
