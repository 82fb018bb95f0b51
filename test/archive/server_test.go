// Package archive tests the archive of a host in a bucket of a real S3 server, whose binary WAYBILL_S3
// names (make integration ONLY=s3).
package archive

import (
	"context"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/freeport"
	"waybill.dev/waybill/test/harness"
)

func TestMain(m *testing.M) {
	m.Run()
	harness.Clean()
}

// The credential of the server.
const (
	accessKey = "AKIAWAYBILLTEST"
	secretKey = "the-secret-of-the-bucket"
	bucket    = "archive"
)

// server is an S3 server behind a proxy with faults.
type server struct {
	URL string
	// files is the directory of the bucket.
	files string

	mu sync.Mutex
	// fault answers a request in place of the server, and returns true; nil passes all on.
	fault func(w http.ResponseWriter, r *http.Request) bool
	// stored is called after the server has stored an object, before its answer is passed on.
	stored func()
	// writes and reads count requests.
	writes, reads int
}

// serve starts a server.
func serve(t *testing.T) *server {
	t.Helper()
	binary := os.Getenv("WAYBILL_S3")
	if binary == "" {
		t.Skip("SKIPPED, WAYBILL_S3 is unset: it names the binary of tools/s3")
	}
	dir, addr := t.TempDir(), freeport.Addr(t)
	files := filepath.Join(dir, bucket)
	require.NoError(t, os.Mkdir(files, 0o700))
	cmd := exec.CommandContext(t.Context(), binary, addr, dir)
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+accessKey, "AWS_SECRET_ACCESS_KEY="+secretKey)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // the context has ended
	to := &url.URL{Scheme: "http", Host: addr}
	require.Eventually(t, func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, to.String(), nil)
		require.NoError(t, err)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		return res.Body.Close() == nil
	}, 30*time.Second, 20*time.Millisecond, "the S3 server listens")

	s := &server{files: files}
	proxy := &httputil.ReverseProxy{
		// The signature of a request covers its host, which stays.
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
		ModifyResponse: func(res *http.Response) error {
			if s.count(res.Request.Method); res.Request.Method == http.MethodPut && res.StatusCode == http.StatusOK {
				s.seeStored()
			}
			return nil
		},
	}
	front := freeport.Addr(t)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := s.current(); f == nil || !f(w, r) {
			proxy.ServeHTTP(w, r)
		}
	})
	web := &http.Server{Addr: front, Handler: handler, ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = web.ListenAndServe() }()
	t.Cleanup(func() { _ = web.Close(); <-ended })
	s.URL = "http://" + front
	return s
}

func (s *server) current() func(http.ResponseWriter, *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

// set sets the fault.
func (s *server) set(f func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

func (s *server) count(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if method == http.MethodPut {
		s.writes++
	} else {
		s.reads++
	}
}

func (s *server) seeStored() {
	s.mu.Lock()
	f := s.stored
	s.mu.Unlock()
	if f != nil {
		f()
	}
}

// onStored sets what happens between the storage of an object and the answer.
func (s *server) onStored(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored = f
}

func (s *server) puts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// env is the environment of a client of the server.
func (s *server) env() []string {
	return []string{
		"AWS_ACCESS_KEY_ID=" + accessKey, "AWS_SECRET_ACCESS_KEY=" + secretKey, "AWS_ENDPOINT_URL_S3=" + s.URL,
		"AWS_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true",
	}
}

// command runs the command with the credential of the bucket.
func (s *server) command(t *testing.T, host string, args ...string) (out string, status int) {
	t.Helper()
	return s.commandWith(t, "WAYBILL_URL="+host, args...)
}

// commandWith runs the command with a variable that overrides the others.
func (s *server) commandWith(t *testing.T, variable string, args ...string) (out string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, harness.Binary(t), args...)
	cmd.Env = append(append(os.Environ(), s.env()...), "WAYBILL_TOKEN="+key, "HOME="+t.TempDir(), variable)
	b, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("run %v: %v", args, err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

// refuse answers writes with an error of S3.
func refuse(status int, code string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut {
			return false
		}
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>`+code+`</Code><Message>no room for `+secretKey[:3]+`</Message></Error>`)
		return true
	}
}
