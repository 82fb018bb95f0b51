package exit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/term"
	"waybill.dev/waybill/protocol/fault"
)

// Codes of errors that no host gives.
const (
	codeUsage       fault.Code = "usage"
	codeUnreachable fault.Code = "host_unreachable"
	codeForeign     fault.Code = "not_a_host"
	codeInterrupted fault.Code = "interrupted"
	codeNotFound    fault.Code = "not_found"
	codeFailed      fault.Code = "failed"
)

// report is an error as `-o json` writes it: the error envelope of the protocol, and
// what the command line adds.
type report struct {
	Error   fault.Code     `json:"error"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
	Hint    string         `json:"hint,omitempty"`
	Exit    int            `json:"exit,omitempty"` // never 0 of a command that failed
}

// Report tells people, or with asJSON programs, how a command failed. It says nothing
// of one that has said everything.
func Report(w io.Writer, err error, asJSON bool) {
	if own, ok := errors.AsType[*Error](err); err == nil || ok && own.Said {
		return
	}
	r := describe(err)
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(r) // there is nobody left to tell
		return
	}
	if r.Error == codeFailed {
		fmt.Fprintf(w, "error: %s\n", lines(r.Message))
	} else {
		fmt.Fprintf(w, "error: %s: %s\n", term.Clean(string(r.Error)), lines(r.Message))
	}
	if r.Hint != "" {
		fmt.Fprintf(w, "hint: %s\n", r.Hint)
	}
}

// lines makes a message visible that may say several things, a line each. Those after the first
// are set in, so that none of them passes for a message of its own.
func lines(message string) string {
	all := strings.Split(message, "\n")
	for i := range all {
		all[i] = term.Clean(all[i])
	}
	return strings.Join(all, "\n  ")
}

func describe(err error) report {
	r := report{Error: codeFailed, Message: err.Error(), Exit: Status(err)}
	faults := fault.All(err)
	if len(faults) > 1 { // of a folder or a file: a host refuses with one
		r.Details = map[string]any{"problems": problems(faults)}
	}
	switch {
	case len(faults) == 1 && !mixed(err):
		f := faults[0]
		r.Error, r.Message, r.Details = f.Code, f.Message, f.Details
		if _, ofHost := errors.AsType[*client.Error](err); ofHost && fault.Known(f.Code) {
			r.Hint = fault.Lookup(f.Code).Next
		}
	case errors.Is(err, client.ErrUnreachable):
		r.Error, r.Hint = codeUnreachable, "Is it running? `waybill dev` starts a host here; `waybill doctor` says what is in the way."
	case isForeign(err):
		r.Error, r.Hint = codeForeign, "Check the URL and its base path: `waybill context show --source` says where it comes from."
	case errors.Is(err, context.Canceled):
		r.Error, r.Message = codeInterrupted, "stopped before the end"
	case r.Exit == Usage:
		r.Error, r.Message = codeUsage, strings.TrimPrefix(r.Message, string(codeUsage)+": ")
	case r.Exit == NotFound:
		r.Error = codeNotFound
	}
	return r
}

// mixed reports whether an error joins others beside its faults: what is told of these is not all.
func mixed(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // taken apart here
	if !ok {
		next := errors.Unwrap(err)
		_, isFault := err.(*fault.Error) //nolint:errorlint // taken apart here
		return next != nil && !isFault && mixed(next)
	}
	for _, part := range joined.Unwrap() {
		_, isStatus := part.(*Error) //nolint:errorlint // such as the mark of errors of the command line
		if len(fault.All(part)) == 0 && !isStatus || mixed(part) {
			return true
		}
	}
	return false
}

// problems are faults as the error envelope writes them.
func problems(faults []*fault.Error) []report {
	out := make([]report, len(faults))
	for i, f := range faults {
		out[i] = report{Error: f.Code, Message: f.Message, Details: f.Details}
	}
	return out
}

func isForeign(err error) bool {
	_, ok := errors.AsType[*client.ForeignError](err)
	return ok
}
