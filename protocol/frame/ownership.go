package frame

import (
	"strconv"
	"strings"
	"time"
)

// Ownership is the owner of a run as its log records it: the process that may execute the run, and
// the epoch of its claim. Only the frames of sessions change it:
//
//   - a frame with writer PROCESS-N@EPOCH claims the run for PROCESS, or keeps the claim;
//   - a frame with writer PROCESS-N@EPOCH/released releases the run;
//   - all other frames (wake frames, external changes, the acceptor's) leave it unchanged.
//
// The log does not record whether the owner is alive; its lease does.
type Ownership struct {
	// Owner is the process; empty when no process owns the run.
	Owner string
	// Epoch counts the claims of the run, from 1. It outlives a release.
	Epoch uint64
	// Since is when the log stored the claim; zero when no process owns the run.
	Since time.Time
}

const released = "/released"

// Claimed returns the writer name of a session that owns a run: its frames carry the epoch, and the
// last one releases the run when release is set.
func Claimed(writer string, epoch uint64, release bool) string {
	writer += "@" + strconv.FormatUint(epoch, 10)
	if release {
		writer += released
	}
	return writer
}

// After returns the ownership once f is in the log.
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

// processOf returns the process of a writer PROCESS-N; empty for other writers.
func processOf(writer string) string {
	at := strings.LastIndexByte(writer, '-')
	if at < 0 || strings.HasPrefix(writer, ExternalPrefix) {
		return ""
	}
	return writer[:at]
}
