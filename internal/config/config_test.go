package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/config"
)

type settings struct {
	addr string
	keys []string
	n    int
}

func flags() (*pflag.FlagSet, *settings) {
	s := &settings{}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	fs.StringVar(&s.addr, "http-addr", "default", "an address")
	fs.StringArrayVar(&s.keys, "api-key", nil, "keys")
	fs.IntVar(&s.n, "count", 1, "a number")
	fs.String("config", "", "a file")
	return fs, s
}

func env(m map[string]string) func(string) (string, bool) {
	return func(k string) (string, bool) { v, ok := m[k]; return v, ok }
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "waybill.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestLoad_FlagBeatsEnvironmentBeatsFileBeatsDefault(t *testing.T) {
	t.Parallel()
	path := file(t, "http-addr: from-file\ncount: 7\napi-key: [a=b:*, c=d:*]\n")
	fs, s := flags()
	require.NoError(t, fs.Parse([]string{"--config", path}))
	require.NoError(t, config.Load(fs, env(nil)))
	require.Equal(t, &settings{"from-file", []string{"a=b:*", "c=d:*"}, 7}, s)

	fs, s = flags()
	require.NoError(t, fs.Parse([]string{"--config", path}))
	require.NoError(t, config.Load(fs, env(map[string]string{
		"WAYBILL_HTTP_ADDR": "from-env",
		"WAYBILL_API_KEY":   "x=y:*;z=w:runs:read,runs:create",
	})))
	require.Equal(t, "from-env", s.addr)
	require.Equal(t, []string{"x=y:*", "z=w:runs:read,runs:create"}, s.keys)

	fs, s = flags()
	require.NoError(t, fs.Parse([]string{"--config", path, "--http-addr", "from-flag"}))
	require.NoError(t, config.Load(fs, env(map[string]string{"WAYBILL_HTTP_ADDR": "from-env"})))
	require.Equal(t, "from-flag", s.addr)

	fs, s = flags()
	require.NoError(t, fs.Parse(nil))
	require.NoError(t, config.Load(fs, env(nil)))
	require.Equal(t, "default", s.addr)
}

func TestLoad_NamesEveryMistakeAndItsPlace(t *testing.T) {
	t.Parallel()
	fs, _ := flags()
	require.NoError(t, fs.Parse([]string{"--config", file(t, "http-adr: x\ncount: many\n")}))
	err := config.Load(fs, env(map[string]string{"WAYBILL_COUNT": "topsecret"}))
	require.ErrorContains(t, err, "WAYBILL_COUNT")
	require.NotContains(t, err.Error(), "topsecret", "a value may be a key")
	require.ErrorContains(t, err, `:1: unknown key "http-adr"`)
}

func TestLoad_RefusesWhatIsNoMapping(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"- a\n", "a: {b: c}\n", ": :", "config: other.yaml\n"} {
		fs, _ := flags()
		require.NoError(t, fs.Parse([]string{"--config", file(t, text)}))
		require.Error(t, config.Load(fs, env(nil)), text)
	}
	fs, _ := flags()
	require.NoError(t, fs.Parse([]string{"--config", "no-such-file.yaml"}))
	require.ErrorContains(t, config.Load(fs, env(nil)), "no-such-file.yaml")
}
