package main

import (
	"context"
	"path/filepath"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/test/double/anthropic"
	"waybill.dev/waybill/test/double/openaicompat"
)

// The two models of the stage. What they can do is in models.json and in the host's
// own catalogue.
const (
	houseModel  = "house/small-7b"
	vendorModel = "anthropic/claude-haiku-5-5"
)

// stage is a host, and the models that it can ask.
type stage struct {
	house  *openaicompat.Server
	vendor *anthropic.Server
	host   *host
	client *client.Client
}

// vendorKey opens the double and nothing else.
const vendorKey = "key-of-the-double-and-nothing-else"

// open starts the models, and a host that asks them.
func open(ctx context.Context, o options, tmp string) (*stage, error) {
	s := &stage{
		house:  openaicompat.New(openaicompat.Options{Models: []string{"small-7b"}}),
		vendor: anthropic.New(anthropic.Options{Key: vendorKey, Models: []string{"claude-haiku-5-5"}, RequireSchema: true}),
	}
	h, err := launch(ctx, o.bin, tmp, []string{"WAYBILL_PROVIDER_ANTHROPIC_KEY=" + vendorKey},
		"--provider", "house="+s.house.URL(), "--provider", "anthropic="+s.vendor.URL(), "--default-model", houseModel,
		"--models", filepath.Join(o.dir, "models", "models.json"), "--packs", filepath.Join(o.dir, "packs"),
		"--workflows", filepath.Join(o.dir, "models", "workflows"))
	if err != nil {
		s.close()
		return nil, err
	}
	s.host = h
	if s.client, err = client.New(h.http, client.WithToken("dev-key")); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stage) close() {
	if s.host != nil {
		s.host.stop()
	}
	s.house.Close()
	s.vendor.Close()
}

// played is a case and what came of it.
type played struct {
	scene
	runID string
	log   []event
	// asked are the requests that the vendor's double got, house those of the other.
	asked []anthropic.Recorded
	house []openaicompat.Recorded
}

// play runs a case: the vendor says what it is to say, and the host does the rest.
func (s *stage) play(ctx context.Context, c scene) (played, error) {
	before, beforeHouse := len(s.vendor.Requests()), len(s.house.Requests())
	s.vendor.Enqueue(c.says...)
	runID, log, err := follow(ctx, s.client, c.name)
	return played{scene: c, runID: runID, log: log, asked: s.vendor.Requests()[before:], house: s.house.Requests()[beforeHouse:]}, err
}
