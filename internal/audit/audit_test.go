package audit_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/gowebpki/jcs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/audit"
	"waybill.dev/waybill/internal/audit/memory"
	"waybill.dev/waybill/protocol/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// every is Config.Every in these tests.
const every = 4

// rig is a log over a store in memory, with a clock that the test sets.
type rig struct {
	*audit.Log
	store *memory.Store
	key   *audit.Key
	mu    sync.Mutex // guards now and scrub
	now   time.Time
	scrub audit.Scrub
}

func newRig(t *testing.T) *rig {
	t.Helper()
	key, err := audit.NewKey()
	require.NoError(t, err)
	r := &rig{store: memory.New(), key: key, now: time.Unix(1_700_000_000, 0)}
	r.scrub = func(_ context.Context, _ string, doc []byte) ([]byte, error) { return doc, nil }
	r.Log = r.over(r.store)
	return r
}

// over returns a log with the rig's key over another store.
func (r *rig) over(s audit.Store) *audit.Log {
	return audit.New(audit.Config{Every: every, Interval: 300 * time.Second, Tick: time.Millisecond}, audit.Deps{
		Store: s, Key: r.key, Logger: slog.New(slog.DiscardHandler), Clock: func() time.Time {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.now
		},
		Scrub: func(ctx context.Context, tenant string, doc []byte) ([]byte, error) { return r.scrub(ctx, tenant, doc) },
	})
}

func (r *rig) record(t *testing.T, tenant string, n int) {
	t.Helper()
	for i := range n {
		require.NoError(t, r.Record(t.Context(), tenant, audit.Entry{
			Action:  "run.cancelled",
			Actor:   "key_1",
			Target:  fmt.Sprintf("runs/run_%d", i),
			Details: map[string]any{"n": i, "x": 1e21, "ü": "<é>"},
		}))
	}
}

// anchored runs the log until the store has that many checkpoints.
func (r *rig) anchored(t *testing.T, tenant string, n int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	require.Eventually(t, func() bool {
		res, err := r.Verify(t.Context(), tenant, audit.Window{})
		return err == nil && len(res.Checkpoints) == n
	}, 30*time.Second, time.Millisecond)
	cancel()
	require.NoError(t, <-done)
}

func (r *rig) lines(t *testing.T, tenant string) (out [][]byte) {
	t.Helper()
	page, more, err := r.Page(t.Context(), tenant, 0, 100_000)
	require.NoError(t, err)
	require.False(t, more)
	return page
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func TestRecord_ChainsCanonicalEntriesFromANullHash(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.record(t, "acme", 3)
	var prev any
	for i, line := range r.lines(t, "acme") {
		form, err := jcs.Transform(line)
		require.NoError(t, err)
		require.Equal(t, string(form), string(line), "stored in RFC 8785 form")
		var e map[string]any
		require.NoError(t, json.Unmarshal(line, &e))
		require.Len(t, e, 7)
		for _, member := range []string{"action", "actor", "atSequence", "details", "occurredAt", "prevHash", "target"} {
			require.Contains(t, e, member)
		}
		require.EqualValues(t, i, e["atSequence"])
		require.Equal(t, prev, e["prevHash"])
		require.Contains(t, string(line), `"x":1e+21`, "numbers are written as ECMAScript does")
		prev = sum(line)
	}
}

func TestVerify_OfAnUntouchedLogIsValid(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res, err := r.Verify(t.Context(), "acme", audit.Window{})
	require.NoError(t, err)
	require.Equal(t, audit.Result{ChainValid: true, CheckpointsValid: true}, res, "an empty log")
	r.record(t, "acme", 10)
	r.anchored(t, "acme", 2)
	res, err = r.Verify(t.Context(), "acme", audit.Window{})
	require.NoError(t, err)
	require.True(t, res.ChainValid)
	require.True(t, res.CheckpointsValid)
	require.Empty(t, res.Anomalies)
	require.EqualValues(t, 0, res.FromSeq)
	require.EqualValues(t, 9, res.ToSeq)

	to := int64(7)
	res, err = r.Verify(t.Context(), "acme", audit.Window{FromSeq: 4, ToSeq: &to})
	require.NoError(t, err)
	require.True(t, res.ChainValid)
	require.Len(t, res.Checkpoints, 1, "those of the window")
	require.EqualValues(t, 7, res.Checkpoints[0].AtSequence)
}

// A client can verify with only the entries, the checkpoints and the public key.
func TestCheckpoint_SignsTheRawRootOfAllEntries(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.record(t, "acme", 4)
	r.anchored(t, "acme", 1)
	res, err := r.Verify(t.Context(), "acme", audit.Window{})
	require.NoError(t, err)
	var h []string
	for _, line := range r.lines(t, "acme") {
		h = append(h, sum(line))
	}
	c := res.Checkpoints[0]
	require.Equal(t, sum([]byte(sum([]byte(h[0]+h[1]))+sum([]byte(h[2]+h[3])))), c.MerkleRoot)
	der, err := base64.StdEncoding.DecodeString(r.Profile().PublicKey)
	require.NoError(t, err)
	public, err := x509.ParsePKIXPublicKey(der)
	require.NoError(t, err)
	root, err := hex.DecodeString(c.MerkleRoot)
	require.NoError(t, err)
	require.Len(t, root, 32)
	signature, err := base64.StdEncoding.DecodeString(c.Signature)
	require.NoError(t, err)
	require.True(t, ed25519.Verify(public.(ed25519.PublicKey), root, signature))
}

// There is a checkpoint after Every entries. The rest waits for the interval.
func TestRun_MakesACheckpointByNumberOrByTime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.record(t, "acme", 2*every)
	r.anchored(t, "acme", 2)
	r.record(t, "acme", 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	count := func() int {
		res, err := r.Verify(t.Context(), "acme", audit.Window{})
		require.NoError(t, err)
		return len(res.Checkpoints)
	}
	require.Never(t, func() bool { return count() != 2 }, 50*time.Millisecond, time.Millisecond)
	r.mu.Lock()
	r.now = r.now.Add(300 * time.Second)
	r.mu.Unlock()
	require.Eventually(t, func() bool { return count() == 3 }, 30*time.Second, time.Millisecond)
	cancel()
	require.NoError(t, <-done)
	res, err := r.Verify(t.Context(), "acme", audit.Window{})
	require.NoError(t, err)
	require.True(t, res.ChainValid)
	var at []int64
	for _, c := range res.Checkpoints {
		at = append(at, c.AtSequence)
	}
	require.Equal(t, []int64{3, 7, 8}, at)
}

func TestVerify_FindsTamperedEntries(t *testing.T) {
	t.Parallel()
	const target = 5
	edit := func(from, to string) func(int, []byte) []byte {
		return func(n int, line []byte) []byte {
			if n != target {
				return line
			}
			out := bytes.Replace(line, []byte(from), []byte(to), 1)
			require.NotEqual(t, line, out)
			return out
		}
	}
	for name, tc := range map[string]struct {
		entries     func(n int, line []byte) []byte
		checkpoints func(n int, line []byte) []byte
		at          []int64 // anomalies
	}{
		"an entry's details":  {entries: edit(`"n":5`, `"n":6`), at: []int64{6}},
		"an entry's actor":    {entries: edit(`key_1`, `key_2`), at: []int64{6}},
		"one byte of a space": {entries: edit(`{`, `{ `), at: []int64{6}},
		"an entry's place":    {entries: edit(`"atSequence":5`, `"atSequence":500`), at: []int64{5, 6}},
		"a hash":              {entries: edit(`"prevHash":"`, `"prevHash":"0`), at: []int64{5, 6}},
		"a hash removed":      {entries: edit(`"prevHash"`, `"prevhush"`), at: []int64{5, 6}},
		"what is no entry": {entries: func(n int, line []byte) []byte {
			if n == target {
				return []byte("gone")
			}
			return line
		}, at: []int64{5, 6}},
		"an entry removed": {entries: func(n int, line []byte) []byte {
			if n == target {
				return nil
			}
			return line
		}, at: []int64{5}},
		"the first removed": {entries: func(n int, line []byte) []byte {
			if n == 0 {
				return nil
			}
			return line
		}, at: []int64{0}},
		"the end cut off": {entries: func(n int, line []byte) []byte {
			if n >= 6 {
				return nil
			}
			return line
		}},
		"the last entry, which nothing follows": {entries: func(n int, line []byte) []byte {
			if n == 7 {
				return bytes.Replace(line, []byte("key_1"), []byte("key_2"), 1)
			}
			return line
		}},
		"a checkpoint's signature": {checkpoints: func(_ int, line []byte) []byte {
			return bytes.Replace(line, []byte(`"signature":"`), []byte(`"signature":"AAAA`), 1)
		}},
		"a checkpoint that is unreadable": {checkpoints: func(int, []byte) []byte { return []byte("{") }},
		"a checkpoint moved": {checkpoints: func(_ int, line []byte) []byte {
			return bytes.Replace(line, []byte(`"atSequence":3`), []byte(`"atSequence":2`), 1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.record(t, "acme", 8)
			r.anchored(t, "acme", 2)
			copied, err := memory.Copy(t.Context(), r.store, "acme")
			require.NoError(t, err)
			if tc.entries != nil {
				copied.Tamper(audit.List{Tenant: "acme", Kind: audit.Entries}, tc.entries)
			}
			if tc.checkpoints != nil {
				copied.Tamper(audit.List{Tenant: "acme", Kind: audit.Checkpoints}, tc.checkpoints)
			}
			to := int64(7)
			res, err := r.over(copied).Verify(t.Context(), "acme", audit.Window{ToSeq: &to})
			require.NoError(t, err)
			require.False(t, res.ChainValid)
			require.False(t, res.CheckpointsValid, "a checkpoint covers it")
			var at []int64
			for _, a := range res.Anomalies {
				at = append(at, a.AtSeq)
				require.NotEmpty(t, a.ExpectedPrevHash)
			}
			require.Equal(t, tc.at, at)
		})
	}
}

// A rewritten chain is consistent, but has no valid signature.
func TestVerify_FindsARewrittenChain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.record(t, "acme", 4)
	r.anchored(t, "acme", 1)
	forged := newRig(t)
	forged.now = forged.now.Add(time.Second)
	forged.record(t, "acme", 4)
	checkpoints := audit.List{Tenant: "acme", Kind: audit.Checkpoints}
	m, err := r.store.Last(t.Context(), checkpoints)
	require.NoError(t, err)
	_, err = forged.store.Append(t.Context(), checkpoints, m.First, m.Lines, 0)
	require.NoError(t, err)
	res, err := r.over(forged.store).Verify(t.Context(), "acme", audit.Window{})
	require.NoError(t, err)
	require.Empty(t, res.Anomalies)
	require.False(t, res.CheckpointsValid)
	require.False(t, res.ChainValid)

	forged.anchored(t, "acme", 1) // its own key's signature is not this host's, either
	res, err = r.over(forged.store).Verify(t.Context(), "acme", audit.Window{})
	require.NoError(t, err)
	require.False(t, res.ChainValid)
}

func TestLog_OfATenantShowsNothingOfAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.record(t, "acme", 5)
	r.record(t, "beta", 1)
	r.anchored(t, "acme", 1)
	res, err := r.Verify(t.Context(), "gamma", audit.Window{})
	require.NoError(t, err)
	require.Equal(t, audit.Result{ChainValid: true, CheckpointsValid: true}, res)
	require.Len(t, r.lines(t, "beta"), 1)
	require.Contains(t, string(r.lines(t, "beta")[0]), `"prevHash":null`)
	require.ErrorContains(t, r.Record(t.Context(), "acme.>", audit.Entry{Action: "a.b"}), "tenant")
}

func TestRecord_PassesTheRedactorAndFailsWithoutIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.scrub = func(_ context.Context, tenant string, doc []byte) ([]byte, error) {
		require.Equal(t, "acme", tenant)
		return bytes.ReplaceAll(doc, []byte("hunter2"), []byte("[REDACTED]")), nil
	}
	e := audit.Entry{
		Action:  "run.cancelled",
		Actor:   "hunter2",
		Target:  "runs/hunter2",
		Details: map[string]any{"reason": "hunter2"},
	}
	require.NoError(t, r.Record(t.Context(), "acme", e))
	require.NotContains(t, string(r.lines(t, "acme")[0]), "hunter2")
	for name, scrub := range map[string]audit.Scrub{
		"away":    func(context.Context, string, []byte) ([]byte, error) { return nil, errors.New("away") },
		"strange": func(context.Context, string, []byte) ([]byte, error) { return []byte("[]"), nil },
	} {
		r.scrub = scrub
		f, ok := fault.As(r.Record(t.Context(), "acme", e))
		require.True(t, ok, name)
		require.Equal(t, fault.ServiceUnavailable, f.Code)
	}
	require.Len(t, r.lines(t, "acme"), 1)
}

// An entry that could not be recorded is recorded once when the log is available again, with
// its original time. An entry of an unbuffered recorder is not.
func TestRecord_RetriesWhenTheLogIsAvailableAgain(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(r *rig) (back func()){
		"the store": func(r *rig) func() {
			r.store.Fail(audit.ErrUnavailable)
			return func() { r.store.Fail(nil) }
		},
		"the redactor": func(r *rig) func() {
			whole := r.scrub
			r.scrub = func(context.Context, string, []byte) ([]byte, error) { return nil, errors.New("away") }
			return func() { r.scrub = whole }
		},
	} {
		r := newRig(t)
		r.record(t, "acme", 1)
		back := away(r)
		for _, to := range []audit.Recorder{r.Log, r.Once()} {
			require.Error(t, to.Record(t.Context(), "acme", audit.Entry{
				Action: "interrupt.answered",
				Target: "runs/run_1",
			}), name)
		}
		r.mu.Lock()
		done := r.now.UTC().Format("2006-01-02T15:04:05.000Z")
		r.now = r.now.Add(time.Hour)
		r.mu.Unlock()
		back()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, r.Run(ctx), "also when it ends")
		lines := r.lines(t, "acme")
		require.Len(t, lines, 2, name)
		require.Contains(t, string(lines[1]), `"action":"interrupt.answered"`)
		require.Contains(t, string(lines[1]), `"occurredAt":"`+done)
		res, err := r.Verify(t.Context(), "acme", audit.Window{})
		require.NoError(t, err)
		require.True(t, res.ChainValid)
	}
}

func TestRecord_FailsWhileTheStoreIsUnavailableAndRecovers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.record(t, "acme", 1)
	r.store.Fail(audit.ErrUnavailable)
	f, ok := fault.As(r.Record(t.Context(), "acme", audit.Entry{Action: "a.b"}))
	require.True(t, ok)
	require.Equal(t, fault.ServiceUnavailable, f.Code)
	r.store.Fail(nil)
	r.record(t, "acme", 1)
	require.Len(t, r.lines(t, "acme"), 2)
}

func TestRecord_OmitsDetailsThatAreTooLarge(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.NoError(t, r.Record(t.Context(), "acme", audit.Entry{
		Action:  "a.b",
		Details: map[string]any{"x": string(make([]byte, 20_000))},
	}))
	require.Contains(t, string(r.lines(t, "acme")[0]), `"details":{"omittedBytes":`)
	require.ErrorContains(t, r.Record(t.Context(), "acme", audit.Entry{Action: "cancelled"}), "run.cancelled")
}

// A damaged checkpoint is not extended, and does not affect other tenants.
func TestRun_StopsCheckpointsOfATenantWhoseLastOneIsDamaged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(line []byte) []byte{
		"peaks under another name": func(l []byte) []byte { return bytes.Replace(l, []byte(`"peaks"`), []byte(`"pgaks"`), 1) },
		"a changed size":           func(l []byte) []byte { return bytes.Replace(l, []byte(`"size":`), []byte(`"size":1`), 1) },
		"a negative size":          func(l []byte) []byte { return bytes.Replace(l, []byte(`"size":`), []byte(`"size":-`), 1) },
		"a changed peak":           func(l []byte) []byte { return flipHex(l, `"peaks":["`) },
		"a changed root":           func(l []byte) []byte { return flipHex(l, `"merkleRoot":"`) },
		"a changed signature": func(l []byte) []byte {
			return bytes.Replace(l, []byte(`"signature":"`), []byte(`"signature":"AAAA`), 1)
		},
		"a changed sequence": func(l []byte) []byte { return bytes.Replace(l, []byte(`"atSequence":`), []byte(`"atSequence":1`), 1) },
		"no document":        func([]byte) []byte { return []byte("\x00\x00") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.record(t, "acme", every)
			r.record(t, "beta", every)
			r.anchored(t, "acme", 1)
			r.anchored(t, "beta", 1)
			r.store.Tamper(audit.List{Tenant: "acme", Kind: audit.Checkpoints}, func(_ int, line []byte) []byte { return change(line) })
			r.record(t, "acme", every)
			r.record(t, "beta", every)
			r.anchored(t, "beta", 2)
			require.Equal(t, []string{"acme"}, r.Broken())
			m, err := r.store.Last(t.Context(), audit.List{Tenant: "acme", Kind: audit.Checkpoints})
			require.NoError(t, err)
			require.Equal(t, 1, r.checkpoints(t, "acme"), "%s", m.Lines)
		})
	}
}

// flipHex changes the digit after a text.
func flipHex(line []byte, after string) []byte {
	out := bytes.Clone(line)
	out[bytes.Index(out, []byte(after))+len(after)] ^= 1
	return out
}

func (r *rig) checkpoints(t *testing.T, tenant string) (n int) {
	t.Helper()
	require.NoError(t, r.store.Scan(t.Context(), audit.List{Tenant: tenant, Kind: audit.Checkpoints}, 0, func(*audit.Message) bool {
		n++
		return true
	}))
	return n
}
