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

// A connection to a silent server is closed after this many pings.
const (
	pingEvery = 2 * time.Second
	pingsOut  = 2
)

// natsOptions are the options of a connection that survives restarts of its server. It reconnects
// forever, detects a loss soon, and buffers nothing, so that callers get errors immediately.
func natsOptions(log *slog.Logger) []nats.Option {
	return []nats.Option{
		nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectBufSize(-1), nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pingsOut),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // nil means closed on purpose
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

// warnOfPayload logs a warning if max_payload is too small for the largest envelopes. It is not an
// error, because most envelopes are small.
func warnOfPayload(nc *nats.Conn, log *slog.Logger) {
	if limit := nc.MaxPayload(); limit < runlog.MaxFrameBytes {
		log.Warn("the NATS server refuses large envelopes: raise its max_payload", "max_payload", limit, "needed", runlog.MaxFrameBytes)
	}
}

// Error codes of the server that retries do not change. A single server that gets a request for replicas
// answers with a code of its own, not with that of a bad request.
const (
	errNoPeers          = 10005 // also the error of a cluster that still forms
	errNoReplicasHere   = 10074
	errJetStreamOff     = 10076
	errJetStreamAccount = 10039
)

// Hopeless reports whether retries cannot help: the server denies access, or cannot keep the log
// as it must be kept.
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
	// The client passes this error on as text.
	return strings.Contains(strings.ToLower(err.Error()), nats.AUTHORIZATION_ERR)
}
