package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAssetOptions_NameWhatIsMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	sound, secret := file("sound", strings.Repeat("k", 32), 0o600), "too-short-to-be-a-key"
	for name, tc := range map[string]struct {
		o        AssetOptions
		embedded bool
		want     string // empty: fine
	}{
		"none":                      {AssetOptions{}, false, ""},
		"kept":                      {AssetOptions{PublicURL: "https://h.example", keyFile: sound}, false, ""},
		"kept, embedded":            {AssetOptions{PublicURL: "https://h.example"}, true, ""},
		"a URL and no key":          {AssetOptions{PublicURL: "https://h.example"}, false, "--asset-key-file"},
		"a key and no URL":          {AssetOptions{keyFile: sound}, false, "--public-url"},
		"no URL":                    {AssetOptions{PublicURL: "h.example", keyFile: sound}, false, "--public-url"},
		"a URL with a password":     {AssetOptions{PublicURL: "https://u:" + secret + "@h.example", keyFile: sound}, false, "--public-url"},
		"a URL that is broken":      {AssetOptions{PublicURL: "https://u:" + secret + "@h.example:x", keyFile: sound}, false, "--public-url"},
		"a key that is absent":      {AssetOptions{PublicURL: "https://h.example", keyFile: filepath.Join(dir, "ghost")}, false, "no such file"},
		"a key that is short":       {AssetOptions{PublicURL: "https://h.example", keyFile: file("short", secret, 0o600)}, false, "at least 32 bytes"},
		"a key that is everyone's":  {AssetOptions{PublicURL: "https://h.example", keyFile: file("open", strings.Repeat("k", 32), 0o604)}, false, "chmod o="},
		"a key of several":          {AssetOptions{PublicURL: "https://h.example", keys: []string{"1=" + strings.Repeat("QUJD", 11)}}, false, ""},
		"a key that is none":        {AssetOptions{PublicURL: "https://h.example", keys: []string{"1=" + secret}}, false, "--asset-keys"},
		"served":                    {AssetOptions{PublicURL: "https://h.example", keyFile: sound, addr: "127.0.0.1:0"}, false, ""},
		"served and not kept":       {AssetOptions{addr: "127.0.0.1:0"}, false, "--assets-addr"},
		"served nowhere":            {AssetOptions{PublicURL: "https://h.example", keyFile: sound, addr: "8080"}, false, "--assets-addr"},
		"a cap below nothing":       {AssetOptions{maxInline: -1}, false, "--max-inline-media-bytes"},
		"a cap above a payload":     {AssetOptions{maxInline: 2 << 20}, false, "--max-inline-media-bytes"},
		"a bound that lets nothing": {AssetOptions{maxMedia: -1}, false, "--max-media-base64-bytes"},
	} {
		if tc.o.maxMedia == 0 {
			tc.o.maxMedia = 1
		}
		err := tc.o.validate(tc.embedded)
		if tc.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, tc.want, name)
		require.NotContains(t, err.Error(), secret, name)
	}
}
