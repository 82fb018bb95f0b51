package main

import (
	"context"
	"path/filepath"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/test/double/anthropic"
	"waybill.dev/waybill/test/double/openaicompat"
)

// The two models of the stage. Their capabilities are in models.json and in the host's catalogue.
const (
	houseModel  = "house/small-7b"
	vendorModel = "anthropic/claude-haiku-5-5"
)

// stage is a host and the doubles of its models.
type stage struct {
	house  *openaicompat.Server
	vendor *anthropic.Server
	host   *host
	client *client.Client
}

// vendorKey is the key of the double.
const vendorKey = "key-of-the-double-and-nothing-else"

// open starts the doubles and a host that calls them.
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

// played is a case and its run.
type played struct {
	scene
	runID string
	log   []event
	// vendorCalls are the requests to the vendor's double, house those to the other.
	vendorCalls []anthropic.Recorded
	house       []openaicompat.Recorded
}

// play runs a case with its scripted replies of the vendor.
func (s *stage) play(ctx context.Context, c scene) (played, error) {
	before, beforeHouse := len(s.vendor.Requests()), len(s.house.Requests())
	s.vendor.Enqueue(c.replies...)
	runID, log, err := follow(ctx, s.client, c.name)
	return played{scene: c, runID: runID, log: log, vendorCalls: s.vendor.Requests()[before:], house: s.house.Requests()[beforeHouse:]}, err
}
