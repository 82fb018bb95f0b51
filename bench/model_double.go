package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"waybill.dev/waybill/services/acceptor/accept/accepttest"
	"waybill.dev/waybill/test/double/openaicompat"
)

// doubleKey is the double's API key. It is a registered secret of the host, so that its redactor
// has one to search for.
const doubleKey = "sk-bench-0123456789abcdef"

// answers set how the double sends its 2 KB.
type answers struct {
	// wait is the delay before the first byte.
	wait time.Duration
	// pieces is the number of chunks, and interval the delay before each.
	pieces   int
	interval time.Duration
}

// modelDouble is an OpenAI-compatible server on the loopback interface, in this process. It records
// when calls arrived and when they were answered.
type modelDouble struct {
	*openaicompat.Server
	waiting sync.Map // id of a call → *expected

	mu  sync.Mutex // guards how
	how answers
}

func newModelDouble() *modelDouble {
	d := &modelDouble{}
	d.Server = openaicompat.New(openaicompat.Options{Key: doubleKey, RequireSchema: true, Answer: d.answer, Watch: d.watch})
	return d
}

// answersLike sets how later calls are answered.
func (d *modelDouble) answersLike(how answers) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.how = how
}

// Probes are questions whose answers a host must reject or redact.
const (
	probeLeak  = "probe-leak"
	probeWrong = "probe-wrong"
)

// answer matches the schema, except for probes.
func (d *modelDouble) answer(rec openaicompat.Recorded) openaicompat.Reply {
	d.mu.Lock()
	how := d.how
	d.mu.Unlock()
	text := accepttest.Payload()
	switch {
	case bytes.Contains(rec.Body, []byte(probeLeak)):
		text = strings.Replace(text, "Please hurry", doubleKey, 1)
	case bytes.Contains(rec.Body, []byte(probeWrong)):
		text = strings.Replace(text, `"quantity":1`, `"quantity":0`, 1)
	}
	return openaicompat.Reply{Wait: how.wait, Interval: how.interval, Pieces: cut(text, how.pieces)}
}

// cut splits an ASCII text into n pieces.
func cut(text string, n int) []string {
	var out []string
	for n = max(n, 1); n > 0; n-- {
		at := len(text) / n
		out, text = append(out, text[:at]), text[at:]
	}
	return out
}

// callID identifies a call to the double: it is part of the question.
var callID = regexp.MustCompile(`call-[0-9]{9}`)

func (d *modelDouble) watch(w openaicompat.Watched) {
	if c, ok := d.waiting.Load(string(callID.Find(w.Body))); ok {
		c.(chan openaicompat.Watched) <- w //nolint:forcetypeassert // expect stores no other
	}
}

// maxSeen limits the recorded calls of one id. A host that makes more calls than expected must not
// block the double.
const maxSeen = 4 * links

// expect announces calls under one id. seen returns the double's records of the first n calls, and
// deletes them.
func (d *modelDouble) expect(call int64) (id string, seen func(ctx context.Context, n int) ([]openaicompat.Watched, error)) {
	id = fmt.Sprintf("call-%09d", call)
	c := make(chan openaicompat.Watched, maxSeen)
	d.waiting.Store(id, c)
	return id, func(ctx context.Context, n int) ([]openaicompat.Watched, error) {
		defer d.waiting.Delete(id)
		var all []openaicompat.Watched
		for len(all) < n {
			select {
			case w := <-c:
				if len(w.Writes) < 2 {
					return nil, fmt.Errorf("the double answered %s with status %d", id, w.Status)
				}
				all = append(all, w)
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		return all, nil
	}
}

// question is the prompt of a call, as long as a support mail.
func question(id string) string {
	return id + ": " + strings.Repeat("The lamp that I ordered arrived broken, and nobody answers. ", 8)
}

// schemaIn returns the answer schema in a request.
func schemaIn(body []byte) (json.RawMessage, error) {
	var req struct {
		Format struct {
			Schema struct {
				Schema json.RawMessage `json:"schema"`
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	if len(req.Format.Schema.Schema) == 0 {
		return nil, errors.New("the host's request has no answer schema")
	}
	return req.Format.Schema.Schema, nil
}
