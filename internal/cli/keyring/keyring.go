// Package keyring keeps credentials of contexts in the keyring of the operating system:
// the Secret Service of a desktop, the keychain of macOS, the credential manager of
// Windows.
package keyring

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zalando/go-keyring"
)

// service is what keyrings show entries under.
const service = "waybill"

// patience is how long a keyring may take: it asks whoever sits there to unlock it, and
// where nobody does, it never answers.
const patience = time.Minute

// ErrNone says that the keyring has no such credential.
var ErrNone = errors.New("the keyring has no credential of this context and URL")

// Entry names a credential. The URL is part of it, so that what is kept for one host is
// never found for another.
type Entry struct{ Context, URL string }

func (e Entry) user() string { return e.Context + " at " + e.URL }

// Get gives the credential of an entry. Errors: ErrNone.
func Get(ctx context.Context, e Entry) (string, error) {
	return within(ctx, func() (string, error) { return keyring.Get(service, e.user()) })
}

// ErrTooLong says that there is a keyring which does not take a credential of that length:
// that of Windows ends at 2,560 bytes and that of macOS at some 3,000, and a token with many
// claims is longer.
var ErrTooLong = errors.New("the credential is longer than this keyring takes")

// Set keeps the credential of an entry. Errors: ErrTooLong.
func Set(ctx context.Context, e Entry, secret string) error {
	_, err := within(ctx, func() (string, error) { return "", keyring.Set(service, e.user(), secret) })
	return err
}

// Delete forgets an entry. That there is none is no error.
func Delete(ctx context.Context, e Entry) error {
	_, err := within(ctx, func() (string, error) { return "", keyring.Delete(service, e.user()) })
	if errors.Is(err, ErrNone) {
		return nil
	}
	return err
}

// within does not wait for ever: the library has no way to be told to stop, and what it
// still does ends with the process.
func within(ctx context.Context, ask func() (string, error)) (string, error) {
	type answer struct {
		secret string
		err    error
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answered := make(chan answer, 1)
	go func() {
		secret, err := ask()
		answered <- answer{secret, err}
	}()
	var a answer
	select {
	case a = <-answered:
	case <-ctx.Done():
		a.err = ctx.Err()
	}
	switch {
	case a.err == nil:
		return a.secret, nil
	case errors.Is(a.err, keyring.ErrNotFound):
		return "", ErrNone
	case errors.Is(a.err, keyring.ErrSetDataTooBig):
		return "", ErrTooLong
	case errors.Is(a.err, context.DeadlineExceeded):
		return "", fmt.Errorf("the keyring did not answer within %s: is it locked, and nobody there to unlock it", patience)
	case errors.Is(a.err, context.Canceled):
		return "", a.err
	default:
		return "", fmt.Errorf("this session has no keyring that can be used: %w", a.err)
	}
}
