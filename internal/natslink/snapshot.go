package natslink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
)

// The server's API for snapshots of streams, whose content only servers can read.
const (
	snapshotAPI = "$JS.API.STREAM.SNAPSHOT."
	restoreAPI  = "$JS.API.STREAM.RESTORE."

	// snapshotStall is how long a server may take for the next chunk.
	snapshotStall = time.Minute
	snapshotChunk = 512 << 10
)

// StreamSnapshot describes a snapshot of a stream: its configuration and state, as the server wrote
// them.
type StreamSnapshot struct {
	Config json.RawMessage `json:"config"`
	State  json.RawMessage `json:"state"`
}

// apiError is the error member of the server's answers.
type apiError struct {
	Error *struct {
		Code        int    `json:"err_code"`
		Description string `json:"description"`
	} `json:"error"`
}

func (e apiError) err() error {
	if e.Error == nil {
		return nil
	}
	return fmt.Errorf("the server refused: %s (%d)", e.Error.Description, e.Error.Code)
}

// Snapshot reads a consistent snapshot of a stream, without its consumers, while it is in use. about is
// called first, and then chunk with each part.
func Snapshot(ctx context.Context, nc *nats.Conn, stream string, about func(StreamSnapshot) error, chunk func([]byte) error) error {
	inbox := nc.NewRespInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return fmt.Errorf("snapshot of %s: %w", stream, err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return fmt.Errorf("snapshot of %s: %w", stream, err)
	}
	var answer struct {
		apiError
		StreamSnapshot
	}
	err = askJSON(ctx, nc, snapshotAPI+stream, map[string]any{
		"deliver_subject": inbox, "no_consumers": true, "chunk_size": snapshotChunk,
	}, &answer)
	if err == nil {
		err = answer.err()
	}
	if err == nil {
		err = about(answer.StreamSnapshot)
	}
	if err != nil {
		return fmt.Errorf("snapshot of %s: %w", stream, err)
	}
	for {
		m, err := next(ctx, sub)
		if err != nil {
			return fmt.Errorf("snapshot of %s: %w", stream, err)
		}
		if len(m.Data) == 0 {
			if status := m.Header.Get("Status"); status != "" && status != "204" {
				return fmt.Errorf("snapshot of %s: the server stopped: %s %s", stream, status, m.Header.Get("Description"))
			}
			return nil
		}
		if err := chunk(m.Data); err != nil {
			return fmt.Errorf("snapshot of %s: %w", stream, err)
		}
		if m.Reply != "" {
			if err := m.Respond(nil); err != nil {
				return fmt.Errorf("snapshot of %s: %w", stream, err)
			}
		}
	}
}

func next(ctx context.Context, sub *nats.Subscription) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, snapshotStall)
	defer cancel()
	return sub.NextMsgWithContext(ctx)
}

// Restore creates a stream from a snapshot. chunk returns its parts in order, and io.EOF after the last
// one. It fails if the stream exists.
func Restore(ctx context.Context, nc *nats.Conn, stream string, about StreamSnapshot, chunk func() ([]byte, error)) error {
	var answer struct {
		apiError
		Deliver string `json:"deliver_subject"`
	}
	err := askJSON(ctx, nc, restoreAPI+stream, about, &answer)
	if err == nil {
		err = answer.err()
	}
	if err != nil {
		return fmt.Errorf("restore %s: %w", stream, err)
	}
	for {
		data, err := chunk()
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("restore %s: %w", stream, err)
		}
		last := err != nil
		if last {
			data = nil
		}
		res, err := request(ctx, nc, answer.Deliver, data)
		if err != nil {
			return fmt.Errorf("restore %s: %w", stream, err)
		}
		var refused apiError
		if len(res.Data) > 0 && json.Unmarshal(res.Data, &refused) == nil && refused.err() != nil {
			return fmt.Errorf("restore %s: %w", stream, refused.err())
		}
		if last {
			return nil
		}
	}
}

func askJSON(ctx context.Context, nc *nats.Conn, subject string, body, into any) error {
	doc, err := json.Marshal(body)
	if err != nil {
		return err
	}
	m, err := request(ctx, nc, subject, doc)
	if err != nil {
		return err
	}
	return json.Unmarshal(m.Data, into)
}

func request(ctx context.Context, nc *nats.Conn, subject string, body []byte) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, snapshotStall)
	defer cancel()
	return nc.RequestWithContext(ctx, subject, body)
}
