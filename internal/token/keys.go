// Package token makes texts that only this host can have made: a payload and a keyed
// hash of it. Assets and interrupts are reached by them.
//
// A token hides nothing: whoever has it can read the payload.
package token

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Keys are the signing keys by version. Tokens are signed with the highest; those
// of the others are still good, so that a key can be replaced.
type Keys map[int][]byte

// MinKey is the shortest key, in bytes.
const MinKey = 32

// HostKey stands for the key that derives from the host's own secret.
const HostKey = "host"

// DeriveKey makes a signing key of a secret, so that one secret serves several ends.
func DeriveKey(secret []byte, purpose string) ([]byte, error) {
	return hkdf.Key(sha256.New, secret, nil, purpose, MinKey)
}

// ParseKeys reads keys as an operator gives them, each VERSION=KEY: KEY is base64
// of at least 32 random bytes, or HostKey. An empty list is the host's key in
// version 1. Errors name versions and places and never repeat a key.
func ParseKeys(list []string, host []byte) (Keys, error) {
	if len(list) == 0 {
		list = []string{"1=" + HostKey}
	}
	keys := Keys{}
	var errs []error
	for i, item := range list {
		if err := keys.add(item, host); err != nil {
			errs = append(errs, fmt.Errorf("no. %d: %w", i+1, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return keys, nil
}

func (k Keys) add(item string, host []byte) error {
	number, text, found := strings.Cut(item, "=")
	version, err := strconv.Atoi(number)
	if !found || err != nil || version < 1 {
		return errors.New("want VERSION=KEY, with a whole number from 1 and base64 of 32 random bytes, or the word host")
	}
	key := host
	if text != HostKey {
		if key = decodeKey(text); len(key) < MinKey {
			return fmt.Errorf("the key of version %d: want base64 of at least %d random bytes, such as openssl rand -base64 32 gives", version, MinKey)
		}
	}
	for other, known := range k {
		if other == version {
			return fmt.Errorf("there are two keys of version %d", version)
		}
		if hmac.Equal(known, key) {
			return fmt.Errorf("versions %d and %d have the same key", other, version)
		}
	}
	k[version] = key
	return nil
}

// decodeKey reads base64 in any of its spellings; nil if it is none.
func decodeKey(text string) []byte {
	text = strings.TrimRight(text, "=")
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if key, err := enc.DecodeString(text); err == nil {
			return key
		}
	}
	return nil
}

// Secrets are the keys among list as texts, for whoever must keep them from
// showing.
func Secrets(list []string) []string {
	var out []string
	for _, item := range list {
		if _, text, _ := strings.Cut(item, "="); text != HostKey {
			out = append(out, text)
		}
	}
	return out
}

// Check says why the keys cannot sign.
func (k Keys) Check() error {
	if len(k) == 0 {
		return errors.New("needs a signing key")
	}
	for _, version := range k.versions() {
		if version < 1 || len(k[version]) < MinKey {
			return fmt.Errorf("signing key %d: needs a version from 1 and %d bytes", version, MinKey)
		}
	}
	return nil
}

// For gives keys for one purpose: a token of one is never good for another, though
// both come of the same keys.
func (k Keys) For(purpose string) (Keys, error) {
	out := Keys{}
	for version, key := range k {
		derived, err := DeriveKey(key, purpose)
		if err != nil {
			return nil, err
		}
		out[version] = derived
	}
	return out, nil
}

// Current is the version that signs: the highest.
func (k Keys) Current() int {
	latest := 0
	for version := range k {
		latest = max(latest, version)
	}
	return latest
}

// versions are those there are, the newest first.
func (k Keys) versions() []int {
	vs := slices.Sorted(maps.Keys(k))
	slices.Reverse(vs)
	return vs
}
