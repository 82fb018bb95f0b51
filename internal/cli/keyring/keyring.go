// Package keyring stores credentials of contexts in the operating system's keyring: the Secret
// Service of a Linux desktop, the keychain of macOS, the credential manager of Windows.
package keyring

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zalando/go-keyring"
)

// service is the name of the entries in the keyring.
const service = "waybill"

// patience limits the wait for a keyring. A locked keyring prompts the user, and never returns if
// the prompt is not answered.
const patience = time.Minute

// ErrNone is returned if the keyring has no such credential.
var ErrNone = errors.New("the keyring has no credential of this context and URL")

// Entry identifies a credential. It has the URL, so that the credential of one host is never used
// for another.
type Entry struct{ Context, URL string }

func (e Entry) user() string { return e.Context + " at " + e.URL }

// Get returns the credential of an entry. Errors: ErrNone.
func Get(ctx context.Context, e Entry) (string, error) {
	return within(ctx, func() (string, error) { return keyring.Get(service, e.user()) })
}

// ErrTooLong is returned if the credential exceeds the keyring's limit: 2,560 bytes on Windows,
// about 3,000 on macOS. A token with many claims can be longer.
var ErrTooLong = errors.New("the credential is too long for this keyring")

// Set stores the credential of an entry. Errors: ErrTooLong.
func Set(ctx context.Context, e Entry, secret string) error {
	_, err := within(ctx, func() (string, error) { return "", keyring.Set(service, e.user(), secret) })
	return err
}

// Delete deletes an entry. A missing entry is not an error.
func Delete(ctx context.Context, e Entry) error {
	_, err := within(ctx, func() (string, error) { return "", keyring.Delete(service, e.user()) })
	if errors.Is(err, ErrNone) {
		return nil
	}
	return err
}

// within calls the keyring with a time limit. The library takes no context, so a call that exceeds
// the limit continues until the process ends.
func within(ctx context.Context, call func() (string, error)) (string, error) {
	type answer struct {
		secret string
		err    error
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answered := make(chan answer, 1)
	go func() {
		secret, err := call()
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
		return "", fmt.Errorf("the keyring did not answer within %s; unlock it", patience)
	case errors.Is(a.err, context.Canceled):
		return "", a.err
	default:
		return "", fmt.Errorf("no usable keyring in this session: %w", a.err)
	}
}
