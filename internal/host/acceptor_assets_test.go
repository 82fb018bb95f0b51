package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAssetServing_ReportsMissingSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	sound, secret := file("sound", strings.Repeat("k", 32), 0o600), "too-short-to-be-a-key"
	for name, tc := range map[string]struct {
		o        AssetServing
		embedded bool
		want     string // empty means fine
	}{
		"none":             {AssetServing{}, false, ""},
		"kept":             {AssetServing{PublicURL: "https://h.example", KeyFile: sound}, false, ""},
		"kept, embedded":   {AssetServing{PublicURL: "https://h.example"}, true, ""},
		"a URL and no key": {AssetServing{PublicURL: "https://h.example"}, false, "--asset-key-file"},
		"a key and no URL": {AssetServing{KeyFile: sound}, false, "--public-url"},
		"no URL":           {AssetServing{PublicURL: "h.example", KeyFile: sound}, false, "--public-url"},
		"a URL with a password": {
			AssetServing{PublicURL: "https://u:" + secret + "@h.example", KeyFile: sound},
			false, "--public-url",
		},
		"a URL that is broken": {
			AssetServing{PublicURL: "https://u:" + secret + "@h.example:x", KeyFile: sound},
			false, "--public-url",
		},
		"a key that is absent": {
			AssetServing{PublicURL: "https://h.example", KeyFile: filepath.Join(dir, "ghost")},
			false, "no such file",
		},
		"a key that is short": {
			AssetServing{PublicURL: "https://h.example", KeyFile: file("short", secret, 0o600)},
			false, "at least 32 bytes",
		},
		"a readable key": {
			AssetServing{PublicURL: "https://h.example", KeyFile: file("open", strings.Repeat("k", 32), 0o604)},
			false, "chmod o=",
		},
		"a key of several": {
			AssetServing{PublicURL: "https://h.example", Keys: []string{"1=" + strings.Repeat("QUJD", 11)}},
			false, "",
		},
		"an invalid key": {
			AssetServing{PublicURL: "https://h.example", Keys: []string{"1=" + secret}},
			false, "--asset-keys",
		},
		"served":              {AssetServing{PublicURL: "https://h.example", KeyFile: sound, Addr: "127.0.0.1:0"}, false, ""},
		"served and not kept": {AssetServing{Addr: "127.0.0.1:0"}, false, "--assets-addr"},
		"served nowhere": {
			AssetServing{PublicURL: "https://h.example", KeyFile: sound, Addr: "8080"},
			false, "--assets-addr",
		},
	} {
		tc.o.Callers = defaultCallers()
		err := errors.Join(tc.o.check(1<<20), tc.o.validateKey(tc.embedded))
		if tc.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, tc.want, name)
		require.NotContains(t, err.Error(), secret, name)
	}
}

func TestEnvelopes_RejectImpossibleLimits(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Envelopes){
		"--max-inline-media-bytes -1":      func(o *Envelopes) { o.MaxInlineBytes = -1 },
		"--max-inline-media-bytes 2097152": func(o *Envelopes) { o.MaxInlineBytes = 2 << 20 },
		"--max-media-base64-bytes -1":      func(o *Envelopes) { o.MaxMediaBytes = -1 },
	} {
		o := DefaultEnvelopes()
		require.NoError(t, o.validateMedia())
		change(&o)
		require.ErrorContains(t, o.validateMedia(), want)
	}
}
