package postgres

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"waybill.dev/waybill/internal/runlog/cold"
)

// corrupt are the codes of errors by which the server reports that stored data is corrupt:
// https://www.postgresql.org/docs/current/errcodes-appendix.html.
var corrupt = []string{"XX001", "XX002"}

// classify converts an error to one of package cold. The driver's errors may quote the URL.
func classify(err error) error {
	if err == nil || errors.Is(err, cold.ErrDamaged) || errors.Is(err, cold.ErrUnavailable) || errors.Is(err, cold.ErrNotFound) {
		return err
	}
	if e, ok := errors.AsType[*pgconn.ConnectError](err); ok { // it may have a PgError, whose text names the user
		return fmt.Errorf("%w: connect to the database %s: %s", cold.ErrUnavailable, e.Config.Database, whyNot(err))
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && slices.Contains(corrupt, e.Code) {
		return fmt.Errorf("%w: %w", cold.ErrDamaged, err)
	}
	return fmt.Errorf("%w: %w", cold.ErrUnavailable, err)
}

// whyNot describes the cause of a failed connection without the user and the host.
func whyNot(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return "the server answered SQLSTATE " + e.Code
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return e.Err
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the server's certificate is for another host"
	}
	return lastError(err).Error()
}

// lastError returns the last cause of an error. The driver describes the others with the user and the host.
func lastError(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			break
		}
		err = next
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // the end of the chain
		if all := many.Unwrap(); len(all) > 0 {
			return lastError(all[len(all)-1])
		}
	}
	return err
}
