package settings_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/settings"
)

func TestSource_KeepsTheOldSettingsUntilTheFileIsValid(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "names.txt")
	write := func(doc string) { require.NoError(t, os.WriteFile(file, []byte(doc), 0o600)) }
	parse := func(doc []byte) (string, error) {
		name, whole := strings.CutSuffix(string(doc), ".")
		if !whole {
			return "", errors.New("no full stop")
		}
		return name, nil
	}
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	write("first.")
	s, err := settings.Open("names", file, parse, log)
	require.NoError(t, err)
	require.Equal(t, "first", s.Current())

	write("sec")
	s.Reload()
	s.Reload()
	require.Equal(t, "first", s.Current())
	require.Equal(t, 1, strings.Count(out.String(), "names not reloaded"), "logged once")
	require.NoError(t, os.Remove(file))
	s.Reload()
	require.Equal(t, "first", s.Current())
	require.Equal(t, 2, strings.Count(out.String(), "names not reloaded"))
	write("second.")
	s.Reload()
	require.Equal(t, "second", s.Current())

	_, err = settings.Open("names", file+"x", parse, log)
	require.ErrorIs(t, err, os.ErrNotExist)
	write("sec")
	_, err = settings.Open("names", file, parse, log)
	require.ErrorContains(t, err, "no full stop")
	require.Empty(t, (*settings.Source[string])(nil).Current())
}
