package console

import (
	"strconv"
	"strings"
)

// The encodings of a file, by file name extension.
const (
	brotli  = ".br"
	gzipped = ".gz"
)

// encodings are their names in HTTP.
var encodings = map[string]string{brotli: "br", gzipped: "gzip"}

// choose returns the smallest encoding that a client accepts; "" is unencoded.
func (a *asset) choose(accept string) string {
	for _, form := range []string{brotli, gzipped} {
		if _, ok := a.forms[form]; ok && accepts(accept, encodings[form]) {
			return form
		}
	}
	return ""
}

// accepts reports whether an Accept-Encoding header allows an encoding (RFC 9110 §12.5.3).
func accepts(header, encoding string) bool {
	star := false
	for item := range strings.SplitSeq(header, ",") {
		name, params, _ := strings.Cut(item, ";")
		takes := weight(params) > 0
		switch name = strings.TrimSpace(name); {
		case strings.EqualFold(name, encoding):
			return takes
		case name == "*":
			star = takes
		}
	}
	return star
}

// weight parses the parameter q: 1 if missing, 0 if invalid.
func weight(params string) float64 {
	name, value, found := strings.Cut(strings.TrimSpace(params), "=")
	if !found || !strings.EqualFold(strings.TrimSpace(name), "q") {
		return 1
	}
	q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil {
		return 0
	}
	return q
}
