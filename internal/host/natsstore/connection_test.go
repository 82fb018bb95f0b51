package natsstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"testing"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

func TestHopeless_ReportsPermanentErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no server":                    {nats.ErrNoServers, false},
		"an unknown name":              {&net.DNSError{Name: "nats", IsNotFound: true}, false},
		"a server that is starting":    {io.EOF, false},
		"a server without an answer":   {context.DeadlineExceeded, false},
		"JetStream is not there yet":   {nats.ErrNoResponders, false},
		"a cluster without a leader":   {&js.APIError{Code: 503, ErrorCode: 10008}, false},
		"a cluster without peers":      {&js.APIError{Code: 400, ErrorCode: errNoPeers}, false},
		"a wrong password":             {nats.ErrAuthorization, true},
		"a wrong password, as text":    {errors.New("nats: Authorization Violation"), true},
		"credentials that are gone":    {fs.ErrNotExist, true},
		"a server that requires TLS":   {nats.ErrSecureConnRequired, true},
		"an untrusted certificate":     {&tls.CertificateVerificationError{Err: errors.New("unknown authority")}, true},
		"JetStream is off":             {&js.APIError{Code: 503, ErrorCode: errJetStreamOff}, true},
		"JetStream is off for us":      {&js.APIError{Code: 503, ErrorCode: errJetStreamAccount}, true},
		"copies that one cannot have":  {&js.APIError{Code: 500, ErrorCode: errNoReplicasHere}, true},
		"a stream that is another one": {&js.APIError{Code: 400, ErrorCode: 10058}, true},
	} {
		require.Equal(t, tc.want, Hopeless(fmt.Errorf("cannot connect: %w", tc.err)), name)
	}
}
