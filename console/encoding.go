package console

import (
	"strconv"
	"strings"
)

// The forms of a file, by the extension that the build gives them.
const (
	brotli  = ".br"
	gzipped = ".gz"
)

// encodings are the names that HTTP has for them.
var encodings = map[string]string{brotli: "br", gzipped: "gzip"}

// choose picks the smallest form that a client takes; "" is the plain one.
func (a *asset) choose(accept string) string {
	for _, form := range []string{brotli, gzipped} {
		if _, ok := a.forms[form]; ok && accepts(accept, encodings[form]) {
			return form
		}
	}
	return ""
}

// accepts reports whether an Accept-Encoding header takes an encoding (RFC 9110 §12.5.3).
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

// weight reads the parameter q; 1 if there is none, 0 if it cannot be read.
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
