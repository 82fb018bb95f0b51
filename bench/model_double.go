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

// doubleKey is the key that the double wants. The host knows it for a secret, so
// that its redactor has one to look for.
const doubleKey = "sk-bench-0123456789abcdef"

// answers are how the double says its 2 KB.
type answers struct {
	// wait is how long it thinks before the first byte.
	wait time.Duration
	// pieces is in how many chunks it answers, and interval the pause before each.
	pieces   int
	interval time.Duration
}

// modelDouble is an OpenAI-compatible server on the loopback interface, in this
// process, that tells when it was asked and when it answered.
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

// answersLike sets how calls from now on are answered.
func (d *modelDouble) answersLike(how answers) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.how = how
}

// Probes are questions whose answers a host must not take as they are.
const (
	probeLeak  = "probe-leak"
	probeWrong = "probe-wrong"
)

// answer satisfies the schema, except for probes.
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

// cut makes n pieces of a text of ASCII.
func cut(text string, n int) []string {
	var out []string
	for n = max(n, 1); n > 0; n-- {
		at := len(text) / n
		out, text = append(out, text[:at]), text[at:]
	}
	return out
}

// callID is how a call is known in the double: the question holds it.
var callID = regexp.MustCompile(`call-[0-9]{9}`)

func (d *modelDouble) watch(w openaicompat.Watched) {
	if c, ok := d.waiting.Load(string(callID.Find(w.Body))); ok {
		c.(chan openaicompat.Watched) <- w //nolint:forcetypeassert // expect stores no other
	}
}

// maxSeen is how many calls of one id the double tells of; a host that makes more
// than it should must not stop it.
const maxSeen = 4 * links

// expect announces calls under one id; told gives what the double saw of the first n
// of them, and forgets them.
func (d *modelDouble) expect(call int64) (id string, told func(ctx context.Context, n int) ([]openaicompat.Watched, error)) {
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

// question is what a call says, of the length of a support mail.
func question(id string) string {
	return id + ": " + strings.Repeat("The lamp that I ordered arrived broken, and nobody answers. ", 8)
}

// schemaIn is the schema that a request holds the answer to.
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
		return nil, errors.New("the host's request holds the answer to no schema")
	}
	return req.Format.Schema.Schema, nil
}
