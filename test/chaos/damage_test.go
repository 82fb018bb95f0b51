package chaos

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// Bounds of a host with a small damaged log.
const (
	startsWithin = 10 * time.Second
	stopsWithin  = 10 * time.Second
	mostMemory   = 500 // MB
)

// After a flip of any bit while the host is down, it starts in time, serves everything unchanged, or names
// what it cannot serve, executes new runs, and stops.
func TestDamage_OfAnyBitIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, starts a real process for each bit: run without -short")
	}
	harness.InOneProcess(t, "a NATS cluster repairs its files itself; this tests `waybill dev`")
	s := newStock(t)
	var cases []injury
	for _, stream := range []string{"WAYBILL_RUNS", "WAYBILL_AUDIT", "KV_waybill_workflows"} {
		for i := range 8 { // each byte of a sequence
			cases = append(cases, s.inSequence(t, stream, i))
		}
	}
	cases = append(cases, s.inText(t, "WAYBILL_AUDIT", `"peaks"`, 3), s.inText(t, "KV_waybill_workflows", `"versions"`, 3))
	for _, name := range hostFiles {
		cases = append(cases, s.hostFile(t, name))
	}
	for range number(t, "DAMAGE_FLIPS", 7) {
		cases = append(cases, s.anyBit())
	}
	for range number(t, "DAMAGE_CUTS", 6) {
		cases = append(cases, s.anyCut())
	}
	for i, c := range cases {
		t.Run(fmt.Sprintf("%d/%s", i, c.how), func(t *testing.T) {
			t.Parallel()
			s.try(t, c)
		})
	}
}

// number is the value of an environment variable.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	require.NoError(t, err)
	return n
}

// read reads all that was stored. An error is its status and code.
func (s *stock) read(t *testing.T, host *harness.Host) map[string]string {
	t.Helper()
	got := map[string]string{}
	for tenant, key := range stockTenants {
		for _, path := range s.paths[tenant] {
			a, err := host.Client(key).Do(t.Context(), http.MethodGet, path, "")
			require.NoError(t, err)
			if got[tenant+" "+path] = lasting(path, a.Body); a.Status != http.StatusOK {
				got[tenant+" "+path] = fmt.Sprint(a.Status, " ", a.Code())
			}
		}
	}
	return got
}

// unavailable reports that a part cannot be read now.
func unavailable(got map[string]string) bool {
	for _, v := range got {
		if strings.HasPrefix(v, "503 ") {
			return true
		}
	}
	return false
}

// lasting is the part of an answer that does not change by itself.
func lasting(path string, body []byte) string {
	var doc map[string]any
	if json.Unmarshal(body, &doc) != nil {
		return string(body)
	}
	keep := func(list string, members ...string) string {
		var out []any
		items, _ := doc[list].([]any)
		for _, item := range items {
			m, _ := item.(map[string]any)
			for _, name := range members {
				out = append(out, m[name])
			}
		}
		b, _ := json.Marshal(out)
		return string(b)
	}
	switch {
	case strings.HasPrefix(path, "/v1/webhooks"):
		return keep("webhooks", "webhookId", "url")
	case strings.HasPrefix(path, "/v1/runs?"):
		return keep("runs", "runId", "status")
	}
	return string(body)
}

// injury is damage of a file.
type injury struct {
	how  string
	file string // below the folder of the streams
	at   int64
	bit  int // -1 cuts the file there
	// killed removes what only an orderly stop writes, fresh the read model. quiet keeps the time of
	// the file.
	killed, fresh, quiet bool
}

func (c injury) String() string {
	return fmt.Sprintf("%s: %s at %d, bit %d, killed %t, fresh %t, quiet %t", c.how, c.file, c.at, c.bit, c.killed, c.fresh, c.quiet)
}

func (s *stock) injury(how, file string, at int64, bit int) injury {
	fresh := s.r.IntN(2) == 0 && file != toData+readModel
	return injury{how: how, file: file, at: at, bit: bit, killed: s.r.IntN(2) == 0, fresh: fresh, quiet: s.r.IntN(3) == 0}
}

// hostFile flips a bit of a file of the host itself.
func (s *stock) hostFile(t *testing.T, name string) injury {
	t.Helper()
	size := s.sizeOf(toData + name)
	require.Positive(t, size, name)
	return s.injury("flip-"+name, toData+name, s.r.Int64N(size), s.r.IntN(8))
}

func (s *stock) sizeOf(file string) int64 {
	st, err := os.Stat(s.path(file))
	if err != nil {
		return 0
	}
	return st.Size()
}

func (s *stock) path(file string) string {
	return filepath.Join(s.streams(filepath.Join(s.dir, "data")), file)
}

// anyFile returns a file, of each stream as often.
func (s *stock) anyFile(blocks bool) (name string, size int64) {
	for {
		file := s.files[s.r.IntN(len(s.files))]
		stream, _, _ := strings.Cut(file, string(filepath.Separator))
		if blocks || s.r.IntN(3) > 0 { // records are most of what can be damaged
			file = filepath.Join(stream, "msgs", "1.blk")
		}
		if st, err := os.Stat(s.path(file)); err == nil && st.Size() > 0 {
			return file, st.Size()
		}
	}
}

func (s *stock) anyBit() injury {
	file, size := s.anyFile(false)
	if i := s.r.IntN(8 * len(hostFiles)); i < len(hostFiles) {
		return s.injury("flip", toData+hostFiles[i], s.r.Int64N(s.sizeOf(toData+hostFiles[i])), s.r.IntN(8))
	}
	return s.injury("flip", file, s.r.Int64N(size), s.r.IntN(8))
}

func (s *stock) anyCut() injury {
	file, size := s.anyFile(true)
	return s.injury("cut", file, s.r.Int64N(size), -1)
}

// inSequence flips a bit of a byte of the sequence of a record in the middle of a stream.
func (s *stock) inSequence(t *testing.T, stream string, i int) injury {
	t.Helper()
	file := filepath.Join(stream, "msgs", "1.blk")
	b, err := os.ReadFile(s.path(file))
	require.NoError(t, err)
	var at []int64
	for pos := 0; pos+4 <= len(b); pos += int(binary.LittleEndian.Uint32(b[pos:]) &^ (1 << 31)) {
		at = append(at, int64(pos))
	}
	return s.injury(fmt.Sprint("sequence-", i), file, at[len(at)/2]+4+int64(i), 0)
}

// inText flips a bit in a text.
func (s *stock) inText(t *testing.T, stream, text string, i int) injury {
	t.Helper()
	file := filepath.Join(stream, "msgs", "1.blk")
	b, err := os.ReadFile(s.path(file))
	require.NoError(t, err)
	at := strings.LastIndex(string(b), text)
	require.Positive(t, at)
	return s.injury("text", file, int64(at+i), 1)
}

// inflict damages a copy of the stock.
func (c injury) inflict(t *testing.T, root string) {
	t.Helper()
	path := filepath.Join(root, c.file)
	st, err := os.Stat(path)
	require.NoError(t, err)
	if c.bit < 0 {
		require.NoError(t, os.Truncate(path, c.at))
	} else {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		b[c.at] ^= 1 << c.bit
		require.NoError(t, os.WriteFile(path, b, 0o600))
	}
	if c.quiet {
		require.NoError(t, os.Chtimes(path, st.ModTime(), st.ModTime()))
	}
	if c.killed {
		indexes, err := filepath.Glob(strings.ReplaceAll(root, "$", "[$]") + "/*/msgs/index.db")
		require.NoError(t, err)
		for _, f := range append(indexes, filepath.Join(root, "..", "..", "..", "waybill.sums")) {
			require.NoError(t, os.RemoveAll(f))
		}
	}
}

func (s *stock) try(t *testing.T, c injury) {
	t.Helper()
	t.Log(c)
	home := t.TempDir()
	data := filepath.Join(home, "data")
	require.NoError(t, copyTree(data, filepath.Join(s.dir, "data")))
	c.inflict(t, s.streams(data))
	if c.fresh {
		models, err := filepath.Glob(filepath.Join(data, "waybill.db*"))
		require.NoError(t, err)
		for _, f := range models {
			require.NoError(t, os.Remove(f))
		}
	}
	began := time.Now()
	host := harness.StartIn(t, home, s.args...)
	assert.Less(t, time.Since(began), startsWithin, "the start")
	got := s.read(t, host)
	if c.file == toData+readModel { // the read that meets the damage fails, and the model is rebuilt
		require.Eventually(t, func() bool { got = s.read(t, host); return maps.Equal(got, s.want) || !unavailable(got) }, wholeWithin, 100*time.Millisecond)
	}
	said := host.Log()
	named := strings.Contains(said, "damaged") || strings.Contains(said, "lost")
	for at, want := range s.want {
		s.compare(t, c, at, want, got[at], named)
	}
	for tenant, key := range stockTenants {
		s.goesOn(t, c, host.Client(key), tenant, named)
		s.goesOnAsBefore(t, c, host.Client(key), tenant, named)
	}
	most := peak(t, host.PID)
	assert.Less(t, most, mostMemory, "MB of memory")
	began = time.Now()
	assert.True(t, host.Stop().Success())
	assert.Less(t, time.Since(began), stopsWithin, "the stop")
	assert.NotContains(t, host.Log(), "panic")
}

// compare checks what is read. A flipped bit changes nothing; what a cut file had is served, or
// refused, or gone, and the host's log names the file.
func (*stock) compare(t *testing.T, c injury, at, want, got string, named bool) {
	t.Helper()
	if strings.Contains(at, "/v1/audit") { // it grows
		want, got = strings.TrimSuffix(firstPage(want), "]"), firstPage(got)
		if strings.HasPrefix(got, want) {
			return
		}
	}
	if got == want {
		return
	}
	if c.bit < 0 {
		if c.killed && (c.fresh || !strings.HasPrefix(c.file, "WAYBILL_RUNS")) {
			return // after a crash, a file that ends between two records looks like any other
		}
		assert.True(t, named, "%s is not as it was, and the host says nothing", at)
		return
	}
	assert.Equal(t, want, got, at)
}

// firstPage returns the entries of a page of the audit log.
func firstPage(page string) string {
	var doc map[string]json.RawMessage
	_ = json.Unmarshal([]byte(page), &doc)
	for _, v := range doc {
		if strings.HasPrefix(string(v), "[{") {
			return string(v)
		}
	}
	return page
}

// goesOn runs a workflow.
func (*stock) goesOn(t *testing.T, c injury, client *harness.Client, tenant string, named bool) {
	t.Helper()
	a := create(t, client, `{"workflowId":"stock-noop"}`)
	if a.Status != http.StatusCreated {
		assert.True(t, c.bit < 0 && named && strings.HasPrefix(c.file, "KV_waybill_workflows"), "%s: %d %s", tenant, a.Status, a.Body)
		return
	}
	id := runID(t, a)
	assert.Eventually(t, func() bool { return status(t, client, id) == "completed" }, startsWithin, 5*time.Millisecond, "%s: a new run", tenant)
}

// peak returns the most memory that a process has used, in MB.
func peak(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.Atoi(strings.Fields(v)[0])
			require.NoError(t, err)
			return kb >> 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// copyTree copies files with their times.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		}
		if !e.Type().IsRegular() { // the socket for backups
			return nil
		}
		st, err := e.Info()
		if err != nil || !st.Mode().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), b, st.Mode()); err != nil {
			return err
		}
		return os.Chtimes(filepath.Join(to, name), st.ModTime(), st.ModTime())
	})
}
