package rest

import (
	"net/http"
	"strings"
)

// answerWriter wraps a writer where the route's answer needs it: conditional
// reads, and the media type of schemas.
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

// bare drops the body of an answer that has none.
type bare struct{ http.ResponseWriter }

// WriteHeader takes off what speaks of a body.
func (b *bare) WriteHeader(code int) {
	if code == http.StatusNoContent {
		b.Header().Del("Content-Type")
		b.ResponseWriter.WriteHeader(code)
		b.ResponseWriter = discard{b.ResponseWriter}
		return
	}
	b.ResponseWriter.WriteHeader(code)
}

// Unwrap gives http.ResponseController the real writer.
func (b *bare) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// discard is a writer whose answer is complete.
type discard struct{ http.ResponseWriter }

// Write takes everything and writes nothing.
func (discard) Write(p []byte) (int, error) { return len(p), nil }

// etagHeader is spelled as in the RFC, not in Go's canonical form; it is only
// ever used as a map key.
const etagHeader = "ETag"

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// conditional answers 304 without a body when the client has the current
// version.
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

// Unwrap gives http.ResponseController the real writer.
func (c *conditional) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// listed reports whether a tag is in an If-None-Match list; a weak spelling of
// it counts, as the comparison for reads is weak.
func listed(list, tag string) bool {
	for v := range strings.SplitSeq(list, ",") {
		v = strings.TrimPrefix(strings.TrimSpace(v), "W/")
		if v == tag || v == "*" {
			return true
		}
	}
	return false
}
