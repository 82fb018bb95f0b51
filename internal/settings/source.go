package settings

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
	// maxFile limits the file of a Source, in bytes.
	maxFile = 4 << 20
	// pollInterval is how often the file is read.
	pollInterval = 2 * time.Second
)

// Source provides the settings of a file and follows its changes. The nil Source provides the zero
// value of T. It is safe for concurrent use.
type Source[T any] struct {
	what, file string
	parse      func(doc []byte) (T, error)
	log        *slog.Logger
	current    atomic.Pointer[T]
	// Only Run uses the fields below: the last document, and the last logged error.
	doc       []byte
	lastError string
}

// Open reads a file. what names its content in the log, such as "tenant limits". An unreadable or
// invalid file is an error.
func Open[T any](what, file string, parse func(doc []byte) (T, error), log *slog.Logger) (*Source[T], error) {
	s := &Source[T]{what: what, file: file, parse: parse, log: log}
	doc, err := readFile(file)
	if err != nil {
		return nil, err
	}
	v, err := parse(doc)
	if err != nil {
		return nil, err
	}
	s.doc = doc
	s.current.Store(&v)
	return s, nil
}

// readFile reads a file up to its size limit.
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

// Current returns the current settings.
func (s *Source[T]) Current() (v T) {
	if s == nil {
		return v
	}
	return *s.current.Load()
}

// Run follows changes of the file until ctx ends.
func (s *Source[T]) Run(ctx context.Context) error {
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

// Reload reads the file once. A missing, half-written or invalid file leaves the settings unchanged;
// each such state is logged once.
func (s *Source[T]) Reload() {
	doc, err := readFile(s.file)
	if err == nil {
		if bytes.Equal(doc, s.doc) {
			s.lastError = ""
			return
		}
		var v T
		if v, err = s.parse(doc); err == nil {
			s.doc, s.lastError = doc, ""
			s.current.Store(&v)
			s.log.Info(s.what+" reloaded", "file", s.file)
			return
		}
	}
	if why := err.Error(); why != s.lastError {
		s.lastError = why
		s.log.Error(s.what+" not reloaded; the previous ones remain in effect", "file", s.file, "error", err)
	}
}
