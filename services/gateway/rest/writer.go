package rest

import (
	"net/http"
	"strings"
)

// answerWriter wraps a writer for conditional reads, schemas and answers without a body.
func answerWriter(w http.ResponseWriter, r *http.Request, route *Route) http.ResponseWriter {
	if route.Success == http.StatusNoContent {
		return &bare{w}
	}
	schema := strings.HasPrefix(route.Path, "/schemas/")
	none := r.Header.Get("If-None-Match")
	if !schema && none == "" {
		return w
	}
	return &conditional{ResponseWriter: w, none: none, schema: schema}
}

// bare drops the body of an answer with status 204.
type bare struct{ http.ResponseWriter }

// WriteHeader removes headers that describe a body.
func (b *bare) WriteHeader(code int) {
	if code == http.StatusNoContent {
		b.Header().Del("Content-Type")
		b.ResponseWriter.WriteHeader(code)
		b.ResponseWriter = discard{b.ResponseWriter}
		return
	}
	b.ResponseWriter.WriteHeader(code)
}

// Unwrap returns the real writer to http.ResponseController.
func (b *bare) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// discard ignores writes after the answer is complete.
type discard struct{ http.ResponseWriter }

// Write discards p.
func (discard) Write(p []byte) (int, error) { return len(p), nil }

// etagHeader is spelled as in the RFC, which is not Go's canonical form. Use it only as a
// map key.
const etagHeader = "ETag"

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// conditional answers 304 without a body if the client has the current version.
type conditional struct {
	http.ResponseWriter
	none   string
	schema bool
	wrote  bool
	match  bool
}

// WriteHeader decides whether the client needs the body.
func (c *conditional) WriteHeader(code int) {
	if c.wrote {
		return
	}
	c.wrote = true
	if code == http.StatusOK && c.schema {
		c.Header().Set("Content-Type", "application/schema+json")
	}
	tag := first(c.Header()[etagHeader]) //nolint:staticcheck // SA1008: set under this very key
	if code == http.StatusOK && tag != "" && listed(c.none, tag) {
		c.match = true
		c.Header().Del("Content-Type")
		code = http.StatusNotModified
	}
	c.ResponseWriter.WriteHeader(code)
}

// Write drops the body of a 304.
func (c *conditional) Write(b []byte) (int, error) {
	c.WriteHeader(http.StatusOK)
	if c.match {
		return len(b), nil
	}
	return c.ResponseWriter.Write(b)
}

// Unwrap returns the real writer to http.ResponseController.
func (c *conditional) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// listed reports whether a tag is in an If-None-Match list. Comparison is weak, as for all
// reads.
func listed(list, tag string) bool {
	for v := range strings.SplitSeq(list, ",") {
		v = strings.TrimPrefix(strings.TrimSpace(v), "W/")
		if v == tag || v == "*" {
			return true
		}
	}
	return false
}
