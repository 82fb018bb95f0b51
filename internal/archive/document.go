// Package archive writes runs that have ended to a directory or an S3 bucket, and reads them again.
//
//	Encode   makes the document of a run: its debug bundle, and a seal with the chain of its frames
//	Open     checks such a document, and reports where it is damaged
//	Target   keeps documents under names
//
// A document is one JSON object, compressed with gzip. It is the debug bundle of the run with all
// events, and has one more member, archive: the Seal.
package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

const (
	// Format is the version of the seal.
	Format = 1
	// MaxBytes limits a document, before compression.
	MaxBytes = 60 << 20
)

// Seal names the run of a document, and chains its frames.
type Seal struct {
	Format     int    `json:"format"`
	Tenant     string `json:"tenant"`
	WorkflowID string `json:"workflowId"`
	RunID      string `json:"runId"`
	// Frames are the frames of the run's log, in order.
	Frames []Link `json:"frames"`
	// SHA256 is the hash of the document up to this member.
	SHA256 string `json:"sha256"`
}

// Link is a frame of the log.
type Link struct {
	Kind  subject.Kind `json:"kind"`
	First int          `json:"first"`
	Last  int          `json:"last"`
	// Hash is the hash of the frame in the log, which covers its content and the previous frame.
	Hash string `json:"hash"`
	// Chain is the hash of the previous link, of this one, and of its events as the document has them.
	Chain string `json:"chain"`
}

// Run returns the run of the document.
func (s *Seal) Run() subject.Run {
	return subject.Run{Tenant: s.Tenant, WorkflowID: s.WorkflowID, RunID: s.RunID}
}

// Head returns the hash of the run's last frame.
func (s *Seal) Head() string { return s.Frames[len(s.Frames)-1].Hash }

// Name returns the name of the document in a target.
func (s *Seal) Name() string { return Name(s.Run(), s.Head()) }

// Suffix ends the names of archives.
const Suffix = ".json.gz"

// headDigits is how much of a hash is part of a name.
const headDigits = 16

// Name returns the name of a run's document in a target: TENANT/WORKFLOW/RUN.HEAD.json.gz. The head is
// the beginning of the hash of the run's last frame. So a run of another host with the same id has
// another name. No part of a name contains a slash or a dot, because they are tokens of a subject.
func Name(run subject.Run, head string) string {
	return run.Tenant + "/" + run.WorkflowID + "/" + run.RunID + "." + head[:min(len(head), headDigits)] + Suffix
}

// Named returns the run that a name is for; ok is false if it is no name of an archive.
func Named(name string) (run subject.Run, ok bool) {
	rest, ok := strings.CutSuffix(name, Suffix)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) < 3 {
		return subject.Run{}, false
	}
	at := parts[len(parts)-3:]
	id, head, ok := strings.Cut(at[2], ".")
	run = subject.Run{Tenant: at[0], WorkflowID: at[1], RunID: id}
	return run, ok && subject.Token(run.Tenant) && subject.Token(run.WorkflowID) && subject.Token(id) && subject.Token(head)
}

// ErrTruncated means that a bundle has not all events of its run, because it was too large.
var ErrTruncated = errors.New("the bundle has not all events of the run")

// bundle is what an archive reads of a debug bundle.
type bundle struct {
	Run struct {
		RunID      string `json:"runId"`
		WorkflowID string `json:"workflowId"`
	} `json:"run"`
	Events    []json.RawMessage `json:"events"`
	Truncated bool              `json:"truncated"`
	Archive   *Seal             `json:"archive"`
}

// Encode returns the document of a run, from its debug bundle and the frames of its log. The last frame
// is the one that ended the run. Errors: ErrTruncated.
func Encode(doc []byte, frames []*frame.Frame) ([]byte, error) {
	var b bundle
	if err := json.Unmarshal(doc, &b); err != nil {
		return nil, fmt.Errorf("debug bundle: %w", err)
	}
	run, last := frames[len(frames)-1].Run, frames[len(frames)-1]
	switch {
	case b.Truncated || len(b.Events) < last.Last+1:
		return nil, ErrTruncated
	case last.Kind != subject.End:
		return nil, fmt.Errorf("run %s: its last frame is %s, not its end", run.RunID, last.Kind)
	case len(b.Events) != last.Last+1:
		return nil, fmt.Errorf("run %s: its bundle has %d events, its log %d", run.RunID, len(b.Events), last.Last+1)
	}
	seal := Seal{Format: Format, Tenant: run.Tenant, WorkflowID: run.WorkflowID, RunID: run.RunID}
	for _, f := range frames {
		seal.Frames = append(seal.Frames, Link{Kind: f.Kind, First: f.First, Last: f.Last, Hash: f.Hash})
	}
	chain := seal.begin()
	for i := range seal.Frames {
		l := &seal.Frames[i]
		chain = l.follow(chain, b.Events)
		l.Chain = chain
	}
	return seal.append(doc)
}

// begin returns the hash before the first link.
func (s *Seal) begin() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "waybill archive %d\n%s\n%s\n%s\n", s.Format, s.Tenant, s.WorkflowID, s.RunID))
	return hex.EncodeToString(sum[:])
}

// follow returns the hash of a link after the previous one.
func (l *Link) follow(previous string, events []json.RawMessage) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%d\n%d\n%s\n", previous, l.Kind, l.First, l.Last, l.Hash)
	for i := l.First; i <= l.Last; i++ {
		h.Write(events[i])
		h.Write([]byte{'\n'})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// hashMember is before the last member of a document, which is the hash of everything before.
const hashMember = `,"sha256":"`

// ending is the length of the end of a document: the hash member and three closing characters.
const ending = len(hashMember) + 2*sha256.Size + len(`"}}`)

// append adds the seal to a bundle.
func (s *Seal) append(doc []byte) ([]byte, error) {
	own, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("render the seal: %w", err)
	}
	body, ok := bytes.CutSuffix(bytes.TrimSpace(doc), []byte("}"))
	if !ok {
		return nil, errors.New("debug bundle: not a JSON object")
	}
	own = bytes.TrimSuffix(own, []byte(hashMember+`"}`)) // the hash is empty
	out := append(append(append(bytes.Clone(body), `,"archive":`...), own...), hashMember...)
	sum := sha256.Sum256(out[:len(out)-len(hashMember)])
	out = append(append(out, hex.EncodeToString(sum[:])...), `"}}`...)
	if len(out) > MaxBytes {
		return nil, ErrTruncated
	}
	return out, nil
}

// An Archive is a document that was checked.
type Archive struct {
	Seal
	// Doc is the whole document, which is a debug bundle, too.
	Doc []byte
	// Run is the snapshot, View the folded view, Events are the documents of the events.
	Snapshot, View json.RawMessage
	Events         []json.RawMessage
}
