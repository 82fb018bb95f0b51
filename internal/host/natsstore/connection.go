package natsstore

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/runlog"
)

// A server that has fallen silent is given up after so many pings.
const (
	pingEvery = 2 * time.Second
	pingsOut  = 2
)

// natsOptions are those of a connection that outlives its server: it never gives
// up, it notices soon, and it keeps nothing back for later, so that callers learn
// at once that the log is away.
func natsOptions(log *slog.Logger) []nats.Option {
	return []nats.Option{
		nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectBufSize(-1), nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pingsOut),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // nil: closed on purpose
				log.Warn("NATS has gone", "error", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			log.Warn("NATS is back")
			warnOfPayload(nc, log)
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn("NATS complains", "error", err) }),
	}
}

// warnOfPayload tells when a server takes less at a time than an envelope can
// cause. It is no reason to end: most envelopes are small.
func warnOfPayload(nc *nats.Conn, log *slog.Logger) {
	if limit := nc.MaxPayload(); limit < runlog.MaxFrameBytes {
		log.Warn("the NATS server refuses large envelopes: raise its max_payload", "max_payload", limit, "needed", runlog.MaxFrameBytes)
	}
}

// Codes of the server for what no other try changes. That replicas cannot be had
// from a single server comes as an error of its own, not as one of the request.
const (
	errNoPeers          = 10005 // a cluster that is still gathering says so as well
	errNoReplicasHere   = 10074
	errJetStreamOff     = 10076
	errJetStreamAccount = 10039
)

// Hopeless reports that waiting does not mend an error: the server is there, and
// lets us not in, or cannot keep the log as it must be kept.
func Hopeless(err error) bool {
	if api, ok := errors.AsType[*js.APIError](err); ok {
		switch int(api.ErrorCode) {
		case errNoReplicasHere, errJetStreamOff, errJetStreamAccount:
			return true
		case errNoPeers:
			return false
		}
		return api.Code == http.StatusBadRequest
	}
	for _, hard := range []error{
		nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired,
		nats.ErrSecureConnRequired, nats.ErrSecureConnWanted, nats.ErrNkeysNotSupported, fs.ErrNotExist, fs.ErrPermission,
	} {
		if errors.Is(err, hard) {
			return true
		}
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	// The client hands this one on as the server's text.
	return strings.Contains(strings.ToLower(err.Error()), nats.AUTHORIZATION_ERR)
}
