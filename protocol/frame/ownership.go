package frame

import (
	"strconv"
	"strings"
	"time"
)

// Ownership is the lease of a run as its log records it: which process may execute the run,
// and since which epoch. It changes only through the frames of sessions:
//
//   - a frame whose writer is PROCESS-N@EPOCH claims the run for PROCESS, or keeps it;
//   - a frame whose writer is PROCESS-N@EPOCH/released gives it up;
//   - every other frame (wake frames, changes beside a session, the acceptor's) leaves it as it was.
//
// Whether the owner is still alive is not in the log: its lease says so.
type Ownership struct {
	// Owner is the process; empty when no process owns the run.
	Owner string
	// Epoch counts the claims of the run, from 1. It outlives a release.
	Epoch uint64
	// Since is when the log took the claim; zero when no process owns the run.
	Since time.Time
}

const released = "/released"

// Claimed names the writer of a session that owns a run: its frames carry the epoch, and the
// last one gives the run up when release is set.
func Claimed(writer string, epoch uint64, release bool) string {
	writer += "@" + strconv.FormatUint(epoch, 10)
	if release {
		writer += released
	}
	return writer
}

// After is the ownership once f is in the log.
func (o Ownership) After(f *Frame) Ownership {
	writer, claim, ok := strings.Cut(f.Writer, "@")
	if !ok {
		return o
	}
	claim, release := strings.CutSuffix(claim, released)
	epoch, err := strconv.ParseUint(claim, 10, 64)
	process := processOf(writer)
	switch {
	case err != nil || process == "":
		return o
	case release:
		return Ownership{Epoch: epoch}
	case process == o.Owner && epoch == o.Epoch:
		return o
	default:
		return Ownership{Owner: process, Epoch: epoch, Since: f.Stored}
	}
}

// processOf is the process of a writer PROCESS-N; empty for other writers.
func processOf(writer string) string {
	at := strings.LastIndexByte(writer, '-')
	if at < 0 || strings.HasPrefix(writer, Beside) {
		return ""
	}
	return writer[:at]
}
