package credential_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider/credential"
)

const key = "sk-tenant-0001-secret"

func store(t *testing.T, files map[string]string) *credential.Store {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	s, err := credential.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestKey_IsBoundToTenantAndProvider(t *testing.T) {
	t.Parallel()
	s := store(t, map[string]string{
		"acme/openai/main":     key + "\n",
		"acme/openai/v1.2-x_y": key,
		"other/openai/main":    "sk-of-another-tenant",
	})
	got, err := s.Key("acme", "openai", "main")
	require.NoError(t, err)
	require.Equal(t, key, string(got))
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", got, got, got), key)
	_, err = s.Key("acme", "openai", "v1.2-x_y")
	require.NoError(t, err)
	for _, at := range [][3]string{
		{"acme", "anthropic", "main"},
		{"acme", "openai", "none"},
		{"unknown", "openai", "main"},
		{"acme", "openai", "../../other/openai/main"},
		{"acme", "..", "main"},
		{"..", "openai", "main"},
		{"", "openai", "main"},
		{"acme", "openai", ""},
		{"acme", "openai", "."},
		{"acme", "", "openai"},
	} {
		_, err := s.Key(at[0], at[1], at[2])
		require.ErrorIs(t, err, credential.ErrNone, "%v", at)
	}
}

func TestKey_IsReadAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "acme", "openai", "main")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	s, err := credential.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	for _, want := range []string{"sk-first", "sk-second"} {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o600))
		got, err := s.Key("acme", "openai", "main")
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
}

func TestKey_SaysWhatIsWrongAndNothingOfTheKey(t *testing.T) {
	t.Parallel()
	s := store(t, map[string]string{
		"acme/p/empty": " \n",
		"acme/p/two":   key + "\n" + key,
		"acme/p/long":  strings.Repeat("x", 17<<10),
		"acme/p/odd":   "sk-ü" + key,
	})
	for _, ref := range []string{"empty", "two", "long", "odd"} {
		_, err := s.Key("acme", "p", ref)
		require.ErrorContains(t, err, "credential acme/p/"+ref+": want one key")
		require.NotContains(t, err.Error(), key)
	}
}

// A link must not lead out of the directory.
func TestKey_StaysWithin(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(outside, []byte(key), 0o600))
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "acme", "p"), 0o700))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "acme", "p", "link")))
	s, err := credential.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	got, err := s.Key("acme", "p", "link")
	require.Error(t, err)
	require.Empty(t, string(got))
	require.NotContains(t, err.Error(), outside)
}

func TestKeys_AreAllThatTheRefNames(t *testing.T) {
	t.Parallel()
	s := store(t, map[string]string{
		"acme/openai/main":    "sk-o",
		"acme/anthropic/main": "sk-a",
		"acme/gemini/spare":   "sk-g",
		"acme/..2026/main":    "sk-mount",
		"other/openai/main":   "sk-x",
	})
	got, err := s.Keys("acme", "main")
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, "sk-o sk-a", string(got["openai"])+" "+string(got["anthropic"]))
	for _, at := range [][2]string{{"unknown", "main"}, {"acme", "none"}, {"..", "main"}, {"acme", ".."}} {
		got, err := s.Keys(at[0], at[1])
		require.NoError(t, err)
		require.Empty(t, got)
	}
}

// An invalid file does not affect the other keys.
func TestKeys_LeaveOutWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := store(t, map[string]string{
		"acme/README":      "of people",
		"acme/openai/main": "sk-o",
		"acme/gemini/main": "half\nwritten",
	})
	got, err := s.Keys("acme", "main")
	require.ErrorContains(t, err, "credential acme/gemini/main")
	require.Len(t, got, 1)
	require.Equal(t, "sk-o", string(got["openai"]))
	_, err = s.Key("acme", "README", "main")
	require.ErrorIs(t, err, credential.ErrNone)
}

// The redactor takes no longer ids and values.
func TestValidRef_FitsIntoTheIDOfASecret(t *testing.T) {
	t.Parallel()
	require.True(t, credential.ValidRef(strings.Repeat("r", 63)))
	require.False(t, credential.ValidRef(strings.Repeat("r", 64)))
	_, err := store(t, map[string]string{"acme/p/long": strings.Repeat("k", 8<<10+1)}).Key("acme", "p", "long")
	require.ErrorContains(t, err, "at most 8192 bytes")
}

func TestStore_ThatIsNilHasNone(t *testing.T) {
	t.Parallel()
	var s *credential.Store
	_, err := s.Key("acme", "openai", "main")
	require.ErrorIs(t, err, credential.ErrNone)
	keys, err := s.Keys("acme", "main")
	require.NoError(t, err)
	require.Empty(t, keys)
	require.NoError(t, s.Close())
	_, err = credential.Open(filepath.Join(t.TempDir(), "none"))
	require.ErrorContains(t, err, "<tenant>/<provider>/<ref>")
}
