package natsd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Layout describes the records of the host's streams. The server's checksums do not cover
// where a subject ends.
type Layout interface {
	// Record returns what is known of a record from its subject and the start of its value.
	Record(stream, subject string, value []byte) Record
}

// Record is what is known of a record.
type Record struct {
	// Valid is false if the stream has no such records.
	Valid bool
	// Tenant and RunID are the owner of the record; empty if the subject does not contain them.
	Tenant, RunID string
}

// anyLayout accepts everything.
type anyLayout struct{}

func (anyLayout) Record(string, string, []byte) Record { return Record{Valid: true} }

// Outcome is what became of a damaged record or file.
type Outcome string

const (
	// Repaired means that a flipped bit was repaired, and nothing is lost.
	Repaired Outcome = "repaired"
	// Kept means that the record is in its place without its content. Reading it is an error.
	Kept Outcome = "kept"
	// Lost means that the record is gone.
	Lost Outcome = "lost"
)

// Damage is a damaged record or file that was found at a start.
type Damage struct {
	Outcome  Outcome   `json:"outcome"`
	At       time.Time `json:"at"`
	What     string    `json:"what"`
	File     string    `json:"file"`
	Offset   int       `json:"offset"`
	Bytes    int       `json:"bytes,omitempty"`
	Stream   string    `json:"stream"`
	Sequence uint64    `json:"sequence,omitempty"`
	Subject  string    `json:"subject,omitempty"`
	Tenant   string    `json:"tenant,omitempty"`
	RunID    string    `json:"runId,omitempty"`
	// Aside is the file with the damaged bytes.
	Aside string `json:"aside,omitempty"`
}

// damagedDir is the folder, in the store directory, of damaged bytes and of the list of what was
// found. An operator may delete it.
const damagedDir = "damaged"

const damagedList = "records.jsonl"

// journal records damage. It is safe for concurrent use.
type journal struct {
	dir string // damagedDir
	log *slog.Logger

	mu sync.Mutex // guards writes to the folder
}

func newJournal(storeDir string, log *slog.Logger) *journal {
	return &journal{dir: filepath.Join(storeDir, damagedDir), log: log}
}

// add stores the damaged bytes, lists the damage, and logs it.
func (j *journal) add(d Damage, damaged []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return err
	}
	d.At = time.Now().UTC()
	if damaged != nil {
		d.Aside = filepath.Join(j.dir, fmt.Sprintf("%s-%s-%d-%d", d.Stream, filepath.Base(d.File), d.Offset, d.At.UnixNano()))
		if err := os.WriteFile(d.Aside, damaged, 0o600); err != nil { //nolint:gosec // G703: in the data directory
			return err
		}
	}
	line, err := json.Marshal(d)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(j.dir, damagedList), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	j.log.Error("a file of the log is damaged: "+d.What, "outcome", string(d.Outcome), "stream", d.Stream, "sequence", d.Sequence,
		"tenant", d.Tenant, "run_id", d.RunID, "subject", d.Subject, "file", d.File, "offset", d.Offset, "bytes", d.Bytes, "aside", d.Aside)
	return nil
}

// Damaged returns all damage that was found in a store directory, until its folder "damaged" is
// deleted.
func Damaged(storeDir string) ([]Damage, error) {
	f, err := os.Open(filepath.Join(storeDir, damagedDir, damagedList)) //nolint:gosec // G304: in the data directory
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var out []Damage
	for lines := json.NewDecoder(f); lines.More(); {
		var d Damage
		if err := lines.Decode(&d); err != nil {
			return out, nil //nolint:nilerr // the list itself is damaged from here on
		}
		out = append(out, d)
	}
	return out, nil
}
