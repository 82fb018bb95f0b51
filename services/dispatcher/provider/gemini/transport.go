package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"net/http"

	"google.golang.org/genai"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// keyHeader carries the key.
const keyHeader = "X-Goog-Api-Key"

// exchange is the state that a call shares with the transport below the SDK. The SDK passes on
// neither the headers of an error nor how a stream broke. Only the call's goroutine uses it.
type exchange struct {
	key provider.Secret
	// keyName says where the key is set.
	keyName string
	status  int
	header  http.Header
	labeled bool // as a stream of events
	// broken is the error that ended the stream, if any. The SDK only sees the end, because it
	// prints stream errors to the standard logger.
	broken error
	// counts are the latest counts of tokens.
	counts map[string]int64
	// arguments are the arguments of the functions called so far, as written by the model.
	arguments []json.RawMessage
}

// exchangeKey is the context key of the exchange.
type exchangeKey struct{}

// wire is the transport below the SDK. It sets the call's key, or a token of the project, and gives the SDK only events of
// limited size with data.
type wire struct {
	http.RoundTripper
	vertex *Vertex
}

// CloseIdleConnections is called by the http.Client method of that name.
func (w wire) CloseIdleConnections() {
	if c, ok := w.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

var errStray = errors.New("a request that belongs to no call")

// RoundTrip sends the request.
func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	x, ok := r.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil, errStray
	}
	r = r.Clone(r.Context())
	r.Header.Del(keyHeader)
	if w.vertex != nil {
		token, err := w.vertex.Token(r.Context())
		if err != nil {
			return nil, err
		}
		x.key = token
		r.Header.Set("Authorization", "Bearer "+string(token))
		maps.Copy(r.Header, w.vertex.Header)
	} else if x.key != "" {
		r.Header.Set(keyHeader, string(x.key))
	}
	res, err := w.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	x.status, x.header, x.labeled = res.StatusCode, res.Header, outbound.IsEventStream(res)
	if res.StatusCode == http.StatusOK {
		res.Body = newFrames(res.Body, x)
	}
	return res, nil
}

// count keeps the counts of an event, which are totals so far. A later zero does not replace a count.
func (x *exchange) count(counts map[string]int64) {
	if x.counts == nil {
		x.counts = map[string]int64{}
	}
	for name, n := range counts {
		if n > 0 || x.counts[name] == 0 {
			x.counts[name] = n
		}
	}
}

// note keeps the arguments of the functions in an event. The SDK decodes them into a map, which
// loses the order of members and digits of large numbers.
func (x *exchange) note(event []byte) {
	if !bytes.Contains(event, []byte(`"functionCall"`)) {
		return
	}
	var doc struct {
		Candidates []struct {
			Index   int
			Content struct {
				Parts []struct {
					FunctionCall *struct{ Args json.RawMessage }
				}
			}
		}
	}
	if json.Unmarshal(event, &doc) != nil {
		return // the SDK cannot read it either and returns the error
	}
	for _, c := range doc.Candidates {
		for _, p := range c.Content.Parts {
			if p.FunctionCall != nil && c.Index == 0 {
				x.arguments = append(x.arguments, p.FunctionCall.Args)
			}
		}
	}
}

// argumentsOf returns the arguments of the next call as text; empty for none.
func (x *exchange) argumentsOf(call *genai.FunctionCall) string {
	var raw json.RawMessage
	if len(x.arguments) > 0 {
		raw, x.arguments = x.arguments[0], x.arguments[1:]
	} else {
		raw, _ = json.Marshal(call.Args) // decoded values always render
	}
	if string(raw) == "null" {
		return ""
	}
	return outbound.AsSent(string(raw))
}

// pull reads a stream piece by piece; nil is its end. The SDK panics at unexpected documents, which
// pull converts to an error. A panic of the consumer stays one.
func pull(stream iter.Seq2[*genai.GenerateContentResponse, error]) (next func() (*genai.GenerateContentResponse, error), stop func()) {
	pulled, stop := iter.Pull2(stream)
	next = func() (r *genai.GenerateContentResponse, err error) {
		defer func() {
			if recover() != nil {
				r, err = nil, outbound.ErrGarbage
			}
		}()
		r, err, more := pulled()
		switch {
		case !more:
			return nil, nil
		case err == nil && r == nil:
			return nil, outbound.ErrGarbage
		}
		return r, err
	}
	return next, stop
}
