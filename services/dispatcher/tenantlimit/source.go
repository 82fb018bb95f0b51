package tenantlimit

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

const (
	// maxFile limits the file, in bytes.
	maxFile = 4 << 20
	// pollInterval is how often the file is read.
	pollInterval = 2 * time.Second
)

// Source provides the limits of a file and follows its changes. The nil Source has no limits. It is
// safe for concurrent use.
type Source struct {
	file    string
	log     *slog.Logger
	current atomic.Pointer[Limits]
	// Only Run uses the fields below: the last document, and the last logged error.
	doc       []byte
	lastError string
}

// Open reads the file. An unreadable or invalid file is an error.
func Open(file string, log *slog.Logger) (*Source, error) {
	s := &Source{file: file, log: log}
	doc, err := readFile(file)
	if err != nil {
		return nil, err
	}
	limits, err := Parse(doc)
	if err != nil {
		return nil, err
	}
	s.doc = doc
	s.current.Store(limits)
	return s, nil
}

// readFile reads the file up to its size limit.
func readFile(file string) ([]byte, error) {
	f, err := os.Open(file) //nolint:gosec // G304: the operator names the file
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	doc, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(doc) > maxFile {
		err = fmt.Errorf("file has more than %d bytes", maxFile)
	}
	return doc, err
}

// For returns the current limits of a tenant.
func (s *Source) For(tenant string) Tenant {
	if s == nil {
		return (*Limits)(nil).For(tenant)
	}
	return s.current.Load().For(tenant)
}

// Run follows changes of the file until ctx ends.
func (s *Source) Run(ctx context.Context) error {
	if s == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	t := time.NewTicker(pollInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
			s.Reload()
		}
	}
}

// Reload reads the file once. A missing, half-written or invalid file leaves the limits unchanged;
// each such state is logged once.
func (s *Source) Reload() {
	doc, err := readFile(s.file)
	if err == nil {
		if bytes.Equal(doc, s.doc) {
			s.lastError = ""
			return
		}
		var limits *Limits
		if limits, err = Parse(doc); err == nil {
			s.doc, s.lastError = doc, ""
			s.current.Store(limits)
			s.log.Info("tenant limits reloaded", "file", s.file)
			return
		}
	}
	if why := err.Error(); why != s.lastError {
		s.lastError = why
		s.log.Error("tenant limits not reloaded; the previous ones hold", "file", s.file, "error", err)
	}
}
