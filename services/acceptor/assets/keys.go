package assets

import (
	"crypto/hmac"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Keys are the signing keys by version. Tokens are signed with the highest; those
// of the others are still good, so that a key can be replaced.
type Keys map[int][]byte

// minKey is the shortest key, in bytes.
const minKey = 32

// HostKey stands for the key that derives from the host's own secret.
const HostKey = "host"

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
		if key = decodeKey(text); len(key) < minKey {
			return fmt.Errorf("the key of version %d: want base64 of at least %d random bytes, such as openssl rand -base64 32 gives", version, minKey)
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

func (k Keys) current() int {
	latest := 0
	for version := range k {
		latest = max(latest, version)
	}
	return latest
}
