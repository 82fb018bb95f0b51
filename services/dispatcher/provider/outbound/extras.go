package outbound

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// Extras are the operator's additions to every request to a server.
type Extras struct {
	// Headers are secret because some of them are keys of gateways.
	Headers map[string]provider.Secret
	Query   map[string]string
	// Body are members of the request's document. Objects are merged with those of the adapter;
	// other values replace the adapter's.
	Body map[string]json.RawMessage
}

// errNoObject is a request body that is no JSON object.
var errNoObject = errors.New("the request is no JSON object")

// Middleware makes the additions above an SDK's signature of the request, which includes them.
func (x Extras) Middleware(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	r, err := x.add(r)
	if err != nil {
		return nil, err
	}
	return next(r)
}

// add returns the request with the additions.
func (x Extras) add(r *http.Request) (*http.Request, error) {
	if len(x.Headers)+len(x.Query)+len(x.Body) == 0 {
		return r, nil
	}
	r = r.Clone(r.Context())
	for name, value := range x.Headers {
		r.Header.Set(name, string(value))
	}
	if len(x.Query) > 0 {
		q := r.URL.Query()
		for name, value := range x.Query {
			q.Set(name, value)
		}
		r.URL.RawQuery = q.Encode()
	}
	if len(x.Body) == 0 || r.Body == nil {
		return r, nil
	}
	sent, err := io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		return nil, err
	}
	merged, ok := mergeMembers(sent, x.Body)
	if !ok {
		return nil, errNoObject
	}
	r.ContentLength = int64(len(merged))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(merged)), nil }
	r.Body, err = r.GetBody()
	return r, err
}

// mergeMembers returns an object with further members. It keeps the order of the object's own, in
// which a model writes the properties of a schema.
func mergeMembers(object []byte, more map[string]json.RawMessage) (merged []byte, ok bool) {
	left := maps.Clone(more)
	w := bytes.NewBufferString("{")
	put := func(name string, value []byte) {
		if w.Len() > 1 {
			w.WriteByte(',')
		}
		key, _ := json.Marshal(name) // a string always renders
		w.Write(key)
		w.WriteByte(':')
		w.Write(value)
	}
	ok = strictjson.Each(object, func(name, value []byte) {
		if replacement, found := left[string(name)]; found {
			delete(left, string(name))
			value = mergeValues(value, replacement)
		}
		put(string(name), value)
	})
	for _, name := range slices.Sorted(maps.Keys(left)) {
		put(name, left[name])
	}
	w.WriteByte('}')
	return w.Bytes(), ok
}

// mergeValues merges two objects. Any other pair of values is the second.
func mergeValues(value, other []byte) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(other, &members) != nil || members == nil {
		return other
	}
	merged, ok := mergeMembers(value, members)
	if !ok {
		return other
	}
	return merged
}
