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

// Error codes of the command line.
const (
	codeUsage       fault.Code = "usage"
	codeUnreachable fault.Code = "host_unreachable"
	codeForeign     fault.Code = "not_a_host"
	codeUnoffered   fault.Code = "not_offered"
	codeInterrupted fault.Code = "interrupted"
	codeNotFound    fault.Code = "not_found"
	codeFailed      fault.Code = "failed"
)

// report is an error in JSON: the error envelope of the protocol, plus hint and exit status.
type report struct {
	Error   fault.Code     `json:"error"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
	Hint    string         `json:"hint,omitempty"`
	Exit    int            `json:"exit,omitempty"` // unset in nested problems
	// problems are those of a host's details, one line each.
	problems []string
}

// Report prints the error of a command, as text or as JSON. It prints nothing for an error that
// was reported already.
func Report(w io.Writer, err error, asJSON bool) {
	if own, ok := errors.AsType[*Error](err); err == nil || ok && own.Reported {
		return
	}
	r := describe(err)
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(r) // an error of stderr cannot be reported
		return
	}
	if r.Error == codeFailed {
		fmt.Fprintf(w, "error: %s\n", lines(r.Message))
	} else {
		fmt.Fprintf(w, "error: %s: %s\n", term.Clean(string(r.Error)), lines(r.Message))
	}
	for _, p := range r.problems {
		fmt.Fprintf(w, "  %s\n", term.Clean(p))
	}
	if r.Hint != "" {
		fmt.Fprintf(w, "hint: %s\n", r.Hint)
	}
}

// lines escapes control characters in each line of a message. Lines after the first are indented,
// so that none looks like a message of its own.
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
	if len(faults) > 1 { // from local files; a host returns one
		r.Details = map[string]any{"problems": problems(faults)}
	}
	switch {
	case len(faults) == 1 && !mixed(err):
		f := faults[0]
		r.Error, r.Message, r.Details = f.Code, f.Message, f.Details
		if _, ofHost := errors.AsType[*client.Error](err); ofHost && fault.Known(f.Code) {
			r.Hint = fault.Lookup(f.Code).Next
			if remedy, ok := f.Details["remedy"].(string); ok { // for this case of the code
				r.Hint = remedy
			}
			r.problems = listProblems(f.Details)
			if len(r.problems) > 0 && r.Hint == fault.Lookup(f.Code).Next {
				r.Hint = "" // each problem has its remedy
			}
		}
	case errors.Is(err, client.ErrUnreachable):
		r.Error, r.Hint = codeUnreachable, "Start a host with `waybill dev`, or run `waybill doctor` to diagnose the connection."
	case isUnoffered(err):
		r.Error, r.Hint = codeUnoffered, "Not every host of the protocol has this; `waybill capabilities` lists what the host says about itself."
	case isForeign(err):
		r.Error, r.Hint = codeForeign, "Check the URL and its base path; `waybill context show --source` shows where it is set."
	case errors.Is(err, context.Canceled):
		r.Error, r.Message = codeInterrupted, "stopped before the end"
	case r.Exit == Usage:
		r.Error = codeUsage
	case r.Exit == NotFound:
		r.Error = codeNotFound
	}
	return r
}

// MemberPlace is the member of a problem that a command adds: its place in a file.
const MemberPlace = "place"

// listProblems returns the problems of a host's details; none if there is only one that the message has.
func listProblems(details map[string]any) (out []string) {
	all, _ := details["problems"].([]any)
	for _, one := range all {
		p, _ := one.(map[string]any)
		var parts []string
		for _, name := range []string{MemberPlace, "path", "rule", "message"} {
			if text, _ := p[name].(string); text != "" {
				parts = append(parts, text)
			}
		}
		out = append(out, strings.Join(parts, ": "))
	}
	if len(out) == 1 {
		if p, _ := all[0].(map[string]any); p[MemberPlace] == nil {
			return nil
		}
	}
	return out
}

// mixed reports whether an error joins other errors than faults, which the faults alone would omit.
func mixed(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // unwrapped here
	if !ok {
		next := errors.Unwrap(err)
		_, isFault := err.(*fault.Error) //nolint:errorlint // unwrapped here
		return next != nil && !isFault && mixed(next)
	}
	for _, part := range joined.Unwrap() {
		if len(fault.All(part)) == 0 || mixed(part) {
			return true
		}
	}
	return false
}

// problems converts faults to reports.
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

func isUnoffered(err error) bool {
	_, ok := errors.AsType[*client.UnofferedError](err)
	return ok
}
