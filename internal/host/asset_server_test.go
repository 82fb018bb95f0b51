package host

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/services/gateway/rest"
)

// held is an acceptor whose answers wait.
type held struct {
	acceptorv1.AcceptorClient
	asked, answer chan struct{}
}

func (h held) GetAsset(context.Context, *acceptorv1.GetAssetRequest, ...grpc.CallOption) (*acceptorv1.GetAssetResponse, error) {
	h.asked <- struct{}{}
	<-h.answer
	return &acceptorv1.GetAssetResponse{Data: []byte("data"), MimeType: "text/plain"}, nil
}

// The asset server of an acceptor limits what readers of one address hold, as a gateway does.
func TestAssetServer_LimitsReaders(t *testing.T) {
	t.Parallel()
	o := DefaultAcceptorProcess("")
	o.Assets.Admission.MaxUnknown = 2
	slow := held{asked: make(chan struct{}), answer: make(chan struct{})}
	h := assetHandler(&rest.Assets{Acceptor: slow}, o.assetGate(), slog.New(slog.DiscardHandler))
	get := func(address string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, rest.AssetsPrefix+"token", nil)
		r.RemoteAddr = address
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code == http.StatusServiceUnavailable {
			require.NotEmpty(t, w.Header().Get("Retry-After"))
		}
		return w.Code
	}
	codes := make(chan int)
	for range 2 {
		go func() { codes <- get("10.0.0.1:1") }()
		<-slow.asked
	}
	require.Equal(t, http.StatusServiceUnavailable, get("10.0.0.1:2"))
	go func() { codes <- get("10.0.0.2:1") }()
	<-slow.asked
	close(slow.answer)
	for range 3 {
		require.Equal(t, http.StatusOK, <-codes)
	}
	go func() { <-slow.asked }()
	require.Equal(t, http.StatusOK, get("10.0.0.1:3"), "the places are given back")
}
