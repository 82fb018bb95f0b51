package rest

import (
	"context"
	"net/http"

	"waybill.dev/waybill/services/gateway/admission"
)

// accountKey is the context key of a request's account of bytes.
type accountKey struct{}

func withAccount(ctx context.Context, held *admission.Account) context.Context {
	return context.WithValue(ctx, accountKey{}, held)
}

// accountOf returns the account of an admitted request. Requests of routes without admission
// have none.
func accountOf(ctx context.Context) *admission.Account {
	held, _ := ctx.Value(accountKey{}).(*admission.Account)
	return held
}

// smallAnswer is not counted: the answers to changes fit in it, so none of them is lost.
const smallAnswer = 64 << 10

// accounted is an answer whose bytes are counted. When it begins, the request no longer
// needs its slot.
type accounted struct {
	http.ResponseWriter

	held  *admission.Account
	leave func()
	code  int
	began bool
	full  bool // the answer was replaced by an error
}

// WriteHeader waits for the size of the body.
func (a *accounted) WriteHeader(code int) {
	if a.code == 0 {
		a.code = code
	}
	if code == http.StatusNoContent || code == http.StatusNotModified {
		a.begin(0)
	}
}

// begin sends the headers. It answers 503 instead if a read has a large answer and too many
// are being sent.
func (a *accounted) begin(size int) {
	if a.began {
		return
	}
	a.began = true
	a.leave()
	if size > smallAnswer && a.code < http.StatusMultipleChoices {
		if err := a.held.Take(int64(size)); err != nil {
			a.full = true
			WriteError(a.ResponseWriter, nil, err)
			return
		}
	}
	a.ResponseWriter.WriteHeader(max(a.code, http.StatusOK))
}

// Write writes an answer, which the translation does in one call.
func (a *accounted) Write(p []byte) (int, error) {
	a.begin(len(p))
	if a.full {
		return len(p), nil
	}
	return a.ResponseWriter.Write(p)
}

// finish sends the headers of an answer without a body.
func (a *accounted) finish() {
	if a.code != 0 {
		a.begin(0)
	}
}

// Unwrap returns the real writer to http.ResponseController.
func (a *accounted) Unwrap() http.ResponseWriter { return a.ResponseWriter }
