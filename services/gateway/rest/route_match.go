package rest

import (
	"net/http"
	"strings"
)

// matches reports whether a path matches a pattern. A parameter matches one segment, up to
// the ":verb" if the pattern has one. It never includes a verb.
func matches(pattern, path string) bool {
	for {
		ps, patternRest, morePattern := strings.Cut(pattern, "/")
		as, pathRest, morePath := strings.Cut(path, "/")
		switch {
		case strings.HasPrefix(ps, "{"):
			if !matchesSegment(ps, as) {
				return false
			}
		case ps != as:
			return false
		}
		if !morePattern || !morePath {
			return morePattern == morePath
		}
		pattern, path = patternRest, pathRest
	}
}

// matchesSegment reports whether a segment is a parameter followed by the pattern's verb.
func matchesSegment(pattern, segment string) bool {
	_, want, _ := strings.Cut(pattern, "}")
	id, verb, found := strings.Cut(segment, ":")
	return id != "" && found == (want != "") && (!found || ":"+verb == want)
}

// find returns the route of a request. allowed lists the methods of the path if the
// request's is not among them.
func find(method, path string) (route *Route, allowed []string) {
	for i := range Routes {
		r := &Routes[i]
		if !matches(r.Path, path) {
			continue
		}
		if r.HTTP == method {
			return r, nil
		}
		allowed = append(allowed, r.HTTP)
	}
	if matches(EventsPath, path) || path == WatchPath {
		allowed = append(allowed, http.MethodGet)
	}
	return nil, allowed
}
