package models

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// killed lists the points of a call at which the host is killed.
var killed = map[string]struct {
	shapes, modes []string
	// kill brings the run to the point and kills the host. It returns false if the point was
	// missed.
	kill func(t *testing.T, k *crash) bool
	// calls is the total number of calls to the vendor; 0 if it varies.
	calls int
	// streamed and whole name the event that marks the repeated call; empty if none is repeated.
	streamed, whole string
}{
	"before the call":           {kindsOfAnswer, waysToAnswer, killBefore, 1, again, again},
	"during the answer":         {kindsOfAnswer, waysToAnswer[:1], killDuring, 2, again, ""},
	"answer sent but unread":    {kindsOfAnswer, waysToAnswer, killAfter, 2, again, again},
	"while reading the answer":  {kindsOfAnswer, waysToAnswer, killAnywhere, 0, "", ""},
	"between envelope and node": {kindsOfAnswer[1:], waysToAnswer, killBetween, 1, "", ""},
	"between two attempts":      {kindsOfAnswer, waysToAnswer, killRetry, 2, again, logged},
}

var kindsOfAnswer, waysToAnswer = []string{"value", "envelope"}, []string{"streamed", "whole"}

// killBefore kills while the call is in flight and has not reached the vendor.
func killBefore(t *testing.T, k *crash) bool {
	t.Helper()
	k.v.desk.put(k.name, answer{text: good, in: 5, out: 5})
	p := k.line.holdCall()
	k.begin(t)
	k.before = k.await(t, started)
	reach(t, p.reached)
	require.Empty(t, k.v.desk.of(k.name))
	k.h.Kill()
	reach(t, p.gone) // after release, the call could still reach the vendor
	return true
}

// killDuring kills when part of the answer is recorded and the rest is not sent yet.
func killDuring(t *testing.T, k *crash) bool {
	t.Helper()
	step := make(chan struct{})
	k.v.desk.put(k.name, answer{text: long(50), in: 5, out: 50, step: step}, answer{text: good, in: 6, out: 5})
	k.begin(t)
	for range 3 {
		select {
		case step <- struct{}{}:
		case <-time.After(time.Minute):
			require.Fail(t, "the vendor was not called")
		}
	}
	k.before = k.await(t, chunk)
	k.h.Kill()
	require.Empty(t, of(k.before, usage))
	return true
}

// killAfter kills when the stopped host has received the whole answer without reading it.
func killAfter(t *testing.T, k *crash) bool {
	t.Helper()
	k.v.desk.put(k.name, answer{text: wrong, in: 5, out: 5}, answer{text: good, in: 6, out: 6})
	k.stopAtAnswer(t)
	k.h.Kill()
	return true
}

// stopAtAnswer stops the host and then sends it the whole answer.
func (k *crash) stopAtAnswer(t *testing.T) {
	t.Helper()
	p := k.line.holdAnswer()
	k.begin(t)
	k.await(t, started)
	reach(t, p.reached)
	from := len(k.log(t))
	k.stop(t)
	close(p.open)
	reach(t, p.sent)
	require.Len(t, k.log(t), from, "the log must not have the answer yet")
}

// killAnywhere kills a random time after the answer was sent.
func killAnywhere(t *testing.T, k *crash) bool {
	t.Helper()
	k.v.desk.put(k.name, answer{text: good, in: 5, out: 5}, answer{text: good, in: 5, out: 5})
	k.stopAtAnswer(t)
	require.NoError(t, syscall.Kill(k.h.PID, syscall.SIGCONT))
	select {
	case <-time.After(time.Duration(k.rand.IntN(12000)) * time.Microsecond): // the random moment is what is tested
	case <-t.Context().Done():
	}
	k.h.Kill()
	return true
}

// killBetween stops the host when the envelope is in its log on disk, and kills it if the node's
// end is not.
func killBetween(t *testing.T, k *crash) bool {
	t.Helper()
	k.v.desk.put(k.name, answer{text: good, in: 5, out: 5})
	p := k.line.holdAnswer()
	k.begin(t)
	reach(t, p.reached)
	log, err := os.Open(k.logFile())
	require.NoError(t, err)
	defer func() { _ = log.Close() }()
	at := int64(len(k.log(t)))
	close(p.open)
	buf := make([]byte, 64<<10)
	for deadline := time.Now().Add(time.Minute); ; {
		n, _ := log.ReadAt(buf, at) // the log's end cuts it short
		if bytes.Contains(buf[:n], []byte(artifact)) {
			break
		}
		require.True(t, time.Now().Before(deadline), "no envelope was recorded: %s", buf[:n])
	}
	k.stop(t)
	written := k.log(t)[at:]
	id := envelopeID.FindSubmatch(written)
	if id == nil || bytes.Contains(written, []byte(completed)) { // in the middle of writing the envelope, or after writing the node's end
		require.NoError(t, syscall.Kill(k.h.PID, syscall.SIGCONT))
		return false
	}
	k.envelope = string(id[1])
	k.h.Kill()
	return true
}

var envelopeID = regexp.MustCompile(`"artifactId":"([^"]+)"`)

// killRetry kills while the second call, whose announcement is recorded, is in flight.
func killRetry(t *testing.T, k *crash) bool {
	t.Helper()
	k.killAtRetry(t, answer{text: wrong, in: 5, out: 5}, answer{text: good, in: 6, out: 6})
	return true
}

// killAtRetry is killRetry with given vendor answers.
func (k *crash) killAtRetry(t *testing.T, answers ...answer) {
	t.Helper()
	k.v.desk.put(k.name, answers...)
	first := k.line.holdAnswer()
	k.begin(t)
	reach(t, first.reached)
	p := k.line.holdCall()
	close(first.open)
	k.before = k.await(t, retry)
	reach(t, p.reached)
	k.h.Kill()
	reach(t, p.gone) // after release, the call could still reach the vendor
}

// stop stops the host's process and returns when it has stopped.
func (k *crash) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, syscall.Kill(k.h.PID, syscall.SIGSTOP))
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(k.h.PID), "stat"))
		require.NoError(t, err)
		_, rest, _ := strings.Cut(string(b), ") ")
		return strings.HasPrefix(rest, "T")
	}, time.Minute, time.Millisecond)
}

// logFile is the path of the run log.
func (k *crash) logFile() string {
	return filepath.Join(k.h.Dir(), "nats", "jetstream", "$G", "streams", "WAYBILL_RUNS", "msgs", "1.blk")
}

func (k *crash) log(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile(k.logFile())
	require.NoError(t, err)
	return b
}
