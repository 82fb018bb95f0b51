package natsd

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// platter is the content of a server's files after a power cut: of each file what it held at the
// start of its last sync, if a sync of its folder stored its name.
type platter struct {
	from string

	mu    sync.Mutex // guards the fields below
	files map[string][]byte
	names map[string]map[string]bool
}

func newPlatter(from string) *platter {
	return &platter{from: from, files: map[string][]byte{}, names: map[string]map[string]bool{}}
}

func (p *platter) file(f *os.File) error {
	content, err := os.ReadFile(f.Name())
	if errors.Is(err, fs.ErrNotExist) { // deleted: not needed
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files[f.Name()] = content
	return err
}

func (p *platter) folder(path string) error {
	entries, err := os.ReadDir(path)
	names := map[string]bool{}
	for _, e := range entries {
		names[e.Name()] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names[path] = names
	return err
}

// now returns a copy that later syncs do not change.
func (p *platter) now() *platter {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &platter{from: p.from, files: maps.Clone(p.files), names: maps.Clone(p.names)}
}

// image writes the content to a folder.
func (p *platter) image(t *testing.T, to string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for path, content := range p.files {
		named := true
		for at := path; at != p.from; at = filepath.Dir(at) {
			named = named && p.names[filepath.Dir(at)][filepath.Base(at)]
		}
		if !named {
			continue
		}
		rel, err := filepath.Rel(p.from, path)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(to, rel)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(to, rel), content, 0o600))
	}
}

// platterFolder is a stream without files, whose syncs are recorded by a platter.
func platterFolder(t *testing.T) (*folder, *platter) {
	t.Helper()
	dir := t.TempDir()
	p := newPlatter(dir)
	f := newFolder(filepath.Join(dir, "LOG"), p)
	t.Cleanup(f.close)
	require.NoError(t, os.MkdirAll(f.msgs(), 0o700))
	return f, p
}

// A round also syncs records in the file before the newest one, and a rewritten file again.
func TestFolder_SyncsAllFilesThatHaveChanged(t *testing.T) {
	t.Parallel()
	f, p := platterFolder(t)
	write := func(name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(f.msgs(), name), []byte(content), 0o600))
	}
	holds := func(want map[string]string) {
		t.Helper()
		image := t.TempDir()
		p.image(t, image)
		for name, content := range want {
			got, err := os.ReadFile(filepath.Join(image, "LOG", "msgs", name))
			require.NoError(t, err)
			require.Equal(t, content, string(got), name)
		}
	}
	require.ErrorIs(t, f.syncBlocks(), fs.ErrNotExist)
	write("1.blk", "a")
	require.NoError(t, f.syncBlocks())
	holds(map[string]string{"1.blk": "a"})
	write("1.blk", "ab")
	write("2.blk", "c")
	write("4.blk", "d") // the third was deleted
	require.NoError(t, f.syncBlocks())
	holds(map[string]string{"1.blk": "ab", "2.blk": "c", "4.blk": "d"})
	write("1.tmp", "a2")
	require.NoError(t, os.Rename(filepath.Join(f.msgs(), "1.tmp"), filepath.Join(f.msgs(), "1.blk")))
	require.NoError(t, f.settle())
	holds(map[string]string{"1.blk": "a2"})
}

// If times are too coarse to show a changed folder, the files show it.
func TestFolder_SeesTheNextFileWithoutInstants(t *testing.T) {
	t.Parallel()
	f, p := platterFolder(t)
	long := time.Now().Add(-time.Hour)
	write := func(name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(f.msgs(), name), []byte(content), 0o600))
		require.NoError(t, os.Chtimes(f.msgs(), long, long))
	}
	write("1.blk", "a")
	require.NoError(t, f.syncBlocks())
	require.False(t, f.seen.IsZero())
	write("2.blk", "b")
	require.NoError(t, f.syncBlocks())
	require.Equal(t, "b", string(p.files[filepath.Join(f.msgs(), "2.blk")]))
	write("2.new", "bc")
	require.NoError(t, os.Rename(filepath.Join(f.msgs(), "2.new"), filepath.Join(f.msgs(), "2.blk")))
	require.NoError(t, os.Chtimes(f.msgs(), long, long))
	require.NoError(t, f.syncBlocks())
	require.Equal(t, "bc", string(p.files[filepath.Join(f.msgs(), "2.blk")]))
}
