// Package token makes signed tokens: a payload and its HMAC. They are used in the URLs of
// assets and interrupts.
//
// A token is not encrypted. Any holder can read its payload.
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

// Keys are the signing keys by version. The highest version signs. Tokens of the other
// versions stay valid, so that a key can be replaced.
type Keys map[int][]byte

// MinKey is the minimum length of a key, in bytes.
const MinKey = 32

// HostKey selects the key that is derived from the host's own secret.
const HostKey = "host"

// DeriveKey derives a signing key for one purpose from a secret.
func DeriveKey(secret []byte, purpose string) ([]byte, error) {
	return hkdf.Key(sha256.New, secret, nil, purpose, MinKey)
}

// ParseKeys parses an operator's keys, each VERSION=KEY. KEY is base64 of at least 32 random
// bytes, or HostKey. An empty list means the host's key as version 1. Errors name versions
// and positions, and never contain a key.
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
		return errors.New("must be VERSION=KEY: a whole number from 1, and base64 of 32 random bytes or the word host")
	}
	key := host
	if text != HostKey {
		if key = decodeKey(text); len(key) < MinKey {
			return fmt.Errorf("the key of version %d: must be base64 of at least %d random bytes, such as the output of openssl rand -base64 32", version, MinKey)
		}
	}
	for other, known := range k {
		if other == version {
			return fmt.Errorf("two keys have version %d", version)
		}
		if hmac.Equal(known, key) {
			return fmt.Errorf("versions %d and %d have the same key", other, version)
		}
	}
	k[version] = key
	return nil
}

// decodeKey decodes base64 in any alphabet, with or without padding; nil if it is invalid.
func decodeKey(text string) []byte {
	text = strings.TrimRight(text, "=")
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if key, err := enc.DecodeString(text); err == nil {
			return key
		}
	}
	return nil
}

// Secrets returns the keys in list as texts, for redaction.
func Secrets(list []string) []string {
	var out []string
	for _, item := range list {
		if _, text, _ := strings.Cut(item, "="); text != HostKey {
			out = append(out, text)
		}
	}
	return out
}

// Check reports why the keys cannot sign.
func (k Keys) Check() error {
	if len(k) == 0 {
		return errors.New("a signing key is required")
	}
	for _, version := range k.versions() {
		if version < 1 || len(k[version]) < MinKey {
			return fmt.Errorf("signing key %d: must have a version from 1, and at least %d bytes", version, MinKey)
		}
	}
	return nil
}

// For derives the keys of one purpose. A token of one purpose is never valid for another.
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

// Current returns the version that signs: the highest.
func (k Keys) Current() int {
	latest := 0
	for version := range k {
		latest = max(latest, version)
	}
	return latest
}

// versions returns all versions, the highest first.
func (k Keys) versions() []int {
	vs := slices.Sorted(maps.Keys(k))
	slices.Reverse(vs)
	return vs
}
