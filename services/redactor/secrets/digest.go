package secrets

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"waybill.dev/waybill/services/redactor/redact"
)

// A digest starts with the kind of its scope.
const (
	runPrefix    = "run:"
	tenantPrefix = "tenant:"
)

// digestBytes is long enough to prevent collisions.
const digestBytes = 20

// maxRegistrations limits the memory of a scope. A run's keys are registered together, and
// each again when it is used.
const maxRegistrations = 256

// digest identifies a set of secrets of a scope, independent of order and duplicates. It
// is the same in every process.
func digest(scope Scope, list []redact.Secret) string {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b redact.Secret) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Value, b.Value)) })
	h := sha256.New()
	write := func(s string) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		_, _ = h.Write(n[:])
		_, _ = h.Write([]byte(s))
	}
	write(scope.Tenant)
	write(scope.Run)
	for _, s := range slices.Compact(list) {
		write(s.ID)
		write(string(s.Value))
	}
	kind := runPrefix
	if scope.Run == "" {
		kind = tenantPrefix
	}
	return kind + hex.EncodeToString(h.Sum(nil)[:digestBytes])
}
