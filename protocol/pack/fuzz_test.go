package pack_test

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/pack"
)

// watched is a pack's folder that records the requested paths.
type watched struct {
	fstest.MapFS
	opened map[string]bool
}

func (w watched) Open(name string) (fs.File, error) {
	w.opened[name] = true
	return w.MapFS.Open(name)
}

func (w watched) Stat(name string) (fs.FileInfo, error) {
	w.opened[name] = true
	return w.MapFS.Stat(name)
}

// FuzzLoad: whatever the manifest, no path outside the pack is requested, only vendor kinds are
// returned, each once, and two loads agree.
func FuzzLoad(f *testing.F) {
	for _, doc := range []string{
		kindsOnly, withNode, `{}`, `[]`, "\xef\xbb\xbf{}",
		strings.Replace(withNode, "schemas/config.json", "../../etc/passwd", 1), strings.Replace(withNode, "schemas/config.json", "./schemas/config.json", 1),
		strings.Replace(kindsOnly, `"engines"`, `"peerDependencies":{"aiProviders":{"modelCapabilities":["vision-input"]}},"engines"`, 1),
	} {
		f.Add(doc, ownKinds)
	}
	for _, doc := range []string{
		`{}`, `{"nodes":{"vendor.acme.write":{"base":"core.noop","config":{"a":1},"configRefs":{"b":"schemas/note.json"}}}}`, `{"prompts":["schemas/note.json"]}`,
		strings.Replace(ownKinds, "schemas/note.json", "../../etc/passwd", 1), strings.Replace(ownKinds, "schemas/note.json", "./schemas/note.json", 1),
		strings.Replace(ownKinds, `"version":2`, `"version":2.0e0`, 1), strings.Replace(ownKinds, `"version":2`, `"version":1e400`, 1),
	} {
		f.Add(withNode, doc)
	}
	f.Fuzz(func(t *testing.T, doc, own string) {
		folder := watched{fstest.MapFS{
			"pack.json": {Data: []byte(doc)}, "waybill.json": {Data: []byte(own)}, "schemas/note.json": {Data: []byte(schemaDoc)}, "schemas/config.json": {Data: []byte(`{}`)},
			"contracts/write.json": {Data: []byte(`{"accepts":[]}`)},
		}, map[string]bool{}}
		packs, _, err := pack.Load([]pack.Source{{Folder: "x", FS: folder}}, pack.Host{Types: []string{"core.noop"}})
		for name := range folder.opened {
			require.True(t, fs.ValidPath(name), name)
		}
		if err != nil {
			require.Empty(t, packs)
			require.NotEmpty(t, fault.All(err))
			_, _, again := pack.Load([]pack.Source{{Folder: "x", FS: folder}}, pack.Host{Types: []string{"core.noop"}})
			require.EqualError(t, again, err.Error(), "errors are reported in the same order")
			return
		}
		require.True(t, json.Valid([]byte(doc)))
		require.Len(t, packs, 1)
		seen := map[string]bool{}
		for _, k := range packs[0].Kinds {
			require.True(t, pack.VendorKind(k.Name))
			require.False(t, seen[k.Name])
			require.GreaterOrEqual(t, k.Version, 0)
			require.NotEmpty(t, k.Schema)
			seen[k.Name] = true
		}
		again, _, err := pack.Load([]pack.Source{{Folder: "x", FS: folder}}, pack.Host{Types: []string{"core.noop"}})
		require.NoError(t, err)
		require.Equal(t, packs, again)
	})
}
