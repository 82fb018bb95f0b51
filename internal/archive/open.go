package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"waybill.dev/waybill/protocol/subject"
)

// DamagedError is damage of a document, with its place.
type DamagedError struct{ Where, What string }

func (e *DamagedError) Error() string {
	if e.Where == "" {
		return e.What
	}
	return e.Where + ": " + e.What
}

func damaged(where, format string, args ...any) error {
	return &DamagedError{Where: where, What: fmt.Sprintf(format, args...)}
}

// Open checks a document. Errors: *DamagedError.
func Open(doc []byte) (*Archive, error) {
	doc = bytes.TrimRight(doc, "\n")
	if len(doc) > MaxBytes {
		return nil, damaged("", "larger than %d bytes, the limit of an archive", MaxBytes)
	}
	var b struct {
		Run     json.RawMessage   `json:"run"`
		View    json.RawMessage   `json:"view"`
		Events  []json.RawMessage `json:"events"`
		Archive *Seal             `json:"archive"`
	}
	if err := json.Unmarshal(doc, &b); err != nil {
		return nil, unreadable(doc, err)
	}
	switch s := b.Archive; {
	case b.Events == nil || len(b.Run) == 0:
		return nil, damaged("", "not an archive of a run: it has no run and events")
	case s == nil:
		return nil, damaged("", "not an archive: a debug bundle without the member archive")
	case s.Format != Format:
		return nil, damaged("archive.format", "%d; this program reads %d", s.Format, Format)
	}
	a := &Archive{Seal: *b.Archive, Doc: doc, Snapshot: b.Run, View: b.View, Events: b.Events}
	if err := a.check(); err != nil {
		return nil, err
	}
	return a, nil
}

func unreadable(doc []byte, err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		if int(syntax.Offset) >= len(doc) {
			return damaged("", "truncated: it ends after %d bytes, within the document", len(doc))
		}
		return damaged(fmt.Sprintf("byte %d", syntax.Offset), "not JSON: %s", syntax.Error())
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return damaged(fmt.Sprintf("byte %d", wrong.Offset), "member %s: a %s is not allowed here", wrong.Field, wrong.Value)
	}
	return damaged("", "%s", err.Error())
}

// check verifies the chain, then the hash of the whole. The chain shows where a document was changed.
func (a *Archive) check() error {
	if !subject.Token(a.Tenant) || !subject.Token(a.WorkflowID) || !subject.Token(a.RunID) {
		return damaged("archive", "tenant, workflowId and runId: want letters, digits, _ and -, up to 128")
	}
	if err := a.checkRun(); err != nil {
		return err
	}
	if err := a.checkChain(); err != nil {
		return err
	}
	at := len(a.Doc) - ending
	if at < 0 || string(a.Doc[at:at+len(hashMember)]) != hashMember {
		return damaged("archive.sha256", "not the last member; the document was written again")
	}
	if sum := sha256.Sum256(a.Doc[:at]); hex.EncodeToString(sum[:]) != a.SHA256 {
		return damaged("", "the events are as archived, but another part of the document was changed: its SHA-256 does not match archive.sha256")
	}
	return nil
}

// checkRun verifies that all parts are about the same run.
func (a *Archive) checkRun() error {
	var run struct {
		RunID      string `json:"runId"`
		WorkflowID string `json:"workflowId"`
	}
	if err := json.Unmarshal(a.Snapshot, &run); err != nil {
		return damaged("run", "not a snapshot of a run")
	}
	if run.RunID != a.RunID || run.WorkflowID != a.WorkflowID {
		return damaged("run", "run %q of workflow %q; the seal is of run %q of workflow %q", run.RunID, run.WorkflowID, a.RunID, a.WorkflowID)
	}
	for i, doc := range a.Events {
		var e struct {
			RunID    string `json:"runId"`
			Sequence int    `json:"sequence"`
		}
		if json.Unmarshal(doc, &e) != nil || e.RunID != a.RunID || e.Sequence != i {
			return damaged(fmt.Sprintf("events[%d]", i), "not event %d of run %s", i, a.RunID)
		}
	}
	return nil
}

// checkChain verifies that the frames are those of a whole run, and have the events of the document.
func (a *Archive) checkChain() error {
	chain, next := a.begin(), 0
	for i, l := range a.Frames {
		where := fmt.Sprintf("archive.frames[%d]", i)
		switch {
		case !l.Kind.Valid() || l.Kind.Begins() != (i == 0) || l.Kind == subject.Erase || (l.Kind == subject.End) != (i == len(a.Frames)-1):
			return damaged(where, "kind %q is not possible here", l.Kind)
		case l.First != next || l.Last < l.First-1:
			return damaged(where, "events %d to %d; event %d is next", l.First, l.Last, next)
		case l.Last >= len(a.Events):
			return damaged(where, "events %d to %d, but the document has %d", l.First, l.Last, len(a.Events))
		case len(l.Hash) != 2*sha256.Size:
			return damaged(where, "hash: want %d hexadecimal digits", 2*sha256.Size)
		}
		if chain = l.follow(chain, a.Events); chain != l.Chain {
			if l.Last < l.First {
				return damaged(where, "changed: its chain hash does not match")
			}
			return damaged(where, "events %d to %d or the frame were changed: its chain hash does not match", l.First, l.Last)
		}
		next = l.Last + 1
	}
	switch {
	case len(a.Frames) == 0:
		return damaged("archive.frames", "empty")
	case next != len(a.Events):
		return damaged(fmt.Sprintf("events[%d]", next), "of no frame: the frames end with event %d", next-1)
	}
	return nil
}
