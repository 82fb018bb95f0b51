// Package offline answers the reads of a host's API from archives, so that clients of the API read
// archived runs as they read those of a host. Everything else is refused.
package offline

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/internal/archive"
	"waybill.dev/waybill/protocol/fault"
)

// Transport reads archives of a target. Every archive is checked when it is read. It is safe for
// concurrent use.
type Transport struct{ target archive.Target }

// New returns a transport for a target.
func New(target archive.Target) *Transport { return &Transport{target} }

// reading is how many archives are read at the same time.
const reading = 8

// RoundTrip answers a request; see http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
	status := http.StatusOK
	body, err := t.answer(req)
	if err != nil {
		if req.Context().Err() != nil {
			return nil, req.Context().Err()
		}
		f, ok := fault.As(err)
		if !ok {
			f = fault.New(fault.ServiceUnavailable, "%s", err.Error())
		}
		status, body = f.Row().HTTP, f.Envelope()
	}
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)), Request: req,
	}, nil
}

const runsPath = "/v1/runs"

func (t *Transport) answer(req *http.Request) ([]byte, error) {
	if req.Method != http.MethodGet {
		return nil, fault.New(fault.CapabilityNotProvided, "an archive is read-only: %s %s needs a host", req.Method, req.URL.Path)
	}
	path, ctx := req.URL.Path, req.Context()
	if path == runsPath {
		return t.list(ctx, req.URL.Query())
	}
	rest, ok := strings.CutPrefix(path, runsPath+"/")
	id, what, _ := strings.Cut(rest, "/")
	id, verb, _ := strings.Cut(id, ":")
	if !ok {
		return nil, errNotHere(path)
	}
	a, err := t.run(ctx, id)
	if err != nil {
		return nil, err
	}
	switch {
	case what == "" && verb == "":
		return a.Snapshot, nil
	case what == "" && verb == "view" && len(a.View) > 0:
		return a.View, nil
	case what == "events/poll" && verb == "":
		return poll(a, req.URL.Query())
	case (what == "debug-bundle" || what == "archive") && verb == "":
		return a.Doc, nil
	}
	return nil, errNotHere(path)
}

func errNotHere(path string) error {
	return fault.New(fault.CapabilityNotProvided, "an archive has runs with their events, view and debug bundle; %s needs a host", path)
}

// run reads the archive of a run.
func (t *Transport) run(ctx context.Context, id string) (*archive.Archive, error) {
	names, err := t.target.List(ctx)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range names {
		if run, ok := archive.Named(name); !ok || run.RunID == id {
			found = append(found, name)
		}
	}
	var all []*archive.Archive
	for _, name := range found {
		a, err := t.read(ctx, name)
		if err != nil {
			if _, ok := archive.Named(name); !ok {
				continue // a file with another name, which may be anything
			}
			return nil, err
		}
		if a.RunID == id {
			all = append(all, a)
		}
	}
	switch len(all) {
	case 0:
		return nil, fault.New(fault.RunNotFound, "no run of this id in the archives of %s", t.target)
	case 1:
		return all[0], nil
	}
	return nil, fault.New(fault.Conflict, "%d archives are of a run with this id: %s; read one of them on its own", len(all), strings.Join(found, ", "))
}

// read reads an archive, and checks it.
func (t *Transport) read(ctx context.Context, name string) (*archive.Archive, error) {
	file, err := t.target.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	a, err := archive.Read(file)
	if damage, ok := errors.AsType[*archive.DamagedError](err); ok {
		return nil, fault.New(fault.LogDamaged, "archive %s: %s; waybill run import checks all archives", name, damage.Error())
	}
	return a, err
}

// all reads all archives, newest runs first.
func (t *Transport) all(ctx context.Context) ([]row, error) {
	names, err := t.target.List(ctx)
	if err != nil {
		return nil, err
	}
	rows := make([]row, len(names))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(reading)
	for i, name := range names {
		g.Go(func() error {
			a, err := t.read(ctx, name)
			if err != nil {
				return err
			}
			rows[i], err = summary(a)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(rows, func(a, b row) int { return strings.Compare(b.CreatedAt+b.RunID, a.CreatedAt+a.RunID) })
	return rows, nil
}
